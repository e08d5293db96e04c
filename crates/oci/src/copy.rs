//! Copies an artifact between repositories: blobs first, manifests after what they name, the top one last.

use freehold_protocol::Digest;
use freehold_protocol::order::{Artifact, Descriptor};
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};

use super::platform::{check_config, choose};
use super::referrers::copy_referrers;
use super::tree::{self, Tree};
use super::upload::Placed;
use super::{BLOBS_AT_ONCE, BlobSource, Manifest, Platforms, RegistryError, Repository, Version, digest_tag};

/// What is copied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CopyOptions {
    pub platforms: Platforms,
    /// Leaves signatures, statements and other referrers of the artifact where they are.
    pub without_referrers: bool,
}

/// What a copy did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    pub artifact: Artifact,
    /// Whether the artifact is the source's, byte for byte. With chosen platforms it is a new index when these are not
    /// all; what refers to the source's index does not refer to the new one then, and is not copied.
    pub whole: bool,
    /// Whether the target held it before.
    pub unchanged: bool,
    pub moved: Moved,
    /// The manifests that refer to the artifact and are in the target now.
    pub referrers: Vec<Descriptor>,
}

/// What became of the blobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    /// Blobs that the target held.
    pub held: usize,
    /// Blobs that the registry took from another of its repositories.
    pub mounted: usize,
    /// Blobs that were sent, and their bytes.
    pub sent: usize,
    pub sent_bytes: u64,
}

impl Moved {
    fn add(&mut self, placed: Placed, size: u64) {
        match placed {
            Placed::Held => self.held += 1,
            Placed::Mounted => self.mounted += 1,
            Placed::Sent => {
                self.sent += 1;
                self.sent_bytes += size;
            }
        }
    }
}

/// Copies what `version` names in `from` into `to`, with what refers to it, and returns what it is made of. What `to`
/// holds already is not fetched: an artifact that is there costs one request to `to`. Doing it again changes nothing.
///
/// # Errors
/// [`RegistryError`].
pub async fn copy(
    from: &Repository,
    version: &Version,
    to: &Repository,
    options: &CopyOptions,
) -> Result<Copied, RegistryError> {
    let original = from.manifest(version).await?;
    let chosen = match &options.platforms {
        Platforms::All => None,
        Platforms::Only(chosen) if original.is_index() => choose(&original, chosen)?,
        Platforms::Only(chosen) => {
            let parts = original.parts().map_err(|detail| from.bad(&format!("manifest `{version}`"), detail))?;
            if let Some(config) = parts.blobs.first() {
                check_config(&from.small_blob(config).await?, chosen)?;
            }
            None
        }
    };
    let whole = chosen.is_none();
    let Tree { manifests, artifact } = tree::read(from, chosen.unwrap_or(original)).await?;
    let mut moved = Moved::default();
    let unchanged = is_there(to, &artifact.digest).await?;
    if !unchanged {
        move_blobs(from, to, &artifact.blobs, &mut moved).await?;
        push_manifests(to, &manifests).await?;
    }
    drop(manifests);
    let referrers = match artifact.manifests.last() {
        Some(subject) if whole && !options.without_referrers => copy_referrers(from, to, subject, &mut moved).await?,
        Some(_) | None => Vec::new(),
    };
    Ok(Copied { artifact, whole, unchanged, moved, referrers })
}

/// Returns whether `to` holds the artifact under its tag. As manifests are pushed after what they name and the tag with
/// the last of them, it stands for all.
async fn is_there(to: &Repository, digest: &Digest) -> Result<bool, RegistryError> {
    let found = to.manifest_digest(&Version::Tag(digest_tag(digest))).await?;
    Ok(found.is_some_and(|found| found == *digest))
}

/// Makes `to` hold `blobs`, several at once.
pub(crate) async fn move_blobs(
    from: &Repository,
    to: &Repository,
    blobs: &[Descriptor],
    moved: &mut Moved,
) -> Result<(), RegistryError> {
    let source = BlobSource::Repository(from.clone());
    let mut placed = stream::iter(blobs.iter().cloned())
        .map(|blob| {
            let source = &source;
            async move { to.place_blob(&blob, source).await.map(|placed| (placed, blob.size)) }
        })
        .buffer_unordered(BLOBS_AT_ONCE);
    while let Some((placed, size)) = placed.try_next().await? {
        moved.add(placed, size);
    }
    Ok(())
}

/// Returns the blobs that `to` does not hold.
///
/// # Errors
/// [`RegistryError`].
pub async fn missing_blobs(to: &Repository, blobs: &[Descriptor]) -> Result<Vec<Descriptor>, RegistryError> {
    stream::iter(blobs.iter().cloned())
        .map(|blob| async move { Ok((to.has_blob(&blob.digest).await?, blob)) })
        .buffered(BLOBS_AT_ONCE * 2)
        .try_filter_map(|(held, blob)| async move { Ok((!held).then_some(blob)) })
        .try_collect()
        .await
}

/// Pushes blobs, a few at once.
///
/// # Errors
/// The first [`RegistryError`]; other uploads are given up then.
pub async fn push_missing_blobs(to: &Repository, blobs: Vec<(Descriptor, BlobSource)>) -> Result<(), RegistryError> {
    stream::iter(blobs)
        .map(|(blob, source)| async move { to.push_blob(&blob, &source).await })
        .buffer_unordered(BLOBS_AT_ONCE)
        .try_collect::<()>()
        .await
}

/// Pushes manifests in the given order, all but the last by digest, the last by its digest's tag too.
///
/// # Errors
/// [`RegistryError`].
pub async fn push_manifests(to: &Repository, manifests: &[Manifest]) -> Result<(), RegistryError> {
    let Some((top, below)) = manifests.split_last() else { return Ok(()) };
    for manifest in below {
        push_by_digest(to, manifest).await?;
    }
    push_top_manifest(to, top).await
}

/// Pushes one manifest under its digest where it is not there; returns whether the registry lists it with its subject by
/// itself.
pub(crate) async fn push_by_digest(to: &Repository, manifest: &Manifest) -> Result<bool, RegistryError> {
    let version = Version::Digest(manifest.digest.clone());
    if to.manifest_digest(&version).await?.is_some() {
        return Ok(false);
    }
    to.put_manifest(manifest, &version).await
}

/// Pushes the manifest that names an artifact, under [`digest_tag`], and reads it back by digest.
///
/// A tag keeps lifecycle rules from removing the artifact as untagged. Tags are immutable on ECR and pushing one again is
/// an error even when it names the same manifest, so a tag that is right already counts as success.
///
/// # Errors
/// [`RegistryError`].
pub async fn push_top_manifest(to: &Repository, top: &Manifest) -> Result<(), RegistryError> {
    let tag = digest_tag(&top.digest);
    let version = Version::Tag(tag.clone());
    let check = |found: Option<Digest>| match found {
        Some(found) if found == top.digest => Ok(true),
        Some(found) => {
            let expected = top.digest.clone();
            Err(RegistryError::TagTaken { repository: to.address(), tag: tag.clone(), found, expected })
        }
        None => Ok(false),
    };
    if !check(to.manifest_digest(&version).await?)?
        && let Err(error) = to.push_manifest(top, &version).await
        && !check(to.manifest_digest(&version).await?)?
    {
        return Err(error);
    }
    // The bytes, not a header: what is reported as there can be pulled.
    to.manifest(&Version::Digest(top.digest.clone())).await.map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Login, client};

    /// Whoever runs jobs on several threads needs it, and a closure over a reference is enough to lose it.
    #[test]
    fn a_copy_can_move_between_threads() {
        fn moves<T: Send>(_: T) {}
        let repository =
            Repository::new(client().expect("client"), "localhost", "a", Login::Anonymous).expect("repository");
        let (version, options) = (Version::Tag("v1".into()), CopyOptions::default());

        moves(copy(&repository, &version, &repository, &options));
        moves(push_missing_blobs(&repository, Vec::new()));
        moves(push_manifests(&repository, &[]));
    }
}

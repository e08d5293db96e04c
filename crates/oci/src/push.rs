//! Pushes blobs and manifests into a repository: several blobs at once, and each manifest after the manifests that it
//! names.

use freehold_protocol::Digest;
use freehold_protocol::order::Descriptor;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};

use super::upload::Placed;
use super::{BLOBS_AT_ONCE, BlobSource, Manifest, RegistryError, Repository, Version, digest_tag};

/// Counts of the blobs of a copy, by the way in which they got into the target.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    /// The number of blobs that the target already had.
    pub held: usize,
    /// The number of blobs that the registry mounted from another of its repositories.
    pub mounted: usize,
    /// The number of blobs that were sent; `sent_bytes` is their total size.
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

/// Transfers `blobs` to `to`, several at once, and counts them in `moved`. Skips blobs that `to` already has.
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

/// Returns those of `blobs` that `to` does not have.
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

/// Pushes each blob from its source, several at once.
///
/// # Errors
/// The first [`RegistryError`]; the other uploads are cancelled then.
pub async fn push_missing_blobs(to: &Repository, blobs: Vec<(Descriptor, BlobSource)>) -> Result<(), RegistryError> {
    stream::iter(blobs)
        .map(|(blob, source)| async move { to.push_blob(&blob, &source).await })
        .buffer_unordered(BLOBS_AT_ONCE)
        .try_collect::<()>()
        .await
}

/// Pushes manifests in the given order: the last under its [`digest_tag`], all others by digest.
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

/// Pushes one manifest by digest unless the registry already has it. Returns true when the response states that the
/// registry lists the manifest as a referrer of its subject.
pub(crate) async fn push_by_digest(to: &Repository, manifest: &Manifest) -> Result<bool, RegistryError> {
    let version = Version::Digest(manifest.digest.clone());
    if to.manifest_digest(&version).await?.is_some() {
        return Ok(false);
    }
    to.put_manifest(manifest, &version).await
}

/// Pushes the top manifest of an artifact under its [`digest_tag`], and reads it back by digest.
///
/// # Errors
/// [`RegistryError`].
pub async fn push_top_manifest(to: &Repository, top: &Manifest) -> Result<(), RegistryError> {
    push_by_own_tag(to, top).await?;
    // Reads the whole manifest and not only its header: an artifact that is reported as stored must be available.
    to.manifest(&Version::Digest(top.digest.clone())).await.map(|_| ())
}

/// Pushes one manifest under its [`digest_tag`] unless this tag already names it. Returns true when the response states
/// that the registry lists the manifest as a referrer of its subject.
///
/// The tag protects the manifest from lifecycle rules, which remove untagged manifests. On ECR, tags are immutable, and
/// a second push of a tag is an error even when it names the same manifest. So a tag that already names the manifest
/// counts as success.
pub(crate) async fn push_by_own_tag(to: &Repository, manifest: &Manifest) -> Result<bool, RegistryError> {
    let tag = digest_tag(&manifest.digest);
    let version = Version::Tag(tag.clone());
    let check = |found: Option<Digest>| match found {
        Some(found) if found == manifest.digest => Ok(true),
        Some(found) => {
            let expected = manifest.digest.clone();
            Err(RegistryError::TagTaken { repository: to.address(), tag: tag.clone(), found, expected })
        }
        None => Ok(false),
    };
    if check(to.manifest_digest(&version).await?)? {
        return Ok(false);
    }
    match to.put_manifest(manifest, &version).await {
        Ok(listed) => Ok(listed),
        // Another client may have pushed the same manifest at the same time.
        Err(error) if matches!(error, RegistryError::WrongDigest { .. }) => Err(error),
        Err(_) if check(to.manifest_digest(&version).await?)? => Ok(false),
        Err(error) => Err(error),
    }
}

//! Copies an artifact between repositories: blobs first, then manifests with the top manifest last, then referrers.

use freehold_protocol::Digest;
use freehold_protocol::order::{Artifact, Descriptor};

use super::platform::{check_config, choose};
use super::push::{Moved, move_blobs, push_manifests};
use super::referrers::copy_referrers;
use super::tree::{self, Tree};
use super::{Platforms, RegistryError, Repository, Version, digest_tag};

/// The parts of an artifact that a copy includes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CopyOptions {
    pub platforms: Platforms,
    /// If true, signatures, statements and other referrers of the artifact are not copied.
    pub without_referrers: bool,
}

/// The result of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    pub artifact: Artifact,
    /// True if the artifact in the target has the same digest as in the source. It is false when the choice leaves out
    /// platforms: the target then gets a new index. Referrers of the source's index do not refer to the new index, so
    /// they are not copied.
    pub whole: bool,
    /// True if the target already had the artifact before the copy.
    pub unchanged: bool,
    pub moved: Moved,
    /// The manifests that refer to the artifact and are in the target after the copy; empty when referrers are not
    /// copied.
    pub referrers: Vec<Descriptor>,
}

/// Copies the artifact `version` of `from`, with its referrers, into `to`. Blobs that `to` already has are not fetched.
/// An artifact that `to` already has costs one request to `to`, and further requests for its referrers. A repeated copy
/// changes nothing.
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

/// Returns whether `to` has the artifact under its tag. The tag shows that the copy is complete, because the tag is
/// pushed last: after the blobs and the other manifests.
async fn is_there(to: &Repository, digest: &Digest) -> Result<bool, RegistryError> {
    let found = to.manifest_digest(&Version::Tag(digest_tag(digest))).await?;
    Ok(found.is_some_and(|found| found == *digest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Login, client, push_missing_blobs};

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

//! Copies an artifact between repositories: blobs first, manifests after what they name, the top one last.

use std::collections::BTreeSet;

use freehold_protocol::Digest;
use freehold_protocol::order::{Artifact, Descriptor};
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};

use super::{BLOBS_AT_ONCE, BlobSource, Manifest, RegistryError, Repository, Version, digest_tag};

/// The most manifests that one artifact may have: platforms and their attestations.
const MAX_MANIFESTS: usize = 500;

/// Copies what `version` names in `from`, every platform of an index, into `to`, and returns what it is made of.
/// What `to` holds already is not fetched; doing it again changes nothing.
///
/// # Errors
/// [`RegistryError`].
pub async fn copy(from: &Repository, version: &Version, to: &Repository) -> Result<Artifact, RegistryError> {
    let (manifests, artifact) = read(from, version).await?;
    let missing = missing_blobs(to, &artifact.blobs).await?;
    let sources = missing.into_iter().map(|blob| (blob, BlobSource::Repository(from.clone()))).collect();
    push_missing_blobs(to, sources).await?;
    push_manifests(to, &manifests).await?;
    Ok(artifact)
}

/// Reads a manifest and all below it; children come before their index.
async fn read(from: &Repository, version: &Version) -> Result<(Vec<Manifest>, Artifact), RegistryError> {
    let unusable = |detail: String| RegistryError::BadAnswer {
        host: from.address(),
        what: format!("manifest `{version}`"),
        detail,
    };
    let top = from.manifest(version).await?;
    let (digest, media_type) = (top.digest.clone(), top.media_type.clone());
    let mut blobs: Vec<Descriptor> = Vec::new();
    // Parents first here; turned round at the end, so that every child is pushed before what names it.
    let mut order: Vec<Manifest> = Vec::new();
    let mut queue = vec![top];
    let mut seen = BTreeSet::new();
    while let Some(manifest) = queue.pop() {
        if !seen.insert(manifest.digest.clone()) {
            continue;
        }
        if seen.len() > MAX_MANIFESTS {
            return Err(unusable(format!("it has more than {MAX_MANIFESTS} manifests")));
        }
        let parts = manifest.parts().map_err(&unusable)?;
        order.push(manifest);
        blobs.extend(parts.blobs);
        for child in parts.manifests.into_iter().rev() {
            queue.push(from.manifest(&Version::Digest(child.digest)).await?);
        }
    }
    order.reverse();
    let mut named = BTreeSet::new();
    blobs.retain(|blob| named.insert(blob.digest.clone()));
    let manifests = order.iter().map(Manifest::descriptor).collect();
    Ok((order, Artifact { digest, media_type, manifests, blobs }))
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
        let version = Version::Digest(manifest.digest.clone());
        if to.manifest_digest(&version).await?.is_none() {
            to.push_manifest(manifest, &version).await?;
        }
    }
    push_top_manifest(to, top).await
}

/// Pushes the manifest that names an artifact, under [`digest_tag`], and checks by digest that it is there.
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
    let by_digest = Version::Digest(top.digest.clone());
    match to.manifest_digest(&by_digest).await? {
        Some(found) if found == top.digest => Ok(()),
        Some(found) => Err(RegistryError::WrongDigest { expected: top.digest.clone(), found }),
        None => {
            Err(RegistryError::NotFound { host: to.address(), what: format!("manifest `{by_digest}` after its push") })
        }
    }
}

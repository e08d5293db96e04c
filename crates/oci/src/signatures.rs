//! Signatures of images as cosign keeps them (sigstore/cosign, `specs/SIGNATURE_SPEC.md`): where they are and what they
//! consist of. Whether one is believed is not decided here.

use std::collections::BTreeMap;

use bytes::Bytes;
use freehold_protocol::Digest;
use freehold_protocol::order::Descriptor;
use serde::Deserialize;

use super::repository::found;
use super::{Manifest, RegistryError, Repository, Version, referrers};

/// The media type of what is signed: a small JSON document that names the image.
pub const SIGNATURE_LAYER: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// The annotation of such a layer that holds the signature, in base64.
pub const SIGNATURE_ANNOTATION: &str = "dev.cosignproject.cosign/signature";
/// `artifactType` of a manifest of signatures that refers to its image.
pub const SIGNATURE_ARTIFACT: &str = "application/vnd.dev.cosign.artifact.sig.v1+json";

/// The most signatures that are looked at for one image, and manifests of them.
const MAX_SIGNATURES: usize = 250;
const MAX_MANIFESTS: usize = 50;
/// The largest document that is signed, in bytes; real ones have a few hundred.
const MAX_PAYLOAD: u64 = 64 * 1024;

/// One signature of an image, not yet believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    payload: Descriptor,
    /// In base64, as whoever pushed it wrote it.
    pub signature: String,
}

#[derive(Deserialize)]
struct Layers {
    #[serde(default)]
    layers: Vec<Layer>,
}

#[derive(Deserialize)]
struct Layer {
    #[serde(flatten)]
    descriptor: Descriptor,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

impl Signature {
    /// Returns the digest of the document that was signed.
    pub const fn payload_digest(&self) -> &Digest {
        &self.payload.digest
    }

    /// Returns the document that was signed, checked against its digest.
    ///
    /// # Errors
    /// [`RegistryError`]; also when it has more than 64 KiB.
    pub async fn payload(&self, repository: &Repository) -> Result<Bytes, RegistryError> {
        if self.payload.size > MAX_PAYLOAD {
            let what = format!("signed document `{}`", self.payload.digest);
            return Err(repository.bad(&what, format!("it is larger than {MAX_PAYLOAD} bytes")));
        }
        repository.small_blob(&self.payload).await
    }
}

/// Returns the tag under which the signatures of the image `digest` are.
pub fn signature_tag(digest: &Digest) -> String {
    format!("sha256-{}.sig", digest.hex())
}

/// Returns the signatures of the image `digest` that are under [`signature_tag`], the newest first.
///
/// # Errors
/// [`RegistryError`]; also when there are more than 250.
pub async fn tagged_signatures(repository: &Repository, digest: &Digest) -> Result<Vec<Signature>, RegistryError> {
    let tag = Version::Tag(signature_tag(digest));
    let Some(manifest) = found(repository.manifest(&tag).await)? else { return Ok(Vec::new()) };
    let mut all = read(repository, &manifest)?;
    all.reverse();
    bounded(repository, digest, all)
}

/// Returns the signatures in manifests that refer to the image `digest`.
///
/// # Errors
/// [`RegistryError`]; also when there are more than 250, or 50 manifests of them.
pub async fn referring_signatures(repository: &Repository, digest: &Digest) -> Result<Vec<Signature>, RegistryError> {
    let listed = referrers(repository, digest, Some(SIGNATURE_ARTIFACT)).await?;
    if listed.len() > MAX_MANIFESTS {
        let what = format!("the signatures of `{digest}`");
        return Err(repository.bad(&what, format!("there are more than {MAX_MANIFESTS} manifests of them")));
    }
    let mut all = Vec::new();
    for one in listed {
        let manifest = repository.manifest(&Version::Digest(one.manifest.digest)).await?;
        all.extend(read(repository, &manifest)?);
    }
    bounded(repository, digest, all)
}

/// Returns the signatures that the manifest names; layers of other kinds are no signatures.
fn read(repository: &Repository, manifest: &Manifest) -> Result<Vec<Signature>, RegistryError> {
    let layers: Layers = serde_json::from_slice(&manifest.bytes)
        .map_err(|error| repository.bad(&format!("manifest `{}`", manifest.digest), error.to_string()))?;
    let signature = |mut layer: Layer| {
        let signature = layer.annotations.remove(SIGNATURE_ANNOTATION)?;
        (layer.descriptor.media_type == SIGNATURE_LAYER).then_some(Signature { payload: layer.descriptor, signature })
    };
    Ok(layers.layers.into_iter().filter_map(signature).collect())
}

fn bounded(repository: &Repository, digest: &Digest, all: Vec<Signature>) -> Result<Vec<Signature>, RegistryError> {
    if all.len() <= MAX_SIGNATURES {
        return Ok(all);
    }
    let what = format!("the signatures of `{digest}`");
    Err(repository.bad(&what, format!("there are {}, more than {MAX_SIGNATURES}", all.len())))
}

//! Signatures of images as cosign keeps them (sigstore/cosign, `specs/SIGNATURE_SPEC.md` and `specs/BUNDLE_SPEC.md`):
//! where they are and what they consist of. This module does not verify them.

use std::collections::BTreeMap;

use bytes::Bytes;
use freehold_protocol::Digest;
use freehold_protocol::order::Descriptor;
use serde::Deserialize;

use super::manifest::EMPTY_TYPE;
use super::repository::found;
use super::{Manifest, RegistryError, Repository, Version, referrers};

/// The media type of a document that names the image, signed as it is.
pub const SIGNATURE_LAYER: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// The annotation of such a layer that holds the signature, in base64.
pub const SIGNATURE_ANNOTATION: &str = "dev.cosignproject.cosign/signature";
/// `artifactType` of a manifest of such layers that refers to its image.
pub const SIGNATURE_ARTIFACT: &str = "application/vnd.dev.cosign.artifact.sig.v1+json";
/// `artifactType` and media type of a Sigstore bundle: a statement in an envelope, as cosign writes by itself since 3.0.
pub const BUNDLE_TYPE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";

/// The content that a bundle declares.
const PREDICATE_ANNOTATION: &str = "dev.sigstore.bundle.predicateType";
/// `predicateType` of a statement that is a signature of an image; other statements are not signatures.
pub const SIGNATURE_PREDICATE: &str = "https://sigstore.dev/cosign/sign/v1";

/// The most signatures, and manifests with signatures, that are read for one image.
const MAX_SIGNATURES: usize = 250;
const MAX_MANIFESTS: usize = 100;
/// The largest document with or under a signature, in bytes; real ones have a few thousand at most.
const MAX_DOCUMENT: u64 = 64 * 1024;

/// One signature of an image, not yet verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    pub form: Form,
    document: Descriptor,
}

/// How a signature and the signed document are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// The document is signed as it is; the signature is in base64, as its author wrote it.
    SimpleSigning { signature: String },
    /// The document holds both.
    Bundle,
}

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    layers: Vec<Layer>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Layer {
    #[serde(flatten)]
    descriptor: Descriptor,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

impl Signature {
    /// Returns the document, checked against its digest.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub async fn document(&self, repository: &Repository) -> Result<Bytes, RegistryError> {
        repository.small_blob(&self.document).await
    }
}

/// Returns the tag under which the signatures of the image `digest` are.
pub fn signature_tag(digest: &Digest) -> String {
    format!("sha256-{}.sig", digest.hex())
}

/// Returns the signatures of the image `digest` that are under [`signature_tag`], the newest first.
///
/// # Errors
/// [`RegistryError`]; also when there are more than 250, or one is over more than 64 KiB.
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
/// [`RegistryError`]; also when there are more than 250, one is over more than 64 KiB, or more than 100 manifests may
/// hold some.
pub async fn referring_signatures(repository: &Repository, digest: &Digest) -> Result<Vec<Signature>, RegistryError> {
    let mut listed = referrers(repository, digest, None).await?;
    // A list may call a manifest by the type of its config, the empty one.
    listed.retain(|one| ["", EMPTY_TYPE, SIGNATURE_ARTIFACT, BUNDLE_TYPE].contains(&one.artifact_type.as_str()));
    if listed.len() > MAX_MANIFESTS {
        let what = format!("the signatures of `{digest}`");
        return Err(repository.bad(&what, format!("more than {MAX_MANIFESTS} manifests may hold some")));
    }
    let mut all = Vec::new();
    for one in listed {
        let manifest = repository.manifest(&Version::Digest(one.manifest.digest)).await?;
        all.extend(read(repository, &manifest)?);
    }
    bounded(repository, digest, all)
}

/// Returns the signatures that the manifest names; layers of other kinds are not signatures.
fn read(repository: &Repository, manifest: &Manifest) -> Result<Vec<Signature>, RegistryError> {
    let what = || format!("manifest `{}`", manifest.digest);
    let Document { layers, annotations } =
        serde_json::from_slice(&manifest.bytes).map_err(|error| repository.bad(&what(), error.to_string()))?;
    let other = annotations.get(PREDICATE_ANNOTATION).is_some_and(|kind| kind != SIGNATURE_PREDICATE);
    let mut all = Vec::new();
    for Layer { descriptor: document, mut annotations } in layers {
        let small = document.size <= MAX_DOCUMENT;
        match (document.media_type.as_str(), annotations.remove(SIGNATURE_ANNOTATION)) {
            (SIGNATURE_LAYER, Some(signature)) if small => {
                all.push(Signature { form: Form::SimpleSigning { signature }, document });
            }
            (SIGNATURE_LAYER, Some(_)) => {
                let detail = format!("a signature in it is over more than {MAX_DOCUMENT} bytes");
                return Err(repository.bad(&what(), detail));
            }
            // A larger bundle is not a signature; it may list the parts of the image.
            (BUNDLE_TYPE, _) if small && !other => all.push(Signature { form: Form::Bundle, document }),
            _ => {}
        }
    }
    Ok(all)
}

fn bounded(repository: &Repository, digest: &Digest, all: Vec<Signature>) -> Result<Vec<Signature>, RegistryError> {
    if all.len() <= MAX_SIGNATURES {
        return Ok(all);
    }
    let what = format!("the signatures of `{digest}`");
    Err(repository.bad(&what, format!("there are {}, more than {MAX_SIGNATURES}", all.len())))
}

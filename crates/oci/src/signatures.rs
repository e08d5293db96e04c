//! Finds and reads the signatures of images in the forms in which cosign stores them (sigstore/cosign,
//! `specs/SIGNATURE_SPEC.md` and `specs/BUNDLE_SPEC.md`). This module does not verify them.

use std::collections::BTreeMap;

use bytes::Bytes;
use freehold_protocol::Digest;
use freehold_protocol::order::Descriptor;
use serde::Deserialize;

use super::manifest::EMPTY_TYPE;
use super::repository::found;
use super::{Manifest, RegistryError, Repository, Version, referrers};

/// The media type of a simple-signing document, which names the image. The signature covers exactly the document's
/// bytes.
pub const SIGNATURE_LAYER: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// The annotation of a layer with a simple-signing document; its value is the signature in base64.
pub const SIGNATURE_ANNOTATION: &str = "dev.cosignproject.cosign/signature";
/// The `artifactType` of a manifest that has layers with simple-signing documents and refers to the image.
pub const SIGNATURE_ARTIFACT: &str = "application/vnd.dev.cosign.artifact.sig.v1+json";
/// The `artifactType` and media type of a Sigstore bundle: an envelope with a signed statement. Cosign writes it by
/// default since 3.0.
pub const BUNDLE_TYPE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";

/// The annotation of a manifest with a bundle; its value is the `predicateType` of the bundle's statement.
const PREDICATE_ANNOTATION: &str = "dev.sigstore.bundle.predicateType";
/// The `predicateType` of a statement that is a signature of an image; other statements are not signatures.
pub const SIGNATURE_PREDICATE: &str = "https://sigstore.dev/cosign/sign/v1";

/// The highest number of signatures that is accepted for one image; `MAX_MANIFESTS` bounds the manifests with
/// signatures.
const MAX_SIGNATURES: usize = 250;
const MAX_MANIFESTS: usize = 100;
/// The largest signed document or bundle, in bytes. Real documents and bundles have a few thousand bytes at most.
const MAX_DOCUMENT: u64 = 64 * 1024;

/// One signature of an image, not yet verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    pub form: Form,
    document: Descriptor,
}

/// The form in which a signature and the signed document are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// A simple-signing document, with its signature in base64 beside it. The signature covers exactly the document's
    /// bytes.
    SimpleSigning { signature: String },
    /// A Sigstore bundle, which contains both the statement and its signature.
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
    /// Returns the bytes of the document. Checks their digest.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub async fn document(&self, repository: &Repository) -> Result<Bytes, RegistryError> {
        repository.small_blob(&self.document).await
    }
}

/// Returns the tag under which cosign stores the signatures of the image `digest`.
pub fn signature_tag(digest: &Digest) -> String {
    format!("sha256-{}.sig", digest.hex())
}

/// Returns the signatures of the image `digest` that are stored under [`signature_tag`], the newest first.
///
/// # Errors
/// [`RegistryError`]; also when there are more than 250 signatures, or a signed document is larger than 64 KiB.
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
/// [`RegistryError`]; also when there are more than 250 signatures, a signed document is larger than 64 KiB, or more
/// than 100 manifests may hold signatures.
pub async fn referring_signatures(repository: &Repository, digest: &Digest) -> Result<Vec<Signature>, RegistryError> {
    let mut listed = referrers(repository, digest, None).await?;
    // For a manifest without an artifact type, some registries list the media type of its config as the type. In manifests
    // with signatures, this is the media type of the empty config.
    listed.retain(|one| ["", EMPTY_TYPE, SIGNATURE_ARTIFACT, BUNDLE_TYPE].contains(&one.artifact_type.as_str()));
    if listed.len() > MAX_MANIFESTS {
        let what = format!("the signatures of `{digest}`");
        return Err(repository.bad(&what, format!("more than {MAX_MANIFESTS} manifests may contain signatures")));
    }
    let mut all = Vec::new();
    for one in listed {
        let manifest = repository.manifest(&Version::Digest(one.manifest.digest)).await?;
        all.extend(read(repository, &manifest)?);
    }
    bounded(repository, digest, all)
}

/// Returns the signatures in the layers of the manifest. Ignores layers of other kinds.
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
                let detail = format!("it contains a signature of a document of more than {MAX_DOCUMENT} bytes");
                return Err(repository.bad(&what(), detail));
            }
            // A larger bundle is not a signature but, for example, a list of the parts of the image.
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

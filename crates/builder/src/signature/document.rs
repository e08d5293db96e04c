//! The two forms of a cosign signature: a document that names the image, with a separate signature; or a bundle that
//! contains a signed statement.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use freehold_oci::SIGNATURE_PREDICATE;
use freehold_protocol::envelope::pae;
use serde::Deserialize;

/// The `type` that a signed document must have (sigstore/cosign, `specs/SIGNATURE_SPEC.md`, "Simple Signing").
const DOCUMENT_KIND: &str = "cosign container image signature";
const STATEMENT_TYPE: &str = "application/vnd.in-toto+json";

/// A signed message and the signatures over it.
pub(super) struct Signed {
    pub(super) message: Vec<u8>,
    /// The part of the message that names the image.
    content: Content,
    pub(super) signatures: Vec<Vec<u8>>,
}

enum Content {
    Simple(Vec<u8>),
    Statement(Vec<u8>),
}

#[derive(Deserialize)]
struct Simple {
    critical: Critical,
}

#[derive(Deserialize)]
struct Critical {
    image: Image,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct Image {
    #[serde(rename = "docker-manifest-digest")]
    digest: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Bundle {
    dsse_envelope: Enveloped,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Enveloped {
    payload: String,
    payload_type: String,
    signatures: Vec<Made>,
}

#[derive(Deserialize)]
struct Made {
    sig: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Statement {
    predicate_type: String,
    subject: Vec<Subject>,
}

#[derive(Deserialize)]
struct Subject {
    digest: Sha256,
}

#[derive(Deserialize)]
struct Sha256 {
    sha256: String,
}

impl Signed {
    /// Reads a document and its separate signature in base64. A text that is not base64 counts as no signature.
    pub(super) fn simple(signature: &str, document: &[u8]) -> Self {
        let signatures = STANDARD.decode(signature.trim()).into_iter().collect();
        Self { message: document.to_vec(), content: Content::Simple(document.to_vec()), signatures }
    }

    /// Reads a bundle. Returns `None` when the bundle contains no signed statement: such a bundle is not a signature of
    /// an image.
    pub(super) fn bundle(document: &[u8]) -> Option<Self> {
        let Bundle { dsse_envelope: envelope } = serde_json::from_slice(document).ok()?;
        let payload = STANDARD.decode(&envelope.payload).ok()?;
        if envelope.payload_type != STATEMENT_TYPE {
            return None;
        }
        let message = pae(&envelope.payload_type, &payload);
        let signatures = envelope.signatures.iter().filter_map(|made| STANDARD.decode(&made.sig).ok()).collect();
        Some(Self { message, content: Content::Statement(payload), signatures })
    }

    /// Returns the digests of the images that the message names. The error describes a message that names no image.
    pub(super) fn claim(&self) -> Result<Vec<String>, String> {
        match &self.content {
            Content::Simple(bytes) => {
                let Simple { critical } = serde_json::from_slice(bytes).map_err(|error| unreadable(&error))?;
                is_kind(&critical.kind, DOCUMENT_KIND)?;
                Ok(vec![critical.image.digest])
            }
            Content::Statement(bytes) => {
                let found: Statement = serde_json::from_slice(bytes).map_err(|error| unreadable(&error))?;
                is_kind(&found.predicate_type, SIGNATURE_PREDICATE)?;
                Ok(found.subject.into_iter().map(|subject| format!("sha256:{}", subject.digest.sha256)).collect())
            }
        }
    }
}

fn unreadable(error: &serde_json::Error) -> String {
    format!("not what cosign writes: {error}")
}

fn is_kind(found: &str, expected: &str) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("of kind `{}`, not `{expected}`", shortened(found))) }
}

pub(super) fn shortened(text: &str) -> String {
    text.chars().take(160).collect()
}

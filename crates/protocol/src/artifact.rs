//! Artifacts: OCI objects in the tenant registry.

use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use serde_json::Value;

use crate::Digest;
use crate::provenance::Provenance;

/// An OCI object in the tenant registry and the list of its parts. A runner requests the parts that its registry lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Artifact {
    /// The digest of the artifact's top manifest or index.
    pub digest: Digest,
    /// The media type of the artifact's top manifest or index.
    pub media_type: String,
    /// All manifests in the order in which they are pushed: those that the index lists, then the top manifest or index.
    pub manifests: Vec<Descriptor>,
    /// Every blob that the manifests refer to, including their configs. Each blob is in the list once.
    pub blobs: Vec<Descriptor>,
    /// The signed statement about the artifact's build. Runners refuse an artifact that has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Value>"))]
    pub provenance: Option<Box<Provenance>>,
}

impl Artifact {
    /// Returns the total size of all blobs, in bytes.
    pub fn blob_bytes(&self) -> u64 {
        self.blobs.iter().map(|blob| blob.size).sum()
    }
}

/// One content-addressed part of an artifact (OCI content descriptor).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    pub media_type: String,
    pub digest: Digest,
    /// The size in bytes.
    pub size: u64,
}

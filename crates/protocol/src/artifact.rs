//! Artifacts: OCI objects in the tenant registry.

use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use serde_json::Value;

use crate::Digest;
use crate::provenance::Provenance;

/// An OCI object in the tenant registry, with all that a runner needs to know what it lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Artifact {
    /// The digest of its top manifest or index.
    pub digest: Digest,
    /// The media type of its top manifest or index.
    pub media_type: String,
    /// Manifests below an index, then the top one: the order in which they are pushed.
    pub manifests: Vec<Descriptor>,
    /// Every blob that the manifests name, configs included, each once.
    pub blobs: Vec<Descriptor>,
    /// Who made it, from what and when; a runner uses no artifact without.
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
    /// In bytes.
    pub size: u64,
}

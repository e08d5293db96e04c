//! Grants: permission to fetch one artifact, once.

use serde::{Deserialize, Serialize};

use crate::envelope::Payload;
use crate::report::Fence;
use crate::{Digest, GrantId, InstallId, JobId, TenantName, Timestamp};

/// The control plane's answer to a runner that lacks an artifact: manifests, and one short-lived URL per blob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArtifactGrant {
    pub tenant: TenantName,
    pub install: InstallId,
    pub grant: GrantId,
    pub job: JobId,
    pub fence: Fence,
    pub artifact: Digest,
    pub issued_at: Timestamp,
    pub not_after: Timestamp,
    pub answer: GrantAnswer,
}

impl Payload for ArtifactGrant {
    const TYPE: &'static str = "application/vnd.freehold.grant.v1+json";
}

/// What became of a request for an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum GrantAnswer {
    /// The artifact's manifests and the blobs that were asked for.
    Granted { manifests: Vec<ManifestBytes>, blobs: Vec<BlobUrl> },
    /// Nothing: used before, not the job's artifact, not the job's attempt, or the tenant registry failed.
    Refused { reason: String },
}

/// One manifest's exact bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestBytes {
    pub media_type: String,
    pub digest: Digest,
    /// Base64.
    pub bytes: String,
}

/// Where one blob can be fetched, for minutes.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobUrl {
    pub digest: Digest,
    /// In bytes.
    pub size: u64,
    /// A pre-signed URL; a secret while it lasts.
    pub url: String,
}

impl std::fmt::Debug for BlobUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BlobUrl({}, {} bytes)", self.digest, self.size)
    }
}

//! Grants: permission to fetch one artifact, once.

use serde::{Deserialize, Serialize};

use crate::envelope::Payload;
use crate::fence::Fence;
use crate::{Digest, Envelope, GrantId, InstallId, JobId, TenantName, Timestamp};

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
    /// What was built, in the tenant's word: a [`crate::provenance::Statement`] that its root key signed.
    Attested { statement: Envelope },
    /// Nothing.
    Refused { refusal: GrantRefusal, reason: String },
}

/// Why a grant is not given; the word is in the audit record too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantRefusal {
    /// The attempt is not the current attempt of the job.
    OtherAttempt,
    /// The job's work has no artifact, or none that was built.
    NoArtifact,
    /// The job's artifact is another one.
    OtherDigest,
    /// A blob is not part of the artifact.
    OtherBlob,
    /// The grant was burnt before.
    UsedBefore,
    /// The order has expired.
    Expired,
    /// The vendor revoked the artifact.
    Revoked,
    /// The vendor disabled the install.
    InstallDisabled,
    /// The attempt already had [`MAX_ROUNDS`] grants, or asks for a grant out of order.
    TooMany,
    /// The tenant registry does not have the artifact that the build reported as pushed.
    NotInRegistry,
}

/// How many grants one attempt gets for one artifact: the first, and others when URLs expired in the middle of a copy.
pub const MAX_ROUNDS: u32 = 4;

impl GrantRefusal {
    /// Returns the word used in messages and audit records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OtherAttempt => "other_attempt",
            Self::NoArtifact => "no_artifact",
            Self::OtherDigest => "other_digest",
            Self::OtherBlob => "other_blob",
            Self::UsedBefore => "used_before",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
            Self::InstallDisabled => "install_disabled",
            Self::TooMany => "too_many",
            Self::NotInRegistry => "not_in_registry",
        }
    }
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

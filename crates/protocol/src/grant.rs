//! Grants: permissions of a runner to fetch one artifact once.

use serde::{Deserialize, Serialize};

use crate::envelope::{Delegated, Payload};
use crate::fence::Fence;
use crate::{Digest, Envelope, GrantId, InstallId, JobId, KeyUse, TenantName, Timestamp};

/// The control plane's answer to a runner that lacks an artifact: its manifests, and one short-lived URL per blob.
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

impl Delegated for ArtifactGrant {
    const USE: KeyUse = KeyUse::Grants;
}

/// The answer to a request for a grant or for a statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum GrantAnswer {
    /// The request is granted: the artifact's manifests, and a URL for each requested blob.
    Granted { manifests: Vec<ManifestBytes>, blobs: Vec<BlobUrl> },
    /// The statement about a build: a [`crate::provenance::Statement`] that the tenant's root key signed.
    Attested { statement: Envelope },
    /// The request is refused.
    Refused { refusal: GrantRefusal, reason: String },
}

/// The reason for a refusal. Audit records contain it as a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantRefusal {
    /// The attempt is not the current attempt of the job.
    OtherAttempt,
    /// The work of the job has no artifact, or the artifact was not built.
    NoArtifact,
    /// The job needs another artifact than the requested one.
    OtherDigest,
    /// A requested blob is not part of the artifact.
    OtherBlob,
    /// The grant was used before. Each grant is valid once.
    UsedBefore,
    /// The order has expired.
    Expired,
    /// The vendor revoked the artifact.
    Revoked,
    /// The vendor disabled the install.
    InstallDisabled,
    /// The runner has reported that its install stack is deleted, or that it has lost its orders queue.
    CutOff,
    /// The attempt already had [`max_rounds`] grants, or asks for a grant out of order.
    TooMany,
    /// The tenant registry does not have the artifact, although its build reported that it was pushed.
    NotInRegistry,
}

/// The maximum number of grants that one attempt gets for [`MAX_BLOBS`] blobs of one artifact. An attempt needs another
/// grant when URLs expire in the middle of a copy.
pub const MAX_ROUNDS: u32 = 4;

/// The maximum number of blobs for which a runner requests URLs at once. A URL of Amazon ECR has up to 2.6 KiB, and a
/// message of SQS holds 1 MiB, in which a grant is base64. The manifests of the artifact need room too.
pub const MAX_BLOBS: usize = 128;

/// Returns the maximum number of grants that one attempt gets for an artifact with this many blobs.
pub fn max_rounds(blobs: usize) -> u32 {
    let parts = u32::try_from(blobs.div_ceil(MAX_BLOBS)).unwrap_or(u32::MAX);
    MAX_ROUNDS.saturating_mul(parts.max(1))
}

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
            Self::CutOff => "cut_off",
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
    /// The manifest's bytes in base64.
    pub bytes: String,
}

/// A URL for the download of one blob, valid for some minutes.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobUrl {
    pub digest: Digest,
    /// The size in bytes.
    pub size: u64,
    /// A pre-signed URL. Until it expires it is a secret: whoever has it can download the blob.
    pub url: String,
}

impl std::fmt::Debug for BlobUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BlobUrl({}, {} bytes)", self.digest, self.size)
    }
}

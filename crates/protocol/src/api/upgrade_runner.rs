//! The request of the API that replaces an install's runner.

use serde::{Deserialize, Serialize};

use crate::Digest;
use crate::order::{SignedSums, UpgradeRunner};

/// The time within which a new runner has to prove its health unless the request names another, in seconds.
const HEALTH_SECS: u32 = 180;

/// `POST /v1/installs/{install}/upgrade`: replaces the program of the install's runner. The archive was uploaded before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UpgradeRunnerRequest {
    /// The version of the program.
    pub version: String,
    /// The SHA-256 of the program `freehold-runner`.
    pub program: Digest,
    /// The digest of the gzipped tar with the program, which was uploaded as a source with this digest.
    pub archive: Digest,
    /// The size of the archive, in bytes.
    pub archive_size: u64,
    /// The checksums of the release that contains the program. The customer's install stack names the key that signs
    /// them.
    pub release: SignedSums,
    /// The time within which the new program has to prove its health, in seconds: 10 to 1800, and 180 when absent.
    #[serde(default = "health_secs")]
    pub health_secs: u32,
    /// Whether to start even while the customer's change windows are closed. The customer's runner permits this only to
    /// callers whom the customer names.
    #[serde(default, skip_serializing_if = "crate::flag::is_false")]
    pub now: bool,
}

const fn health_secs() -> u32 {
    HEALTH_SECS
}

impl From<&UpgradeRunnerRequest> for UpgradeRunner {
    fn from(request: &UpgradeRunnerRequest) -> Self {
        Self {
            version: request.version.clone(),
            program: request.program.clone(),
            archive: request.archive.clone(),
            archive_size: request.archive_size,
            release: request.release.clone(),
            health_secs: request.health_secs,
        }
    }
}

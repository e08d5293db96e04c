//! The rows of used grants. The grants of a job are in one partition, so that all of them are found by their job.

use freehold_protocol::report::Fence;
use freehold_protocol::{Digest, GrantId, JobId, Timestamp};
use serde::{Deserialize, Serialize};

use super::record::{Record, key};
use crate::ports::Key;

/// A grant that was used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BurntGrant {
    pub grant: GrantId,
    pub job: JobId,
    pub fence: Fence,
    pub seq: u64,
    pub artifact: Digest,
    pub at: Timestamp,
    /// The digest of the list of requested blobs. Absent in rows that were written before this field existed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wants: Option<Digest>,
    /// Whether the request failed after the grant was marked as used, so that no answer was sent.
    #[serde(default)]
    pub unanswered: bool,
}

/// Returns the partition key of the grants of a job, and of their refusals.
pub fn grants_pk(job: &JobId) -> String {
    format!("grant#{job}")
}

/// Returns the key of the row of a used grant.
pub fn grant_key(job: &JobId, grant: &GrantId) -> Key {
    key(grants_pk(job), grant.as_str())
}

impl Record for BurntGrant {
    fn key(&self) -> Key {
        grant_key(&self.job, &self.grant)
    }
}

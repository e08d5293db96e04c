//! The rows of used grants.

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
}

/// Returns the key of the row of a used grant.
pub fn grant_key(grant: &GrantId) -> Key {
    key(format!("grant#{grant}"), "state")
}

impl Record for BurntGrant {
    fn key(&self) -> Key {
        grant_key(&self.grant)
    }
}

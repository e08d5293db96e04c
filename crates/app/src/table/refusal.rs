//! The rows of refused reports and grant requests.

use freehold_protocol::grant::GrantRefusal;
use freehold_protocol::{Digest, KeyId, Timestamp};
use serde::{Deserialize, Serialize};

use super::record::{Record, key, put_until};
use crate::AppError;
use crate::ports::{Expect, Key, Store};

/// The time for which used grants and refusals are stored, in seconds.
pub const TRACE_TTL_SECS: u64 = 90 * 24 * 3600;

/// A refused report or grant request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The partition key of the row. The row is in the partition of the job, of the install if the job does not exist,
    /// or of the grant.
    pub pk: String,
    /// The digest of the refused message.
    pub message: Digest,
    pub at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<KeyId>,
    /// The kind of refusal; set only for a grant request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<GrantRefusal>,
    pub reason: String,
}

impl Record for Refused {
    fn key(&self) -> Key {
        key(self.pk.clone(), format!("refused#{}", self.message.hex()))
    }
}

/// Stores a refusal; a repeated refusal overwrites its row.
///
/// # Errors
/// The store's errors.
pub async fn store_refusal(store: &dyn Store, refused: &Refused) -> Result<(), AppError> {
    let write = put_until(refused, Expect::Any, refused.at.plus_secs(TRACE_TTL_SECS))?;
    let _ = store.commit(vec![write]).await.map_err(AppError::from)?;
    Ok(())
}

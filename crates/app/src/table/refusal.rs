//! Refused reports and grant requests.

use freehold_protocol::grant::GrantRefusal;
use freehold_protocol::{Digest, KeyId, Timestamp};
use serde::{Deserialize, Serialize};

use super::record::{Record, key, put_until};
use crate::AppError;
use crate::ports::{Expect, Key, Store};

/// How long burnt grants and refusals are kept, in seconds.
pub const TRACE_TTL_SECS: u64 = 90 * 24 * 3600;

/// A report or request that was not believed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The partition it is kept in: a job's, or an install's when there is no such job.
    pub pk: String,
    /// The digest of the refused message.
    pub message: Digest,
    pub at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<KeyId>,
    /// Of a grant: the kind of refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<GrantRefusal>,
    pub reason: String,
}

impl Record for Refused {
    fn key(&self) -> Key {
        key(self.pk.clone(), format!("refused#{}", self.message.hex()))
    }
}

/// Stores a refusal; a repeated one overwrites itself.
///
/// # Errors
/// The store's.
pub async fn store_refusal(store: &dyn Store, refused: &Refused) -> Result<(), AppError> {
    let write = put_until(refused, Expect::Any, refused.at.plus_secs(TRACE_TTL_SECS))?;
    let _ = store.commit(vec![write]).await.map_err(AppError::from)?;
    Ok(())
}

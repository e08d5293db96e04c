//! The rows of refused reports and grant requests, of notices to runners whose key was replaced, and of the counts of
//! reports of unknown keys.

use freehold_protocol::grant::GrantRefusal;
use freehold_protocol::{Digest, InstallId, KeyId, Timestamp};
use serde::{Deserialize, Serialize};

use super::install::install_pk;
use super::record::{Record, WriterId, key, put_until};
use crate::AppError;
use crate::ports::{Expect, Key, Store};

/// The time for which used grants and refusals are stored, in seconds.
pub const TRACE_TTL_SECS: u64 = 90 * 24 * 3600;

/// A refused report or grant request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The partition key of the row. The row is in the partition of the job, of the install if the job does not exist,
    /// or of the grants of a job.
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

/// The minimum time between two notices to the runner of one replaced key, in seconds. A notice expires after this
/// time.
pub const NOTICE_SECS: u64 = 3600;

/// The last notice to a runner that its key was replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetiredNotice {
    pub install: InstallId,
    pub runner: KeyId,
    pub at: Timestamp,
}

/// Returns the key of the row of the last notice to the runner of a replaced key.
pub fn notice_key(install: &InstallId, runner: &KeyId) -> Key {
    key(install_pk(install), format!("notice#{runner}"))
}

impl Record for RetiredNotice {
    fn key(&self) -> Key {
        notice_key(&self.install, &self.runner)
    }
}

/// The number of times that reports of unknown keys were received from one sender since the time `since`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnknownReports {
    /// The unique id of the role that sent the reports; `unknown-roles` for all roles that are not known.
    pub sender: String,
    pub since: Timestamp,
    pub receives: u32,
    /// The copy of the function that counted last.
    #[serde(default, skip_serializing_if = "WriterId::is_absent")]
    pub by: WriterId,
}

/// Returns the key of the row that counts a sender's reports of unknown keys.
pub fn unknown_reports_key(sender: &str) -> Key {
    key(format!("sender#{sender}"), "unknown")
}

impl Record for UnknownReports {
    fn key(&self) -> Key {
        unknown_reports_key(&self.sender)
    }
}

/// The number of messages that are not authentic, of one install or of all unknown roles, since the time `since`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unbelievable {
    /// The install whose runner's role sent the messages; absent for the messages of all unknown roles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install: Option<InstallId>,
    pub since: Timestamp,
    pub messages: u32,
    /// The copy of the function that counted last.
    #[serde(default, skip_serializing_if = "WriterId::is_absent")]
    pub by: WriterId,
}

/// Returns the key of the row that counts the messages that are not authentic.
pub fn unbelievable_key(install: Option<&InstallId>) -> Key {
    key(install.map_or_else(|| "reports".to_owned(), install_pk), "unbelievable")
}

impl Record for Unbelievable {
    fn key(&self) -> Key {
        unbelievable_key(self.install.as_ref())
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

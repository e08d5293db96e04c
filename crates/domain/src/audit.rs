//! Audit records: one for every change of a job, and one for every report that the control plane refuses.

use freehold_protocol::report::Fence;
use freehold_protocol::{JobId, KeyId, Timestamp};
use serde::{Deserialize, Serialize};

/// One line of a job's history; written in the transaction that makes the change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRecord {
    pub at: Timestamp,
    pub job: JobId,
    /// What happened: the name of an event, such as `started`, or `refused`.
    pub what: String,
    /// The names of the states before and after.
    pub from: String,
    pub to: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<Fence>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<KeyId>,
    /// Why, when something was refused or failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

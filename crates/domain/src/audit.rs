//! Audit records: what happened to a job, and when.

use freehold_protocol::report::Fence;
use freehold_protocol::{JobId, KeyId, Timestamp};
use serde::{Deserialize, Serialize};

/// A line of a job's history, written in the transaction that changes the job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRecord {
    pub at: Timestamp,
    pub job: JobId,
    /// The name of the event, such as `started`.
    pub what: String,
    /// The name of the job's state before the event.
    pub from: String,
    /// The name of the job's state after the event.
    pub to: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<Fence>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<KeyId>,
    /// Why the job did not succeed; empty if it succeeded or has not ended.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

//! The history of an install, as one list.

use serde::{Deserialize, Serialize};

use crate::order::AskedBy;
use crate::{ComponentName, JobId, RunId, Timestamp, WorkflowId};

/// `GET /v1/installs/{install}/history`: one thing that happened to an install.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HistoryEntry {
    pub at: Timestamp,
    /// The kind of the entry: `workflow`, `continued`, `cancel`, `approval`, `run`, `drift` or `connection`.
    pub kind: String,
    /// The event, as a phrase, such as `deploy-components`, `resume` or `drift found: 2 resources`.
    pub what: String,
    /// Who caused the event; absent when nobody did, and when it is not known who did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<AskedBy>,
    /// The reason, in the words of the person; empty without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The result or the present state, such as `succeeded` or `failed: ...`; empty for an event without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub result: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<ComponentName>,
}

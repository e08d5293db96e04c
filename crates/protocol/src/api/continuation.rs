//! Requests and responses of the API that stop a workflow, or continue one which has ended.

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::order::AskedBy;

/// `POST /v1/workflows/{workflow}/cancel`: asks a workflow to stop.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CancelWorkflowRequest {
    /// The reason why the workflow is cancelled, in one line of 1 to 500 characters. The customer's audit log shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "maybe_reason"))]
    pub reason: Option<String>,
}

/// `POST /v1/jobs/{job}/cancel`: asks a job to stop.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CancelJobRequest {
    /// The reason why the job is cancelled, in one line of 1 to 500 characters. The customer's audit log shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "maybe_reason"))]
    pub reason: Option<String>,
}

/// `POST /v1/workflows/{workflow}/resume`: runs the nodes of an ended workflow that failed or were not reached.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResumeWorkflowRequest {
    /// The reason why the workflow is resumed, in one line of 1 to 500 characters. The customer's audit log shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "maybe_reason"))]
    pub reason: Option<String>,
}

/// `POST /v1/jobs/{job}/retry`: runs a failed job of an ended workflow again, and what was not reached because of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RetryJobRequest {
    /// The reason why the job is retried, in one line of 1 to 500 characters. The customer's audit log shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "maybe_reason"))]
    pub reason: Option<String>,
}

/// `POST /v1/workflows/{workflow}/skip`: lets an ended workflow continue without one of its failed nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SkipNodeRequest {
    /// The name of the node, such as `db`.
    pub node: String,
    /// The reason why the workflow continues without the node, in one line of 1 to 500 characters. The workflow shows
    /// it, and so does the customer's audit log when another node runs because of it.
    #[cfg_attr(feature = "schema", schemars(schema_with = "super::artifacts::reason_schema"))]
    pub reason: String,
}

/// One continuation of a workflow that had ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContinuationView {
    /// The kind of continuation: `resume` (all nodes that failed or were not reached), `retry` (one node, and the nodes
    /// that were not reached because of it) or `skip` (the nodes that were not reached because of one node, without the
    /// node itself).
    pub act: String,
    /// The node that was retried or skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Who asked for the continuation.
    pub by: AskedBy,
    /// The reason of the person who asked for the continuation; empty without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    pub at: Timestamp,
    /// The state in which the workflow had ended before.
    pub ended_as: String,
    /// The reason for this state; empty for a cancelled workflow.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ended_reason: String,
}

/// Returns a phrase for a continuation: what it did, and with which node.
pub fn describe_act(act: &str, node: Option<&str>) -> String {
    match (act, node) {
        ("retry", Some(node)) => format!("`{node}` retried"),
        ("skip", Some(node)) => format!("`{node}` skipped"),
        _ => "resumed".to_owned(),
    }
}

#[cfg(feature = "schema")]
pub(super) fn maybe_reason(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let mut schema = crate::api::REASON.schema();
    schema.insert("type".into(), serde_json::json!(["string", "null"]));
    schema
}

//! Workflows, jobs and logs as the API shows them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::report::Fence;
use crate::{ComponentName, Digest, InstallId, JobId, ReleaseName, RoleKey, Timestamp, WorkflowId};

/// `POST /v1/installs/{install}/deploys`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeployComponentsRequest {
    /// The version; the latest one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Digest>,
    /// The release to deploy, instead of a version: its version with exactly its artifacts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<ReleaseName>,
    /// Inputs to change before the deploy; other inputs keep their values.
    #[serde(default)]
    pub inputs: BTreeMap<String, Value>,
    /// Deploys only these components and those that depend on them; when empty, all that changed. The name `sandbox` stands
    /// for the app's sandbox.
    #[serde(default)]
    pub components: Vec<ComponentName>,
    /// Deploys the sandbox and every component, whether it changed or not.
    #[serde(default)]
    pub all: bool,
    /// The role to use instead of the one that the app names: a mode, or a role's key as a contract lists it, such as
    /// `break-glass-admin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
}

/// `POST /v1/installs/{install}/teardown`. Without a component and without the sandbox, everything is removed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TearDownRequest {
    /// Removes only this component and those that depend on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<ComponentName>,
    /// Removes only the sandbox; refused while components are deployed.
    #[serde(default)]
    pub sandbox: bool,
    /// Removes also what holds data, such as databases and volumes.
    #[serde(default)]
    pub destroy_data: bool,
    /// The role to use instead of the one that the app names: a mode, or a role's key as a contract lists it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
}

/// `POST /v1/installs/{install}/actions/{action}/runs`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunActionRequest {
    /// The role to use instead of the one that the app names: a mode, or a role's key as a contract lists it, such as
    /// `break-glass-admin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
}

/// Answers a request that starts a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkflowStarted {
    pub workflow: WorkflowId,
    /// The app version that the workflow deploys, or whose action it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Digest>,
    /// The number of that version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
}

/// `GET /v1/workflows/{workflow}`, and without nodes in `GET /v1/installs/{install}/workflows`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkflowView {
    pub workflow: WorkflowId,
    pub install: InstallId,
    /// `provision-install`, `deploy-components`, `build-components`, `run-action` or `teardown-install`.
    pub kind: String,
    /// `pending`, `running`, `succeeded`, `failed` or `cancelled`.
    pub state: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Digest>,
    /// The release that the request named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<ReleaseName>,
    /// When a cancel was requested. A job that ends before its runner knows of the cancel keeps its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_requested: Option<Timestamp>,
    /// Why the workflow succeeded without a single job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nothing_ran: Option<String>,
    #[serde(default)]
    pub nodes: Vec<NodeView>,
}

/// One node of a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodeView {
    pub name: String,
    /// `waiting`, `active`, `skipped`, `refused` (something that it needs is not there), or the state in which its job ended.
    pub state: String,
    #[serde(default)]
    pub dependencies: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// How often its job was dispatched again because it had failed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retried: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// `GET /v1/jobs/{job}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobView {
    pub job: JobId,
    pub install: InstallId,
    pub workflow: WorkflowId,
    pub node: String,
    pub mode: crate::order::Mode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<RoleKey>,
    pub state: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<Fence>,
    #[serde(default)]
    pub outputs: BTreeMap<String, Value>,
    #[serde(default)]
    pub history: Vec<HistoryView>,
}

/// One audit record of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HistoryView {
    pub at: Timestamp,
    pub what: String,
    pub from: String,
    pub to: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// `GET /v1/jobs/{job}/logs?after=<cursor>`: log text in order; ask again with the cursor until the job has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogPage {
    pub chunks: Vec<LogChunk>,
    /// Pass this as `after` to get the next page.
    pub cursor: String,
    /// Whether the job has ended and this is the last page.
    pub ended: bool,
}

/// Log text of one report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogChunk {
    pub fence: Fence,
    /// The report's sequence number; a gap means that reports have not arrived yet.
    pub seq: u64,
    pub text: String,
}

//! Requests and responses of the API about workflows, jobs and logs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ContinuationView, PlanView};
use crate::approval::OrderApproval;
use crate::order::AskedBy;
use crate::policy::PolicyResult;
use crate::report::Fence;
use crate::{ActionName, ComponentName, Digest, InstallId, JobId, ReleaseName, RoleKey, RunId, Timestamp, WorkflowId};

/// `POST /v1/installs/{install}/deploys`: deploys components of a version or a release.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeployComponentsRequest {
    /// The app version; the latest version when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Digest>,
    /// The release to deploy, instead of a version. The deploy uses the version and exactly the artifacts of the
    /// release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<ReleaseName>,
    /// The inputs to change before the deploy, by name. Other inputs keep their values.
    #[serde(default)]
    pub inputs: BTreeMap<String, Value>,
    /// The components to deploy, together with the components that depend on them. The name `sandbox` means the app's
    /// sandbox. When empty, everything that changed is deployed.
    #[serde(default)]
    pub components: Vec<ComponentName>,
    /// Whether to deploy the sandbox and every component, even those that did not change.
    #[serde(default)]
    pub all: bool,
    /// The role to use instead of the role that the app config chooses: the name of a mode, or the key of a role from
    /// the contract, such as `break-glass-admin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Whether to start even while the customer's change windows are closed. The customer's runner permits this only to
    /// callers whom the customer names.
    #[serde(default, skip_serializing_if = "crate::flag::is_false")]
    pub now: bool,
    /// Whether the deploy rolls back automatically when it fails: to the version, the artifacts and the vendor's inputs
    /// and toggles that ran before, by a workflow of its own.
    #[serde(default, skip_serializing_if = "crate::flag::is_false")]
    pub verified: bool,
}

/// `POST /v1/installs/{install}/teardown`: removes a component, the sandbox, or everything when neither is given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TeardownInstallRequest {
    /// The component to remove, together with the components that depend on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<ComponentName>,
    /// Whether to remove only the sandbox. The request is refused while components are deployed.
    #[serde(default)]
    pub sandbox: bool,
    /// Whether to remove resources that contain data too, such as databases and volumes.
    #[serde(default)]
    pub destroy_data: bool,
    /// The role to use instead of the role that the app config chooses: the name of a mode, or the key of a role from
    /// the contract.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Whether to start even while the customer's change windows are closed. The customer's runner permits this only to
    /// callers whom the customer names.
    #[serde(default, skip_serializing_if = "crate::flag::is_false")]
    pub now: bool,
}

/// `POST /v1/installs/{install}/actions/{action}/runs`: runs an action.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunActionRequest {
    /// The role to use instead of the role that the app config chooses: the name of a mode, or the key of a role from
    /// the contract, such as `break-glass-admin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The texts for the action's inputs. The order of the run contains them, so they are not for secrets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, String>,
    /// Whether to start even while the customer's change windows are closed. The customer's runner permits this only to
    /// callers whom the customer names.
    #[serde(default, skip_serializing_if = "crate::flag::is_false")]
    pub now: bool,
}

/// The response to a request that starts a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkflowStarted {
    pub workflow: WorkflowId,
    /// The app version that the workflow deploys, or that contains the action that it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Digest>,
    /// The number of that version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
}

/// `GET /v1/workflows/{workflow}`: a workflow. In the list `GET /v1/installs/{install}/workflows` it has no nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkflowView {
    pub workflow: WorkflowId,
    pub install: InstallId,
    /// The kind: `provision-install`, `deploy-components`, `build-components`, `run-action`, `teardown-install`,
    /// `upgrade-runner`, `detect-drift` or `check-health`.
    pub kind: String,
    /// The state: `pending`, `running`, `succeeded`, `failed` or `cancelled`.
    pub state: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Digest>,
    /// The action that the workflow runs; absent for other kinds. An action that an event of a deploy starts is a node of
    /// that deploy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<ActionName>,
    /// The cause that started the run of the action: `request`, `schedule`, `runbook`, `role-enabled` or
    /// `role-disabled`. Absent for other kinds, and for runs that an earlier version of Freehold started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<String>,
    /// The release that the request named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<ReleaseName>,
    /// The run of a runbook whose step the workflow is; absent for all other workflows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// Who asked for the workflow. Absent when an earlier version of Freehold started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<AskedBy>,
    /// The time of the request to cancel. A job keeps its result when it ends before its runner receives the cancel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_requested: Option<Timestamp>,
    /// Who asked for the cancel. Absent without one, and when an earlier version of Freehold received it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled_by: Option<AskedBy>,
    /// Why the workflow was cancelled; empty without a reason.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cancel_reason: String,
    /// Each time that the workflow was continued after it had ended, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub again: Vec<ContinuationView>,
    /// Whether the workflow is a deploy that rolls back automatically when it fails.
    #[serde(default, skip_serializing_if = "crate::flag::is_false")]
    pub verified: bool,
    /// The roll back after the failure of a verified deploy, or the reason why there is none; absent before the
    /// failure, and for all other workflows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolled_back: Option<RolledBackView>,
    /// The verified deploy that this workflow rolls back; absent for all other workflows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roll_back_of: Option<WorkflowId>,
    /// The reason why the workflow succeeded without running a job; absent for all other workflows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nothing_ran: Option<String>,
    /// How often the jobs of the workflow were dispatched, with retries and continuations. Absent in responses of earlier
    /// versions of Freehold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<u32>,
    #[serde(default)]
    pub nodes: Vec<NodeView>,
}

/// The roll back after the failure of a verified deploy, or the reason why there is none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RolledBackView {
    /// The workflow that deploys what ran before; absent when it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowId>,
    /// Why what ran before cannot be deployed again; empty when `workflow` deploys it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub refused: String,
}

/// One node of a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodeView {
    pub name: String,
    /// The state: `waiting`, `active`, `waiting_for_runner` (no runner has claimed its job), `waiting_for_window` (the customer
    /// lets no change start now), `waiting_for_approval` (people have to approve its plan), `waiting_for_checks` (its
    /// component has to pass required checks), `skipped`, `refused` (something that the node needs does not exist), or the
    /// final state of its job.
    pub state: String,
    #[serde(default)]
    pub dependencies: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    /// The time since which the node's job waits for a runner or for the customer's window; absent in every other state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_since: Option<Timestamp>,
    /// The time from which the customer lets the node's job start; absent in every other state, and while it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opens_at: Option<Timestamp>,
    /// The time by which the node's job ends even if its runner does not answer; absent for a job that nobody cancelled
    /// or that has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_by: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The number of automatic retries of the node's job after a failure.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retried: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// `GET /v1/jobs/{job}`: a job with its history.
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
    /// The state: `queued`, `waiting_for_runner` (no runner has claimed the job), `waiting_for_window` (the customer
    /// lets no change start now; `reason` explains why), `waiting_for_approval` (people have to approve its `plan`),
    /// `waiting_for_checks` (its component has to pass required checks), `running`, `succeeded`, `failed`, `blocked`,
    /// `interrupted`, `lost` or `cancelled`.
    pub state: String,
    /// The time since which the job waits for a runner or for the customer's window; absent in every other state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_since: Option<Timestamp>,
    /// The time until which the job waits for a runner, the window, an approval or checks; absent for a job that has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_until: Option<Timestamp>,
    /// The time from which the customer lets the job start; absent in every other state, and while it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opens_at: Option<Timestamp>,
    /// The time by which the job ends even if its runner does not answer: its order cannot be started later. Absent for
    /// a job that nobody cancelled or that has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_by: Option<Timestamp>,
    /// The plan that waits for its approval; absent in every other state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanView>,
    /// The plan that the job's present order applies, and who approved it at the vendor; absent when nobody was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<OrderApproval>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<Fence>,
    #[serde(default)]
    pub outputs: BTreeMap<String, Value>,
    /// The results of the policies that the runner evaluated before it changed anything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<PolicyResult>,
    #[serde(default)]
    pub history: Vec<HistoryView>,
}

/// One entry of a job's history: a change of the job's state.
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

/// `GET /v1/jobs/{job}/logs?after=<cursor>`: log text in order. A client repeats the request with the new cursor until
/// `ended` is true.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogPage {
    pub chunks: Vec<LogChunk>,
    /// The value of the parameter `after` for the next page.
    pub cursor: String,
    /// Whether the job has ended and this is the last page.
    pub ended: bool,
}

/// The log text of one report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogChunk {
    pub fence: Fence,
    /// The sequence number of the report. A gap means that a report has not arrived yet.
    pub seq: u64,
    pub text: String,
}

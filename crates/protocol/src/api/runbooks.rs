//! Runs of runbooks: the steps of an app's runbook, one after the other, in one install.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::app_version::RunInput;
use crate::order::AskedBy;
use crate::{Digest, InstallId, RunId, RunbookName, Timestamp, WorkflowId};

/// `GET /v1/installs/{install}/runbooks`: the runbooks that can be run in an install.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InstallRunbooks {
    /// The app version whose runbooks these are: the one that was last deployed completely, or else the latest.
    pub version: Digest,
    pub number: u64,
    pub runbooks: Vec<RunbookView>,
}

/// A runbook of an app version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunbookView {
    pub runbook: RunbookName,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<RunInput>,
    /// The steps in order, each as one phrase.
    pub steps: Vec<String>,
}

/// `POST /v1/installs/{install}/runbooks/{runbook}/runs`: runs a runbook.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunRunbookRequest {
    /// The values of the runbook's inputs, by name; at most 16 KiB, names included. Orders contain them and the run shows them,
    /// so they must not be secrets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, String>,
    /// Whether the steps start even while the customer's change windows are closed. The customer's runner permits this
    /// only to callers whom the customer names.
    #[serde(default, skip_serializing_if = "crate::flag::is_false")]
    pub now: bool,
}

/// `GET /v1/runs/{run}`: a run of a runbook and its steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunView {
    pub run: RunId,
    pub install: InstallId,
    pub runbook: RunbookName,
    /// The app version that has the runbook, and that its steps deploy.
    pub version: Digest,
    pub number: u64,
    /// The state: `running`, `succeeded`, `failed` or `cancelled`. A run that failed or was cancelled can be resumed.
    pub state: String,
    /// The step that failed or could not be started, and why; empty if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    pub asked_by: AskedBy,
    /// The deploy after which the run began by itself; absent for a run that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_deploy: Option<WorkflowId>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, String>,
    /// Who cancelled the run. Absent if nobody did, and after the run was resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled_by: Option<AskedBy>,
    /// Who resumed the run, and why; the earliest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resumed: Vec<ResumedView>,
    pub steps: Vec<RunStepView>,
}

/// One step of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunStepView {
    /// The name that the app config gives to the step; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The work of the step, as a phrase such as `deploy component web`.
    pub does: String,
    /// The state: `waiting`, `running`, `succeeded`, `failed` or `cancelled`.
    pub state: String,
    /// The workflow of the step's latest try; absent before the first try, if its start was refused, and if the step had nothing to
    /// remove.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowId>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The number of tries.
    pub tries: u32,
}

/// One resume of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResumedView {
    pub at: Timestamp,
    pub by: AskedBy,
    pub reason: String,
    /// Why the run had stopped: the step, and its reason. Empty after a cancel.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub after: String,
}

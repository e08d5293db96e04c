//! The rows of workflows: their entries in lists, and the task tokens of their state machines. The rows of their state
//! are in [`super::graph`].

use std::collections::BTreeSet;

use freehold_domain::install::Install;
use freehold_domain::sealed_inputs::first_missing;
use freehold_protocol::{InstallId, Timestamp, WorkflowId};
use serde::{Deserialize, Serialize};

use super::install::install_pk;
use super::record::{Record, key};
use crate::ports::Key;

/// A workflow that has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenWorkflow {
    pub workflow: WorkflowId,
    pub install: InstallId,
    pub since: Timestamp,
}

/// The entry of a workflow in its install's list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowEntry {
    pub workflow: WorkflowId,
    pub install: InstallId,
    pub created_at: Timestamp,
}

/// The phase of a state machine that waits for a task token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    AwaitRunner,
    Run,
}

impl Phase {
    /// Returns the name of the phase in state machines and messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AwaitRunner => "await_runner",
            Self::Run => "run",
        }
    }
}

/// A task token of Step Functions. Its holder can end a phase of the workflow, so the token never leaves the tenant
/// account.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskToken {
    pub workflow: WorkflowId,
    pub phase: Phase,
    pub token: String,
    /// The sensitive inputs without which the workflow is not resumed, although its runner has announced itself.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub needs: BTreeSet<String>,
}

impl TaskToken {
    /// Returns whether the workflow still waits for a sensitive input of its install.
    pub fn waits_for_inputs(&self, install: &Install) -> bool {
        first_missing(&self.needs, &install.inputs, install.sealing()).is_some()
    }
}

impl std::fmt::Debug for TaskToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TaskToken({} {})", self.workflow, self.phase.as_str())
    }
}

/// Returns the key of a workflow's entry in the list of workflows that have not ended.
pub fn open_key(workflow: &WorkflowId) -> Key {
    key("open", workflow.as_str())
}

/// Returns the partition key of a workflow's task tokens.
pub fn token_pk(workflow: &WorkflowId) -> String {
    format!("token#{workflow}")
}

/// Returns the key of a task token's row.
pub fn token_key(workflow: &WorkflowId, phase: Phase) -> Key {
    key(token_pk(workflow), phase.as_str())
}

impl Record for OpenWorkflow {
    fn key(&self) -> Key {
        open_key(&self.workflow)
    }
}

impl Record for WorkflowEntry {
    fn key(&self) -> Key {
        // With this key, a forward query returns the newest workflow first.
        let newest_first = u64::MAX - self.created_at.as_millis();
        key(install_pk(&self.install), format!("workflow#{newest_first:020}#{}", self.workflow))
    }
}

impl Record for TaskToken {
    fn key(&self) -> Key {
        token_key(&self.workflow, self.phase)
    }
}

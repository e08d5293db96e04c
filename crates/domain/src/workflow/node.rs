//! One thing to do in a workflow, and where it stands.

use std::collections::BTreeSet;

use freehold_protocol::JobId;
use serde::{Deserialize, Serialize};

use super::target::Target;
use crate::runs_as::RunsAs;

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Unique within the workflow.
    pub name: String,
    pub target: Target,
    /// Names of the nodes that must have succeeded before.
    #[serde(default)]
    pub dependencies: BTreeSet<String>,
    pub timeout_secs: u32,
    /// The serial of its job's orders.
    pub serial: u64,
    /// The role of its job, where it is not the own one of the workflow's mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_as: Option<RunsAs>,
    /// How often its job is dispatched again when it has failed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retries: u32,
    /// How often it was dispatched again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retried: u32,
    pub state: NodeState,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Where a node stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum NodeState {
    /// Its dependencies have not all ended, or all slots are taken.
    Waiting,
    /// Its job has been handed to the dispatch queue.
    Active {
        job: JobId,
    },
    Succeeded {
        job: JobId,
    },
    /// Ended otherwise: `outcome` is the state in which its job ended.
    Failed {
        job: JobId,
        outcome: String,
        reason: String,
    },
    /// Never started, because of `because`.
    Skipped {
        because: String,
    },
    /// Never started, because something that it needs is not there.
    Refused {
        reason: String,
    },
}

impl NodeState {
    /// Returns the state's name.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Waiting => "waiting",
            Self::Active { .. } => "active",
            Self::Succeeded { .. } => "succeeded",
            Self::Failed { outcome, .. } => outcome,
            Self::Skipped { .. } => "skipped",
            Self::Refused { .. } => "refused",
        }
    }

    pub(super) const fn is_terminal(&self) -> bool {
        match self {
            Self::Waiting | Self::Active { .. } => false,
            Self::Succeeded { .. } | Self::Failed { .. } | Self::Skipped { .. } | Self::Refused { .. } => true,
        }
    }
}

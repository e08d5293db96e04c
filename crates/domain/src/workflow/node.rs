//! Nodes: the steps of a workflow's graph, and their states.

use std::collections::BTreeSet;

use freehold_protocol::JobId;
use freehold_protocol::order::AskedBy;
use serde::{Deserialize, Serialize};

use super::target::Target;
use crate::job::Job;
use crate::runs_as::RunsAs;

/// One step of a workflow's graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// The node's name, which is unique within the workflow.
    pub name: String,
    pub target: Target,
    /// Names of the nodes that have to succeed before this node starts.
    #[serde(default)]
    pub dependencies: BTreeSet<String>,
    pub timeout_secs: u32,
    /// The serial of the orders of the node's job.
    pub serial: u64,
    /// The role of the node's job; absent if the job runs under the role of the workflow's mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_as: Option<RunsAs>,
    /// How often a failed job of the node may be dispatched again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retries: u32,
    /// How often the job was dispatched again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retried: u32,
    /// How often the job was dispatched before the workflow was last continued.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub earlier: u32,
    pub state: NodeState,
}

impl Node {
    /// Returns a node that waits. It has no dependencies, no serial and no retries, and its job runs under the role of
    /// the workflow's mode.
    pub const fn waiting(name: String, target: Target, timeout_secs: u32) -> Self {
        Self {
            name,
            target,
            dependencies: BTreeSet::new(),
            timeout_secs,
            serial: 0,
            runs_as: None,
            retries: 0,
            retried: 0,
            earlier: 0,
            state: NodeState::Waiting,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The state of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum NodeState {
    /// Some dependencies have not ended, or no slot is free.
    Waiting,
    /// The node's job was sent to the dispatch queue and has not ended.
    Active {
        job: JobId,
    },
    Succeeded {
        job: JobId,
    },
    /// The node's job ended without success. `outcome` is the state in which it ended.
    Failed {
        job: JobId,
        outcome: String,
        reason: String,
    },
    /// The node never started. `because` is the reason: a failed node, a request to cancel, or the end of the workflow.
    Skipped {
        because: String,
        /// Whether the plan left the node out, because something that it needs is switched off. Such a node never runs,
        /// not even when the workflow is continued.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        left_out: bool,
    },
    /// The node's job failed, and a person let the workflow continue without it.
    SkippedByRequest {
        by: AskedBy,
        reason: String,
    },
    /// The node never started, because something that it needs does not exist.
    Refused {
        reason: String,
    },
}

impl Node {
    /// Adds the late report of a lost job to the reason of the node. The node keeps its state. Returns whether the node
    /// changed.
    pub(super) fn note_late_report(&mut self, job: &Job) -> bool {
        let NodeState::Failed { job: known, reason, .. } = &mut self.state else { return false };
        if *known != job.id || !job.is_reported_late() {
            return false;
        }
        let late = format!("{}; the state of the job is {}", job.reason().unwrap_or_default(), job.state.as_str());
        let changed = *reason != late;
        *reason = late;
        changed
    }
}

impl NodeState {
    /// Returns the state of a node that was not reached, for this reason.
    pub fn not_reached(because: impl Into<String>) -> Self {
        Self::Skipped { because: because.into(), left_out: false }
    }

    /// Returns the state's name.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Waiting => "waiting",
            Self::Active { .. } => "active",
            Self::Succeeded { .. } => "succeeded",
            Self::Failed { outcome, .. } => outcome,
            Self::Skipped { .. } | Self::SkippedByRequest { .. } => "skipped",
            Self::Refused { .. } => "refused",
        }
    }

    /// Returns whether the node has ended, or never starts.
    pub const fn is_terminal(&self) -> bool {
        match self {
            Self::Waiting | Self::Active { .. } => false,
            Self::Succeeded { .. }
            | Self::Failed { .. }
            | Self::Skipped { .. }
            | Self::SkippedByRequest { .. }
            | Self::Refused { .. } => true,
        }
    }

    /// Returns whether nodes that depend on this one may start.
    pub const fn is_done(&self) -> bool {
        match self {
            Self::Succeeded { .. } | Self::SkippedByRequest { .. } => true,
            Self::Waiting | Self::Active { .. } | Self::Failed { .. } | Self::Skipped { .. } | Self::Refused { .. } => {
                false
            }
        }
    }
}

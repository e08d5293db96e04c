//! Continuations of a workflow that had ended: who asked for one and why, and which nodes run.

use freehold_protocol::api::describe_act;
use freehold_protocol::order::AskedBy;
use freehold_protocol::{Digest, Timestamp};
use serde::{Deserialize, Serialize};

/// One continuation of a workflow that had ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Again {
    #[serde(flatten)]
    pub act: Act,
    pub by: AskedBy,
    /// The reason, in the words of the person; empty without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    pub at: Timestamp,
    /// The digest of the request's idempotency key, by which a repeated request is recognized.
    pub key: Digest,
    /// The name of the state in which the workflow had ended.
    pub ended_as: String,
    /// The reason for this state; empty for a cancelled workflow.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ended_reason: String,
}

/// The part of a workflow that runs when it is continued.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "act", rename_all = "snake_case")]
pub enum Act {
    /// All nodes that failed, and all that were not reached.
    Resume,
    /// One node that failed, and the nodes that were not reached because of it.
    Retry { node: String },
    /// The nodes that were not reached because of one node that failed. The node itself counts as skipped.
    Skip { node: String },
}

impl Act {
    /// Returns the node that the act names, if it names one.
    pub fn node(&self) -> Option<&str> {
        match self {
            Self::Resume => None,
            Self::Retry { node } | Self::Skip { node } => Some(node),
        }
    }

    /// Returns the act's name.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Resume => "resume",
            Self::Retry { .. } => "retry",
            Self::Skip { .. } => "skip",
        }
    }
}

impl Again {
    /// Returns what was done and why, as orders and the history of a job show it.
    pub fn why(&self) -> String {
        let what = describe_act(self.act.as_str(), self.act.node());
        if self.reason.is_empty() { what } else { format!("{what}: {}", self.reason) }
    }
}

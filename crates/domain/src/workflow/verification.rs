//! The role of a workflow in a roll back, and what ran before a verified deploy.

use std::collections::BTreeMap;

use freehold_protocol::{ComponentName, Digest, WorkflowId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::node::Node;
use super::target::Target;

/// The role of a workflow in a roll back.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum RollBack {
    /// Nothing follows its failure.
    #[default]
    None,
    /// A verified deploy: when it fails, what ran before is deployed again.
    Verified {
        before: Box<Before>,
        /// The roll back after its failure, or the reason why there is none; absent until it fails.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        followed: Option<RolledBack>,
    },
    /// The roll back of a verified deploy. Nothing follows its own failure.
    Of { workflow: WorkflowId, reason: String },
}

/// The state of an install before a verified deploy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Before {
    pub version: Digest,
    /// The vendor's values of inputs.
    #[serde(default)]
    pub inputs: BTreeMap<String, Value>,
    #[serde(default)]
    pub toggles: BTreeMap<ComponentName, bool>,
    /// The artifact of each part.
    #[serde(default)]
    pub artifacts: BTreeMap<ComponentName, Digest>,
}

/// The roll back after the failure of a verified deploy, or the reason why there is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "followed", rename_all = "snake_case")]
pub enum RolledBack {
    /// This workflow deploys what ran before.
    By { workflow: WorkflowId },
    /// What ran before cannot be deployed again, for this reason.
    Refused { reason: String },
}

/// The maximum length of a reason in a row, in characters.
pub(super) const MAX_REASON_CHARS: usize = 500;

impl RolledBack {
    /// Returns the refusal of a roll back. `why` is cut to the maximum length; `way_out` is not cut.
    pub fn refused(why: &str, way_out: &str) -> Self {
        let why: String = why.chars().take(MAX_REASON_CHARS).collect();
        Self::Refused { reason: format!("{why}; {way_out}") }
    }
}

/// The reason why the nodes of a roll back would not deploy what ran before.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotSame {
    #[error("component `{component}` would get artifact `{found}`, but `{ran}` ran before")]
    Artifact { component: ComponentName, found: Digest, ran: Digest },
    #[error("component `{0}` did not run before")]
    New(ComponentName),
    #[error(
        "component `{0}` ran before, but would be removed, because the toggles of the last whole deploy switch it off"
    )]
    Removed(ComponentName),
}

impl RollBack {
    /// Returns whether the workflow has no part in a roll back.
    pub const fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}

impl Before {
    /// Checks that the nodes deploy only artifacts that ran before, and remove nothing that ran.
    ///
    /// # Errors
    /// [`NotSame`].
    pub fn check(&self, nodes: &[Node]) -> Result<(), NotSame> {
        for deploys in nodes.iter().filter_map(|node| node.target.deploys()) {
            let (component, found) = (deploys.part.clone(), deploys.artifact.clone());
            match self.artifacts.get(&deploys.part) {
                Some(ran) if *ran == found => {}
                Some(ran) => return Err(NotSame::Artifact { component, found, ran: ran.clone() }),
                None => return Err(NotSame::New(component)),
            }
        }
        let removed = nodes.iter().find_map(|node| {
            let Target::Teardown { part, .. } = &node.target else { return None };
            Some(part).filter(|part| self.artifacts.contains_key(part))
        });
        removed.map_or(Ok(()), |part| Err(NotSame::Removed(part.clone())))
    }
}

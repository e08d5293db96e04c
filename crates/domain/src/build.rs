//! Builds: the record of how an artifact was made.

use freehold_protocol::order::{Artifact, Package, Source};
use freehold_protocol::{AppName, BuildId, ComponentName, Digest, JobId, Timestamp, WorkflowId};
use serde::{Deserialize, Serialize};

/// A build of one source of a component. The same source is built only once, even when several versions name it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Build {
    pub id: BuildId,
    pub app: AppName,
    pub component: ComponentName,
    pub package: Package,
    pub source: Source,
    /// The digest of the source, the kind of package and the recipe.
    pub source_digest: Digest,
    pub created_at: Timestamp,
    pub state: BuildState,
    /// The time when the artifact was marked as unused ([`crate::prune_artifacts`]). While it is set, no new workflow
    /// or release may use the artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unused_since: Option<Timestamp>,
    /// The vendor's reason for revoking the artifact. No runner can fetch a revoked artifact; installs that already
    /// have the artifact keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<String>,
}

/// The state of a build.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum BuildState {
    /// A workflow is making the artifact.
    Building {
        workflow: WorkflowId,
    },
    Built {
        job: JobId,
        artifact: Artifact,
        built_at: Timestamp,
    },
    Failed {
        job: JobId,
        reason: String,
    },
    /// The artifact was unused, and its removal from the registry began. While `done` is false, parts of it may still
    /// be there.
    Removed {
        artifact: Artifact,
        at: Timestamp,
        done: bool,
    },
}

impl Build {
    /// Returns the artifact, if there is one and new workflows and releases may use it.
    pub const fn usable(&self) -> Option<&Artifact> {
        match (&self.state, self.unused_since) {
            (BuildState::Built { artifact, .. }, None) => Some(artifact),
            (BuildState::Built { .. }, Some(_))
            | (BuildState::Building { .. } | BuildState::Failed { .. } | BuildState::Removed { .. }, _) => None,
        }
    }
}

impl BuildState {
    /// Returns the state's name.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Building { .. } => "building",
            Self::Built { .. } => "built",
            Self::Failed { .. } => "failed",
            Self::Removed { .. } => "removed",
        }
    }
}

//! Builds: the record of how an artifact was made.

use freehold_protocol::order::{Artifact, Package, Source};
use freehold_protocol::{AppName, BuildId, ComponentName, Digest, JobId, Timestamp, WorkflowId};
use serde::{Deserialize, Serialize};

/// One build of one source of a component: the same source is built once, even when several versions name it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Build {
    pub id: BuildId,
    pub app: AppName,
    pub component: ComponentName,
    pub package: Package,
    pub source: Source,
    /// The digest of source and package form.
    pub source_digest: Digest,
    pub created_at: Timestamp,
    pub state: BuildState,
    /// The time since when nothing keeps the artifact in the registry ([`crate::prune_artifacts`]). Nothing new may use it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unused_since: Option<Timestamp>,
    /// Why the vendor revoked its artifact: no runner gets it any more. Installs that have it keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<String>,
}

/// The state of a build.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum BuildState {
    /// A workflow works on it.
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
    /// Nothing used the artifact, so it is removed from the registry; until `done` is set, parts of it may still be there.
    Removed {
        artifact: Artifact,
        at: Timestamp,
        done: bool,
    },
}

impl Build {
    /// Returns the artifact that something new may begin with.
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

//! What a node is about.

use freehold_protocol::{ActionName, BuildId, ComponentName, Digest, Group};
use serde::{Deserialize, Serialize};

use crate::sandbox::SandboxReads;

/// What a node is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "target", rename_all = "snake_case")]
pub enum Target {
    /// Deploys a component from the artifact of a build.
    Component {
        component: ComponentName,
        build: BuildId,
        artifact: Digest,
        fingerprint: Digest,
        /// What it reads of the sandbox.
        #[serde(default, skip_serializing_if = "SandboxReads::is_empty")]
        sandbox: SandboxReads,
    },
    /// Makes the sandbox, before all components.
    Sandbox { build: BuildId, artifact: Digest, fingerprint: Digest },
    /// Copies secrets of the app into the cluster, before all components.
    Secrets { fingerprint: Digest },
    /// Removes a component, or the sandbox under its name, by the version that deployed it.
    TearDown {
        part: ComponentName,
        version: Digest,
        /// The build of its artifact; nothing for a kind that is not built.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        build: Option<BuildId>,
        artifact: Digest,
        /// Whether it is the sandbox.
        #[serde(default)]
        sandbox: bool,
    },
    /// Runs an action.
    Action { action: ActionName },
    /// Builds a component's artifact.
    Build { component: ComponentName, build: BuildId },
    /// Looks for what would stop the other nodes, before all of them.
    Preflight,
}

/// The deploy of one node.
#[derive(Debug, Clone)]
pub struct Deploys<'a> {
    /// The component, or the sandbox under its name.
    pub part: ComponentName,
    pub build: &'a BuildId,
    pub artifact: &'a Digest,
    pub fingerprint: &'a Digest,
    /// What it reads of the sandbox; nothing for the sandbox itself.
    pub reads: Option<&'a SandboxReads>,
}

impl Target {
    /// Returns what the node deploys from an artifact, if it deploys something.
    pub fn deploys(&self) -> Option<Deploys<'_>> {
        match self {
            Self::Component { component, build, artifact, fingerprint, sandbox } => {
                Some(Deploys { part: component.clone(), build, artifact, fingerprint, reads: Some(sandbox) })
            }
            Self::Sandbox { build, artifact, fingerprint } => {
                Some(Deploys { part: ComponentName::sandbox(), build, artifact, fingerprint, reads: None })
            }
            Self::Secrets { .. }
            | Self::TearDown { .. }
            | Self::Action { .. }
            | Self::Build { .. }
            | Self::Preflight => None,
        }
    }

    /// Returns the FIFO group: the thing being changed.
    ///
    /// # Errors
    /// Never for names that parsed; the error is passed on instead of a panic.
    pub fn group(&self) -> Result<Group, freehold_protocol::IdError> {
        match self {
            Self::Component { component, .. } => format!("component:{component}").parse(),
            Self::Sandbox { .. } => "sandbox".parse(),
            Self::TearDown { sandbox: true, .. } => "sandbox".parse(),
            Self::TearDown { part, sandbox: false, .. } => format!("component:{part}").parse(),
            Self::Action { action } => format!("action:{action}").parse(),
            Self::Build { build, .. } => format!("build:{build}").parse(),
            Self::Secrets { .. } => "secrets".parse(),
            Self::Preflight => "preflight".parse(),
        }
    }
}

//! What a workflow was asked to do, and the kind of workflow that does it.

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::{ActionName, BuildId, ComponentName, Digest, ReleaseName};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What the caller asked a workflow to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum Request {
    /// Deploys a version: all components, some of them, or those that changed.
    Deploy {
        version: Option<Digest>,
        only: BTreeSet<ComponentName>,
        all: bool,
        /// Whose artifacts these must be.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        release: Option<ReleaseName>,
        /// The role that the caller wants for the whole workflow.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        role: Option<String>,
        /// The former values of the inputs that the request changed, null where there was none: the install gets them
        /// back when the deploy ends before its first job. Empty once it has ended.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        former_inputs: BTreeMap<String, Value>,
    },
    /// Runs an action.
    Action {
        action: ActionName,
        /// The version whose steps run; workflows of before have none, and run those of the latest version.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<Digest>,
        /// The role that the caller wants.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        role: Option<String>,
    },
    /// Removes what is deployed.
    TearDown {
        what: TearDown,
        /// Whether resources that hold data may be destroyed.
        #[serde(default)]
        destroy_data: bool,
        /// The role that the caller wants for the whole workflow.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        role: Option<String>,
    },
    /// Builds these components of an app.
    Build {
        app: freehold_protocol::AppName,
        builds: Vec<(ComponentName, BuildId)>,
        /// The app version to follow; older workflows have none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<Digest>,
    },
}

/// What a teardown removes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum TearDown {
    /// All components, then the sandbox.
    All,
    /// One component and those that depend on it.
    Component { component: ComponentName },
    /// The sandbox, when nothing lives in it any more.
    Sandbox,
}

/// What a workflow is for; also the name of its state machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkflowKind {
    ProvisionInstall,
    DeployComponents,
    BuildComponents,
    RunAction,
    TeardownInstall,
}

impl WorkflowKind {
    /// Returns the state machine's name without the tenant's prefix.
    pub const fn machine(self) -> &'static str {
        match self {
            Self::ProvisionInstall => "provision-install",
            Self::DeployComponents => "deploy-components",
            Self::BuildComponents => "build-components",
            Self::RunAction => "run-action",
            Self::TeardownInstall => "teardown-install",
        }
    }

    /// Returns whether an install can have only one such workflow at a time.
    pub const fn is_exclusive(self) -> bool {
        match self {
            Self::ProvisionInstall | Self::DeployComponents | Self::TeardownInstall => true,
            Self::BuildComponents | Self::RunAction => false,
        }
    }
}

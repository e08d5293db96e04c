//! The requests that start workflows, and the kinds of workflows.

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::order::UpgradeRunner;
use freehold_protocol::{ActionName, BuildId, ComponentName, Digest, ReleaseName};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::role_switches::RoleChange;

/// The cause that started a run of an action that is a workflow of its own. An action that an event of a deploy starts
/// is a node of that deploy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunTrigger {
    /// A request, such as `freehold action run`.
    Request,
    /// The cron schedule of the action.
    Schedule,
    /// A step of a runbook.
    Runbook,
    /// The customer has switched a role on or off.
    Role(RoleChange),
}

impl RunTrigger {
    /// Returns the name of the trigger.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Schedule => "schedule",
            Self::Runbook => "runbook",
            Self::Role(change) => change.event(),
        }
    }

    /// Returns the role whose switch started the run; `None` for another run.
    pub const fn role_change(&self) -> Option<&RoleChange> {
        match self {
            Self::Role(change) => Some(change),
            Self::Request | Self::Schedule | Self::Runbook => None,
        }
    }
}

/// The request that a workflow carries out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum Request {
    /// Deploys a version: all components, some of them, or those that changed.
    Deploy {
        version: Option<Digest>,
        only: BTreeSet<ComponentName>,
        all: bool,
        /// Whether the components of `only` are deployed without their dependents, as steps of a runbook.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        alone: bool,
        /// The release that the artifacts have to belong to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        release: Option<ReleaseName>,
        /// The role for all jobs of the workflow, if the caller chose one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        role: Option<String>,
        /// The former values of the inputs that the request changed; null for an input that had no value. The install
        /// gets them back when the deploy ends before its first job. Empty once the deploy has ended.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        former_inputs: BTreeMap<String, Value>,
    },
    /// Runs an action.
    Action {
        action: ActionName,
        /// The version whose steps run. If it is absent, the steps of the latest version run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<Digest>,
        /// The role to run under, if the caller chose one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        role: Option<String>,
        /// The cause that started the run; absent in records of earlier versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trigger: Option<RunTrigger>,
        /// The values of the action's inputs; absent when it has none.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        inputs: BTreeMap<String, String>,
        /// The inputs of the run of a runbook whose step this is.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        run_inputs: BTreeMap<String, String>,
    },
    /// Removes deployed parts.
    Teardown {
        what: TeardownParts,
        /// Whether resources that hold data may be destroyed.
        #[serde(default)]
        destroy_data: bool,
        /// The role for all jobs of the workflow, if the caller chose one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        role: Option<String>,
    },
    /// Checks deployed parts for drift.
    DetectDrift {
        /// The parts; empty for all that can be checked.
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        only: BTreeSet<ComponentName>,
    },
    /// Checks whether deployed components are healthy.
    CheckHealth {
        /// The components; empty for all that can be checked.
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        only: BTreeSet<ComponentName>,
    },
    /// Replaces the program of the install's runner.
    Upgrade { program: Box<UpgradeRunner> },
    /// Builds these components of an app.
    Build {
        app: freehold_protocol::AppName,
        builds: Vec<(ComponentName, BuildId)>,
        /// The app version to follow; absent in workflows that an older release started.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<Digest>,
    },
}

impl Request {
    /// Returns the action that is run; `None` for another request.
    pub const fn action(&self) -> Option<&ActionName> {
        match self {
            Self::Action { action, .. } => Some(action),
            Self::Deploy { .. }
            | Self::Teardown { .. }
            | Self::Upgrade { .. }
            | Self::DetectDrift { .. }
            | Self::CheckHealth { .. }
            | Self::Build { .. } => None,
        }
    }

    /// Returns the program that replaces the one of the runner; `None` for another request.
    pub fn program(&self) -> Option<&UpgradeRunner> {
        match self {
            Self::Upgrade { program } => Some(program),
            Self::Deploy { .. }
            | Self::Action { .. }
            | Self::Teardown { .. }
            | Self::DetectDrift { .. }
            | Self::CheckHealth { .. }
            | Self::Build { .. } => None,
        }
    }

    /// Returns what started the run of an action; `None` for another request.
    pub const fn trigger(&self) -> Option<&RunTrigger> {
        match self {
            Self::Action { trigger, .. } => trigger.as_ref(),
            Self::Deploy { .. }
            | Self::Teardown { .. }
            | Self::Upgrade { .. }
            | Self::DetectDrift { .. }
            | Self::CheckHealth { .. }
            | Self::Build { .. } => None,
        }
    }

    /// Returns the release that is deployed; `None` for another request.
    pub const fn release(&self) -> Option<&ReleaseName> {
        match self {
            Self::Deploy { release, .. } => release.as_ref(),
            Self::Action { .. }
            | Self::Teardown { .. }
            | Self::Upgrade { .. }
            | Self::DetectDrift { .. }
            | Self::CheckHealth { .. }
            | Self::Build { .. } => None,
        }
    }

    /// Returns the deploy of everything in which the latest version differs from the install. In a new install, that is
    /// the whole app.
    pub const fn deploy_latest() -> Self {
        Self::deploy_of(None)
    }

    /// Returns the deploy of everything in which a version differs from the install. `None` means the latest version.
    pub const fn deploy_of(version: Option<Digest>) -> Self {
        Self::Deploy {
            version,
            only: BTreeSet::new(),
            all: false,
            alone: false,
            release: None,
            role: None,
            former_inputs: BTreeMap::new(),
        }
    }
}

/// The parts that a teardown removes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum TeardownParts {
    /// All components, then the sandbox.
    All,
    /// One component and all its dependents.
    Component { component: ComponentName },
    /// The sandbox. No component may be deployed in it any more.
    Sandbox,
}

/// The kind of a workflow. Each kind has a state machine of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkflowKind {
    ProvisionInstall,
    DeployComponents,
    BuildComponents,
    RunAction,
    TeardownInstall,
    UpgradeRunner,
    DetectDrift,
    CheckHealth,
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
            Self::UpgradeRunner => "upgrade-runner",
            Self::DetectDrift => "detect-drift",
            Self::CheckHealth => "check-health",
        }
    }

    /// Returns whether the workflow only reads the state of an install and changes nothing.
    pub const fn is_check(self) -> bool {
        matches!(self, Self::DetectDrift | Self::CheckHealth)
    }

    /// Returns whether an install can have only one such workflow at a time.
    pub const fn is_exclusive(self) -> bool {
        match self {
            Self::ProvisionInstall | Self::DeployComponents | Self::TeardownInstall => true,
            Self::BuildComponents | Self::RunAction | Self::UpgradeRunner | Self::DetectDrift | Self::CheckHealth => {
                false
            }
        }
    }
}

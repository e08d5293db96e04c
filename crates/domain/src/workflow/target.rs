//! The target of a node: the operation that its job performs, and the part that it concerns.

use freehold_protocol::limits::{CLAIM_WINDOW_SECS, MAX_WAIT_SECS};
use freehold_protocol::report::FreeActions;
use freehold_protocol::{ActionName, BuildId, ComponentName, Digest, Group, JobId};
use serde::{Deserialize, Serialize};

use crate::job::WaitLimits;
use crate::required_checks::{AwaitedChecks, RequiredChecks};
use crate::sandbox::SandboxReads;

/// The time in seconds for which a list of leftovers waits for a runner. It is short, because the install is locked
/// meanwhile although everything is removed, and a runner of an earlier release never starts this job.
const LEFTOVERS_CLAIM_SECS: u64 = 10 * 60;

/// The target of a node: the operation that its job performs, and the part that it concerns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "target", rename_all = "snake_case")]
pub enum Target {
    /// Deploys a component from the artifact of a build.
    Component {
        component: ComponentName,
        build: BuildId,
        artifact: Digest,
        fingerprint: Digest,
        /// The sandbox outputs that the component reads.
        #[serde(default, skip_serializing_if = "SandboxReads::is_empty")]
        sandbox: SandboxReads,
    },
    /// Makes the sandbox, before all components.
    Sandbox { build: BuildId, artifact: Digest, fingerprint: Digest },
    /// Copies secrets of the app into the cluster, and removes copies that are not wanted any more.
    Secrets {
        fingerprint: Digest,
        /// Whether copies that are not wanted any more stay for now. Components that are still to be deployed again or
        /// removed may use them.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        keeps_others: bool,
    },
    /// Removes a component or the sandbox, as the version that deployed it describes it.
    Teardown {
        part: ComponentName,
        version: Digest,
        /// The build of the part's artifact; absent if parts of this kind are not built.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        build: Option<BuildId>,
        artifact: Digest,
        /// Whether the part is the sandbox.
        #[serde(default)]
        sandbox: bool,
    },
    /// Compares a component or the sandbox with the version that deployed it.
    DetectDrift {
        part: ComponentName,
        version: Digest,
        build: BuildId,
        artifact: Digest,
        /// Whether the part is the sandbox.
        #[serde(default)]
        sandbox: bool,
        /// The job that deployed the part. The result counts only while this is the last deploy.
        of: JobId,
    },
    /// Runs an action.
    Action {
        action: ActionName,
        /// The builds of the directories that its steps run in.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        directories: Vec<StepBuild>,
    },
    /// Builds a component's artifact.
    Build { component: ComponentName, build: BuildId },
    /// Runs before all other nodes and looks for problems that would make them fail.
    Preflight,
    /// Runs after the removals of a teardown and lists what still exists of the app.
    Leftovers,
    /// Checks whether a component is healthy.
    Health {
        component: ComponentName,
        /// Whether the component's dependents wait for its health.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        gate: bool,
        /// The version that defines the check, if the check runs without a deploy. A check of a deploy uses the version
        /// of its workflow.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<Digest>,
        /// The required checks of the component. A gate waits for their results.
        #[serde(default, skip_serializing_if = "RequiredChecks::is_empty")]
        checks: RequiredChecks,
    },
    /// Replaces the program of the install's runner.
    Upgrade,
}

/// The build of a directory that steps of an action run in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepBuild {
    pub component: ComponentName,
    pub build: BuildId,
    pub artifact: Digest,
}

/// An artifact that the job of a node needs in the install registry, and the build that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Use<'a> {
    pub build: &'a BuildId,
    pub artifact: &'a Digest,
}

/// The part that a node deploys, and the artifact that it is deployed from.
#[derive(Debug, Clone)]
pub struct Deploys<'a> {
    /// The name of the component or the sandbox.
    pub part: ComponentName,
    pub build: &'a BuildId,
    pub artifact: &'a Digest,
    pub fingerprint: &'a Digest,
    /// The sandbox outputs that the component reads; `None` for the sandbox.
    pub reads: Option<&'a SandboxReads>,
}

impl Target {
    /// Returns whether the node changes something in the customer's account, so that it waits for the customer's windows.
    /// `free` are the actions that the customer lets run at any time.
    pub fn is_change(&self, free: &FreeActions) -> bool {
        match self {
            Self::Component { .. }
            | Self::Sandbox { .. }
            | Self::Secrets { .. }
            | Self::Teardown { .. }
            | Self::Upgrade => true,
            Self::Action { action, .. } => !free.contains(action),
            Self::Build { .. } | Self::DetectDrift { .. } | Self::Preflight | Self::Leftovers | Self::Health { .. } => {
                false
            }
        }
    }

    /// Returns whether the node only checks health, and no node waits for the result.
    pub const fn only_looks(&self) -> bool {
        matches!(self, Self::Health { gate: false, .. })
    }

    /// Returns the required checks for which the node waits after its runner found the component healthy; `None` if it waits for
    /// none.
    pub fn awaited_checks(&self) -> Option<AwaitedChecks> {
        let Self::Health { component, gate: true, checks, .. } = self else { return None };
        let awaited = || AwaitedChecks { component: component.clone(), required: checks.clone() };
        (!checks.is_empty()).then(awaited)
    }

    /// Returns the part that the node deploys from an artifact; `None` for nodes that do something else.
    pub fn deploys(&self) -> Option<Deploys<'_>> {
        match self {
            Self::Component { component, build, artifact, fingerprint, sandbox } => {
                Some(Deploys { part: component.clone(), build, artifact, fingerprint, reads: Some(sandbox) })
            }
            Self::Sandbox { build, artifact, fingerprint } => {
                Some(Deploys { part: ComponentName::sandbox(), build, artifact, fingerprint, reads: None })
            }
            Self::Secrets { .. }
            | Self::Teardown { .. }
            | Self::DetectDrift { .. }
            | Self::Action { .. }
            | Self::Build { .. }
            | Self::Preflight
            | Self::Leftovers
            | Self::Health { .. }
            | Self::Upgrade => None,
        }
    }

    /// Returns the artifacts that the node deploys or runs, each with the name under which it was built. A success of the
    /// node's job is evidence of their use.
    pub fn uses(&self) -> Vec<(ComponentName, Use<'_>)> {
        if let Self::Action { directories, .. } = self {
            let uses = directories.iter();
            return uses
                .map(|one| (one.component.clone(), Use { build: &one.build, artifact: &one.artifact }))
                .collect();
        }
        let deploys = self.deploys();
        deploys.map(|Deploys { part, build, artifact, .. }| (part, Use { build, artifact })).into_iter().collect()
    }

    /// Returns how long the node's job waits for a runner. The build runner belongs to the tenant, so nobody pauses it. A
    /// check of drift or health does not wait for a runner that is away: the next check finds what this one would have
    /// found.
    pub const fn wait_limits(&self) -> WaitLimits {
        match self {
            Self::Leftovers => WaitLimits { order_secs: LEFTOVERS_CLAIM_SECS, job_secs: LEFTOVERS_CLAIM_SECS },
            // Such a job is given up if no runner takes it within an hour.
            Self::Build { .. } | Self::DetectDrift { .. } | Self::Health { .. } => {
                WaitLimits { order_secs: CLAIM_WINDOW_SECS, job_secs: CLAIM_WINDOW_SECS }
            }
            Self::Component { .. }
            | Self::Sandbox { .. }
            | Self::Secrets { .. }
            | Self::Teardown { .. }
            | Self::Action { .. }
            | Self::Preflight
            | Self::Upgrade => WaitLimits { order_secs: CLAIM_WINDOW_SECS, job_secs: MAX_WAIT_SECS },
        }
    }

    /// Returns the FIFO group, which names the thing that the job changes.
    ///
    /// # Errors
    /// An error is not expected, because the names were parsed before. It is returned to avoid a panic.
    pub fn group(&self) -> Result<Group, freehold_protocol::IdError> {
        match self {
            Self::Component { component, .. } => format!("component:{component}").parse(),
            Self::Sandbox { .. } => "sandbox".parse(),
            Self::Teardown { sandbox: true, .. } => "sandbox".parse(),
            Self::Teardown { part, sandbox: false, .. } => format!("component:{part}").parse(),
            // A check for drift has a group of its own, because a deploy with a lower serial may still be ordered again.
            Self::DetectDrift { sandbox: true, .. } => "sandbox.drift".parse(),
            Self::DetectDrift { part, sandbox: false, .. } => format!("component:{part}.drift").parse(),
            Self::Action { action, .. } => format!("action:{action}").parse(),
            Self::Build { build, .. } => format!("build:{build}").parse(),
            // The workflow's other node for secrets has the same serial, and a runner accepts one job for each serial
            // of a group.
            Self::Secrets { keeps_others: true, .. } => "secrets.1".parse(),
            Self::Secrets { keeps_others: false, .. } => "secrets".parse(),
            Self::Preflight => "preflight".parse(),
            Self::Leftovers => "leftovers".parse(),
            // A check without a deploy has a group of its own, because the check of a deploy may still be ordered again, and
            // has a lower serial.
            Self::Health { component, version: Some(_), .. } => format!("health:{component}.check").parse(),
            Self::Health { component, version: None, .. } => format!("health:{component}").parse(),
            Self::Upgrade => "runner".parse(),
        }
    }
}

//! The scope of a deploy: the parts that it covers, and the circumstances that change its plan.

use std::collections::BTreeSet;

use freehold_protocol::ComponentName;

/// The parts that a deploy covers, and the circumstances that change its plan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeployScope {
    /// The names of the parts to deploy; dependents are deployed with them. If empty, all changed parts are deployed.
    pub only: BTreeSet<ComponentName>,
    /// Whether the parts of `only` are deployed without their dependents.
    pub alone: bool,
    /// Whether all parts are deployed, changed or not.
    pub all: bool,
    /// Whether the deploy provisions the install. It then also starts the actions of this event, and begins with a
    /// preflight.
    pub provision: bool,
    /// Whether nothing of the app is deployed yet, for example after a provisioning that failed. Such a deploy begins
    /// with a preflight too.
    pub first: bool,
    /// Whether the deploy changes inputs of the install.
    pub inputs_changed: bool,
    /// The role for every node, if the person who started the workflow chose one.
    pub role: Option<String>,
}

impl DeployScope {
    /// Returns whether the deploy reprovisions the install: it deploys the sandbox and all components again, changed or
    /// not.
    pub(super) fn reprovisions(&self) -> bool {
        self.all && self.only.is_empty() && !self.provision && !self.first
    }
}

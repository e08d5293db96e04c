//! What a deploy is asked to do.

use std::collections::BTreeSet;

use freehold_protocol::ComponentName;

/// What a deploy is asked to do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeployScope {
    /// Only these components, or the sandbox under its name, and those that depend on them; when empty, all that changed.
    pub only: BTreeSet<ComponentName>,
    /// Everything, changed or not.
    pub all: bool,
    /// Whether this is the install's provisioning, which also runs post-provision actions and begins with a preflight.
    pub provision: bool,
    /// Whether nothing of the app exists yet, for example after a provisioning that failed: this run too begins with a
    /// preflight.
    pub first: bool,
    /// Whether it changes inputs of the install.
    pub inputs_changed: bool,
    /// The role for every node that the person who started the workflow chose.
    pub role: Option<String>,
}

//! The kinds of files of an app config, and the keys of each kind. Both the checks and the JSON Schemas use these
//! tables.

pub(crate) mod actions;
mod app;
mod components;
mod permissions;
mod settings;
pub(crate) mod spec;

pub(crate) use components::{COMPONENT_TYPES, component_keys};
pub(crate) use spec::MAX_COMPONENT_SECS;

use crate::kinds::spec::{Effect, Key};

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Metadata,
    /// `inputs.toml`: groups and inputs.
    Inputs,
    /// A file of `inputs/`: one input, or groups and inputs.
    Input,
    InputGroup,
    Secrets,
    Secret,
    /// `permissions.toml`: a role for each mode.
    Permissions,
    /// A file of `permissions/`: one role.
    Role,
    /// A file of `permissions/policies/**/*.toml`: a policy that roles name.
    NamedPolicy,
    BreakGlass,
    OperationRoles,
    /// Clusters that components create: `kubernetes_contexts.toml`, or a file of `kubernetes_contexts/` with one of them.
    KubernetesContexts,
    Sandbox,
    Runner,
    Stack,
    Policies,
    Installer,
    Branch,
    Triggers,
    /// `installs.toml`: the repository of the files of installs.
    InstallsSource,
    Component,
    Action,
    Install,
    Runbook,
}

/// The kinds of the files in the app's directory, by file name.
pub(crate) const ROOT: [(&str, Kind); 17] = [
    ("metadata.toml", Kind::Metadata),
    ("inputs.toml", Kind::Inputs),
    ("secrets.toml", Kind::Secrets),
    ("permissions.toml", Kind::Permissions),
    ("break_glass.toml", Kind::BreakGlass),
    ("operation_roles.toml", Kind::OperationRoles),
    ("kubernetes_contexts.toml", Kind::KubernetesContexts),
    ("sandbox.toml", Kind::Sandbox),
    ("runner.toml", Kind::Runner),
    ("stack.toml", Kind::Stack),
    ("policies.toml", Kind::Policies),
    ("installer.toml", Kind::Installer),
    ("branch.toml", Kind::Branch),
    ("triggers.toml", Kind::Triggers),
    ("events.toml", Kind::Triggers),
    ("installs.toml", Kind::InstallsSource),
    ("runbooks.toml", Kind::Runbook),
];

/// The kinds of the TOML files in directories, by directory name. Files in nested directories are read too.
pub(crate) const DIRECTORIES: [(&str, Kind); 13] = [
    ("components", Kind::Component),
    ("actions", Kind::Action),
    ("installs", Kind::Install),
    ("permissions", Kind::Role),
    ("permissions/policies", Kind::NamedPolicy),
    ("inputs", Kind::Input),
    ("input_groups", Kind::InputGroup),
    ("secrets", Kind::Secret),
    ("policies", Kind::Policies),
    ("break_glass", Kind::BreakGlass),
    ("kubernetes_contexts", Kind::KubernetesContexts),
    ("runbooks", Kind::Runbook),
    ("branches", Kind::Branch),
];

impl Kind {
    /// Returns whether Freehold acts on files of this kind.
    pub(crate) const fn effect(self) -> Effect {
        if matches!(self, Self::Installer) {
            Effect::Never("Freehold has no installer page; send the customer the template of `freehold install stack`")
        } else if matches!(self, Self::Triggers) {
            Effect::Never("write each trigger as `[[triggers]]` of the action that it starts")
        } else if matches!(self, Self::InstallsSource) {
            Effect::Never(
                "`freehold install sync DIR` reads `installs/` of a directory; check the repository out first",
            )
        } else {
            Effect::Works
        }
    }

    /// Returns the keys of a file of this kind. A component has further keys, which depend on its `type`.
    pub(crate) const fn keys(self) -> &'static [Key] {
        match self {
            Self::Metadata => app::METADATA,
            Self::Inputs => app::INPUTS,
            Self::Input => app::INPUT,
            Self::InputGroup => app::GROUP,
            Self::Secrets => app::SECRETS,
            Self::Secret => app::SECRET,
            Self::Permissions => permissions::PERMISSIONS,
            Self::Role => permissions::ROLE_FILE,
            Self::NamedPolicy => permissions::NAMED_POLICY,
            Self::BreakGlass => permissions::BREAK_GLASS,
            Self::OperationRoles => permissions::OPERATION_ROLES,
            Self::KubernetesContexts => app::KUBERNETES_CONTEXTS,
            Self::Sandbox => settings::SANDBOX,
            Self::Runner => settings::RUNNER,
            Self::Stack => settings::STACK,
            Self::Policies => permissions::POLICIES_FILE,
            Self::Installer => app::INSTALLER,
            Self::Branch => app::BRANCH,
            Self::Triggers => &[],
            Self::InstallsSource => app::INSTALLS_SOURCE,
            Self::Component => components::COMPONENT,
            Self::Action => actions::ACTION,
            Self::Install => app::INSTALL,
            Self::Runbook => actions::RUNBOOK,
        }
    }

    /// Returns whether keys that are not in the table are accepted without a warning.
    pub(crate) const fn is_open(self) -> bool {
        matches!(self, Self::Installer | Self::Triggers)
    }
}

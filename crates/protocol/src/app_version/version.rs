//! The document of an app version as a whole.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::actions::{Action, Runbook};
use super::components::Component;
use super::inputs::{Input, InputGroup, Secret};
use super::permissions::{ModeRole, NamedRole, OperationRole, Policy};
use super::settings::{KubernetesContext, RunnerSettings, Sandbox, StackSettings};
use crate::{ActionName, AppName, ComponentName, Digest, canonical};

/// The format of documents that this release reads and writes.
pub const FORMAT: u32 = 1;

/// All that the control plane needs to know of one state of an app config. Lists are sorted by name unless they say
/// otherwise; what a config does not say is left out of the canonical bytes, so that a key that the format gets later
/// changes no digest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AppVersion {
    /// The document's format, 1.
    #[cfg_attr(feature = "schema", schemars(range(min = FORMAT, max = FORMAT)))]
    pub format: u32,
    pub app: AppName,
    #[serde(default)]
    pub display_name: String,
    #[serde(default)]
    pub description: String,
    /// Markdown for people; not a template.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub readme: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kubernetes_contexts: Vec<KubernetesContext>,
    /// In the order of the config: forms show them like that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub input_groups: Vec<InputGroup>,
    #[serde(default)]
    pub inputs: Vec<Input>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<Secret>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Sandbox>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<RunnerSettings>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<StackSettings>,
    #[serde(default)]
    pub components: Vec<Component>,
    #[serde(default)]
    pub actions: Vec<Action>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runbooks: Vec<Runbook>,
    /// What the install stack lets each mode do, sorted by mode; a mode without an entry may do nothing.
    #[serde(default)]
    pub roles: Vec<ModeRole>,
    /// Roles that no mode has by itself: custom ones and those of break-glass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named_roles: Vec<NamedRole>,
    /// Which role an operation takes; in the order of the config, the first that fits decides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operation_roles: Vec<OperationRole>,
    /// Sorted by name, then type and contents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<Policy>,
}

impl AppVersion {
    /// Returns an empty version that has only its app's name.
    pub const fn empty(app: AppName) -> Self {
        Self {
            format: FORMAT,
            app,
            display_name: String::new(),
            description: String::new(),
            readme: String::new(),
            kubernetes_contexts: Vec::new(),
            input_groups: Vec::new(),
            inputs: Vec::new(),
            secrets: Vec::new(),
            sandbox: None,
            runner: None,
            stack: None,
            components: Vec::new(),
            actions: Vec::new(),
            runbooks: Vec::new(),
            roles: Vec::new(),
            named_roles: Vec::new(),
            operation_roles: Vec::new(),
            policies: Vec::new(),
        }
    }

    /// Returns the digest of the canonical bytes: the version's name.
    ///
    /// # Errors
    /// As [`canonical::digest`].
    pub fn digest(&self) -> Result<Digest, serde_json::Error> {
        canonical::digest(self)
    }

    /// Returns the component called `name`.
    pub fn component(&self, name: &ComponentName) -> Option<&Component> {
        self.components.iter().find(|component| component.name == *name)
    }

    /// Returns everything that is built and deployed: the sandbox in the form of a component, then the components.
    pub fn parts(&self) -> impl Iterator<Item = Cow<'_, Component>> {
        let sandbox = self.sandbox.as_ref().map(|sandbox| Cow::Owned(sandbox.part()));
        sandbox.into_iter().chain(self.components.iter().map(Cow::Borrowed))
    }

    /// Returns the component called `name`, or the sandbox under its name.
    pub fn part(&self, name: &ComponentName) -> Option<Cow<'_, Component>> {
        match &self.sandbox {
            Some(sandbox) if name.is_sandbox() => Some(Cow::Owned(sandbox.part())),
            Some(_) | None => self.component(name).map(Cow::Borrowed),
        }
    }

    /// Returns the action called `name`.
    pub fn action(&self, name: &ActionName) -> Option<&Action> {
        self.actions.iter().find(|action| action.name == *name)
    }
}

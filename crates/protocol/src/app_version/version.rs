//! The complete document of an app version.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::actions::{Action, Runbook, StepSource};
use super::components::Component;
use super::inputs::{Input, InputGroup, Secret};
use super::machine_type::{default_machine_type, machine_type};
use super::permissions::{ModeRole, NamedRole, OperationRole, Policy};
use super::settings::{KubernetesContext, RunnerSettings, Sandbox, StackSettings};
use crate::build::BuildInput;
use crate::{ActionName, AppName, ComponentName, Digest, RunbookName, canonical};

/// The format of documents that this release reads and writes.
pub const FORMAT: u32 = 1;

/// One state of an app config, with everything that the control plane needs. Lists are sorted by name, unless a field
/// documents another order. The canonical bytes contain only the keys that a config sets: a later key of the format
/// does not change the digest of an existing version.
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
    /// The labels of every install of the app. An install's own label with the same key takes precedence.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub default_labels: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kubernetes_contexts: Vec<KubernetesContext>,
    /// The groups in the order of the config, in which forms show them.
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
    /// The runbooks that run after each deploy of all components, in the order of the config.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub post_deploy_runbooks: Vec<RunbookName>,
    /// The role of each mode, sorted by mode. A mode without an entry has no permissions.
    #[serde(default)]
    pub roles: Vec<ModeRole>,
    /// The roles that do not belong to a mode: custom roles and break-glass roles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named_roles: Vec<NamedRole>,
    /// The rules that choose the role of an operation, in the order of the config. The first rule that matches decides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operation_roles: Vec<OperationRole>,
    /// The policies, sorted by name, then by type and contents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<Policy>,
}

impl AppVersion {
    /// Returns a version of `app` without components, actions and settings.
    pub const fn empty(app: AppName) -> Self {
        Self {
            format: FORMAT,
            app,
            display_name: String::new(),
            description: String::new(),
            readme: String::new(),
            default_labels: BTreeMap::new(),
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
            post_deploy_runbooks: Vec::new(),
            roles: Vec::new(),
            named_roles: Vec::new(),
            operation_roles: Vec::new(),
            policies: Vec::new(),
        }
    }

    /// Returns the digest of the canonical bytes, by which the version is named.
    ///
    /// # Errors
    /// As [`canonical::digest`].
    pub fn digest(&self) -> Result<Digest, serde_json::Error> {
        canonical::digest(self)
    }

    /// Returns the component with the name `name`.
    pub fn component(&self, name: &ComponentName) -> Option<&Component> {
        self.components.iter().find(|component| component.name == *name)
    }

    /// Returns the component whose image jobs run their programs in, if the app names one.
    pub fn tool_image(&self) -> Option<&Component> {
        self.component(self.runner.as_ref()?.tool_image.as_ref()?)
    }

    /// Returns the type of the runner's machine that a new install stack proposes. A text that names no type on which
    /// the runner can run counts as absent: a version that an earlier release of Freehold stored may have such a text.
    pub fn machine_type(&self) -> String {
        let named = self.runner.as_ref().and_then(|runner| machine_type(&runner.instance_type));
        named.unwrap_or_else(default_machine_type)
    }

    /// Returns all parts that are built and deployed: the sandbox as a component, if any, then the components.
    pub fn parts(&self) -> impl Iterator<Item = Cow<'_, Component>> {
        let sandbox = self.sandbox.as_ref().map(|sandbox| Cow::Owned(sandbox.part()));
        sandbox.into_iter().chain(self.components.iter().map(Cow::Borrowed))
    }

    /// Returns the part with the name `name`: a component, or the sandbox as a component.
    pub fn part(&self, name: &ComponentName) -> Option<Cow<'_, Component>> {
        match &self.sandbox {
            Some(sandbox) if name.is_sandbox() => Some(Cow::Owned(sandbox.part())),
            Some(_) | None => self.component(name).map(Cow::Borrowed),
        }
    }

    /// Returns the inputs of all builds that the version needs: of the sandbox, of the components, and of the directories
    /// that steps of actions run in.
    pub fn build_inputs(&self) -> impl Iterator<Item = BuildInput> {
        let steps = self.actions.iter().flat_map(Action::sources).map(StepSource::build_input);
        self.parts().map(|part| part.build_input()).chain(steps)
    }

    /// Returns the input of the build with the name `name`.
    pub fn build_input(&self, name: &ComponentName) -> Option<BuildInput> {
        self.build_inputs().find(|input| input.name == *name)
    }

    /// Returns the action with the name `name`.
    pub fn action(&self, name: &ActionName) -> Option<&Action> {
        self.actions.iter().find(|action| action.name == *name)
    }
}

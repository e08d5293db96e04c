//! An app version: the immutable, content-addressed form of an app config directory.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::order::{ActionStep, Package, Source};
use crate::{ActionName, AppName, ComponentName, Digest, canonical};

/// All that the control plane needs to know of one state of an app config.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AppVersion {
    /// The document's format, 1.
    pub format: u32,
    pub app: AppName,
    #[serde(default)]
    pub display_name: String,
    #[serde(default)]
    pub description: String,
    /// Sorted by name.
    #[serde(default)]
    pub inputs: Vec<Input>,
    /// Sorted by name.
    #[serde(default)]
    pub components: Vec<Component>,
    /// Sorted by name.
    #[serde(default)]
    pub actions: Vec<Action>,
    /// What the install stack lets each mode do, sorted by mode; a mode without an entry may do nothing.
    #[serde(default)]
    pub roles: Vec<ModeRole>,
}

/// The permissions that the vendor asks for one mode. Texts may contain templates over the install's id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ModeRole {
    pub mode: crate::order::Mode,
    #[serde(default)]
    pub description: String,
    pub policies: Vec<RolePolicy>,
    /// The JSON text of a permission boundary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boundary: Option<String>,
}

/// One policy of a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RolePolicy {
    /// The name of an AWS managed policy, such as `ReadOnlyAccess`.
    Managed(String),
    /// A policy document's JSON text.
    Inline { name: String, document: String },
}

impl AppVersion {
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

    /// Returns the action called `name`.
    pub fn action(&self, name: &ActionName) -> Option<&Action> {
        self.actions.iter().find(|action| action.name == *name)
    }
}

/// One question to the vendor or the customer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Input {
    pub name: String,
    #[serde(default)]
    pub display_name: String,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub group: String,
    #[serde(rename = "type")]
    pub kind: InputKind,
    #[serde(default)]
    pub required: bool,
    #[serde(default)]
    pub sensitive: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
}

/// The type of an input's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum InputKind {
    String,
    Number,
    List,
    Json,
    Bool,
    Yaml,
    Hcl,
}

/// One component.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Component {
    pub name: ComponentName,
    /// Components that must be deployed before: declared and found in templates, sorted.
    #[serde(default)]
    pub dependencies: BTreeSet<ComponentName>,
    /// What its templates refer to, sorted.
    #[serde(default)]
    pub references: BTreeSet<Reference>,
    /// The longest that one deploy of it may take, in seconds.
    pub deploy_timeout_secs: u32,
    pub source: Source,
    pub spec: ComponentSpec,
}

impl Component {
    /// Returns the digest that changes when what is built changes, and only then.
    ///
    /// # Errors
    /// As [`canonical::digest`].
    pub fn source_digest(&self) -> Result<Digest, serde_json::Error> {
        canonical::digest(&(&self.source, self.spec.package()))
    }
}

/// What a template refers to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "to", content = "name", rename_all = "snake_case")]
pub enum Reference {
    /// `.nuon.inputs.inputs.<name>` or `.nuon.install.inputs.<name>`.
    Input(String),
    /// `.nuon.components.<name>.outputs`.
    Component(ComponentName),
    /// `.nuon.actions.workflows.<name>.outputs`.
    Action(ActionName),
    /// `.nuon.secrets.<name>`: resolved on the runner only.
    Secret(String),
}

/// What is special to one kind of component. String values are templates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ComponentSpec {
    ContainerImage,
    TerraformModule {
        terraform_version: String,
        #[serde(default)]
        vars: BTreeMap<String, Value>,
        #[serde(default)]
        env_vars: BTreeMap<String, String>,
        #[serde(default)]
        var_files: Vec<String>,
    },
    CloudformationStack {
        stack_name: String,
        #[serde(default)]
        parameters: BTreeMap<String, String>,
        #[serde(default)]
        capabilities: Vec<String>,
    },
}

impl ComponentSpec {
    /// Returns the word that configs use for the kind.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::ContainerImage => "container_image",
            Self::TerraformModule { .. } => "terraform_module",
            Self::CloudformationStack { .. } => "cloudformation_stack",
        }
    }

    /// Returns the form that a build gives the component's source.
    pub const fn package(&self) -> Package {
        match self {
            Self::ContainerImage => Package::Image,
            Self::TerraformModule { .. } => Package::TerraformModule,
            Self::CloudformationStack { .. } => Package::CloudformationTemplate,
        }
    }
}

/// Steps the runner executes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Action {
    pub name: ActionName,
    /// The longest that one run may take, in seconds.
    pub timeout_secs: u32,
    /// Whether a second delivery may run the steps again.
    #[serde(default)]
    pub idempotent: bool,
    #[serde(default)]
    pub triggers: BTreeSet<Trigger>,
    #[serde(default)]
    pub references: BTreeSet<Reference>,
    #[serde(default)]
    pub env_vars: BTreeMap<String, String>,
    pub steps: Vec<ActionStep>,
}

/// What starts an action.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "on", rename_all = "snake_case")]
pub enum Trigger {
    Manual,
    /// After the first deploy of everything.
    PostProvision,
    /// After one component, in a deploy that touches it.
    PostDeployComponent {
        component: ComponentName,
    },
    /// After everything that a deploy touches.
    PostDeployAllComponents,
}

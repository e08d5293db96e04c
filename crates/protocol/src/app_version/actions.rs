//! Actions, what starts them, and runbooks.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::components::Reference;
use crate::build::Source;
use crate::flag::is_false;
use crate::{ActionName, ComponentName};

/// Steps the runner executes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Action {
    pub name: ActionName,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The time limit of one run, in seconds.
    pub timeout_secs: u32,
    /// Whether a second delivery may run the steps again.
    #[serde(default)]
    pub idempotent: bool,
    #[serde(default)]
    pub triggers: BTreeSet<Trigger>,
    #[serde(default)]
    pub references: BTreeSet<Reference>,
    /// Components that must be deployed before the action runs.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub dependencies: BTreeSet<ComponentName>,
    #[serde(default)]
    pub env_vars: BTreeMap<String, String>,
    pub steps: Vec<ActionStep>,
    /// Repositories that steps run in, by the step's place from 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub step_repos: Vec<StepRepo>,
    /// The role it runs under instead of its mode's; a template; empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub role: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub break_glass_role: String,
    #[serde(default, skip_serializing_if = "is_false")]
    pub enable_kube_config: bool,
    /// The image that steps run in, unchanged from the config.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<Value>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The inputs that a person gives to a run, unchanged from the config.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Value>,
    /// The cluster that steps talk to; empty for the sandbox's.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kubernetes_context: String,
}

/// One step of an action. Exactly one of `command` and `inline_contents` is not empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ActionStep {
    pub name: String,
    /// A shell command line; a template.
    #[serde(default)]
    pub command: String,
    /// A script's text, run as a file; a template.
    #[serde(default)]
    pub inline_contents: String,
    /// Environment of the step; values are templates.
    #[serde(default)]
    pub env_vars: BTreeMap<String, String>,
}

/// The repository that one step runs in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StepRepo {
    pub step: u32,
    pub source: Source,
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
    /// On a schedule, a cron expression of five fields in UTC.
    Cron {
        schedule: String,
    },
    /// Another of the format's events, such as `pre-provision`; with the component that it is about, if any.
    Event {
        event: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        component: Option<ComponentName>,
    },
}

/// Steps that a person starts together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Runbook {
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Markdown for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub readme: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The inputs that a person gives to a run, unchanged from the config.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Value>,
    /// In the order of the config.
    pub steps: Vec<RunbookStep>,
}

/// One step of a runbook.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RunbookStep {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    pub does: StepKind,
    /// The role that the step runs under; a template; when empty, the step uses the operation's default role.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub role: String,
    /// Whether a deploy takes along what the component depends on.
    #[serde(default, skip_serializing_if = "is_false")]
    pub deploy_dependencies: bool,
    /// Whether a sandbox step leaves the components as they are.
    #[serde(default, skip_serializing_if = "is_false")]
    pub skip_component_deploys: bool,
}

/// What a runbook's step does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum StepKind {
    ComponentDeploy {
        component: ComponentName,
    },
    ComponentTearDown {
        component: ComponentName,
    },
    Action {
        action: ActionName,
    },
    SandboxProvision,
    SandboxReprovision,
    SandboxDeprovision,
    /// A command line or a script of its own, each a template; the other one is empty.
    Command {
        #[serde(default, skip_serializing_if = "String::is_empty")]
        command: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        inline_contents: String,
        timeout_secs: u32,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        env_vars: BTreeMap<String, String>,
    },
}

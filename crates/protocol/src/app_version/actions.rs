//! Actions, their triggers, and runbooks.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::components::Reference;
use crate::build::{BuildInput, Package, Source};
use crate::flag::is_false;
use crate::{ActionName, ComponentName, RunbookName};

/// An action: steps that a runner executes, and the triggers that start them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Action {
    pub name: ActionName,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The time limit of one run, in seconds.
    pub timeout_secs: u32,
    /// Whether a runner may execute the steps again when the order is delivered again.
    #[serde(default)]
    pub idempotent: bool,
    #[serde(default)]
    pub triggers: BTreeSet<Trigger>,
    /// The indexes of those triggers that have one, sorted by trigger.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub indexes: Vec<TriggerIndex>,
    #[serde(default)]
    pub references: BTreeSet<Reference>,
    /// Components that must be deployed before the action runs.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub dependencies: BTreeSet<ComponentName>,
    #[serde(default)]
    pub env_vars: BTreeMap<String, String>,
    pub steps: Vec<ActionStep>,
    /// The repositories, and directories of the config, in which steps run. `step` is the index of a step in `steps`, from
    /// 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub step_repos: Vec<StepRepo>,
    /// The role that the action runs under, instead of the role of its mode; a template. Empty for the role of the
    /// mode.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub role: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub break_glass_role: String,
    /// The roles that a person may choose for a run, besides the action's own; templates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_roles: Vec<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub enable_kube_config: bool,
    /// The image that steps run in; a template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The texts that a person gives to a run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<RunInput>"))]
    pub inputs: Vec<RunInput>,
    /// The name of the `kubernetes_context` with the cluster of the steps. Empty for the sandbox's cluster.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kubernetes_context: String,
}

impl Action {
    /// Returns the sources of the directories that steps run in, by the first step of each. Steps with the same source
    /// have one artifact.
    pub fn sources(&self) -> Vec<StepSource> {
        let mut found: Vec<StepSource> = Vec::new();
        for StepRepo { step, source } in &self.step_repos {
            match found.iter_mut().find(|known| known.source.pinned() == source.pinned()) {
                Some(known) => known.steps.push(*step),
                None => found.push(StepSource {
                    name: ComponentName::of_step(&self.name, *step),
                    source: source.clone(),
                    steps: vec![*step],
                }),
            }
        }
        found
    }
}

/// The source of a directory that steps of one action run in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepSource {
    /// The name under which the directory is built, granted and shown ([`ComponentName::of_step`]).
    pub name: ComponentName,
    pub source: Source,
    /// The indexes of the steps, from 0.
    pub steps: Vec<u32>,
}

impl StepSource {
    /// Returns the input of the build of the directory.
    pub fn build_input(self) -> BuildInput {
        BuildInput { name: self.name, package: Package::StepDirectory, source: self.source, recipe: None }
    }
}

/// One step of an action. Exactly one of `command` and `inline_contents` is not empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ActionStep {
    pub name: String,
    /// A shell command line; a template.
    #[serde(default)]
    pub command: String,
    /// The text of a script, which the runner writes to a file and executes; a template.
    #[serde(default)]
    pub inline_contents: String,
    /// The environment of the step; values are templates.
    #[serde(default)]
    pub env_vars: BTreeMap<String, String>,
}

/// The repository, or the directory of the config, that one step runs in. Only a step with a `command` has one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StepRepo {
    pub step: u32,
    pub source: Source,
}

/// The cause that starts an action.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "on", rename_all = "snake_case")]
pub enum Trigger {
    Manual,
    /// The end of an install's provisioning, which deploys everything for the first time.
    PostProvision,
    /// The end of the deploy of one component.
    PostDeployComponent {
        component: ComponentName,
    },
    /// The end of a deploy, after all of its components.
    PostDeployAllComponents,
    /// A schedule: a cron expression of five fields, in UTC.
    Cron {
        schedule: String,
    },
    /// Any other event of the config format, such as `pre-provision`, with the component of the event, if any.
    Event {
        event: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        component: Option<ComponentName>,
    },
}

/// The place of an action among the actions that one event starts: the action with the lowest index starts first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TriggerIndex {
    pub trigger: Trigger,
    pub index: u32,
}

/// A runbook: steps that run in order, on request or after a deploy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Runbook {
    pub name: RunbookName,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Markdown for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub readme: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The inputs that a person gives to a run. Commands read them as `{{ .nuon.runbook.inputs.<name> }}`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<RunInput>,
    /// The steps, in the order of the config.
    pub steps: Vec<RunbookStep>,
}

/// A text that a person gives to a run of a runbook or an action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RunInput {
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Whether a run has to set the input, if it has no default.
    #[serde(default, skip_serializing_if = "is_false")]
    pub required: bool,
    /// The value for a run that does not set the input.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub default: String,
}

/// One step of a runbook.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RunbookStep {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    pub does: StepKind,
    /// The role that the step runs under; a template. When empty, the step uses the default role of the operation.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub role: String,
    /// Whether a deploy also deploys the dependencies of the component.
    #[serde(default, skip_serializing_if = "is_false")]
    pub deploy_dependencies: bool,
    /// Whether a sandbox step does not deploy components.
    #[serde(default, skip_serializing_if = "is_false")]
    pub skip_component_deploys: bool,
}

/// The operation of a runbook's step.
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
    /// Runs an action. A command of the runbook itself is an action too: its name is
    /// [`ActionName::of_runbook_step`].
    Action {
        action: ActionName,
    },
    SandboxProvision {},
    SandboxReprovision {},
    SandboxDeprovision {},
}

#[cfg(test)]
mod tests {
    use super::{Action, StepKind};

    #[test]
    fn inputs_of_another_form_are_refused_and_not_lost() {
        let inputs = |given: serde_json::Value| {
            let action = serde_json::json!({ "name": "a", "timeout_secs": 60, "steps": [], "inputs": given });
            serde_json::from_value::<Action>(action).map(|action| action.inputs.len()).ok()
        };

        assert_eq!(inputs(serde_json::json!([{ "name": "x", "required": true }])), Some(1));
        assert_eq!(inputs(serde_json::json!([{ "name": "x", "default": 3 }])), None);
        assert_eq!(inputs(serde_json::json!({})), None);
    }

    #[test]
    fn a_step_of_the_sandbox_with_an_unknown_property_is_refused() {
        for kind in ["sandbox_provision", "sandbox_reprovision", "sandbox_deprovision"] {
            let plain = format!(r#"{{"type":"{kind}"}}"#);
            let step: StepKind = serde_json::from_str(&plain).unwrap();
            assert_eq!(serde_json::to_string(&step).unwrap(), plain);

            let refused = serde_json::from_str::<StepKind>(&format!(r#"{{"type":"{kind}","x":42}}"#)).unwrap_err();

            assert!(refused.to_string().contains("unknown field `x`"), "{refused}");
        }
    }
}

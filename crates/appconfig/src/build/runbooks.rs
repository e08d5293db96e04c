//! Builds the runbooks of an app from the files in `runbooks/`. A command of a runbook's step becomes an action of the app,
//! so that a customer consents to it as to every other action.

use std::collections::BTreeSet;

use freehold_protocol::app_version::{Action, Runbook, RunbookStep, StepKind};
use freehold_protocol::limits::MAX_RUNBOOK_STEPS;
use freehold_protocol::order::ActionStep;
use freehold_protocol::{ActionName, ComponentName, RunbookName};

use crate::build::actions::DEFAULT_SECS;
use crate::build::values::{run_inputs, scalars};
use crate::check::links::{Index, needed_by_action, references};
use crate::check::missing_programs::calls_cluster;
use crate::kinds::Kind;
use crate::kinds::spec::seconds;
use crate::read::document::{Entry, Node};
use crate::report::draft::Draft;
use crate::state::app::App;
use crate::state::file::Checked;

/// Returns the app's runbooks, sorted by name. Adds the actions of their commands to `actions`, which stay sorted by name.
pub(crate) fn build(app: &mut App, index: &Index, actions: &mut Vec<Action>) -> Vec<Runbook> {
    let mut drafts = Vec::new();
    let mut made = Vec::new();
    let mut runbooks: Vec<Runbook> = app
        .of(Kind::Runbook)
        .filter_map(|checked| Reader { checked, index, drafts: &mut drafts, made: &mut made }.runbook())
        .collect();
    app.drafts.extend(drafts);
    runbooks.sort_by(|a, b| a.name.cmp(&b.name));
    runbooks.dedup_by(|a, b| a.name == b.name);
    let known: BTreeSet<ActionName> = actions.iter().map(|action| action.name.clone()).collect();
    actions.extend(made.into_iter().filter(|action| !known.contains(&action.name)));
    actions.sort_by(|a, b| a.name.cmp(&b.name));
    actions.dedup_by(|a, b| a.name == b.name);
    let lacking: Vec<Draft> = app.of(Kind::Runbook).flat_map(|checked| lacking_inputs(checked, actions)).collect();
    app.drafts.extend(lacking);
    runbooks
}

/// Reports the actions of steps that require an input which the runbook does not have.
fn lacking_inputs(checked: &Checked, actions: &[Action]) -> Vec<Draft> {
    let of_runbook: Vec<&str> = checked.root.tables("inputs").iter().filter_map(|node| node.text("name")).collect();
    let mut drafts = Vec::new();
    for node in checked.root.tables("steps") {
        let Some(name) = node.text("action_name") else { continue };
        let Some(action) = actions.iter().find(|action| action.name.as_str() == name) else { continue };
        let required = action.inputs.iter().filter(|input| input.required && input.default.is_empty());
        for input in required.filter(|input| !of_runbook.contains(&input.name.as_str())) {
            let message = format!("action `{name}` requires input `{}`, which the runbook does not have", input.name);
            let help = "add it to the runbook: `[[inputs]]` with its `name`; or give the action's input a `default`";
            drafts.push(Draft::error(checked.place_of(node, "action_name"), message).help(help));
        }
    }
    drafts
}

/// The file of a runbook that is being read.
struct Reader<'a> {
    checked: &'a Checked,
    index: &'a Index,
    drafts: &'a mut Vec<Draft>,
    /// The actions of the commands.
    made: &'a mut Vec<Action>,
}

impl Reader<'_> {
    fn runbook(self) -> Option<Runbook> {
        let (checked, root) = (self.checked, &self.checked.root);
        let nodes = root.tables("steps");
        if nodes.is_empty() && root.get("name").is_some() {
            let draft = Draft::warning(checked.place_of(root, "name"), "the runbook does nothing");
            self.drafts.push(draft.help("add a step: `[[steps]]` with a `type`"));
        }
        let name: RunbookName = match root.text("name")?.parse() {
            Ok(name) => name,
            Err(error) => {
                self.drafts.push(Draft::error(checked.place_of(root, "name"), format!("{error}")));
                return None;
            }
        };
        if nodes.len() > MAX_RUNBOOK_STEPS {
            let message =
                format!("the runbook has {} steps, more than the maximum of {MAX_RUNBOOK_STEPS}", nodes.len());
            self.drafts.push(Draft::error(checked.place_of(root, "name"), message).help("split it"));
        }
        let readme = root.get("readme").and_then(|node| checked.content(node));
        let steps = nodes.iter().zip(0..).filter_map(|(node, at)| {
            let action = ActionName::of_runbook_step(&name, at);
            let (checked, index) = (self.checked, self.index);
            Step { checked, node, index, action, drafts: self.drafts, made: self.made }.read()
        });
        let steps = steps.collect();
        let (inputs, drafts) = run_inputs(checked);
        self.drafts.extend(drafts);
        Some(Runbook {
            description: root.text("description").unwrap_or_default().to_owned(),
            readme: readme.unwrap_or_default().to_owned(),
            labels: scalars(root.get("labels")),
            inputs,
            steps,
            name,
        })
    }
}

/// The step of a runbook that is being read.
struct Step<'a> {
    checked: &'a Checked,
    node: &'a Node,
    index: &'a Index,
    /// The name of the action of the step's command.
    action: ActionName,
    drafts: &'a mut Vec<Draft>,
    made: &'a mut Vec<Action>,
}

impl Step<'_> {
    fn read(mut self) -> Option<RunbookStep> {
        let text = |key: &str| self.node.text(key).unwrap_or_default().to_owned();
        let (name, role) = (text("name"), text("role"));
        let does = match self.node.text("type")? {
            "component_deploy" | "deploy" if self.node.flag("plan_only") => return self.only_plans(),
            "component_deploy" | "deploy" => StepKind::ComponentDeploy { component: self.component()? },
            "component_tear_down" => StepKind::ComponentTearDown { component: self.component()? },
            "action" => self.action()?,
            "command" => self.command(&["command", "inline_contents"])?,
            "sandbox_provision" => StepKind::SandboxProvision {},
            "sandbox_reprovision" => StepKind::SandboxReprovision {},
            "sandbox_deprovision" => StepKind::SandboxDeprovision {},
            _ => return None,
        };
        Some(RunbookStep {
            name,
            does,
            role,
            deploy_dependencies: self.node.flag("deploy_dependencies"),
            skip_component_deploys: self.node.flag("skip_component_deploys"),
        })
    }

    /// Warns that the step is left out, because no step of a runbook plans without a deploy.
    fn only_plans(&mut self) -> Option<RunbookStep> {
        let place = self.checked.place_of(self.node, "plan_only");
        let draft = Draft::warning(place, "the step only plans, so the runbook is read without it");
        let help =
            "remove the step; after `freehold install approvals INSTALL prompt`, plans of deploys wait for a person";
        self.drafts.push(draft.help(help));
        None
    }

    /// Reports that the step does not have `what`, which its type needs.
    fn lacks(&mut self, what: &str, help: &str) {
        let kind = self.node.text("type").unwrap_or_default();
        let draft =
            Draft::error(self.checked.place_of(self.node, "type"), format!("a step of type `{kind}` needs {what}"));
        self.drafts.push(draft.help(help));
    }

    /// Returns the step's component. A component that does not exist is reported by [`crate::check::links`].
    fn component(&mut self) -> Option<ComponentName> {
        if self.node.get("component_name").is_none() {
            self.lacks("a component", "add `component_name = \"...\"`");
        }
        self.index.component(self.node.text("component_name")?)?.parse().ok()
    }

    fn action(&mut self) -> Option<StepKind> {
        if self.node.get("action_name").is_none() {
            return self.command(&["action_name", "command", "inline_contents"]);
        }
        self.one_of(&["action_name", "command", "inline_contents"])?;
        let action = self.node.text("action_name")?.parse().ok()?;
        Some(StepKind::Action { action })
    }

    /// Adds the action of a step with a command, and returns the step that runs this action.
    fn command(&mut self, keys: &[&str]) -> Option<StepKind> {
        self.one_of(keys)?;
        let action = self.action.clone();
        if self.index.actions.contains_key(action.as_str()) || self.made.iter().any(|known| known.name == action) {
            let message = format!("the command of this step gets the name `{action}`, which an action already has");
            let draft = Draft::error(self.checked.place_of(self.node, "type"), message);
            self.drafts.push(draft.help("rename the action"));
            return None;
        }
        let content = |key: &str| self.node.get(key).and_then(|node| self.checked.content(node)).unwrap_or_default();
        let text = |key: &str| self.node.text(key).unwrap_or_default().to_owned();
        let runbook = self.checked.root.text("name").unwrap_or_default();
        let name = Some(text("name")).filter(|name| !name.is_empty()).unwrap_or_else(|| "command".to_owned());
        self.made.push(Action {
            name: action.clone(),
            description: format!("Step `{name}` of runbook `{runbook}`"),
            timeout_secs: self.node.text("timeout").and_then(seconds).unwrap_or(DEFAULT_SECS),
            idempotent: false,
            triggers: BTreeSet::new(),
            indexes: Vec::new(),
            // The references of the whole file are used. The step itself may have fewer.
            references: references(self.checked, self.index),
            dependencies: needed_by_action(self.checked, self.index),
            env_vars: Default::default(),
            steps: vec![ActionStep {
                name,
                command: content("command").to_owned(),
                inline_contents: content("inline_contents").to_owned(),
                env_vars: scalars(self.node.get("env_vars")),
            }],
            step_repos: Vec::new(),
            role: text("role"),
            break_glass_role: String::new(),
            other_roles: Vec::new(),
            enable_kube_config: self.index.has_sandbox && calls_cluster(self.checked, self.node),
            image: None,
            labels: Default::default(),
            inputs: Vec::new(),
            kubernetes_context: String::new(),
        });
        Some(StepKind::Action { action })
    }

    /// Reports a step that has none of `keys`, or more than one of them.
    fn one_of(&mut self, keys: &[&str]) -> Option<()> {
        let given: Vec<&Entry> = keys.iter().filter_map(|key| self.node.entry(key)).collect();
        let choice = keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
        match given.as_slice() {
            [_] => return Some(()),
            [] => self.lacks("something to run", &format!("add one of {choice}")),
            [first, second, ..] => {
                let place = self.checked.key_place(second);
                let draft = Draft::error(place, "the step has two things to run");
                let draft = draft.related(self.checked.key_place(first), "the other key");
                self.drafts.push(draft.help(format!("keep one of {choice}")));
            }
        }
        None
    }
}

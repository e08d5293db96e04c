//! Builds the runbooks of an app from the files in `runbooks/`.

use freehold_protocol::ComponentName;
use freehold_protocol::app_version::{Runbook, RunbookStep, StepKind};

use crate::build::actions::DEFAULT_SECS;
use crate::build::values::scalars;
use crate::check::links::Index;
use crate::kinds::Kind;
use crate::kinds::spec::seconds;
use crate::read::document::{Entry, Node};
use crate::report::draft::Draft;
use crate::state::app::App;
use crate::state::file::Checked;

/// Returns the app's runbooks, sorted by name.
pub(crate) fn build(app: &mut App, index: &Index) -> Vec<Runbook> {
    let mut drafts = Vec::new();
    let mut runbooks: Vec<Runbook> =
        app.of(Kind::Runbook).filter_map(|checked| runbook(checked, index, &mut drafts)).collect();
    app.drafts.extend(drafts);
    runbooks.sort_by(|a, b| a.name.cmp(&b.name));
    runbooks.dedup_by(|a, b| a.name == b.name);
    runbooks
}

fn runbook(checked: &Checked, index: &Index, drafts: &mut Vec<Draft>) -> Option<Runbook> {
    let root = &checked.root;
    let nodes = root.tables("steps");
    if nodes.is_empty() && root.get("name").is_some() {
        let draft = Draft::warning(checked.place_of(root, "name"), "the runbook does nothing");
        drafts.push(draft.help("add a step: `[[steps]]` with a `type`"));
    }
    let readme = root.get("readme").and_then(|node| checked.content(node));
    Some(Runbook {
        name: root.text("name")?.to_owned(),
        description: root.text("description").unwrap_or_default().to_owned(),
        readme: readme.unwrap_or_default().to_owned(),
        labels: scalars(root.get("labels")),
        inputs: root.get("inputs").map(Node::to_json),
        steps: nodes.iter().filter_map(|node| Step { checked, node, index, drafts }.read()).collect(),
    })
}

/// The step of a runbook that is being read.
struct Step<'a> {
    checked: &'a Checked,
    node: &'a Node,
    index: &'a Index,
    drafts: &'a mut Vec<Draft>,
}

impl Step<'_> {
    fn read(mut self) -> Option<RunbookStep> {
        let text = |key: &str| self.node.text(key).unwrap_or_default().to_owned();
        let (name, role) = (text("name"), text("role"));
        let does = match self.node.text("type")? {
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

    fn command(&mut self, keys: &[&str]) -> Option<StepKind> {
        self.one_of(keys)?;
        let content = |key: &str| self.node.get(key).and_then(|node| self.checked.content(node)).unwrap_or_default();
        Some(StepKind::Command {
            command: content("command").to_owned(),
            inline_contents: content("inline_contents").to_owned(),
            timeout_secs: self.node.text("timeout").and_then(seconds).unwrap_or(DEFAULT_SECS),
            env_vars: scalars(self.node.get("env_vars")),
        })
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

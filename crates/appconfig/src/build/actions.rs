//! Builds the actions of an app from the files in `actions/`.

use std::collections::{BTreeMap, BTreeSet};

use freehold_domain::role_switches::{ROLE_VARIABLES, is_role_event, role_template};
use freehold_protocol::ComponentName;
use freehold_protocol::app_version::{Action, RunInput, StepRepo, Trigger, TriggerIndex};
use freehold_protocol::order::ActionStep;
use freehold_protocol::terraform::is_refused_variable;
use freehold_template::nearest;

use crate::build::schedule::not_a_schedule;
use crate::build::sources::Sources;
use crate::build::values::{run_inputs, scalars, texts, whole};
use crate::check::effect::without_effect;
use crate::check::links::{Index, needed_by_action, references};
use crate::check::missing_programs::gets_kubeconfig;
use crate::kinds::Kind;
use crate::kinds::spec::seconds;
use crate::read::document::{Entry, Node};
use crate::read::files::Files;
use crate::report::draft::Draft;
use crate::state::app::App;
use crate::state::file::Checked;

/// The default time limit of an action's run, in seconds.
pub(crate) const DEFAULT_SECS: u32 = 5 * 60;

/// The names of triggers that concern a whole install.
pub(crate) const TRIGGERS: [&str; 23] = [
    "manual",
    "cron",
    "pre-provision",
    "post-provision",
    "post-provision-sandbox",
    "pre-reprovision",
    "post-reprovision",
    "pre-deprovision",
    "post-deprovision",
    "pre-deploy-all-components",
    "post-deploy-all-components",
    "pre-teardown-all-components",
    "post-teardown-all-components",
    "pre-deprovision-sandbox",
    "post-deprovision-sandbox",
    "pre-reprovision-sandbox",
    "post-reprovision-sandbox",
    "pre-update-inputs",
    "post-update-inputs",
    "pre-secrets-sync",
    "post-secrets-sync",
    "role-enabled",
    "role-disabled",
];

/// The names of triggers that concern one component.
pub(crate) const COMPONENT_TRIGGERS: [&str; 10] = [
    "pre-deploy-component",
    "post-deploy-component",
    "pre-component-deploy",
    "post-component-deploy",
    "pre-teardown-component",
    "post-teardown-component",
    "pre-enable-component",
    "post-enable-component",
    "pre-disable-component",
    "post-disable-component",
];

/// Returns the app's actions, sorted by name.
pub(crate) fn build(app: &App, index: &Index, sources: &mut Sources) -> Vec<Action> {
    let mut reader = Reader { files: &app.files, index, sources };
    let mut actions: Vec<Action> = app.of(Kind::Action).filter_map(|checked| reader.action(checked)).collect();
    actions.sort_by(|a, b| a.name.cmp(&b.name));
    actions.dedup_by(|a, b| a.name == b.name);
    actions
}

struct Reader<'a> {
    files: &'a Files,
    index: &'a Index,
    sources: &'a mut Sources,
}

impl Reader<'_> {
    fn action(&mut self, checked: &Checked) -> Option<Action> {
        let root = &checked.root;
        let text = |key: &str| root.text(key).unwrap_or_default().to_owned();
        let (triggers, indexes) = self.triggers(checked);
        let nodes = root.tables("steps");
        let (inputs, drafts) = run_inputs(checked);
        let steps = nodes.iter().map(|node| self.step(checked, node, &inputs)).collect();
        let step_repos = nodes.iter().zip(0..).filter_map(|(node, at)| self.repo(checked, node, at)).collect();
        self.sources.drafts.extend(drafts);
        self.sources.drafts.extend(given_by_nobody(checked, &inputs));
        self.sources.drafts.extend(reserved_names(checked));
        self.sources.drafts.extend(scripts_with_inputs(checked));
        let mut env_vars = own_variables(root, &inputs);
        for input in &inputs {
            let template = format!("{{{{ .nuon.action.inputs.{} }}}}", input.name);
            env_vars.entry(input.name.to_ascii_uppercase()).or_insert(template);
        }
        if triggers.iter().any(is_role_event) {
            for (variable, key) in ROLE_VARIABLES {
                env_vars.entry(variable.to_owned()).or_insert_with(|| role_template(key));
            }
        }
        match root.text("name")?.parse() {
            Ok(name) => Some(Action {
                name,
                description: text("description"),
                timeout_secs: root.text("timeout").and_then(seconds).unwrap_or(DEFAULT_SECS),
                idempotent: root.flag("idempotent"),
                triggers,
                indexes,
                references: references(checked, self.index),
                dependencies: needed_by_action(checked, self.index),
                env_vars,
                steps,
                step_repos,
                role: text("role"),
                break_glass_role: text("break_glass_role"),
                other_roles: texts(root.get("other_roles")),
                enable_kube_config: gets_kubeconfig(checked, self.index.has_sandbox),
                image: root.text("image").filter(|image| !image.is_empty()).map(str::to_owned),
                labels: scalars(root.get("labels")),
                inputs,
                kubernetes_context: text("kubernetes_context"),
            }),
            Err(error) => {
                self.sources.drafts.push(Draft::error(checked.place_of(root, "name"), format!("{error}")));
                None
            }
        }
    }

    /// Returns the triggers of an action, and the index of each trigger that has an index. If a trigger is listed with
    /// two indexes, the lower index counts.
    fn triggers(&mut self, checked: &Checked) -> (BTreeSet<Trigger>, Vec<TriggerIndex>) {
        let mut triggers = BTreeSet::new();
        let mut indexes: BTreeMap<Trigger, u32> = BTreeMap::new();
        for node in checked.root.tables("triggers") {
            let Some(trigger) = self.trigger(checked, node) else { continue };
            if let Some(entry) = node.entry("index") {
                if matches!(trigger, Trigger::Manual | Trigger::Cron { .. }) {
                    self.sources.drafts.extend(index_without_event(checked, node, entry));
                } else if let Some(index) = whole(Some(&entry.value)) {
                    let lowest = indexes.entry(trigger.clone()).or_insert(index);
                    *lowest = index.min(*lowest);
                }
            }
            triggers.insert(trigger);
        }
        (triggers, indexes.into_iter().map(|(trigger, index)| TriggerIndex { trigger, index }).collect())
    }

    fn trigger(&mut self, checked: &Checked, node: &Node) -> Option<Trigger> {
        let word = node.text("type")?;
        if word != "cron"
            && let Some(entry) = node.entry("cron_schedule")
        {
            let draft =
                Draft::warning(checked.key_place(entry), format!("a schedule has no effect on trigger `{word}`"));
            self.sources.drafts.push(draft.help("set `type = \"cron\"`, or remove `cron_schedule`"));
        }
        self.sources.drafts.extend(component_without_event(checked, node, word));
        match word {
            "manual" => Some(Trigger::Manual),
            "post-provision" => Some(Trigger::PostProvision),
            "post-deploy-all-components" => Some(Trigger::PostDeployAllComponents),
            "post-deploy-component" | "post-component-deploy" => {
                Some(Trigger::PostDeployComponent { component: self.component(checked, node, word)? })
            }
            "cron" => self.schedule(checked, node),
            word if COMPONENT_TRIGGERS.contains(&word) => {
                let component = Some(self.component(checked, node, word)?);
                let event = if word == "pre-component-deploy" { "pre-deploy-component" } else { word };
                Some(Trigger::Event { event: event.to_owned(), component })
            }
            word if TRIGGERS.contains(&word) => Some(Trigger::Event { event: word.to_owned(), component: None }),
            word => {
                let all = TRIGGERS.into_iter().chain(COMPONENT_TRIGGERS);
                let draft = Draft::error(checked.place_of(node, "type"), format!("there is no trigger `{word}`"));
                self.sources.drafts.push(match nearest(word, all.clone()) {
                    near @ Some(_) => draft.meant(near),
                    None => draft.help(format!("triggers are: {}", all.collect::<Vec<_>>().join(", "))),
                });
                None
            }
        }
    }

    /// Returns the component that a trigger names. A component that does not exist is reported by
    /// [`crate::check::links`].
    fn component(&mut self, checked: &Checked, node: &Node, word: &str) -> Option<ComponentName> {
        let Some(name) = node.text("component_name") else {
            if node.get("component_name").is_none() {
                let message = format!("trigger `{word}` names no component");
                self.sources.error(checked.place_of(node, "type"), message, "add `component_name = \"...\"`");
            }
            return None;
        };
        self.index.component(name)?.parse().ok()
    }

    fn schedule(&mut self, checked: &Checked, node: &Node) -> Option<Trigger> {
        let Some(value) = node.get("cron_schedule") else {
            let help = "add a schedule, such as `cron_schedule = \"0 * * * *\"` for every hour";
            self.sources.error(checked.place_of(node, "type"), "trigger `cron` has no schedule", help);
            return None;
        };
        if let Some(draft) = not_a_schedule(checked, value) {
            self.sources.drafts.push(draft);
            return None;
        }
        Some(Trigger::Cron { schedule: value.as_text()?.to_owned() })
    }

    fn step(&mut self, checked: &Checked, node: &Node, inputs: &[RunInput]) -> ActionStep {
        let name = node.text("name").unwrap_or_default();
        let content = |key: &str| node.get(key).and_then(|value| checked.content(value)).unwrap_or_default().to_owned();
        let given = |key: &str| node.text(key).is_some_and(|text| !text.is_empty());
        match (given("command"), given("inline_contents")) {
            (false, false) => {
                let help = match ["public_repo", "connected_repo"].iter().find(|key| node.get(key).is_some()) {
                    Some(_) => "add `command = \"./SCRIPT\"` with a script of the repository",
                    None => "add `command = \"...\"` or `inline_contents = \"...\"`",
                };
                self.sources.error(checked.place(node), format!("step `{name}` does nothing"), help);
            }
            (true, true) => {
                let place = checked.place_of(node, "inline_contents");
                let help = "keep either `command` or `inline_contents`";
                self.sources.error(place, format!("step `{name}` has two scripts to run"), help);
            }
            (true, false) | (false, true) => {}
        }
        ActionStep {
            name: name.to_owned(),
            command: content("command"),
            inline_contents: content("inline_contents"),
            env_vars: own_variables(node, inputs),
        }
    }

    /// Returns the repository that a step runs in, if it names one.
    fn repo(&mut self, checked: &Checked, node: &Node, step: u32) -> Option<StepRepo> {
        let keys = ["public_repo", "connected_repo"];
        let given: Vec<&Entry> = keys.iter().filter_map(|key| node.entry(key)).collect();
        let entry = given.first()?;
        let action = checked.root.text("name").unwrap_or_default();
        let owner = format!("step `{}` of action `{action}`", node.text("name").unwrap_or_default());
        if given.len() > 1 {
            self.sources.one_of(checked, node, &keys, &owner, "repository");
            return None;
        }
        if let Some(script) = node.entry("inline_contents").filter(|script| script.value.as_text() != Some("")) {
            let message = format!("{owner} has both `inline_contents` and a repository");
            let draft = Draft::error(checked.key_place(entry), message);
            let draft = draft.related(checked.key_place(script), "the script");
            self.sources.drafts.push(draft.help(
                "write `command = \"...\"`, which runs in the directory of the repository, or remove the repository",
            ));
            return None;
        }
        let source = self.sources.repo(self.files, checked, entry, &owner)?;
        Some(StepRepo { step, source })
    }
}

/// Returns the variables that `node` sets itself. A variable without a text that is named as an input is not one of
/// them: it names what the step reads, and the input gives it its text.
fn own_variables(node: &Node, inputs: &[RunInput]) -> BTreeMap<String, String> {
    let mut variables = scalars(node.get("env_vars"));
    let is_input = |name: &str| inputs.iter().any(|input| input.name.to_ascii_uppercase() == name);
    variables.retain(|name, text| !(text.is_empty() && is_input(name)));
    variables
}

/// Warns about the component of a trigger that is not about one component.
fn component_without_event(checked: &Checked, node: &Node, word: &str) -> Option<Draft> {
    let entry = node.entry("component_name").filter(|entry| !entry.value.is_nothing())?;
    let instead = format!("trigger `{word}` is not about one component; remove it");
    TRIGGERS.contains(&word).then(|| without_effect(checked.key_place(entry), "`component_name`", &instead))
}

/// Warns about the index of a trigger that starts one action at a time.
fn index_without_event(checked: &Checked, node: &Node, index: &Entry) -> Option<Draft> {
    let word = node.text("type")?;
    let message = format!("an index has no effect on trigger `{word}`");
    let draft =
        Draft::warning(checked.key_place(index), message).help("remove `index`: only an event starts several actions");
    (!index.value.is_nothing()).then_some(draft)
}

/// Environment variables that decide how the programs of a step run, or what they may contact, besides those of
/// [`is_refused_variable`].
const RESERVED: [&str; 15] = [
    "ALL_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "IFS",
    "KUBECONFIG",
    "NODE_OPTIONS",
    "NO_PROXY",
    "PERL5OPT",
    "PROMPT_COMMAND",
    "PS4",
    "PYTHONPATH",
    "SHELL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TMPDIR",
];
/// The variables of AWS's SDKs, and of the runner.
const RESERVED_PREFIXES: [&str; 3] = ["AWS_", "FREEHOLD_", "NUON_"];

/// Warns about a script that contains the text of an input, because a shell would run the text as commands.
fn scripts_with_inputs(checked: &Checked) -> Vec<Draft> {
    let nodes = checked.root.tables("steps").iter();
    let scripts = nodes.flat_map(|node| ["command", "inline_contents"].into_iter().filter_map(|key| node.get(key)));
    let reads = |node: &&Node| {
        checked.uses.iter().any(|reading| {
            let is_inside = node.span.start <= reading.place.span.start && reading.place.span.end <= node.span.end;
            let is_input =
                matches!(reading.path.as_slice(), [_, action, inputs, ..] if action == "action" && inputs == "inputs");
            is_input && reading.place.file == checked.file && is_inside
        })
    };
    let draft = |node: &Node| {
        let message = "whoever gives the input can run commands, because the input's text becomes part of the script";
        let help = "read the environment variable of the input's name in upper case, such as `$TICKET` for `ticket`";
        Draft::warning(checked.place(node), message).help(help)
    };
    scripts.filter(reads).map(draft).collect()
}

/// Reports the inputs that would replace a variable which decides how programs run.
fn reserved_names(checked: &Checked) -> Vec<Draft> {
    let variable = |node: &Node| node.text("name").unwrap_or_default().to_ascii_uppercase();
    let is_reserved = |name: &str| {
        let has_prefix = RESERVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        is_refused_variable(name) || RESERVED.contains(&name) || has_prefix
    };
    let nodes = checked.root.tables("inputs").iter().filter(|node| is_reserved(&variable(node)));
    let draft = |node: &Node| {
        let message = format!("the input would set the environment variable `{}`", variable(node));
        Draft::error(checked.place_of(node, "name"), message).help("rename the input")
    };
    nodes.map(draft).collect()
}

/// Reports the required inputs of an action that has a trigger which gives the action no inputs.
fn given_by_nobody(checked: &Checked, inputs: &[RunInput]) -> Vec<Draft> {
    let triggers = checked.root.tables("triggers").iter();
    let Some(trigger) = triggers.filter_map(|node| node.text("type")).find(|word| *word != "manual") else {
        return Vec::new();
    };
    let nodes = checked.root.tables("inputs").iter();
    let lacking = nodes.filter(|node| {
        let input = inputs.iter().find(|input| node.text("name") == Some(input.name.as_str()));
        input.is_some_and(|input| input.required && input.default.is_empty())
    });
    let draft = |node: &Node| {
        let name = node.text("name").unwrap_or_default();
        let message = format!("input `{name}` is required, and trigger `{trigger}` gives the action no inputs");
        Draft::error(checked.place_of(node, "name"), message).help("give the input a `default`, or remove the trigger")
    };
    lacking.map(draft).collect()
}

#[cfg(test)]
mod tests {
    use freehold_domain::plan::triggers::EVENTS;
    use freehold_domain::role_switches::ROLE_EVENTS;

    use super::*;

    #[test]
    fn every_trigger_has_an_event() {
        let events: Vec<String> =
            EVENTS.iter().flat_map(|event| [format!("pre-{event}"), format!("post-{event}")]).collect();
        let others = ["manual", "cron", "pre-component-deploy", "post-component-deploy"];

        for word in TRIGGERS.iter().chain(&COMPONENT_TRIGGERS) {
            let is_event = events.iter().any(|event| event == word) || ROLE_EVENTS.contains(word);
            assert!(is_event || others.contains(word), "{word}");
        }
    }
}

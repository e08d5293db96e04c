//! The actions of an app: `actions/`.

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::app_version::{Action, Trigger};
use freehold_protocol::order::ActionStep;
use freehold_template::nearest;

use crate::build::{App, Purpose};
use crate::diagnostic::Draft;
use crate::document::Node;
use crate::kinds::Kind;
use crate::links::{Index, references};
use crate::spec::seconds;
use crate::validate::Checked;

/// How long a run may take when the action does not say, in seconds.
const DEFAULT_SECS: u32 = 5 * 60;

/// Every trigger that the format has.
pub(crate) const TRIGGERS: [&str; 28] = [
    "manual",
    "cron",
    "pre-provision",
    "post-provision",
    "pre-reprovision",
    "post-reprovision",
    "pre-deprovision",
    "post-deprovision",
    "pre-deploy-all-components",
    "post-deploy-all-components",
    "pre-teardown-all-components",
    "post-teardown-all-components",
    "pre-deploy-component",
    "post-deploy-component",
    "pre-component-deploy",
    "post-component-deploy",
    "pre-teardown-component",
    "post-teardown-component",
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

/// Returns the app's actions, sorted by name.
pub(crate) fn build(app: &mut App, index: &Index) -> Vec<Action> {
    let mut drafts = Vec::new();
    let mut actions: Vec<Action> =
        app.of(Kind::Action).filter_map(|checked| action(checked, index, app.purpose, &mut drafts)).collect();
    app.drafts.extend(drafts);
    actions.sort_by(|a, b| a.name.cmp(&b.name));
    actions.dedup_by(|a, b| a.name == b.name);
    actions
}

fn action(checked: &Checked, index: &Index, purpose: Purpose, drafts: &mut Vec<Draft>) -> Option<Action> {
    let root = &checked.root;
    let triggers = root.tables("triggers").iter().filter_map(|node| trigger(checked, node, drafts)).collect();
    let steps = root.tables("steps").iter().map(|node| step(checked, node, purpose, drafts)).collect();
    let name = root.text("name")?;
    match name.parse() {
        Ok(name) => Some(Action {
            name,
            timeout_secs: root.text("timeout").and_then(seconds).unwrap_or(DEFAULT_SECS),
            idempotent: root.flag("idempotent"),
            triggers,
            references: references(checked, index),
            env_vars: scalars(root.get("env_vars")),
            steps,
            description: String::new(),
            dependencies: BTreeSet::new(),
            step_repos: Vec::new(),
            role: String::new(),
            break_glass_role: String::new(),
            enable_kube_config: false,
            image: None,
            labels: BTreeMap::new(),
        }),
        Err(error) => {
            drafts.push(Draft::error(checked.place_of(root, "name"), format!("{error}")));
            None
        }
    }
}

fn trigger(checked: &Checked, node: &Node, drafts: &mut Vec<Draft>) -> Option<Trigger> {
    let word = node.text("type")?;
    let place = checked.place_of(node, "type");
    match word {
        "manual" => return Some(Trigger::Manual),
        "post-provision" => return Some(Trigger::PostProvision),
        "post-deploy-all-components" => return Some(Trigger::PostDeployAllComponents),
        "post-deploy-component" | "post-component-deploy" => match node.text("component_name") {
            Some(name) => {
                return Some(Trigger::PostDeployComponent { component: name.parse().ok()? });
            }
            None => {
                let draft = Draft::error(place, format!("trigger `{word}` names no component"));
                drafts.push(draft.help("add `component_name = \"...\"`"));
            }
        },
        word if TRIGGERS.contains(&word) => {
            let draft = Draft::warning(place, format!("trigger `{word}` starts nothing yet"));
            drafts.push(draft.help("run the action by hand, or use a `post-deploy-...` trigger"));
        }
        word => {
            let draft = Draft::error(place, format!("there is no trigger `{word}`"));
            drafts.push(match nearest(word, TRIGGERS) {
                Some(near) => draft.meant(Some(near)),
                None => draft.help(format!("triggers are: {}", TRIGGERS.join(", "))),
            });
        }
    }
    None
}

fn step(checked: &Checked, node: &Node, purpose: Purpose, drafts: &mut Vec<Draft>) -> ActionStep {
    let name = node.text("name").unwrap_or_default();
    let content = |key: &str| node.get(key).and_then(|value| checked.content(value)).unwrap_or_default().to_owned();
    let step = ActionStep {
        name: name.to_owned(),
        command: content("command"),
        inline_contents: content("inline_contents"),
        env_vars: scalars(node.get("env_vars")),
    };
    let silent = |key: &str| node.text(key).is_none_or(str::is_empty);
    if silent("command") && silent("inline_contents") {
        let draft = Draft::error(checked.place(node), format!("step `{name}` does nothing"));
        drafts.push(draft.help("add `command = \"...\"` or `inline_contents = \"...\"`"));
    }
    if !step.command.is_empty() && !step.inline_contents.is_empty() {
        let draft =
            Draft::error(checked.place_of(node, "inline_contents"), format!("step `{name}` has two texts to run"));
        drafts.push(draft.help("keep either `command` or `inline_contents`"));
    }
    for key in ["public_repo", "connected_repo"] {
        if let Some(entry) = node.entry(key) {
            let message = format!("step `{name}` runs in a repository, which is not fetched for actions yet");
            let draft = Draft::new(purpose.unsupported(), checked.key_place(entry), message);
            drafts.push(
                draft.help("put the script beside the config and name it: `inline_contents = \"./scripts/...\"`"),
            );
        }
    }
    step
}

/// Returns a table of scalars as texts.
pub(crate) fn scalars(node: Option<&Node>) -> BTreeMap<String, String> {
    let entries = node.map(Node::entries).unwrap_or_default();
    entries.iter().filter_map(|entry| Some((entry.key.clone(), entry.value.to_scalar_text()?))).collect()
}

//! Compares the named items of two versions. Finds added items, removed items, and the changed keys of the others.

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::Digest;
use freehold_protocol::app_version::{Action, AppVersion, Component, Input, Trigger};
use freehold_protocol::order::Source;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::values::{Change, change_of_text, changes};
use crate::graph::describe_trigger;

/// The differences between the items of one kind, such as actions.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Items {
    pub added: Vec<Named>,
    pub removed: Vec<Named>,
    pub changed: Vec<Changed>,
}

impl Items {
    /// Returns whether nothing differs.
    pub const fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

/// An item that only one version has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    pub name: String,
    /// The type of the item, such as `terraform_module`; may be empty.
    pub what: String,
}

/// An item that differs between the two versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    pub name: String,
    /// The type of the item in the second version; may be empty.
    pub what: String,
    pub changes: Vec<Change>,
}

/// An item to compare: its type and its contents.
struct Thing {
    what: String,
    value: Value,
}

type Things = BTreeMap<String, Thing>;

fn compare(from: &Things, to: &Things) -> Items {
    let named = |(name, thing): (&String, &Thing)| Named { name: name.clone(), what: thing.what.clone() };
    let mut items = Items {
        added: to.iter().filter(|(name, _)| !from.contains_key(*name)).map(named).collect(),
        removed: from.iter().filter(|(name, _)| !to.contains_key(*name)).map(named).collect(),
        changed: Vec::new(),
    };
    for (name, after) in to {
        let Some(before) = from.get(name) else { continue };
        let changes = changes(&before.value, &after.value);
        if !changes.is_empty() {
            items.changed.push(Changed { name: name.clone(), what: after.what.clone(), changes });
        }
    }
    items
}

/// Adds an item called `name`. If the name is taken, the item is added as `name #2`, `name #3` and so on.
fn put(things: &mut Things, name: &str, what: impl Into<String>, value: Value) {
    let mut free = name.to_owned();
    let mut count = 1;
    while things.contains_key(&free) {
        count += 1;
        free = format!("{name} #{count}");
    }
    things.insert(free, Thing { what: what.into(), value });
}

fn collected<'a, T: 'a>(list: &'a [T], each: impl Fn(&'a T) -> (String, String, Value)) -> Things {
    let mut things = Things::new();
    for item in list {
        let (name, what, value) = each(item);
        put(&mut things, &name, what, value);
    }
    things
}

/// Returns the JSON of `thing` without the keys `left_out`. This cannot fail, because `thing` was read from JSON.
fn value_of<T: Serialize>(thing: &T, left_out: &[&str]) -> Map<String, Value> {
    let mut map = match serde_json::to_value(thing) {
        Ok(Value::Object(map)) => map,
        Ok(_) | Err(_) => Map::new(),
    };
    map.retain(|key, _| !left_out.contains(&key.as_str()));
    map
}

/// Compares components by the keys of their config: the component's own keys, and those of its kind and settings.
/// References are left out, because they follow from the templates.
pub(super) fn components(from: &AppVersion, to: &AppVersion) -> Items {
    let things = |version: &AppVersion| {
        collected(&version.components, |one| {
            (one.name.to_string(), one.spec.kind().to_owned(), Value::Object(component_value(one)))
        })
    };
    compare(&things(from), &things(to))
}

fn component_value(component: &Component) -> Map<String, Value> {
    let mut all = value_of(component, &["name", "references", "source", "spec", "settings"]);
    let mut spec = value_of(&component.spec, &["kind"]);
    all.append(&mut spec);
    all.append(&mut value_of(&component.settings, &[]));
    all.insert("type".into(), component.spec.kind().into());
    all.insert("source".into(), source_value(&component.source));
    all
}

/// Describes a source for the comparison: a git source by commit and branch, a directory by the digest of its files.
fn source_value(source: &Source) -> Value {
    match source {
        Source::Directory { digest } => json!({ "files": digest.short() }),
        Source::Git { url, commit, directory, branch } => {
            json!({ "url": url, "directory": directory, "commit": describe_commit(commit, branch) })
        }
        Source::Image { .. } | Source::EcrImage { .. } | Source::Chart { .. } | Source::Version => {
            Value::Object(value_of(source, &["from"]))
        }
    }
}

/// Returns the short form of a commit with its branch, or only the branch when the commit was not resolved.
fn describe_commit(commit: &str, branch: &str) -> String {
    let short: String = commit.chars().take(12).collect();
    match (commit.is_empty(), branch.is_empty()) {
        (true, _) => format!("({branch})"),
        (false, true) => short,
        (false, false) => format!("{short} ({branch})"),
    }
}

/// Compares actions.
pub(super) fn actions(from: &AppVersion, to: &AppVersion) -> Items {
    let things = |version: &AppVersion| {
        collected(&version.actions, |one| (one.name.to_string(), String::new(), Value::Object(action_value(one))))
    };
    compare(&things(from), &things(to))
}

fn action_value(action: &Action) -> Map<String, Value> {
    let mut all = value_of(action, &["name", "references", "triggers", "indexes", "step_repos"]);
    let triggers: BTreeSet<String> = action.triggers.iter().map(|one| trigger_text(action, one)).collect();
    all.insert("triggers".into(), json!(triggers));
    for repo in &action.step_repos {
        let at = usize::try_from(repo.step).ok().and_then(|at| action.steps.get(at));
        let step = at.map_or_else(|| repo.step.to_string(), |step| step.name.clone());
        all.insert(format!("source of step `{step}`"), source_value(&repo.source));
    }
    all
}

/// Describes a trigger of the action with its index, if it has one.
fn trigger_text(action: &Action, trigger: &Trigger) -> String {
    let text = describe_trigger(trigger);
    match action.indexes.iter().find(|one| one.trigger == *trigger) {
        Some(one) => format!("{text}, index {}", one.index),
        None => text,
    }
}

/// Compares inputs. For the default of a sensitive input, the result only shows whether it differs.
pub(super) fn inputs(from: &AppVersion, to: &AppVersion) -> Items {
    let sensitive: BTreeSet<&str> =
        from.inputs.iter().chain(&to.inputs).filter(|one| one.sensitive).map(|one| one.name.as_str()).collect();
    let things = |version: &AppVersion| {
        collected(&version.inputs, |one| {
            let value = input_value(one, sensitive.contains(one.name.as_str()));
            (one.name.clone(), one.kind.as_str().to_owned(), Value::Object(value))
        })
    };
    let mut items = compare(&things(from), &things(to));
    for changed in items.changed.iter_mut().filter(|changed| sensitive.contains(changed.name.as_str())) {
        for change in changed.changes.iter_mut().filter(|change| change.key == "default") {
            let hide = |side: &mut Option<String>| *side = side.is_some().then(|| "(sensitive)".to_owned());
            hide(&mut change.from);
            hide(&mut change.to);
        }
    }
    items
}

fn input_value(input: &Input, sensitive: bool) -> Map<String, Value> {
    let mut all = value_of(input, &["name", "default"]);
    // A default that is a table is written as one text, so that its keys are not compared one by one. A sensitive
    // default is replaced by its digest, which is enough to see a difference.
    let default = input.default.as_ref().map(|value| match (sensitive, value) {
        (true, value) => Value::String(Digest::of(value.to_string().as_bytes()).to_string()),
        (false, Value::Object(_)) => Value::String(value.to_string()),
        (false, value) => value.clone(),
    });
    all.extend(default.map(|value| ("default".to_owned(), value)));
    all
}

/// Compares secrets.
pub(super) fn secrets(from: &AppVersion, to: &AppVersion) -> Items {
    let things = |version: &AppVersion| {
        collected(&version.secrets, |one| (one.name.clone(), String::new(), Value::Object(value_of(one, &["name"]))))
    };
    compare(&things(from), &things(to))
}

/// Compares runbooks.
pub(super) fn runbooks(from: &AppVersion, to: &AppVersion) -> Items {
    let things = |version: &AppVersion| {
        collected(&version.runbooks, |one| {
            (one.name.to_string(), String::new(), Value::Object(value_of(one, &["name"])))
        })
    };
    compare(&things(from), &things(to))
}

/// Compares policies by name. A policy without a name is compared by its type.
pub(super) fn policies(from: &AppVersion, to: &AppVersion) -> Items {
    let things = |version: &AppVersion| {
        collected(&version.policies, |one| {
            let name = if one.name.is_empty() { &one.kind } else { &one.name };
            (name.clone(), one.kind.clone(), Value::Object(value_of(one, &["name"])))
        })
    };
    compare(&things(from), &things(to))
}

/// Compares the settings of the app: sandbox, runner, stack, input groups, Kubernetes contexts, default labels, the matrix
/// of operation roles and the runbooks that run after a deploy.
pub(super) fn settings(from: &AppVersion, to: &AppVersion) -> Items {
    compare(&settings_of(from), &settings_of(to))
}

fn settings_of(version: &AppVersion) -> Things {
    let mut things = Things::new();
    if let Some(sandbox) = &version.sandbox {
        let mut value = value_of(sandbox, &["references", "source", "tool"]);
        value.insert("source".into(), source_value(&sandbox.source));
        value.insert("tool".into(), Value::Object(value_of(&sandbox.tool, &[])));
        put(&mut things, "sandbox", "", Value::Object(value));
    }
    if let Some(runner) = &version.runner {
        put(&mut things, "runner", "", Value::Object(value_of(runner, &[])));
    }
    if let Some(stack) = &version.stack {
        put(&mut things, "stack", stack.platform.as_str(), Value::Object(value_of(stack, &[])));
    }
    for group in &version.input_groups {
        put(&mut things, &format!("input group `{}`", group.name), "", Value::Object(value_of(group, &["name"])));
    }
    for context in &version.kubernetes_contexts {
        let name = format!("kubernetes context `{}`", context.name);
        put(&mut things, &name, "", Value::Object(value_of(context, &["name"])));
    }
    if !version.default_labels.is_empty() {
        put(&mut things, "default labels", "", json!(version.default_labels));
    }
    if !version.operation_roles.is_empty() {
        let rules = version
            .operation_roles
            .iter()
            .map(|rule| Value::String(format!("{} {} as {}", rule.principal, rule.operation, rule.role)));
        put(&mut things, "operation roles", "", json!({ "rules": rules.collect::<Vec<_>>() }));
    }
    if !version.post_deploy_runbooks.is_empty() {
        put(&mut things, "post-deploy runbooks", "", json!({ "runbooks": version.post_deploy_runbooks }));
    }
    things
}

/// Compares the texts that describe the app as a whole.
pub(super) fn texts(from: &AppVersion, to: &AppVersion) -> Vec<Change> {
    let all = [
        ("display_name", &from.display_name, &to.display_name),
        ("description", &from.description, &to.description),
        ("readme", &from.readme, &to.readme),
    ];
    all.into_iter().filter_map(|(key, from, to)| change_of_text(key, from, to)).collect()
}

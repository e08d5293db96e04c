//! Reads the settings that components of every type have.

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::CheckName;
use freehold_protocol::app_version::{ComponentHealth, ComponentSettings};
use freehold_protocol::order::health::{MAX_PROBE_COMMAND, MAX_PROBE_NAME, MAX_PROBES, MAX_REQUIRED_CHECKS};

use crate::build::schedule::{not_a_check_schedule, not_a_drift_schedule};
use crate::build::values::{scalars, whole};
use crate::kinds::spec::seconds;
use crate::read::document::{Data, Node};
use crate::report::draft::Draft;
use crate::state::file::Checked;

/// The default of `stabilization_window`, in seconds: the time in which a component has to become healthy.
const STABILIZATION_SECS: u32 = 3 * 60;

/// Reads the settings of one component.
pub(super) fn settings(checked: &Checked, drafts: &mut Vec<Draft>) -> ComponentSettings {
    let root = &checked.root;
    let text = |key: &str| root.text(key).unwrap_or_default().to_owned();
    drafts.extend(not_a_drift_schedule(checked, root));
    ComponentSettings {
        labels: scalars(root.get("labels")),
        operation_roles: operation_roles(checked, root.tables("operation_roles"), drafts),
        kubernetes_context: text("kubernetes_context"),
        toggle: toggle(checked, drafts),
        max_auto_retries: whole(root.get("max_auto_retries")),
        skip_noops: root.flag("skip_noops"),
        auto_approve_on_policies_passing: root.flag("auto_approve_on_policies_passing"),
        drift_schedule: text("drift_schedule"),
        health: root.get("health").map(|node| health(checked, node, drafts)),
    }
}

/// Returns the role of each operation. Reports an operation that is listed twice.
fn operation_roles(checked: &Checked, nodes: &[Node], drafts: &mut Vec<Draft>) -> BTreeMap<String, String> {
    let mut roles = BTreeMap::new();
    for node in nodes {
        let (Some(operation), Some(role)) = (node.text("operation"), node.text("role")) else { continue };
        if roles.insert(operation.to_owned(), role.to_owned()).is_some() {
            let place = checked.place_of(node, "operation");
            let draft = Draft::error(place, format!("operation `{operation}` has two roles"));
            drafts.push(draft.help("keep one of them"));
        }
    }
    roles
}

fn toggle(checked: &Checked, drafts: &mut Vec<Draft>) -> Option<bool> {
    let root = &checked.root;
    let default = root.entry("default_enabled");
    if root.flag("toggleable") {
        return Some(default.is_none() || root.flag("default_enabled"));
    }
    if let Some(entry) = default {
        let draft = Draft::warning(
            checked.key_place(entry),
            "`default_enabled` has no effect: the component is not `toggleable`",
        );
        drafts.push(draft.help("add `toggleable = true`, or remove `default_enabled`"));
    }
    None
}

fn health(checked: &Checked, node: &Node, drafts: &mut Vec<Draft>) -> ComponentHealth {
    let probes = node.tables("probes");
    for probe in probes {
        drafts.extend(useless_probe(checked, probe));
        drafts.extend(long_name(checked, probe));
        drafts.extend(long_command(checked, probe));
    }
    drafts.extend(probes.get(MAX_PROBES).map(|probe| {
        let message = format!("the component has {} probes, and may have at most {MAX_PROBES}", probes.len());
        Draft::error(checked.place(probe), message).help("replace several probes by one that covers them")
    }));
    drafts.extend(nothing_to_ask(checked, node));
    drafts.extend(not_a_check_schedule(checked, node, "schedule"));
    let checks = node.get("required_checks").map(Node::items).unwrap_or_default();
    drafts.extend(wrong_checks(checked, checks));
    ComponentHealth {
        disabled: matches!(node.get("enabled"), Some(Node { data: Data::Flag(false), .. })),
        block_deploy: node.flag("block_deploy"),
        stabilization_window_secs: node.text("stabilization_window").and_then(seconds).unwrap_or(STABILIZATION_SECS),
        schedule: node.text("schedule").unwrap_or_default().to_owned(),
        required_checks: checks.iter().filter_map(Node::as_text).map(str::to_owned).collect(),
        probes: probes.iter().map(Node::to_json).collect(),
    }
}

/// Warns about health checks of a component that has nothing to check: its type has no built-in check, and it has no
/// probe.
fn nothing_to_ask(checked: &Checked, node: &Node) -> Option<Draft> {
    let kind = checked.root.text("type")?;
    let offers = ["helm_chart", "kubernetes_manifest", "cloudformation_stack"].contains(&kind);
    let disabled = matches!(node.get("enabled"), Some(Node { data: Data::Flag(false), .. }));
    if offers || disabled || !node.tables("probes").is_empty() {
        return None;
    }
    let message = format!("`health` has no effect: a component of type `{kind}` is checked by probes only");
    let help = "add a `[[health.probes]]`, or remove `health`";
    Some(Draft::warning(checked.place(node), message).help(help))
}

/// Reports required checks whose name is not valid, or that are listed twice, or that are too many.
fn wrong_checks(checked: &Checked, checks: &[Node]) -> Vec<Draft> {
    let mut seen: BTreeSet<CheckName> = BTreeSet::new();
    let wrong = checks.iter().filter_map(|node| {
        let text = node.as_text()?;
        let name = match text.parse::<CheckName>() {
            Ok(name) => name,
            Err(error) => {
                let draft = Draft::error(checked.place(node), error.to_string());
                return Some(draft.help("write a name that `freehold check report` accepts"));
            }
        };
        let draft = || Draft::error(checked.place(node), format!("required check `{text}` is listed twice"));
        (!seen.insert(name)).then(|| draft().help("remove one of them"))
    });
    let mut drafts: Vec<Draft> = wrong.collect();
    drafts.extend(checks.get(MAX_REQUIRED_CHECKS).map(|node| {
        let message =
            format!("the component has {} required checks, and may have at most {MAX_REQUIRED_CHECKS}", checks.len());
        Draft::error(checked.place(node), message).help("replace several checks by one that covers them")
    }));
    drafts
}

/// Reports a probe name that is too long to be shown whole in messages.
fn long_name(checked: &Checked, node: &Node) -> Option<Draft> {
    let name = node.get("name")?;
    let length = name.as_text()?.chars().count();
    let message = || format!("the name of the probe has {length} characters, and may have at most {MAX_PROBE_NAME}");
    (length > MAX_PROBE_NAME).then(|| Draft::error(checked.place(name), message()).help("shorten it"))
}

/// Reports a command that is too long. The customer reads each command in the contract, and every order has the contract.
fn long_command(checked: &Checked, node: &Node) -> Option<Draft> {
    let command = node.get("command")?;
    let words = command.items().iter().filter_map(Node::as_text);
    let length: usize = words.map(|word| word.chars().count()).sum();
    let message =
        || format!("the command of the probe has {length} characters, and may have at most {MAX_PROBE_COMMAND}");
    let help = "put a longer script into the image that jobs run in (`tool_image` in `runner.toml`)";
    (length > MAX_PROBE_COMMAND).then(|| Draft::error(checked.place(command), message()).help(help))
}

/// Reports a probe that has neither an address nor a command.
fn useless_probe(checked: &Checked, node: &Node) -> Option<Draft> {
    let (kind, key, example) = match node.text("type")? {
        "http" => ("http", "url", "url = \"https://...\""),
        "tcp" => ("tcp", "url", "url = \"host:port\""),
        "exec" => ("exec", "command", "command = [\"...\"]"),
        _ => return None,
    };
    let silent = match node.get(key).map(|value| &value.data) {
        Some(Data::Text(text)) => text.trim().is_empty(),
        Some(Data::List(items)) => {
            let program = items.first().map(Node::as_text);
            program.is_none_or(|text| text.is_some_and(|text| text.trim().is_empty()))
        }
        Some(_) => false,
        None => true,
    };
    let draft = || Draft::error(checked.place(node), format!("a probe of type `{kind}` needs `{key}`"));
    silent.then(|| draft().help(format!("add `{example}`")))
}

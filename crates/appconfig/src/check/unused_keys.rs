//! Warns about keys that have no effect in their table, because of its type or because of another key. The keys that
//! never have an effect are marked in the tables of [`crate::kinds`].

use freehold_domain::plan::drift::unchecked;
use freehold_domain::workflow::MAX_RETRIES;
use freehold_protocol::app_version::{AppVersion, Component, ComponentSpec, Platform};
use freehold_protocol::order::Mode;

use crate::check::effect::without_effect;
use crate::check::missing_programs::gets_kubeconfig;
use crate::kinds::Kind;
use crate::kinds::actions::RUNBOOK_STEPS;
use crate::read::document::{Data, Node};
use crate::report::draft::Draft;
use crate::state::app::App;
use crate::state::file::Checked;
use crate::state::roles::{Use, roles_in};

/// The keys of a runbook's step that only steps of some types use.
const STEP_KEYS: [(&str, &[&str]); 9] = [
    ("action_name", &["action"]),
    ("command", COMMANDS),
    ("component_name", &["component_deploy", "deploy", "component_tear_down"]),
    ("deploy_dependencies", &["component_deploy", "deploy"]),
    ("env_vars", COMMANDS),
    ("inline_contents", COMMANDS),
    ("plan_only", &["component_deploy", "deploy"]),
    ("skip_component_deploys", &["sandbox_provision", "sandbox_reprovision"]),
    ("timeout", COMMANDS),
];
const COMMANDS: &[&str] = &["command", "action"];
/// The keys of a probe that only probes of some types use.
const PROBE_KEYS: [(&str, &[&str]); 2] = [("url", &["http", "tcp"]), ("command", &["exec"])];
const PROBES: &[&str] = &["http", "tcp", "exec"];

/// Warns about the unused keys of all files.
pub(crate) fn check(app: &mut App, version: &AppVersion) {
    let is_in_aws = version.stack.as_ref().is_some_and(|stack| stack.platform == Platform::AwsCloudformation);
    let mut drafts = Vec::new();
    for checked in &app.checked {
        match checked.kind {
            Kind::Action => drafts.extend(of_action(checked)),
            Kind::Runbook => drafts.extend(of_steps(checked)),
            Kind::Permissions | Kind::Role | Kind::BreakGlass => drafts.extend(of_roles(checked, is_in_aws)),
            Kind::Secrets => {
                let secrets = checked.root.tables("secret").iter();
                drafts.extend(secrets.filter_map(|secret| of_secret(checked, secret)));
            }
            Kind::Secret => drafts.extend(of_secret(checked, &checked.root)),
            Kind::Runner if is_in_aws => drafts.extend(of_another_cloud(checked, &checked.root, "runner_type")),
            _ => {}
        }
    }
    for component in &version.components {
        let name = Some(component.name.as_str());
        if let Some(checked) = app.of(Kind::Component).find(|checked| checked.root.text("name") == name) {
            drafts.extend(of_component(checked, component, version));
        }
    }
    if let (Some(checked), Some(sandbox)) = (app.of(Kind::Sandbox).next(), &version.sandbox) {
        let part = sandbox.part();
        drafts.extend(of_drift_schedule(checked, &part.spec));
        drafts.extend(more_retries(checked, &part));
    }
    app.drafts.extend(drafts);
}

/// Returns the warning that `key` of `node` has no effect; `None` if `node` does not have the key, or if its value
/// is `false`, zero or empty.
fn unused(checked: &Checked, node: &Node, key: &str, instead: &str) -> Option<Draft> {
    let entry = node.entry(key).filter(|entry| !entry.value.is_nothing())?;
    Some(without_effect(checked.key_place(entry), &format!("`{key}`"), instead))
}

/// Returns the warnings about the keys of `node`, which is of type `kind`, that only other types use. `what` names such
/// a table in messages, such as "step".
fn of_other_types(checked: &Checked, node: &Node, kind: &str, what: &str, keys: &[(&str, &[&str])]) -> Vec<Draft> {
    let instead = format!("a {what} of type `{kind}` does not use it; remove it");
    let of_others = keys.iter().filter(|(_, types)| !types.contains(&kind));
    of_others.filter_map(|(key, _)| unused(checked, node, key, &instead)).collect()
}

fn of_component(checked: &Checked, component: &Component, version: &AppVersion) -> Vec<Draft> {
    let (root, kind) = (&checked.root, component.spec.kind());
    let mut drafts = Vec::new();
    if !is_planned(&component.spec) {
        let instead = format!("a component of type `{kind}` has no plan; remove it");
        let keys = ["skip_noops", "auto_approve_on_policies_passing"];
        drafts.extend(keys.into_iter().filter_map(|key| unused(checked, root, key, &instead)));
    }
    drafts.extend(of_drift_schedule(checked, &component.spec));
    drafts.extend(more_retries(checked, component));
    drafts.extend(of_context(checked, component, version));
    if let Some(health) = root.get("health") {
        drafts.extend(of_template(checked, health, "schedule"));
        for probe in health.tables("probes") {
            let Some(kind) = probe.text("type").filter(|kind| PROBES.contains(kind)) else { continue };
            drafts.extend(of_other_types(checked, probe, kind, "probe", &PROBE_KEYS));
        }
    }
    if let Some(verification) = root.get("verification").filter(|node| !node.flag("require_signature")) {
        let instead = "a build checks signatures only with `require_signature = true`";
        drafts.extend(unused(checked, verification, "authorities", instead));
    }
    drafts
}

/// Returns whether a deploy of such a component makes a plan before it changes anything.
const fn is_planned(spec: &ComponentSpec) -> bool {
    match spec {
        ComponentSpec::TerraformModule { .. }
        | ComponentSpec::CloudformationStack { .. }
        | ComponentSpec::HelmChart { .. }
        | ComponentSpec::KubernetesManifest { .. }
        | ComponentSpec::Pulumi { .. } => true,
        ComponentSpec::ContainerImage { .. } | ComponentSpec::DockerBuild { .. } | ComponentSpec::Job { .. } => false,
    }
}

fn of_drift_schedule(checked: &Checked, spec: &ComponentSpec) -> Option<Draft> {
    match unchecked(spec) {
        Some(why) => unused(checked, &checked.root, "drift_schedule", &format!("{why}; remove it")),
        None => of_template(checked, &checked.root, "drift_schedule"),
    }
}

/// Returns the warning about a template under `key`, which holds the schedule of drift checks or health checks.
fn of_template(checked: &Checked, node: &Node, key: &str) -> Option<Draft> {
    node.text(key).filter(|text| text.contains("{{"))?;
    unused(checked, node, key, "a schedule is not a template; write five cron fields, such as `0 3 * * *`")
}

/// Returns the warning about more retries than a deploy makes.
fn more_retries(checked: &Checked, part: &Component) -> Option<Draft> {
    let retries = part.settings.max_auto_retries.filter(|retries| *retries > MAX_RETRIES)?;
    let place = checked.place_of(&checked.root, "max_auto_retries");
    let message =
        format!("`max_auto_retries` is {retries}, and a failed deploy is retried at most {MAX_RETRIES} times");
    Some(Draft::warning(place, message).help(format!("write `max_auto_retries = {MAX_RETRIES}`")))
}

/// Returns the warning about the Kubernetes context of a component that is not deployed into a cluster. The component
/// still depends on the component that creates the cluster, so the key has an effect.
fn of_context(checked: &Checked, component: &Component, version: &AppVersion) -> Option<Draft> {
    let entry = checked.root.entry("kubernetes_context")?;
    let context = &component.settings.kubernetes_context;
    let maker = &version.kubernetes_contexts.iter().find(|known| known.name == *context)?.component;
    let of_cluster = matches!(
        component.spec,
        ComponentSpec::HelmChart { .. } | ComponentSpec::KubernetesManifest { .. } | ComponentSpec::Job { .. }
    );
    let (name, kind) = (&component.name, component.spec.kind());
    let message = format!("component `{name}` is a `{kind}`, which is not deployed into a cluster");
    let help = format!("remove `kubernetes_context`, or write `dependencies = [\"{maker}\"]` instead");
    (!of_cluster).then(|| Draft::warning(checked.key_place(entry), message).help(help))
}

fn of_action(checked: &Checked) -> Vec<Draft> {
    let root = &checked.root;
    let context = root.entry("kubernetes_context").filter(|entry| !entry.value.is_nothing());
    let context = context.filter(|_| !gets_kubeconfig(checked, true)).map(|entry| {
        Draft::warning(checked.key_place(entry), "no step of the action gets a kubeconfig of this cluster")
            .help("add `enable_kube_config = true`, or remove `kubernetes_context`")
    });
    let takes_other = root.text("break_glass_role").is_some_and(|role| !role.is_empty());
    let instead = "`break_glass_role` takes precedence; keep one of them";
    let role = takes_other.then(|| unused(checked, root, "role", instead)).flatten();
    context.into_iter().chain(role).collect()
}

fn of_steps(checked: &Checked) -> Vec<Draft> {
    let mut drafts = Vec::new();
    for node in checked.root.tables("steps") {
        let Some(kind) = node.text("type").filter(|kind| RUNBOOK_STEPS.contains(kind)) else { continue };
        drafts.extend(of_other_types(checked, node, kind, "step", &STEP_KEYS));
        if kind == "action" && node.get("action_name").is_some() {
            let instead = "the action in `action_name` has its own; remove it";
            drafts.extend(["env_vars", "timeout"].into_iter().filter_map(|key| unused(checked, node, key, instead)));
        }
    }
    drafts
}

fn of_roles(checked: &Checked, is_in_aws: bool) -> Vec<Draft> {
    let mut drafts = Vec::new();
    for (purpose, node) in roles_in(checked) {
        let Some(purpose) = purpose else { continue };
        drafts.extend(of_switch(checked, purpose, node));
        drafts.extend(of_type(checked, purpose, node));
        if is_in_aws {
            drafts.extend(of_another_cloud(checked, node, "cloud_platform"));
        }
    }
    drafts
}

/// Returns the warning about an `enabled_in_stack` of a role whose switch the config does not set.
fn of_switch(checked: &Checked, purpose: Use, node: &Node) -> Option<Draft> {
    let entry = node.entry("enabled_in_stack")?;
    let (is_on, what) = match purpose {
        Use::Custom => return None,
        Use::BreakGlass => (false, "a break-glass role".to_owned()),
        Use::Mode(mode) => (mode != Mode::Deprovision, format!("the role of mode `{}`", mode.as_str())),
    };
    let (now, then) = if is_on { ("on", "off") } else { ("off", "on") };
    let instead = format!("{what} is {now} in a new install stack until the customer switches it {then}");
    let differs = matches!(entry.value.data, Data::Flag(flag) if flag != is_on);
    differs.then(|| without_effect(checked.key_place(entry), "`enabled_in_stack`", &instead))
}

/// Returns the warning about a `type` that differs from the use which the role's table or file decides.
fn of_type(checked: &Checked, purpose: Use, node: &Node) -> Option<Draft> {
    let word = node.text("type")?;
    let (own, what) = match purpose {
        Use::Custom => ("custom", "a custom role".to_owned()),
        Use::BreakGlass => ("", "a break-glass role".to_owned()),
        Use::Mode(mode) => (mode.as_str(), format!("the role of mode `{}`", mode.as_str())),
    };
    let instead = format!("its table or file makes it {what}; remove `type`, or write the role under `[[roles]]`");
    (word != own).then(|| without_effect(checked.place_of(node, "type"), &format!("`type = \"{word}\"`"), &instead))
}

/// Returns the warning about the value of `key` that names another cloud than that of the app's stack.
fn of_another_cloud(checked: &Checked, node: &Node, key: &str) -> Option<Draft> {
    let word = node.text(key).filter(|word| ["gcp", "azure"].contains(word))?;
    let instead = "`stack.toml` is of type `aws-cloudformation`, and everything of an install is in one cloud";
    Some(without_effect(checked.place_of(node, key), &format!("`{key} = \"{word}\"`"), instead))
}

/// Returns the warning about a secret with a `user_configurable` that differs from who gives its value.
fn of_secret(checked: &Checked, node: &Node) -> Option<Draft> {
    let entry = node.entry("user_configurable")?;
    let is_generated = node.flag("auto_generate");
    let Data::Flag(flag) = entry.value.data else { return None };
    let instead = if is_generated {
        "the install stack generates the value; remove `auto_generate` to let the customer enter it"
    } else {
        "the customer enters each secret that the install stack does not generate (`auto_generate = true`)"
    };
    let what = format!("`user_configurable = {flag}`");
    (flag == is_generated).then(|| without_effect(checked.key_place(entry), &what, instead))
}

//! The preflight: the first node of a first deploy, and the checks that its runner performs.

mod creation;
pub mod shortfall;

use std::collections::{BTreeMap, BTreeSet};

use freehold_permissions::{Allowance, Answer};
use freehold_protocol::ComponentName;
use freehold_protocol::app_version::{Action, AppVersion, ComponentSpec, RolePolicy, StepSource};
use freehold_protocol::order::Mode;
use freehold_protocol::preflight::{CheckInstall, ExistingCluster, HELM, KUSTOMIZE, PULUMI, Permission};
use serde_json::Value;

use crate::contacted_hosts::hosts as contacted_hosts;
use crate::workflow::{Node, Target, Workflow};

/// The name of the preflight node. No other node can have this name: a component's name has no colon, and the name of
/// an action's node begins with `action:`.
pub const NODE: &str = "preflight:install";

/// The time limit of one preflight, in seconds. A preflight usually takes a few seconds.
const TIMEOUT_SECS: u32 = 120;

/// The time limit of the preflight of an app with a tool image. On a new machine the preflight is the first job that
/// needs the image, and fetches the image, which takes minutes over a slow connection.
const TIMEOUT_WITH_IMAGE_SECS: u32 = 900;

/// An upper estimate of how many times larger a module is on disk than its gzipped artifact. Providers are not
/// included.
const UNPACKS_TO: u64 = 8;

/// The maximum numbers of hosts, stacks and permissions (actions times resources) in an order. They keep the check
/// shorter than the deploy.
const MAX_HOSTS: usize = 20;
const MAX_STACKS: usize = 20;
const MAX_PERMISSIONS: usize = 200;
/// The maximum number of namespaces of a cluster in an order.
const MAX_NAMESPACES: usize = 10;

/// The variable by which a module of a sandbox takes the name of the cluster that it makes or finds.
const CLUSTER_NAME: &str = "cluster_name";
/// The namespace of an object whose component names none.
const OWN_NAMESPACE: &str = "{{ .nuon.install.id }}";

/// Puts the preflight before `nodes`. A workflow without nodes gets no preflight.
pub(crate) fn precede(nodes: &mut Vec<Node>, version: &AppVersion) {
    if nodes.is_empty() {
        return;
    }
    for node in nodes.iter_mut() {
        node.dependencies.insert(NODE.to_owned());
    }
    let timeout_secs = if version.tool_image().is_some() { TIMEOUT_WITH_IMAGE_SECS } else { TIMEOUT_SECS };
    nodes.insert(0, Node::waiting(NODE.to_owned(), Target::Preflight, timeout_secs));
}

/// Returns what the runner has to check before it runs the nodes of `workflow`. `artifact_bytes` are the sizes of the
/// artifacts, in bytes.
pub fn needs(version: &AppVersion, workflow: &Workflow, artifact_bytes: &BTreeMap<ComponentName, u64>) -> CheckInstall {
    let mut needs = CheckInstall::default();
    let mut owners = Vec::new();
    for node in &workflow.nodes {
        match &node.target {
            Target::Component { component, .. } => {
                owners.push(format!("component `{component}`"));
                let bytes = artifact_bytes.get(component).copied().unwrap_or(0);
                let own_role = node.runs_as.as_ref().is_some_and(|own| own.role.is_some() || own.mode != workflow.mode);
                add_part(&mut needs, version, component, bytes, own_role);
            }
            Target::Sandbox { .. } => {
                owners.push("sandbox".to_owned());
                let name = ComponentName::sandbox();
                let bytes = artifact_bytes.get(&name).copied().unwrap_or(0);
                add_part(&mut needs, version, &name, bytes, true);
            }
            Target::Action { action, directories } => {
                owners.push(format!("action `{action}`"));
                needs.programs = true;
                let sources = version.action(action).map(Action::sources).unwrap_or_default();
                for StepSource { name, steps, .. } in &sources {
                    let bytes = artifact_bytes.get(name).copied().unwrap_or(0).saturating_mul(UNPACKS_TO);
                    let is_used = directories.iter().any(|one| one.component == *name);
                    let copies = if is_used { steps.len() as u64 } else { 0 };
                    needs.disk_bytes = needs.disk_bytes.saturating_add(bytes.saturating_mul(copies));
                }
            }
            Target::Secrets { .. }
            | Target::Teardown { .. }
            | Target::DetectDrift { .. }
            | Target::Build { .. }
            | Target::Preflight
            | Target::Leftovers
            | Target::Health { .. }
            | Target::Upgrade => {}
        }
    }
    needs.hosts = hosts(version, &owners);
    needs.clusters = existing_cluster(version).into_iter().collect();
    add_permissions(&mut needs, version, workflow.mode);
    needs
}

/// Adds what a component or the sandbox needs. The preflight runs under the role of the mode, so it cannot check the
/// stack of a component that has a role of its own (`own_role`).
fn add_part(needs: &mut CheckInstall, version: &AppVersion, name: &ComponentName, bytes: u64, own_role: bool) {
    let Some(component) = version.part(name) else { return };
    match &component.spec {
        ComponentSpec::TerraformModule { terraform_version, .. } => {
            needs.terraform_versions.insert(terraform_version.clone());
            needs.programs = true;
            needs.disk_bytes = needs.disk_bytes.saturating_add(bytes.saturating_mul(UNPACKS_TO));
        }
        ComponentSpec::CloudformationStack { stack_name, .. } => {
            if !own_role && needs.stacks.len() < MAX_STACKS {
                needs.stacks.insert(stack_name.clone());
            }
            needs.disk_bytes = needs.disk_bytes.saturating_add(bytes);
        }
        ComponentSpec::HelmChart { .. } => {
            needs.tools.insert(HELM.to_owned());
            needs.programs = true;
            needs.disk_bytes = needs.disk_bytes.saturating_add(bytes.saturating_mul(UNPACKS_TO));
        }
        ComponentSpec::KubernetesManifest { kustomize, .. } => {
            if kustomize.is_some() {
                needs.tools.insert(KUSTOMIZE.to_owned());
                needs.programs = true;
            }
            needs.disk_bytes = needs.disk_bytes.saturating_add(bytes.saturating_mul(UNPACKS_TO));
        }
        ComponentSpec::Pulumi { .. } => {
            needs.tools.insert(PULUMI.to_owned());
            needs.programs = true;
            needs.disk_bytes = needs.disk_bytes.saturating_add(bytes.saturating_mul(UNPACKS_TO));
        }
        // Images are copied from registry to registry and need no disk.
        ComponentSpec::ContainerImage { .. } | ComponentSpec::DockerBuild { .. } | ComponentSpec::Job { .. } => {}
    }
}

/// Returns the cluster whose name the sandbox takes, with the namespaces of the components in it.
fn existing_cluster(version: &AppVersion) -> Option<ExistingCluster> {
    let sandbox = version.part(&ComponentName::sandbox())?;
    let name = match &sandbox.spec {
        ComponentSpec::TerraformModule { vars, .. } => vars.get(CLUSTER_NAME),
        ComponentSpec::Pulumi { config, .. } => config.get(CLUSTER_NAME),
        ComponentSpec::ContainerImage { .. }
        | ComponentSpec::CloudformationStack { .. }
        | ComponentSpec::HelmChart { .. }
        | ComponentSpec::KubernetesManifest { .. }
        | ComponentSpec::DockerBuild { .. }
        | ComponentSpec::Job { .. } => None,
    };
    let in_sandbox = version.components.iter().filter(|one| one.settings.kubernetes_context.is_empty());
    let namespaces = in_sandbox.filter_map(|component| match &component.spec {
        ComponentSpec::HelmChart { namespace, .. } | ComponentSpec::KubernetesManifest { namespace, .. } => {
            Some(if namespace.is_empty() { OWN_NAMESPACE.to_owned() } else { namespace.clone() })
        }
        ComponentSpec::Job { .. } => Some(OWN_NAMESPACE.to_owned()),
        ComponentSpec::TerraformModule { .. }
        | ComponentSpec::Pulumi { .. }
        | ComponentSpec::ContainerImage { .. }
        | ComponentSpec::CloudformationStack { .. }
        | ComponentSpec::DockerBuild { .. } => None,
    });
    let namespaces: BTreeSet<String> = namespaces.collect();
    let name = name?.as_str()?.to_owned();
    Some(ExistingCluster { name, namespaces: namespaces.into_iter().take(MAX_NAMESPACES).collect() })
}

/// Returns the hosts that `owners` contact. Names of buckets are left out, and so are hosts that are only known after a
/// template is rendered.
fn hosts(version: &AppVersion, owners: &[String]) -> BTreeSet<String> {
    let named = |places: &BTreeSet<String>| places.iter().any(|place| owners.iter().any(|owner| is_of(place, owner)));
    let plain = |host: &str| !host.contains(['{', '$', '%', '/']) && host.contains('.');
    let all = contacted_hosts(version).into_iter().filter(|(host, places)| plain(host) && named(places));
    all.map(|(host, _)| host).take(MAX_HOSTS).collect()
}

fn is_of(place: &str, owner: &str) -> bool {
    place.strip_prefix(owner).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// Adds the actions that the inline policies of the mode's role allow by name. AWS managed policies are skipped,
/// because the version does not contain their documents.
fn add_permissions(needs: &mut CheckInstall, version: &AppVersion, mode: Mode) {
    let Some(role) = version.roles.iter().find(|role| role.mode == mode) else { return };
    let mut room = MAX_PERMISSIONS;
    let boundary = Allowance::of(&role.policies, role.boundary.as_deref());
    for policy in &role.policies {
        let RolePolicy::Inline { document, .. } = policy else { continue };
        // A document with templates outside of strings is not JSON until it is rendered, so it is skipped.
        let Ok(document) = serde_json::from_str::<Value>(document) else { continue };
        let statements = match document.get("Statement") {
            Some(Value::Array(all)) => all.as_slice(),
            Some(one @ Value::Object(_)) => std::slice::from_ref(one),
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => &[],
        };
        for statement in statements.iter().filter(|one| one.get("Effect").and_then(Value::as_str) == Some("Allow")) {
            add_statement(needs, statement, &boundary, &mut room);
        }
    }
}

fn add_statement(needs: &mut CheckInstall, statement: &Value, allowance: &Allowance, room: &mut usize) {
    let mut actions = texts(statement.get("Action"));
    // The vendor's own boundary makes the stack deny these actions, so they are not missing permissions.
    actions.retain(|action| allowance.answer(action, "*") != Answer::OutsideBoundary);
    let left_out = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    // A statement with `NotAction` has no `Action` element, so `actions` is empty.
    if actions.is_empty() || statement.get("Condition").is_some() || statement.get("Resource").is_none() {
        needs.permissions_left_out = needs.permissions_left_out.saturating_add(left_out(actions.len().max(1)));
        return;
    }
    let (named, patterns): (BTreeSet<String>, BTreeSet<String>) =
        actions.into_iter().partition(|action| action.contains(':') && !action.contains(['*', '?', '{']));
    needs.permissions_left_out = needs.permissions_left_out.saturating_add(left_out(patterns.len()));
    if named.is_empty() {
        return;
    }
    let resources = texts(statement.get("Resource"));
    match room.checked_sub(named.len() * resources.len()) {
        Some(rest) => {
            *room = rest;
            needs.permissions.push(Permission { actions: named, resources });
        }
        None => needs.permissions_left_out = needs.permissions_left_out.saturating_add(left_out(named.len())),
    }
}

/// Returns the strings of a JSON value that is a string or a list of strings; empty for other values.
fn texts(value: Option<&Value>) -> BTreeSet<String> {
    match value {
        Some(Value::String(one)) => BTreeSet::from([one.clone()]),
        Some(Value::Array(all)) => all.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => BTreeSet::new(),
    }
}

#[cfg(test)]
mod tests;

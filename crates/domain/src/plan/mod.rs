//! Plans the nodes of a workflow: a deploy runs what a change touches.

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::app_version::{Action, AppVersion, Component, Reference, Trigger};
use freehold_protocol::order::Mode;
use freehold_protocol::{ActionName, BuildId, ComponentName, Digest, canonical};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::build::Build;
use crate::deployable::{Undeployable, undeployable};
use crate::nearest::{hint, nearest};
use crate::preflight;
use crate::runs_as::{Operation, RunsAs, UnknownRole, runs_as};
use crate::workflow::{Node, NodeState, Target};

/// The time limit of one build, in seconds.
pub const BUILD_TIMEOUT_SECS: u32 = 15 * 60;

/// What is deployed of one component.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Deployed {
    pub component: ComponentName,
    pub fingerprint: Digest,
    pub artifact: Digest,
    pub version: Digest,
    pub job: freehold_protocol::JobId,
    pub at: freehold_protocol::Timestamp,
    #[serde(default)]
    pub outputs: BTreeMap<String, Value>,
}

/// Why nothing can be planned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error("component `{component}` has no artifact; run `freehold build {app}` and deploy again")]
    NotBuilt { component: ComponentName, app: String },
    #[error("app `{app}` has no component `{component}`{}", hint(.nearest))]
    UnknownComponent { app: String, component: ComponentName, nearest: Option<String> },
    #[error("app `{app}` has no action `{action}`{}", hint(.nearest))]
    UnknownAction { app: String, action: ActionName, nearest: Option<String> },
    #[error(transparent)]
    UnknownRole(#[from] UnknownRole),
    #[error("app `{app}` cannot be deployed here yet: {}", list_undeployable(.found))]
    NotDeployable { app: String, found: Vec<Undeployable> },
    #[error("value cannot be written as JSON: {0}")]
    Unwritable(String),
}

fn list_undeployable(found: &[Undeployable]) -> String {
    const SHOWN: usize = 5;
    let mut shown: Vec<String> = found.iter().take(SHOWN).map(ToString::to_string).collect();
    if found.len() > SHOWN {
        shown.push(format!("and {} more", found.len() - SHOWN));
    }
    shown.join(", ")
}

/// Refuses a version that holds what cannot be deployed here yet.
///
/// # Errors
/// [`PlanError::NotDeployable`].
pub fn check_deployable(version: &AppVersion) -> Result<(), PlanError> {
    let found = undeployable(version);
    if found.is_empty() { Ok(()) } else { Err(PlanError::NotDeployable { app: version.app.to_string(), found }) }
}

/// Returns the digest that changes when deploying `component` again would change something: its artifact, its own
/// values, its cluster, or the inputs that its templates refer to.
///
/// # Errors
/// [`PlanError::Unwritable`].
pub fn fingerprint(
    component: &Component,
    artifact: &Digest,
    inputs: &BTreeMap<String, Value>,
) -> Result<Digest, PlanError> {
    let used: BTreeMap<&str, Option<&Value>> = component
        .references
        .iter()
        .filter_map(|reference| match reference {
            Reference::Input(name) => Some((name.as_str(), inputs.get(name))),
            Reference::Component(_)
            | Reference::Action(_)
            | Reference::Secret(_)
            | Reference::Sandbox(_)
            | Reference::InstallStack(_) => None,
        })
        .collect();
    let digest = match component.settings.kubernetes_context.as_str() {
        "" => canonical::digest(&(artifact, &component.spec, used)),
        // Another cluster has nothing of the component.
        context => canonical::digest(&(artifact, &component.spec, used, context)),
    };
    digest.map_err(|e| PlanError::Unwritable(e.to_string()))
}

/// What a deploy is asked to do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeployScope {
    /// Only these components and those that depend on them; when empty, all that changed.
    pub only: BTreeSet<ComponentName>,
    /// Everything, changed or not.
    pub all: bool,
    /// Whether this is the install's provisioning, which also runs post-provision actions and begins with a preflight.
    pub provision: bool,
    /// Whether nothing of the app exists yet, for example after a provisioning that failed: this run too begins with a
    /// preflight.
    pub first: bool,
    /// The role for every node that the person who started the workflow chose.
    pub role: Option<String>,
}

/// All that a deploy is planned from.
#[derive(Debug, Clone, Copy)]
pub struct DeployInput<'a> {
    pub version: &'a AppVersion,
    pub builds: &'a BTreeMap<ComponentName, Build>,
    /// Resolved values.
    pub inputs: &'a BTreeMap<String, Value>,
    pub deployed: &'a BTreeMap<ComponentName, Deployed>,
    pub serial: u64,
}

/// Returns the nodes of a deploy: changed components, what depends on them, and the actions that they trigger.
///
/// # Errors
/// A component without artifact, or an unknown one in the scope.
pub fn deploy_nodes(input: DeployInput<'_>, scope: &DeployScope) -> Result<Vec<Node>, PlanError> {
    let version = input.version;
    for name in &scope.only {
        if version.component(name).is_none() {
            let nearest = nearest(name.as_str(), version.components.iter().map(|c| c.name.as_str()));
            let (app, component) = (version.app.to_string(), name.clone());
            return Err(PlanError::UnknownComponent { app, component, nearest });
        }
    }
    let mut targets = BTreeMap::new();
    let mut touched = BTreeSet::new();
    for component in &version.components {
        let target = component_target(version, component, input)?;
        let Target::Component { fingerprint, .. } = &target else { continue };
        let live = input.deployed.get(&component.name);
        let changed = live.is_none_or(|live| live.fingerprint != *fingerprint);
        let wanted = if scope.only.is_empty() { changed || scope.all } else { scope.only.contains(&component.name) };
        if wanted {
            touched.insert(component.name.clone());
        }
        targets.insert(component.name.clone(), target);
    }
    add_dependents(version, &mut touched);
    let mut nodes: Vec<Node> = version
        .components
        .iter()
        .filter(|component| touched.contains(&component.name))
        .filter_map(|component| {
            Some(Node {
                runs_as: None,
                name: component.name.to_string(),
                target: targets.remove(&component.name)?,
                dependencies: component.dependencies.intersection(&touched).map(ToString::to_string).collect(),
                timeout_secs: component.deploy_timeout_secs,
                serial: 0,
                state: NodeState::Waiting,
            })
        })
        .collect();
    nodes.extend(triggered_actions(version, &touched, scope.provision));
    if scope.provision || scope.first {
        preflight::precede(&mut nodes);
    }
    let mode = if scope.provision { Mode::Provision } else { Mode::Maintenance };
    for node in &mut nodes {
        node.serial = input.serial;
        node.runs_as = role_of(version, &node.target, scope.role.as_deref(), mode)?;
    }
    Ok(nodes)
}

/// Returns the role of a node, where it is not its mode's own.
fn role_of(
    version: &AppVersion,
    target: &Target,
    asked: Option<&str>,
    mode: Mode,
) -> Result<Option<RunsAs>, PlanError> {
    let operation = match target {
        Target::Component { component, .. } => version.component(component).map(Operation::Deploy),
        Target::Action { action } => version.action(action).map(Operation::Trigger),
        Target::Build { .. } | Target::Preflight => None,
    };
    operation.map_or(Ok(None), |operation| Ok(runs_as(version, operation, asked, mode)?))
}

fn component_target(version: &AppVersion, component: &Component, input: DeployInput<'_>) -> Result<Target, PlanError> {
    let built = input.builds.get(&component.name);
    let built = built.and_then(|build| Some((build.id.clone(), build.usable()?.digest.clone())));
    let (build, artifact) =
        built.ok_or_else(|| PlanError::NotBuilt { component: component.name.clone(), app: version.app.to_string() })?;
    let fingerprint = fingerprint(component, &artifact, input.inputs)?;
    Ok(Target::Component { component: component.name.clone(), build, artifact, fingerprint })
}

/// Adds to `touched` every component that depends on one of them.
pub(crate) fn add_dependents(version: &AppVersion, touched: &mut BTreeSet<ComponentName>) {
    loop {
        let before = touched.len();
        for component in &version.components {
            if !component.dependencies.is_disjoint(touched) {
                touched.insert(component.name.clone());
            }
        }
        if touched.len() == before {
            return;
        }
    }
}

fn triggered_actions(version: &AppVersion, touched: &BTreeSet<ComponentName>, provision: bool) -> Vec<Node> {
    let triggered = triggered(version, touched, provision);
    triggered.into_iter().map(|(action, after)| action_node(action, after, 0)).collect()
}

/// Returns the actions that a deploy of `touched` runs, and the nodes after which each does.
pub(crate) fn triggered<'a>(
    version: &'a AppVersion,
    touched: &BTreeSet<ComponentName>,
    provision: bool,
) -> Vec<(&'a Action, BTreeSet<String>)> {
    let everything = || -> BTreeSet<String> { touched.iter().map(ToString::to_string).collect() };
    let after = |action: &Action| {
        action.triggers.iter().find_map(|trigger| match trigger {
            Trigger::PostProvision if provision => Some(everything()),
            Trigger::PostDeployAllComponents if !touched.is_empty() => Some(everything()),
            Trigger::PostDeployComponent { component } if touched.contains(component) => {
                Some(BTreeSet::from([component.to_string()]))
            }
            Trigger::Manual
            | Trigger::PostProvision
            | Trigger::PostDeployAllComponents
            | Trigger::PostDeployComponent { .. }
            | Trigger::Cron { .. }
            | Trigger::Event { .. } => None,
        })
    };
    version.actions.iter().filter_map(|action| Some((action, after(action)?))).collect()
}

/// Returns the name of an action's node.
pub(crate) fn action_node_name(action: &Action) -> String {
    format!("action:{}", action.name)
}

fn action_node(action: &Action, dependencies: BTreeSet<String>, serial: u64) -> Node {
    Node {
        name: action_node_name(action),
        target: Target::Action { action: action.name.clone() },
        dependencies,
        timeout_secs: action.timeout_secs,
        serial,
        runs_as: None,
        state: NodeState::Waiting,
    }
}

/// Returns the one node of an action's run, under the requested role or the role that the app names.
///
/// # Errors
/// [`PlanError::UnknownAction`], [`PlanError::UnknownRole`].
pub fn action_nodes(
    version: &AppVersion,
    action: &ActionName,
    role: Option<&str>,
    serial: u64,
) -> Result<Vec<Node>, PlanError> {
    let found = version.action(action).ok_or_else(|| PlanError::UnknownAction {
        app: version.app.to_string(),
        action: action.clone(),
        nearest: nearest(action.as_str(), version.actions.iter().map(|a| a.name.as_str())),
    })?;
    let runs_as = runs_as(version, Operation::Trigger(found), role, Mode::Maintenance)?;
    Ok(vec![Node { runs_as, ..action_node(found, BTreeSet::new(), serial) }])
}

/// Returns the nodes that build what has no artifact yet, in no order.
pub fn build_nodes(builds: &[(ComponentName, BuildId)], serial: u64) -> Vec<Node> {
    builds
        .iter()
        .map(|(component, build)| Node {
            name: component.to_string(),
            target: Target::Build { component: component.clone(), build: build.clone() },
            dependencies: BTreeSet::new(),
            timeout_secs: BUILD_TIMEOUT_SECS,
            serial,
            runs_as: None,
            state: NodeState::Waiting,
        })
        .collect()
}

#[cfg(test)]
mod tests;

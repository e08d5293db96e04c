//! Plans the nodes of a workflow. A deploy runs only the nodes that a change affects.

pub(crate) mod copies;
mod dependents;
pub mod drift;
mod health;
pub mod health_check;
mod input;
mod kept_outputs;
mod scope;
pub mod secrets;
pub mod steps;
pub mod teardown;
mod toggles;
pub mod triggers;

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::app_version::{AppVersion, Component, ComponentSpec, Reference, Sandbox};
use freehold_protocol::order::Mode;
use freehold_protocol::order::policy_scope::is_for_clusters;
use freehold_protocol::{ActionName, BuildId, ComponentName, Digest, canonical};
use serde_json::Value;

use crate::deployability::undeployable;
use crate::preflight;
use crate::runs_as::{Operation, RunsAs, check_choice, check_role, runs_as, runs_as_in_event};
use crate::suggestion::Known;
use crate::workflow::{MAX_RETRIES, Node, Target};

pub(crate) use dependents::add_dependents;
pub use input::{Copied, DeployInput, Deployed, PartialBy, PlanError, SecretsState, SkippedBy, TogglesState};
pub use kept_outputs::kept_outputs;
pub use scope::DeployScope;

/// The time limit of one build, in seconds.
pub const BUILD_TIMEOUT_SECS: u32 = 15 * 60;
/// The time limit for one attempt at the upgrade of a runner. It includes the wait for the jobs that run.
const UPGRADE_TIMEOUT_SECS: u32 = 2 * 60 * 60;

/// Refuses a version that has a part which cannot be deployed yet.
///
/// # Errors
/// [`PlanError::NotDeployable`].
pub fn check_deployable(version: &AppVersion) -> Result<(), PlanError> {
    let found = undeployable(version);
    if found.is_empty() { Ok(()) } else { Err(PlanError::NotDeployable { app: version.app.to_string(), found }) }
}

/// Returns a digest of everything that a deploy of `component` depends on: its artifact, its own values, its cluster, the
/// policies that its deploy applies to the cluster, and the inputs, the secrets and the licence that its templates
/// refer to. `licence` is the serial of the install's licence. While the digest is the same, a new deploy would change
/// nothing.
///
/// # Errors
/// [`PlanError::Unwritable`].
pub fn fingerprint(
    version: &AppVersion,
    component: &Component,
    artifact: &Digest,
    inputs: &BTreeMap<String, Value>,
    secrets: &BTreeMap<String, Digest>,
    licence: Option<u64>,
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
            | Reference::InstallStack(_)
            | Reference::Licence => None,
        })
        .collect();
    let secrets = secrets::used(&component.references, secrets);
    let digest = match (component.settings.kubernetes_context.as_str(), secrets.is_empty()) {
        ("", true) => canonical::digest(&(artifact, &component.spec, used)),
        // The component has to be deployed again when its cluster changes.
        (context, true) => canonical::digest(&(artifact, &component.spec, used, context)),
        (context, false) => canonical::digest(&(artifact, &component.spec, used, context, secrets)),
    };
    let policies = cluster_policies(version, component);
    let digest = digest.and_then(|own| if policies.is_empty() { Ok(own) } else { canonical::digest(&(own, policies)) });
    let digest = match licence.filter(|_| component.references.contains(&Reference::Licence)) {
        Some(serial) => digest.and_then(|own| canonical::digest(&(own, "licence", serial))),
        None => digest,
    };
    digest.map_err(|e| PlanError::Unwritable(e.to_string()))
}

/// Returns the digests of the Kyverno policies that a deploy of the component applies to the cluster. A `job` has none,
/// because it runs a program once, and a new policy must not run the program again.
fn cluster_policies(version: &AppVersion, component: &Component) -> BTreeSet<Digest> {
    if !matches!(component.spec, ComponentSpec::HelmChart { .. } | ComponentSpec::KubernetesManifest { .. }) {
        return BTreeSet::new();
    }
    let of_clusters = version.policies.iter().filter(|policy| is_for_clusters(policy.engine, &policy.kind));
    of_clusters.map(|policy| Digest::of(policy.contents.as_bytes())).collect()
}

/// Returns the nodes of a deploy: the sandbox if it changed, changed components, what depends on them, and the actions
/// that they trigger.
///
/// # Errors
/// [`PlanError`] for a part without an artifact, an unknown part or role in the scope, or a required output that the sandbox
/// does not have.
pub fn deploy_nodes(input: DeployInput<'_>, scope: &DeployScope) -> Result<Vec<Node>, PlanError> {
    let version = input.version;
    check_names(version, &scope.only)?;
    // A deploy that changes nothing has no node that would name the role.
    if let Some(role) = &scope.role {
        check_role(version, role)?;
    }
    let off = input.toggles.off;
    let (mut targets, mut touched) = targets_and_wanted(input, scope)?;
    if !scope.alone {
        add_dependents(version, &mut touched);
    }
    touched.retain(|name| !off.contains(name));
    toggles::check(input, scope, &touched)?;
    add_missing_sandbox(version, input.deployed, &mut touched);
    check_sandbox(input, &touched)?;
    let mut nodes = part_nodes(version, &touched, &mut targets);
    let disabled = toggles::remove(input, scope, &mut nodes)?;
    let secret_nodes = secrets::add(input, scope, &touched, &mut nodes)?;
    let enabled = toggles::enabled(input, scope, &touched);
    let parts = triggers::Parts { deployed: &touched, enabled: &enabled, disabled: &disabled };
    let events = triggers::events_of_deploy(version, parts, secret_nodes, scope);
    let lacking = triggers::Lacking { components: off, because: triggers::lacks_text };
    let of_removals = triggers::add(version, &mut nodes, &events, lacking);
    health::add(version, &touched, &events, &mut nodes);
    health::add_standing(input, scope, &touched, &mut nodes);
    steps::bind(version, &mut nodes, input.builds)?;
    if scope.provision || scope.first {
        preflight::precede(&mut nodes, version);
    }
    for node in &mut nodes {
        node.serial = input.serial;
        set_role(input, scope, &of_removals, node)?;
    }
    Ok(nodes)
}

/// Refuses names of parts that the version does not have.
fn check_names(version: &AppVersion, names: &BTreeSet<ComponentName>) -> Result<(), PlanError> {
    let Some(name) = names.iter().find(|name| version.part(name).is_none()) else { return Ok(()) };
    let known = Known::instead_of(name.as_str(), version.components.iter().map(|c| c.name.as_str()));
    Err(PlanError::UnknownComponent { app: version.app.to_string(), component: name.clone(), known })
}

/// Returns the targets of all parts that are on, and the names of those that the scope asks for.
fn targets_and_wanted(
    input: DeployInput<'_>,
    scope: &DeployScope,
) -> Result<(BTreeMap<ComponentName, Target>, BTreeSet<ComponentName>), PlanError> {
    let (mut targets, mut wanted) = (BTreeMap::new(), BTreeSet::new());
    for part in input.version.parts().filter(|part| !input.toggles.off.contains(&part.name)) {
        let (target, fingerprint) = part_target(input.version, &part, input)?;
        let is_wanted = if scope.only.is_empty() {
            input.is_changed(&part, &fingerprint)? || scope.all
        } else {
            scope.only.contains(&part.name)
        };
        if is_wanted {
            wanted.insert(part.name.clone());
        }
        targets.insert(part.name.clone(), target);
    }
    Ok((targets, wanted))
}

/// Sets the mode and the role under which a node runs. `of_removals` are the actions that removals trigger.
fn set_role(
    input: DeployInput<'_>,
    scope: &DeployScope,
    of_removals: &BTreeSet<String>,
    node: &mut Node,
) -> Result<(), PlanError> {
    let mode = if scope.provision { Mode::Provision } else { Mode::Maintenance };
    match &node.target {
        Target::Teardown { .. } => {}
        target if of_removals.contains(&node.name) => {
            let own = role_of(input, target, scope.role.as_deref(), Mode::Deprovision)?;
            node.runs_as = Some(own.unwrap_or(RunsAs { mode: Mode::Deprovision, role: None }));
        }
        target => node.runs_as = role_of(input, target, scope.role.as_deref(), mode)?,
    }
    Ok(())
}

/// Returns the node of the sandbox and the nodes of the components, which come after the sandbox.
fn part_nodes(
    version: &AppVersion,
    touched: &BTreeSet<ComponentName>,
    targets: &mut BTreeMap<ComponentName, Target>,
) -> Vec<Node> {
    let sandbox = Some(ComponentName::sandbox()).filter(|name| version.sandbox.is_some() && touched.contains(name));
    let nodes = version.parts().filter(|part| touched.contains(&part.name)).filter_map(|part| {
        let mut before: BTreeSet<String> = part.dependencies.intersection(touched).map(ToString::to_string).collect();
        before.extend(sandbox.iter().filter(|sandbox| part.name != **sandbox).map(ToString::to_string));
        Some(Node {
            dependencies: before,
            retries: part.settings.max_auto_retries.unwrap_or_default().min(MAX_RETRIES),
            ..Node::waiting(part.name.to_string(), targets.remove(&part.name)?, part.deploy_timeout_secs)
        })
    });
    nodes.collect()
}

/// Adds the sandbox to `touched` if a component is to be deployed and the sandbox is not deployed yet.
fn add_missing_sandbox(
    version: &AppVersion,
    deployed: &BTreeMap<ComponentName, Deployed>,
    touched: &mut BTreeSet<ComponentName>,
) {
    let name = ComponentName::sandbox();
    if version.sandbox.is_some() && !touched.is_empty() && !deployed.contains_key(&name) {
        touched.insert(name);
    }
}

/// Refuses a deploy of a component that requires an output which the deployed sandbox does not have. If the deploy
/// itself makes the sandbox, [`crate::Workflow::on_job`] checks the outputs when the sandbox is ready.
fn check_sandbox(input: DeployInput<'_>, touched: &BTreeSet<ComponentName>) -> Result<(), PlanError> {
    let name = ComponentName::sandbox();
    let Some(sandbox) = input.deployed.get(&name).filter(|_| !touched.contains(&name)) else { return Ok(()) };
    let components = input.version.components.iter().filter(|component| touched.contains(&component.name));
    let outputs = sandbox.outputs_with_digests();
    let refused = components.filter_map(|one| input.reads(one).refusal(&one.name, &outputs)).next();
    refused.map_or(Ok(()), |reason| Err(PlanError::SandboxLacks(reason)))
}

/// Returns the role of a node; `None` if the node runs under the role of the workflow's mode. The contract names the
/// roles of actions and of the commands of health checks, so the role that the caller asked for may not count for
/// these.
fn role_of(
    input: DeployInput<'_>,
    target: &Target,
    asked: Option<&str>,
    mode: Mode,
) -> Result<Option<RunsAs>, PlanError> {
    let version = input.version;
    if let Target::Action { action, .. } = target {
        let Some(action) = version.action(action) else { return Ok(None) };
        return Ok(runs_as_in_event(version, action, asked, mode)?);
    }
    let asked = asked.filter(|_| !matches!(target, Target::Health { .. }));
    let operation = match target {
        Target::Component { component, .. } | Target::Health { component, .. } => {
            version.component(component).map(Operation::Deploy)
        }
        Target::Sandbox { .. } => version.sandbox.as_ref().map(|sandbox| sandbox_operation(input, sandbox)),
        Target::DetectDrift { sandbox: true, .. } => version.sandbox.as_ref().map(Operation::Reprovision),
        Target::DetectDrift { part, .. } => version.component(part).map(Operation::Deploy),
        Target::Secrets { .. }
        | Target::Action { .. }
        | Target::Teardown { .. }
        | Target::Build { .. }
        | Target::Preflight
        | Target::Leftovers
        | Target::Upgrade => None,
    };
    let Some(operation) = operation else { return Ok(None) };
    // A node that makes, changes or checks the sandbox runs in mode `provision`, even in a deploy.
    let is_sandbox = matches!(target, Target::Sandbox { .. } | Target::DetectDrift { sandbox: true, .. });
    let own_mode = if is_sandbox { Mode::Provision } else { mode };
    let own = runs_as(version, operation, asked, own_mode)?;
    Ok(own.or_else(|| (own_mode != mode).then_some(RunsAs { mode: own_mode, role: None })))
}

fn sandbox_operation<'a>(input: DeployInput<'a>, sandbox: &'a Sandbox) -> Operation<'a> {
    let exists = input.deployed.contains_key(&ComponentName::sandbox());
    if exists { Operation::Reprovision(sandbox) } else { Operation::Provision(sandbox) }
}

/// Returns the target of a part's node, and the part's fingerprint.
fn part_target(version: &AppVersion, part: &Component, input: DeployInput<'_>) -> Result<(Target, Digest), PlanError> {
    let built = input.builds.get(&part.name);
    let built = built.and_then(|build| Some((build.id.clone(), build.usable()?.digest.clone())));
    let (build, artifact) =
        built.ok_or_else(|| PlanError::NotBuilt { component: part.name.clone(), app: version.app.to_string() })?;
    let fingerprint = fingerprint(version, part, &artifact, input.inputs, input.secrets.digests, input.licence)?;
    let target = if version.sandbox.is_some() && part.name.is_sandbox() {
        Target::Sandbox { build, artifact, fingerprint: fingerprint.clone() }
    } else {
        let (component, sandbox) = (part.name.clone(), input.reads(part));
        Target::Component { component, build, artifact, fingerprint: fingerprint.clone(), sandbox }
    };
    Ok((target, fingerprint))
}

/// Returns the one node of an action's run, under the requested role or the role that the app names. [`steps::bind`] gives
/// it the directories that its steps run in.
///
/// # Errors
/// [`PlanError::UnknownAction`], [`PlanError::UnknownRole`], [`PlanError::RoleNotAgreed`].
pub fn action_nodes(
    version: &AppVersion,
    action: &ActionName,
    role: Option<&str>,
    serial: u64,
) -> Result<Vec<Node>, PlanError> {
    let found = version.action(action).ok_or_else(|| PlanError::UnknownAction {
        app: version.app.to_string(),
        action: action.clone(),
        known: Known::instead_of(action.as_str(), version.actions.iter().map(|a| a.name.as_str())),
    })?;
    if let Some(name) = role {
        check_choice(version, found, name)?;
    }
    let runs_as = runs_as(version, Operation::Trigger(found), role, Mode::Maintenance)?;
    Ok(vec![Node {
        runs_as,
        serial,
        ..triggers::action_node(triggers::action_node_name(found), found, BTreeSet::new())
    }])
}

/// Returns the node that replaces the program of the install's runner.
pub fn upgrade_nodes(serial: u64) -> Vec<Node> {
    vec![Node { serial, ..Node::waiting("runner".to_owned(), Target::Upgrade, UPGRADE_TIMEOUT_SECS) }]
}

/// Returns one node for each build; no node depends on another. `version` has the time limits of its parts.
pub fn build_nodes(version: Option<&AppVersion>, builds: &[(ComponentName, BuildId)], serial: u64) -> Vec<Node> {
    builds
        .iter()
        .map(|(component, build)| {
            let target = Target::Build { component: component.clone(), build: build.clone() };
            let limit = version.and_then(|version| version.part(component)?.build_timeout_secs);
            Node { serial, ..Node::waiting(component.to_string(), target, limit.unwrap_or(BUILD_TIMEOUT_SECS)) }
        })
        .collect()
}

#[cfg(test)]
mod tests;

//! Adds the health checks of components to a deploy, and lets dependents wait for them.

use std::collections::BTreeSet;

use freehold_protocol::ComponentName;
use freehold_protocol::app_version::{AppVersion, Component, ComponentHealth};
use freehold_protocol::order::health::{Probe, Times, checked};

use super::dependents::add_dependents;
use super::input::DeployInput;
use super::scope::DeployScope;
use super::triggers::{Event, Moment, Occurrence, fired};
use crate::required_checks::RequiredChecks;
use crate::workflow::{Node, Target};

/// The time that the job of a check may take in addition to the limit of the check, in seconds.
const MARGIN_SECS: u32 = 120;

/// The same time for a check that runs a command of the app. This job may be the first on its machine that needs the
/// tool image, and fetches the image, which takes minutes over a slow connection.
const MARGIN_WITH_COMMAND_SECS: u32 = 900;

/// Returns the name of the node that checks a component's health. No component has this name, because it has a colon.
pub(super) fn node_name(component: &ComponentName) -> String {
    format!("health:{component}")
}

/// Adds a health check for each deployed component whose health can be checked. If the check is a gate, all nodes that
/// depend on the component depend on the gate too, except the actions that the component's own deploy starts: these may
/// make the component healthy.
pub(super) fn add(
    version: &AppVersion,
    touched: &BTreeSet<ComponentName>,
    events: &[Occurrence],
    nodes: &mut Vec<Node>,
) {
    for component in version.components.iter().filter(|component| touched.contains(&component.name)) {
        let Some(health) = checked(component) else { continue };
        let (deploy, check) = (component.name.to_string(), node_name(&component.name));
        let gate = health.block_deploy;
        if gate {
            let own = own_actions(version, &component.name, events);
            let later = |node: &&mut Node| node.dependencies.contains(&deploy) && !own.contains(&node.name);
            for node in nodes.iter_mut().filter(later) {
                node.dependencies.insert(check.clone());
            }
        }
        nodes.push(Node { dependencies: [deploy].into(), ..node(component, health) });
    }
}

/// Adds the gate of each component that is not deployed again and is not known to be healthy. The component's
/// dependents wait for this gate. A deploy of named components only adds the gates of their dependencies.
pub(super) fn add_standing(
    input: DeployInput<'_>,
    scope: &DeployScope,
    touched: &BTreeSet<ComponentName>,
    nodes: &mut Vec<Node>,
) {
    let is_standing = |name: &ComponentName| {
        input.deployed.contains_key(name) && !touched.contains(name) && !input.toggles.off.contains(name)
    };
    for component in input.version.components.iter().filter(|component| is_standing(&component.name)) {
        let gate = checked(component).filter(|health| health.block_deploy);
        let Some(health) = gate.filter(|_| !input.healthy.contains(&component.name)) else { continue };
        let mut after = BTreeSet::from([component.name.clone()]);
        add_dependents(input.version, &mut after);
        let waits = |node: &Node| node.target.deploys().is_some_and(|deploys| after.contains(&deploys.part));
        if !scope.only.is_empty() && !nodes.iter().any(waits) {
            continue;
        }
        for node in nodes.iter_mut().filter(|node| waits(node)) {
            node.dependencies.insert(node_name(&component.name));
        }
        nodes.push(node(component, health));
    }
}

fn node(component: &Component, health: &ComponentHealth) -> Node {
    let timeout_secs = timeout_secs(health, Times::after_deploy(health));
    let (gate, checks) = (health.block_deploy, RequiredChecks::of(health));
    let target = Target::Health { component: component.name.clone(), gate, version: None, checks };
    Node::waiting(node_name(&component.name), target, timeout_secs)
}

/// Returns the time limit of a job that checks a component, in seconds.
pub(super) fn timeout_secs(health: &ComponentHealth, times: Times) -> u32 {
    let runs_command = health.probes.iter().filter_map(Probe::of).any(|probe| probe.command().is_some());
    times.limit_secs.saturating_add(if runs_command { MARGIN_WITH_COMMAND_SECS } else { MARGIN_SECS })
}

/// Returns the nodes of the actions that the end of the component's own deploy starts.
fn own_actions(version: &AppVersion, component: &ComponentName, events: &[Occurrence]) -> BTreeSet<String> {
    let is_own = |event: &Event| match event {
        Event::DeployComponent(of) | Event::EnableComponent(of) => of == component,
        Event::Provision
        | Event::Reprovision
        | Event::Deprovision
        | Event::ProvisionSandbox
        | Event::ReprovisionSandbox
        | Event::DeprovisionSandbox
        | Event::DeployAllComponents
        | Event::TeardownAllComponents
        | Event::TeardownComponent(_)
        | Event::DisableComponent(_)
        | Event::UpdateInputs
        | Event::SecretsSync => false,
    };
    let all = fired(version, events).into_iter().filter(|one| one.moment == Moment::Post);
    all.filter(|one| events.get(one.at).is_some_and(|of| is_own(&of.event))).map(|one| one.node).collect()
}

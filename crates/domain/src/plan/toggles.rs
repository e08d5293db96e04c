//! The toggles of an install in a deploy: components that are off are not deployed, and are removed if the install has
//! them.

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::ComponentName;
use freehold_protocol::order::Mode;

use super::input::{DeployInput, PlanError};
use super::scope::DeployScope;
use super::teardown::{Standing, removal};
use super::triggers::removal_name;
use crate::runs_as::RunsAs;
use crate::toggles::dependent_on_off;
use crate::workflow::Node;

/// Refuses a deploy that names a component which is off, and a deploy of a component that depends on one.
///
/// # Errors
/// [`PlanError::Off`], [`PlanError::NeedsOff`].
pub(super) fn check(
    input: DeployInput<'_>,
    scope: &DeployScope,
    touched: &BTreeSet<ComponentName>,
) -> Result<(), PlanError> {
    let off = input.toggles.off;
    if let Some(name) = scope.only.intersection(off).next() {
        return Err(PlanError::Off(name.clone()));
    }
    let deployed =
        |name: &ComponentName| if scope.only.is_empty() { !off.contains(name) } else { touched.contains(name) };
    let parts = input.version.components.iter().filter(|component| deployed(&component.name));
    dependent_on_off(parts, off).map_or(Ok(()), |found| Err(PlanError::NeedsOff(found)))
}

/// Returns the components that the deploy switches on: the vendor switched them on, and they are not deployed yet. The
/// first deploy of an install switches nothing on.
pub(super) fn enabled(
    input: DeployInput<'_>,
    scope: &DeployScope,
    touched: &BTreeSet<ComponentName>,
) -> BTreeSet<ComponentName> {
    let is_new = |name: &&ComponentName| touched.contains(*name) && !input.deployed.contains_key(*name);
    input.toggles.on.iter().filter(is_new).filter(|_| !scope.provision && !scope.first).cloned().collect()
}

/// Adds a node for each component that is off and that the install has, unless the deploy is restricted to other
/// components. Returns the components whose removal is an event: those that were deployed with success.
///
/// A component is removed before its dependencies are removed or deployed, and before the sandbox is changed. If a
/// deployed component depends on the removed component, but no longer does in the new version, the removal comes after
/// the deploy of that component.
///
/// # Errors
/// [`PlanError::StillNeeded`] for a component that the version no longer has and that depends on a removed component;
/// the errors of [`removal`].
pub(super) fn remove(
    input: DeployInput<'_>,
    scope: &DeployScope,
    nodes: &mut Vec<Node>,
) -> Result<BTreeSet<ComponentName>, PlanError> {
    let is_gone = |one: &&Standing<'_>| input.toggles.off.contains(&one.part.name);
    let gone: Vec<&Standing<'_>> =
        input.toggles.there.iter().filter(is_gone).filter(|_| scope.only.is_empty()).collect();
    let names: BTreeSet<ComponentName> = gone.iter().map(|one| one.part.name.clone()).collect();
    check_orphans(input, &names)?;
    let after = deploys_before(input, &names, nodes);
    let mut removals = Vec::new();
    let disabled = gone.iter().filter(|one| !one.attempted).map(|one| one.part.name.clone()).collect();
    for standing in gone {
        let name = &standing.part.name;
        let mut node = removal(standing, &input.version.app, scope.role.as_deref(), input.serial)?;
        node.name = removal_name(name);
        node.runs_as.get_or_insert(RunsAs { mode: Mode::Deprovision, role: None });
        node.dependencies = dependents(input, name).filter(|other| names.contains(*other)).map(removal_name).collect();
        match after.get(name) {
            Some(deploys) => node.dependencies.extend(deploys.iter().cloned()),
            None => precede_dependencies(input, standing, nodes),
        }
        removals.push(node);
    }
    nodes.extend(removals);
    Ok(disabled)
}

/// Returns the components of the new version that depend on `name`.
fn dependents<'a>(input: DeployInput<'a>, name: &'a ComponentName) -> impl Iterator<Item = &'a ComponentName> {
    let components = input.version.components.iter();
    components.filter(|one| one.dependencies.contains(name)).map(|one| &one.name)
}

/// Lets the deploys of the sandbox and of the dependencies of `standing` wait for its removal.
fn precede_dependencies(input: DeployInput<'_>, standing: &Standing<'_>, nodes: &mut [Node]) {
    let wanted = input.version.component(&standing.part.name).map(|component| &component.dependencies);
    for node in nodes {
        let Some(deploys) = node.target.deploys() else { continue };
        let is_sandbox = deploys.reads.is_none();
        let is_needed = standing.part.dependencies.contains(&deploys.part)
            || wanted.is_some_and(|names| names.contains(&deploys.part));
        if is_sandbox || is_needed {
            node.dependencies.insert(removal_name(&standing.part.name));
        }
    }
}

/// Returns the removals that have to wait for deploys, each with the names of those deploys: the deploys of components
/// whose present version depends on the removed component. The result also contains, without names, the removals that
/// have to wait for such a removal.
fn deploys_before(
    input: DeployInput<'_>,
    names: &BTreeSet<ComponentName>,
    nodes: &[Node],
) -> BTreeMap<ComponentName, BTreeSet<String>> {
    let mut after: BTreeMap<ComponentName, BTreeSet<String>> = BTreeMap::new();
    for other in input.toggles.there.iter().filter(|one| !names.contains(&one.part.name)) {
        let deploy = nodes.iter().find(|node| node.target.deploys().is_some_and(|one| one.part == other.part.name));
        let Some(deploy) = deploy else { continue };
        for name in other.part.dependencies.intersection(names) {
            after.entry(name.clone()).or_default().insert(deploy.name.clone());
        }
    }
    loop {
        let is_late = |name: &ComponentName| dependents(input, name).any(|other| after.contains_key(other));
        let more: Vec<ComponentName> =
            names.iter().filter(|name| !after.contains_key(*name) && is_late(name)).cloned().collect();
        if more.is_empty() {
            return after;
        }
        after.extend(more.into_iter().map(|name| (name, BTreeSet::new())));
    }
}

/// Refuses to remove a component while another deployed component, which the new version does not have, depends on it.
fn check_orphans(input: DeployInput<'_>, names: &BTreeSet<ComponentName>) -> Result<(), PlanError> {
    let orphans = input.toggles.there.iter().filter(|one| input.version.part(&one.part.name).is_none());
    let found =
        orphans.filter_map(|one| Some((&one.part.name, one.part.dependencies.intersection(names).next()?))).next();
    found.map_or(Ok(()), |(component, off)| {
        Err(PlanError::StillNeeded { component: component.clone(), off: off.clone() })
    })
}

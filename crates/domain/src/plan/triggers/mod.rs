//! The events of a workflow, the actions that they start, and the place of these actions in the workflow's graph.

mod event_modes;

use std::collections::BTreeSet;

use freehold_protocol::ComponentName;
use freehold_protocol::app_version::{Action, AppVersion, Reference, Trigger};
use freehold_protocol::order::Mode;

pub use self::event_modes::event_modes;
use super::copies;
use super::scope::DeployScope;
use super::secrets::SecretNodes;
use super::teardown::{TeardownError, TeardownScope};
use crate::graph::order::reachable;
use crate::runs_as::runs_as_in_event;
use crate::workflow::{Node, NodeState, Target, TeardownParts};

/// The names of all events, in the order of [`Event`].
pub const EVENTS: [&str; 14] = [
    "provision",
    "reprovision",
    "deprovision",
    "provision-sandbox",
    "reprovision-sandbox",
    "deprovision-sandbox",
    "deploy-all-components",
    "teardown-all-components",
    "deploy-component",
    "teardown-component",
    "enable-component",
    "disable-component",
    "update-inputs",
    "secrets-sync",
];

/// An event of a workflow. Triggers refer to it by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    Provision,
    Reprovision,
    Deprovision,
    ProvisionSandbox,
    ReprovisionSandbox,
    DeprovisionSandbox,
    DeployAllComponents,
    TeardownAllComponents,
    DeployComponent(ComponentName),
    TeardownComponent(ComponentName),
    /// A component that the vendor switched on is deployed.
    EnableComponent(ComponentName),
    /// A component that the vendor switched off is removed.
    DisableComponent(ComponentName),
    UpdateInputs,
    SecretsSync,
}

impl Event {
    /// Returns the event's name in configs, after `pre-` or `post-`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Provision => "provision",
            Self::Reprovision => "reprovision",
            Self::Deprovision => "deprovision",
            Self::ProvisionSandbox => "provision-sandbox",
            Self::ReprovisionSandbox => "reprovision-sandbox",
            Self::DeprovisionSandbox => "deprovision-sandbox",
            Self::DeployAllComponents => "deploy-all-components",
            Self::TeardownAllComponents => "teardown-all-components",
            Self::DeployComponent(_) => "deploy-component",
            Self::TeardownComponent(_) => "teardown-component",
            Self::EnableComponent(_) => "enable-component",
            Self::DisableComponent(_) => "disable-component",
            Self::UpdateInputs => "update-inputs",
            Self::SecretsSync => "secrets-sync",
        }
    }

    /// Returns the component of an event that concerns one component only.
    pub const fn component(&self) -> Option<&ComponentName> {
        match self {
            Self::DeployComponent(component)
            | Self::TeardownComponent(component)
            | Self::EnableComponent(component)
            | Self::DisableComponent(component) => Some(component),
            Self::Provision
            | Self::Reprovision
            | Self::Deprovision
            | Self::ProvisionSandbox
            | Self::ReprovisionSandbox
            | Self::DeprovisionSandbox
            | Self::DeployAllComponents
            | Self::TeardownAllComponents
            | Self::UpdateInputs
            | Self::SecretsSync => None,
        }
    }

    /// Returns whether the event removes one component.
    const fn removes_component(&self) -> bool {
        matches!(self, Self::TeardownComponent(_) | Self::DisableComponent(_))
    }
}

/// The moment at which an action runs: before or after an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Before the first node of the event.
    Pre,
    /// After the last node of the event, when all of them have succeeded.
    Post,
}

impl Moment {
    /// Returns the prefix of an event's name in configs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pre => "pre",
            Self::Post => "post",
        }
    }
}

/// An event of a workflow, and the names of the nodes that belong to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occurrence {
    pub event: Event,
    pub nodes: BTreeSet<String>,
}

/// An action that an event starts: one node of the workflow.
#[derive(Debug, Clone, PartialEq)]
pub struct Fired<'a> {
    /// The node's name: `action:` and the action's name. If several events start the action, it has a node for each of
    /// them, and each name ends in `@` and the event.
    pub node: String,
    pub action: &'a Action,
    pub moment: Moment,
    /// The index of the event in the list of occurrences.
    pub at: usize,
    /// The index from the config that orders the actions which the event starts. Actions without one come last.
    pub index: Option<u32>,
}

/// The parts that a deploy changes.
#[derive(Debug, Clone, Copy)]
pub struct Parts<'a> {
    pub deployed: &'a BTreeSet<ComponentName>,
    /// The components among `deployed` that the deploy switches on.
    pub enabled: &'a BTreeSet<ComponentName>,
    /// The components that are removed, because they are off.
    pub disabled: &'a BTreeSet<ComponentName>,
}

impl<'a> Parts<'a> {
    /// Returns the parts of a deploy that switches nothing on or off.
    pub const fn deploys(deployed: &'a BTreeSet<ComponentName>) -> Self {
        static NONE: BTreeSet<ComponentName> = BTreeSet::new();
        Self { deployed, enabled: &NONE, disabled: &NONE }
    }
}

/// The components that actions cannot read.
#[derive(Debug, Clone, Copy)]
pub struct Lacking<'a> {
    pub components: &'a BTreeSet<ComponentName>,
    /// Returns the sentence about an action that needs one of the components.
    pub because: fn(&Action, &ComponentName) -> String,
}

/// Returns the events of a deploy. An inner event comes before the events that contain it.
pub fn events_of_deploy(
    version: &AppVersion,
    parts: Parts<'_>,
    secret_nodes: SecretNodes,
    scope: &DeployScope,
) -> Vec<Occurrence> {
    let copies = secret_nodes.copies.then(|| copies::NODE.to_owned());
    let removes = secret_nodes.removes.then(|| copies::UNWANTED.to_owned());
    // The node that removes copies comes after the components, so it cannot be in one event with the node before them.
    let secrets: BTreeSet<String> = copies.clone().or_else(|| removes.clone()).into_iter().collect();
    let removed: BTreeSet<String> = parts.disabled.iter().map(removal_name).collect();
    let deployed = parts.deployed.iter().map(ToString::to_string);
    let all: BTreeSet<String> = deployed.chain(copies).chain(removes).chain(removed).collect();
    let (components, others): (BTreeSet<&ComponentName>, BTreeSet<&ComponentName>) =
        parts.deployed.iter().partition(|name| version.component(name).is_some());
    let names = |of: &BTreeSet<&ComponentName>| -> BTreeSet<String> { of.iter().map(ToString::to_string).collect() };
    let one = |event: fn(ComponentName) -> Event, name: &ComponentName, node: String| Occurrence {
        event: event(name.clone()),
        nodes: BTreeSet::from([node]),
    };
    let deploys = components.iter().map(|name| one(Event::DeployComponent, name, name.to_string()));
    let enables = parts.enabled.iter().map(|name| one(Event::EnableComponent, name, name.to_string()));
    let removals = parts.disabled.iter().map(|name| one(Event::TeardownComponent, name, removal_name(name)));
    let disables = parts.disabled.iter().map(|name| one(Event::DisableComponent, name, removal_name(name)));
    let mut occurrences: Vec<Occurrence> = deploys.chain(enables).chain(removals).chain(disables).collect();
    let mut add = |happens: bool, event: Event, nodes: BTreeSet<String>| {
        occurrences.extend(happens.then_some(Occurrence { event, nodes }));
    };
    let first = scope.provision || scope.first;
    let sandbox = if first { Event::ProvisionSandbox } else { Event::ReprovisionSandbox };
    add(!components.is_empty(), Event::DeployAllComponents, names(&components));
    add(!others.is_empty(), sandbox, names(&others));
    add(!secrets.is_empty(), Event::SecretsSync, secrets);
    add(scope.inputs_changed, Event::UpdateInputs, all.clone());
    add(scope.reprovisions(), Event::Reprovision, all.clone());
    add(scope.provision, Event::Provision, all);
    occurrences
}

/// Returns the events of the teardown that has `nodes`. An inner event comes before the events that contain it. Parts
/// in `attempted` were never deployed with success, so their removal is not an event.
pub fn events_of_teardown(
    nodes: &[Node],
    what: &TeardownParts,
    attempted: &BTreeSet<ComponentName>,
) -> Vec<Occurrence> {
    let parts = |wanted: bool| {
        nodes.iter().filter_map(move |node| match &node.target {
            Target::Teardown { part, sandbox, .. } if *sandbox == wanted => Some((part.clone(), node.name.clone())),
            Target::Teardown { .. }
            | Target::Component { .. }
            | Target::Sandbox { .. }
            | Target::Secrets { .. }
            | Target::Action { .. }
            | Target::DetectDrift { .. }
            | Target::Build { .. }
            | Target::Preflight
            | Target::Leftovers
            | Target::Health { .. }
            | Target::Upgrade => None,
        })
    };
    let stood = |wanted: bool| parts(wanted).filter(|(part, _)| !attempted.contains(part));
    let one = |(part, node)| Occurrence { event: Event::TeardownComponent(part), nodes: BTreeSet::from([node]) };
    let mut occurrences: Vec<Occurrence> = stood(false).map(one).collect();
    let (component_stood, sandbox_stood) = (stood(false).next().is_some(), stood(true).next().is_some());
    let (components, sandbox): (BTreeSet<String>, BTreeSet<String>) =
        (parts(false).map(|(_, node)| node).collect(), parts(true).map(|(_, node)| node).collect());
    let mut add = |happens: bool, event: Event, nodes: BTreeSet<String>| {
        occurrences.extend(happens.then_some(Occurrence { event, nodes }));
    };
    let all = *what == TeardownParts::All;
    add(all && component_stood, Event::TeardownAllComponents, components);
    add(sandbox_stood, Event::DeprovisionSandbox, sandbox);
    add(
        all && (component_stood || sandbox_stood),
        Event::Deprovision,
        nodes.iter().map(|node| node.name.clone()).collect(),
    );
    occurrences
}

/// Adds the actions that a teardown of `nodes` starts. Each action runs under the requested role if its contract
/// permits this, else under its own role, else under the role of the mode. An action that needs a part in `attempted`
/// is skipped.
///
/// # Errors
/// [`TeardownError::UnknownRole`].
pub fn add_to_teardown(
    version: &AppVersion,
    nodes: &mut Vec<Node>,
    scope: TeardownScope<'_>,
    attempted: &BTreeSet<ComponentName>,
) -> Result<(), TeardownError> {
    let occurrences = events_of_teardown(nodes, scope.what, attempted);
    add(version, nodes, &occurrences, Lacking { components: attempted, because: never_deployed_text });
    for node in nodes.iter_mut() {
        let Target::Action { action, .. } = &node.target else { continue };
        node.serial = scope.serial;
        if let Some(action) = version.action(action) {
            node.runs_as = runs_as_in_event(version, action, scope.role, Mode::Deprovision)?;
        }
    }
    Ok(())
}

/// Returns the actions that `occurrences` start. An action appears once for each event and moment that starts it. The
/// actions of one event come by their index; those without an index follow, in the order of the version, which is by name.
pub fn fired<'a>(version: &'a AppVersion, occurrences: &[Occurrence]) -> Vec<Fired<'a>> {
    let mut all = Vec::new();
    for action in &version.actions {
        let moments = || [Moment::Pre, Moment::Post].into_iter();
        let starts = |moment: Moment, event: &Event| action.triggers.iter().any(|one| names(one, moment, event));
        let mut of_action: Vec<Fired<'a>> = occurrences
            .iter()
            .enumerate()
            .flat_map(|(at, one)| moments().filter(move |moment| starts(*moment, &one.event)).map(move |m| (at, m)))
            .map(|(at, moment)| {
                let index = occurrences.get(at).and_then(|one| index_of(action, moment, &one.event));
                Fired { node: action_node_name(action), action, moment, at, index }
            })
            .collect();
        if of_action.len() > 1 {
            for one in &mut of_action {
                let event = occurrences.get(one.at).map(|occurrence| full_name(one.moment, &occurrence.event));
                one.node = format!("{}@{}", one.node, event.unwrap_or_default());
            }
        }
        all.extend(of_action);
    }
    all.sort_by_key(|one| (one.index.is_none(), one.index));
    all
}

/// Adds a node for each action that `occurrences` start. In `occurrences`, an inner event comes before the events that
/// contain it. Nodes that are ready together start in the order of the workflow's nodes, while slots are free: so the
/// actions of one event start in the order of [`fired`].
///
/// An action before an event gets the dependencies of the event, and all nodes of the event depend on the action: if
/// the action fails, the nodes of the event are skipped. An action after an event depends on the nodes of the event.
/// Each action also depends on the components that it needs, if the workflow deploys them earlier.
///
/// An action that needs a component in `lacking` gets a node that is skipped. Returns the names of the nodes whose event
/// removes a component.
pub fn add(
    version: &AppVersion,
    nodes: &mut Vec<Node>,
    occurrences: &[Occurrence],
    lacking: Lacking<'_>,
) -> BTreeSet<String> {
    let Lacking { components: off, because } = lacking;
    let (fired, idle): (Vec<_>, Vec<_>) =
        fired(version, occurrences).into_iter().partition(|one| lacks(one, occurrences, off).is_none());
    for (at, occurrence) in occurrences.iter().enumerate() {
        let (before, after): (Vec<&Fired<'_>>, Vec<&Fired<'_>>) =
            fired.iter().filter(|one| one.at == at).partition(|one| one.moment == Moment::Pre);
        let inside = inside(nodes, occurrences, occurrence, &fired);
        let waits: BTreeSet<String> = nodes
            .iter()
            .filter(|node| inside.contains(&node.name))
            .flat_map(|node| node.dependencies.difference(&inside).cloned())
            .collect();
        let later = with_dependents(nodes, &inside);
        let new: BTreeSet<String> = before.iter().map(|one| one.node.clone()).collect();
        let mut added: Vec<Node> = Vec::new();
        for one in before {
            let needed = needed(one.action, nodes).into_iter().filter(|name| !later.contains(name));
            added.push(action_node(one.node.clone(), one.action, waits.iter().cloned().chain(needed).collect()));
        }
        for node in nodes.iter_mut().filter(|node| inside.contains(&node.name)) {
            node.dependencies.extend(new.iter().cloned());
        }
        for one in after {
            let needed = needed(one.action, nodes);
            let event = occurrence.nodes.iter().chain(&new).cloned();
            added.push(action_node(one.node.clone(), one.action, event.chain(needed).collect()));
        }
        nodes.extend(added);
    }
    for one in idle {
        let node = action_node(one.node.clone(), one.action, BTreeSet::new());
        let because = lacks(&one, occurrences, off).map(|name| because(one.action, name)).unwrap_or_default();
        nodes.push(Node { state: NodeState::Skipped { because, left_out: true }, ..node });
    }
    let removes = |one: &&Fired<'_>| occurrences.get(one.at).is_some_and(|of| of.event.removes_component());
    fired.iter().filter(removes).map(|one| one.node.clone()).collect()
}

/// Returns a component among `off` that the action needs, if there is one. A component that is only about to be removed
/// does not count: its outputs still exist.
fn lacks<'a>(
    fired: &Fired<'_>,
    occurrences: &[Occurrence],
    off: &'a BTreeSet<ComponentName>,
) -> Option<&'a ComponentName> {
    let event = occurrences.get(fired.at).map(|occurrence| &occurrence.event);
    let removed = event.filter(|event| fired.moment == Moment::Pre && event.removes_component());
    let removed = removed.and_then(Event::component);
    off.iter().filter(|name| removed != Some(*name)).find(|name| fired.action.dependencies.contains(*name))
}

/// Returns the sentence about an action that needs a component which is off.
pub fn lacks_text(action: &Action, off: &ComponentName) -> String {
    format!("action `{}` needs component `{off}`, which is switched off in this install", action.name)
}

/// Returns the sentence about an action that needs a part which was never deployed with success.
fn never_deployed_text(action: &Action, part: &ComponentName) -> String {
    format!("action `{}` needs component `{part}`, of which no deploy has succeeded", action.name)
}

/// Returns the name of the node that removes a component which is off. No component has this name, because it has a
/// colon.
pub(super) fn removal_name(component: &ComponentName) -> String {
    format!("remove:{component}")
}

/// Returns the nodes of an event: its own, and the actions of the events inside it.
fn inside(
    nodes: &[Node],
    occurrences: &[Occurrence],
    occurrence: &Occurrence,
    fired: &[Fired<'_>],
) -> BTreeSet<String> {
    let is_inner = |at: usize| occurrences.get(at).is_some_and(|inner| inner.nodes.is_subset(&occurrence.nodes));
    let actions = fired.iter().filter(|one| is_inner(one.at)).map(|one| &one.node);
    let known = |name: &&String| nodes.iter().any(|node| node.name == **name);
    actions.chain(&occurrence.nodes).filter(known).cloned().collect()
}

/// Returns `names` and every node that depends on one of them, directly or through others.
fn with_dependents(nodes: &[Node], names: &BTreeSet<String>) -> BTreeSet<String> {
    let dependents = |name: &String| {
        nodes.iter().filter(|node| node.dependencies.contains(name)).map(|node| node.name.clone()).collect()
    };
    reachable(names.clone(), dependents)
}

/// Returns the nodes that deploy the components which an action depends on or reads, and the node of the sandbox if the
/// action reads it. An action that reads the outputs of all components refers to each of them, so it waits for all that
/// the workflow deploys: then it sees the outputs that this workflow makes, and not some of them.
fn needed(action: &Action, nodes: &[Node]) -> BTreeSet<String> {
    let reads = action.references.iter().filter_map(|reference| match reference {
        Reference::Component(name) => Some(name.clone()),
        Reference::Sandbox(_) => Some(ComponentName::sandbox()),
        Reference::Input(_)
        | Reference::Action(_)
        | Reference::Secret(_)
        | Reference::InstallStack(_)
        | Reference::Licence => None,
    });
    let needs: BTreeSet<ComponentName> = action.dependencies.iter().cloned().chain(reads).collect();
    let deploys = |node: &&Node| node.target.deploys().is_some_and(|one| needs.contains(&one.part));
    nodes.iter().filter(deploys).map(|node| node.name.clone()).collect()
}

/// Returns whether `trigger` names this moment of `event`.
fn names(trigger: &Trigger, moment: Moment, event: &Event) -> bool {
    let (word, component) = match trigger {
        Trigger::Manual | Trigger::Cron { .. } => return false,
        Trigger::PostProvision => ("post-provision", None),
        Trigger::PostDeployAllComponents => ("post-deploy-all-components", None),
        Trigger::PostDeployComponent { component } => ("post-deploy-component", Some(component)),
        Trigger::Event { event, component } => (event.as_str(), component.as_ref()),
    };
    // An app version may contain the older name of this event.
    let word = if word == "pre-component-deploy" { "pre-deploy-component" } else { word };
    let wanted = word.strip_prefix(moment.as_str()).and_then(|rest| rest.strip_prefix('-'));
    wanted == Some(event.name()) && component == event.component()
}

/// Returns the lowest index of the action's triggers that name this moment of `event`; `None` if none has an index.
fn index_of(action: &Action, moment: Moment, event: &Event) -> Option<u32> {
    action.indexes.iter().filter(|one| names(&one.trigger, moment, event)).map(|one| one.index).min()
}

/// Returns the full name of the event for people, such as `pre-deploy-component:web`.
fn full_name(moment: Moment, event: &Event) -> String {
    let name = format!("{}-{}", moment.as_str(), event.name());
    event.component().map_or(name.clone(), |component| format!("{name}:{component}"))
}

/// Returns the node name of an action that has only one node in the workflow.
pub(super) fn action_node_name(action: &Action) -> String {
    format!("action:{}", action.name)
}

/// Returns a waiting node for an action. The caller sets its serial and role.
pub(super) fn action_node(name: String, action: &Action, dependencies: BTreeSet<String>) -> Node {
    let target = Target::Action { action: action.name.clone(), directories: Vec::new() };
    Node { dependencies, ..Node::waiting(name, target, action.timeout_secs) }
}

#[cfg(test)]
mod tests;

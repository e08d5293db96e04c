//! The graph of an app version: its components in the order of a deploy, why each of them waits for others, and what
//! starts its actions.

pub mod order;

use std::collections::BTreeSet;

use freehold_protocol::app_version::{AppVersion, Component, Reference, Sandbox, Trigger};
use freehold_protocol::order::Source;
use freehold_protocol::{ActionName, AppName, ComponentName};
use serde::{Deserialize, Serialize};

use order::{Named, Order, order};

/// The graph of one app version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Graph {
    pub app: AppName,
    /// The components in the order of a deploy: by step, then by name.
    pub components: Vec<GraphComponent>,
    /// The dependencies, sorted by `to`, then by `from`.
    pub edges: Vec<Edge>,
    /// The actions, sorted by name.
    pub actions: Vec<GraphAction>,
}

/// A component or the sandbox, and its place in the graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphComponent {
    pub name: ComponentName,
    pub kind: String,
    /// The step in which the component is deployed, from 1. Its dependencies have lower steps. The first step contains
    /// only the sandbox. Components of the same step are deployed at the same time.
    pub step: usize,
    /// Whether new installs have the component. Present only if an install may leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toggle: Option<bool>,
    /// The values that the component's templates read, except for outputs of other components.
    pub reads: Reads,
}

/// The names of the values that templates read, except for outputs of components.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Reads {
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub inputs: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub secrets: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub actions: BTreeSet<ActionName>,
    /// Whether a template reads an output of the sandbox.
    #[serde(default)]
    pub sandbox: bool,
    /// Whether a template reads an output of the install stack.
    #[serde(default)]
    pub install_stack: bool,
}

/// A dependency between two components: `to` is deployed after `from`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Edge {
    pub to: ComponentName,
    pub from: ComponentName,
    pub why: Why,
}

/// The reason why one component waits for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// A template of the waiting component reads outputs of the other component. The config may declare the dependency
    /// too.
    Template,
    /// The config declares the dependency. No template of the waiting component reads outputs of the other component.
    Declared,
}

impl Why {
    /// Returns the name that tables and messages show.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Template => "template",
            Self::Declared => "declared",
        }
    }
}

/// An action, its triggers, and the values that its templates read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphAction {
    pub name: ActionName,
    pub triggers: BTreeSet<Trigger>,
    /// Components whose outputs the action reads, and components that it declares as dependencies.
    pub needs: BTreeSet<ComponentName>,
    pub reads: Reads,
    /// The directories that its steps run in, as text for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs_in: Vec<String>,
}

/// Returns the graph of `version`.
pub fn graph(version: &AppVersion) -> Graph {
    let Order { steps, .. } = order(&component_nodes(version));
    let first = usize::from(version.sandbox.is_some());
    // A config with a cycle cannot become a version. If a version has a cycle nevertheless, its components come last.
    let after_all = steps.values().max().copied().unwrap_or(0) + 1;
    let mut components: Vec<GraphComponent> = version
        .components
        .iter()
        .map(|component| GraphComponent {
            name: component.name.clone(),
            kind: component.spec.kind().to_owned(),
            step: first + steps.get(component.name.as_str()).copied().unwrap_or(after_all),
            toggle: component.settings.toggle,
            reads: reads(&component.references),
        })
        .chain(version.sandbox.as_ref().map(sandbox_node))
        .collect();
    components.sort_by(|a, b| (a.step, &a.name).cmp(&(b.step, &b.name)));
    let sandbox = version.sandbox.is_some();
    let mut edges: Vec<Edge> = version.components.iter().flat_map(|one| edges_to(one, sandbox)).collect();
    edges.sort();
    let actions = version.actions.iter().map(|action| GraphAction {
        name: action.name.clone(),
        triggers: action.triggers.clone(),
        needs: action.dependencies.iter().cloned().chain(components_in(&action.references)).collect(),
        reads: reads(&action.references),
        runs_in: action.sources().iter().map(|one| describe_source(&one.source)).collect(),
    });
    let mut actions: Vec<GraphAction> = actions.collect();
    actions.sort_by(|a, b| a.name.cmp(&b.name));
    Graph { app: version.app.clone(), components, edges, actions }
}

/// Returns a description of the source of a directory.
fn describe_source(source: &Source) -> String {
    match source {
        Source::Git { url, directory, .. } if directory.is_empty() => url.clone(),
        Source::Git { url, directory, .. } => format!("`{directory}` of {url}"),
        Source::Directory { .. }
        | Source::Image { .. }
        | Source::EcrImage { .. }
        | Source::Chart { .. }
        | Source::Version => source.describe().to_owned(),
    }
}

fn sandbox_node(sandbox: &Sandbox) -> GraphComponent {
    GraphComponent {
        name: ComponentName::sandbox(),
        kind: "sandbox".to_owned(),
        step: 1,
        toggle: None,
        reads: reads(&sandbox.references),
    }
}

fn edges_to(component: &Component, sandbox: bool) -> impl Iterator<Item = Edge> {
    let read: BTreeSet<ComponentName> = components_in(&component.references).collect();
    let declared = component.dependencies.iter().map(move |from| Edge {
        to: component.name.clone(),
        from: from.clone(),
        why: if read.contains(from) { Why::Template } else { Why::Declared },
    });
    let reads = sandbox && !component.sandbox_reads().is_empty();
    let of_sandbox =
        reads.then(|| Edge { to: component.name.clone(), from: ComponentName::sandbox(), why: Why::Template });
    declared.chain(of_sandbox)
}

fn components_in(references: &BTreeSet<Reference>) -> impl Iterator<Item = ComponentName> {
    references.iter().filter_map(|reference| match reference {
        Reference::Component(name) => Some(name.clone()),
        Reference::Input(_)
        | Reference::Action(_)
        | Reference::Secret(_)
        | Reference::Sandbox(_)
        | Reference::InstallStack(_)
        | Reference::Licence => None,
    })
}

fn reads(references: &BTreeSet<Reference>) -> Reads {
    let mut reads = Reads::default();
    for reference in references {
        match reference {
            Reference::Input(name) => drop(reads.inputs.insert(name.clone())),
            Reference::Secret(name) => drop(reads.secrets.insert(name.clone())),
            Reference::Action(name) => drop(reads.actions.insert(name.clone())),
            Reference::Sandbox(_) => reads.sandbox = true,
            Reference::InstallStack(_) => reads.install_stack = true,
            Reference::Component(_) | Reference::Licence => {}
        }
    }
    reads
}

/// Returns the components with the names of their dependencies, as nodes of a graph.
pub fn component_nodes(version: &AppVersion) -> Vec<Named<'_>> {
    let components = version.components.iter();
    components.map(|one| (one.name.as_str(), one.dependencies.iter().map(ComponentName::as_str).collect())).collect()
}

/// Returns a description of a trigger for people, such as "after every deploy".
pub fn describe_trigger(trigger: &Trigger) -> String {
    match trigger {
        Trigger::Manual => "by hand".to_owned(),
        Trigger::PostProvision => "after the first deploy".to_owned(),
        Trigger::PostDeployComponent { component } => format!("after component `{component}`"),
        Trigger::PostDeployAllComponents => "after every deploy".to_owned(),
        Trigger::Cron { schedule } => format!("on schedule `{schedule}`"),
        Trigger::Event { event, component: None } => format!("on `{event}`"),
        Trigger::Event { event, component: Some(component) } => format!("on `{event}` of component `{component}`"),
    }
}

#[cfg(test)]
mod tests;

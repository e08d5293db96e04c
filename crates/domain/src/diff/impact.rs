//! Predicts the nodes that a deploy of the second version runs in an install that has the first version. The prediction
//! uses the rules of the planner.

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::app_version::{AppVersion, Component, Input};
use freehold_protocol::{ComponentName, Digest};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::answers::asks;
use crate::graph::graph;
use crate::plan::copies::{NODE, UNWANTED};
use crate::plan::secrets::predicted;
use crate::plan::triggers::{Fired, Moment, Occurrence, Parts, events_of_deploy, fired};
use crate::plan::{DeployScope, add_dependents, fingerprint};
use crate::sealed_inputs::is_sealed;

/// A node of the deploy, and why it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The name of the node: the name of a component or of the sandbox, `secrets:copies`, or `action:` and an action's
    /// name.
    pub node: String,
    pub cause: Cause,
}

/// The reason why a node runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "because", rename_all = "snake_case")]
pub enum Cause {
    /// The first version does not have the component.
    New,
    /// The component's source, its values, or an input that the values use has changed.
    Changed,
    /// The component depends on `components`, which run.
    DependsOn { components: BTreeSet<String> },
    /// The action runs after `components`, whose deploy triggers it.
    TriggeredBy { components: BTreeSet<String> },
    /// The action has to succeed before `components` run.
    Precedes { components: BTreeSet<String> },
}

/// Returns the nodes of a deploy of `to` over `from`, in an order in which they can run.
pub(super) fn deploy(from: &AppVersion, to: &AppVersion) -> Vec<Run> {
    let answered = Answered::by_an_install_of(from);
    let (before, after) = (answered.values(from), answered.values(to));
    let live: BTreeMap<ComponentName, Option<DeployedAs>> =
        from.parts().map(|part| (part.name.clone(), deployed_as(from, &part, &before))).collect();
    let changed: BTreeSet<ComponentName> = to
        .parts()
        .filter(|component| {
            let wanted = deployed_as(to, component, &after);
            wanted.is_none() || live.get(&component.name).is_none_or(|live| *live != wanted)
        })
        .map(|component| component.name.clone())
        .collect();
    let mut touched = changed.clone();
    add_dependents(to, &mut touched);
    let cause = |component: &Component| {
        if !changed.contains(&component.name) {
            let mut on: BTreeSet<String> =
                component.dependencies.intersection(&touched).map(ToString::to_string).collect();
            let sandbox = Some(ComponentName::sandbox()).filter(|name| to.sandbox.is_some() && touched.contains(name));
            on.extend(sandbox.filter(|_| !component.sandbox_reads().is_empty()).map(String::from));
            Cause::DependsOn { components: on }
        } else if live.contains_key(&component.name) {
            Cause::Changed
        } else {
            Cause::New
        }
    };
    let secret_nodes = predicted(from, to, &touched);
    let order = order(to);
    let occurrences = events_of_deploy(to, Parts::deploys(&touched), secret_nodes, &DeployScope::default());
    let actions = fired(to, &occurrences);
    let started = |moment: Moment, name: Option<&str>| -> Vec<Run> {
        let of_event = |one: &&Fired<'_>| {
            let nodes = occurrences.get(one.at).map(|occurrence| &occurrence.nodes);
            one.moment == moment
                && name.is_none_or(|name| nodes.is_some_and(|nodes| first(&order, nodes) == Some(name)))
        };
        let mut found: Vec<&Fired<'_>> = actions.iter().filter(of_event).collect();
        // An outer event begins before the events inside it, and ends after them.
        found.sort_by_key(|one| if moment == Moment::Pre { usize::MAX - one.at } else { one.at });
        found.into_iter().map(|one| started_by(one, &occurrences)).collect()
    };
    let mut runs = Vec::new();
    for name in &order {
        let part = touched.iter().find(|touched| touched.as_str() == name).and_then(|name| to.part(name));
        let of_part = part.map(|part| cause(&part));
        let is_of_secrets = (secret_nodes.copies && name == NODE) || (secret_nodes.removes && name == UNWANTED);
        let Some(cause) = of_part.or(is_of_secrets.then_some(Cause::Changed)) else { continue };
        runs.extend(started(Moment::Pre, Some(name.as_str())));
        runs.push(Run { node: name.clone(), cause });
    }
    runs.extend(started(Moment::Post, None));
    runs
}

/// Returns the names of the sandbox, the node that copies secrets, all components, and the node that removes copies, in an
/// order in which they can run.
fn order(version: &AppVersion) -> Vec<String> {
    let mut order: Vec<String> = graph(version).components.into_iter().map(|one| one.name.to_string()).collect();
    let sandbox = version.sandbox.as_ref().map(|_| ComponentName::sandbox().to_string());
    let at = sandbox.and_then(|sandbox| order.iter().position(|name| *name == sandbox)).map_or(0, |at| at + 1);
    order.insert(at, NODE.to_owned());
    order.push(UNWANTED.to_owned());
    order
}

/// Returns the node of `nodes` that comes first in `order`.
fn first<'a>(order: &'a [String], nodes: &BTreeSet<String>) -> Option<&'a str> {
    order.iter().map(String::as_str).find(|name| nodes.contains(*name))
}

fn started_by(one: &Fired<'_>, occurrences: &[Occurrence]) -> Run {
    let components = occurrences.get(one.at).map(|occurrence| occurrence.nodes.clone()).unwrap_or_default();
    let cause = match one.moment {
        Moment::Pre => Cause::Precedes { components },
        Moment::Post => Cause::TriggeredBy { components },
    };
    Run { node: one.node.clone(), cause }
}

/// The fingerprint of a part, and the names of the sandbox outputs that it reads. A part runs again when one of the two
/// changes.
type DeployedAs = (Digest, BTreeSet<String>);

/// Returns the values that decide whether a part runs again. The artifact is not known here, so the digest of the
/// source takes its place.
fn deployed_as(version: &AppVersion, component: &Component, inputs: &BTreeMap<String, Value>) -> Option<DeployedAs> {
    let artifact = component.source_digest().ok()?;
    let fingerprint = fingerprint(version, component, &artifact, inputs, &BTreeMap::new(), None).ok()?;
    Some((fingerprint, component.sandbox_reads()))
}

/// The names of the inputs that count as answered in an install of the first version: the vendor answered the required
/// inputs without a default, the customer answered the inputs of the install stack.
struct Answered<'a> {
    vendor: BTreeSet<&'a str>,
    customer: BTreeSet<&'a str>,
}

impl<'a> Answered<'a> {
    fn by_an_install_of(version: &'a AppVersion) -> Self {
        let names = |wanted: fn(&Input) -> bool| {
            version.inputs.iter().filter(|input| wanted(input)).map(|input| input.name.as_str()).collect()
        };
        Self { vendor: names(|input| !input.customer && asks(input)), customer: names(|input| input.customer) }
    }

    /// Returns the value of every input of `version`, as [`crate::inputs::resolve_inputs`] does. The answers are not
    /// known here, so each answer is replaced by a placeholder with the name and type of its question. An answer thus
    /// counts as unchanged until the type changes.
    fn values(&self, version: &AppVersion) -> BTreeMap<String, Value> {
        let known = version.inputs.iter().filter(|input| !(input.customer && input.sensitive));
        known.map(|input| (input.name.clone(), self.value(input))).collect()
    }

    fn value(&self, input: &Input) -> Value {
        let names = if input.customer { &self.customer } else { &self.vendor };
        match input.usable_default() {
            Some(default) if !names.contains(input.name.as_str()) => {
                input.accept(default).unwrap_or_else(|_| default.clone())
            }
            None if !input.required && !names.contains(input.name.as_str()) => input.nothing(),
            Some(_) | None => {
                let (kind, sealed) = (input.kind.as_str(), is_sealed(input));
                json!({ "answer to": input.name, "of type": kind, "of customer": input.customer, "sealed": sealed })
            }
        }
    }
}

//! Renders a graph as text: a table of the components by step, then the actions.

use std::collections::BTreeSet;

use freehold_domain::graph::{Graph, GraphAction, GraphComponent, Reads, describe_trigger};

use crate::output::{noun_for, plural};

/// Returns the graph as a table in the order of a deploy.
pub(super) fn render(graph: &Graph) -> String {
    if graph.components.is_empty() && graph.actions.is_empty() {
        return format!("app {}: no components", graph.app);
    }
    let steps = graph.components.last().map_or(0, |last| last.step);
    let (components, actions) = (graph.components.len(), graph.actions.len());
    let mut head = format!("app {}: {} in {}", graph.app, plural(components, "component"), plural(steps, "step"));
    if actions > 0 {
        head.push_str(&format!(", {}", plural(actions, "action")));
    }
    let mut parts = vec![head];
    let name = longest(graph.components.iter().map(|one| one.name.as_str()));
    let kind = longest(graph.components.iter().map(|one| one.kind.as_str()));
    for step in 1..=steps {
        let here = graph.components.iter().filter(|one| one.step == step).enumerate();
        let lines = here.map(|(at, one)| {
            let number = if at == 0 { step.to_string() } else { String::new() };
            let line = format!("{number:>3}  {:name$}  {:kind$}  {}", one.name.as_str(), one.kind, why(graph, one));
            line.trim_end().to_owned()
        });
        parts.push(lines.collect::<Vec<_>>().join("\n"));
    }
    if actions > 0 {
        let name = longest(graph.actions.iter().map(|one| one.name.as_str()));
        let lines = graph
            .actions
            .iter()
            .map(|one| format!("     {:name$}  {}", one.name.as_str(), when(one)).trim_end().to_owned());
        parts.push(format!("actions\n{}", lines.collect::<Vec<_>>().join("\n")));
    }
    parts.join("\n\n")
}

fn longest<'a>(texts: impl Iterator<Item = &'a str>) -> usize {
    texts.map(|text| text.chars().count()).max().unwrap_or(0)
}

fn why(graph: &Graph, one: &GraphComponent) -> String {
    let edges = graph.edges.iter().filter(|edge| edge.to == one.name);
    let after: Vec<String> = edges.map(|edge| format!("{} ({})", edge.from, edge.why.as_str())).collect();
    let mut parts = Vec::new();
    if !after.is_empty() {
        parts.push(format!("after {}", after.join(", ")));
    }
    parts.extend(reads(&one.reads));
    parts.extend(one.toggle.map(|on| format!("toggleable, {} by default", if on { "on" } else { "off" })));
    parts.join("; ")
}

fn reads(reads: &Reads) -> Option<String> {
    let list = |what: &str, names: &BTreeSet<String>| {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        (!names.is_empty()).then(|| format!("{} {}", noun_for(names.len(), what), names.join(", ")))
    };
    let actions: BTreeSet<String> = reads.actions.iter().map(ToString::to_string).collect();
    let parts = [
        list("input", &reads.inputs),
        list("secret", &reads.secrets),
        list("action", &actions),
        reads.sandbox.then(|| "the sandbox".to_owned()),
        reads.install_stack.then(|| "the install stack".to_owned()),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("reads {}", parts.join(", ")))
}

fn when(action: &GraphAction) -> String {
    let mut triggers: Vec<String> = action.triggers.iter().map(describe_trigger).collect();
    if triggers.is_empty() {
        triggers.push("not started automatically".to_owned());
    }
    let needs: Vec<&str> = action.needs.iter().map(|name| name.as_str()).collect();
    let mut parts = vec![triggers.join(", ")];
    if !needs.is_empty() {
        parts.push(format!("needs {}", needs.join(", ")));
    }
    parts.extend(reads(&action.reads));
    if !action.runs_in.is_empty() {
        parts.push(format!("runs in {}", action.runs_in.join(", ")));
    }
    parts.join("; ")
}

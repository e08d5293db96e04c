//! Renders a graph for Graphviz and Mermaid. Arrows follow the order of a deploy.

use std::collections::{BTreeMap, BTreeSet};

use freehold_domain::graph::{Graph, GraphAction, describe_trigger};
use freehold_protocol::ComponentName;
use freehold_protocol::app_version::Trigger;

/// Returns the graph in the language of Graphviz.
pub(super) fn dot(graph: &Graph) -> String {
    let mut lines = vec![format!("digraph {} {{", quoted(graph.app.as_str()))];
    lines.push("  rankdir=LR".into());
    lines.push("  node [shape=box]".into());
    for one in &graph.components {
        let label = quoted(&format!("{}\n{}", one.name, one.kind));
        let style = if one.toggle.is_some() { ", style=dashed" } else { "" };
        lines.push(format!("  {} [label={label}{style}]", quoted(one.name.as_str())));
    }
    for one in &graph.actions {
        let label = quoted(&format!("{}\n{}", one.name, times(one).join("\n")));
        lines.push(format!("  {} [shape=hexagon, label={label}]", quoted(&format!("action:{}", one.name))));
    }
    for edge in &graph.edges {
        let (from, to, why) = (quoted(edge.from.as_str()), quoted(edge.to.as_str()), quoted(edge.why.as_str()));
        lines.push(format!("  {from} -> {to} [label={why}]"));
    }
    for one in &graph.actions {
        for from in triggers(graph, one) {
            let (from, to) = (quoted(from.as_str()), quoted(&format!("action:{}", one.name)));
            lines.push(format!("  {from} -> {to} [style=dashed]"));
        }
        for need in needs(graph, one) {
            let (from, to) = (quoted(need.as_str()), quoted(&format!("action:{}", one.name)));
            lines.push(format!("  {from} -> {to} [style=dotted, label=\"needs\"]"));
        }
    }
    lines.push("}".into());
    lines.join("\n")
}

/// Returns the graph as a Mermaid flowchart.
pub(super) fn mermaid(graph: &Graph) -> String {
    // A name may be a keyword of Mermaid, such as `end`, so components get ids with a number.
    let ids: BTreeMap<&ComponentName, String> =
        graph.components.iter().enumerate().map(|(at, one)| (&one.name, format!("c{at}"))).collect();
    let id = |name: &ComponentName| ids.get(name).cloned().unwrap_or_else(|| "unknown".into());
    let mut lines = vec!["flowchart LR".to_owned()];
    for one in &graph.components {
        let toggle = if one.toggle.is_some() { "<br/>toggleable" } else { "" };
        let (name, kind) = (escaped(one.name.as_str()), escaped(&one.kind));
        lines.push(format!("  {}[\"{name}<br/>{kind}{toggle}\"]", id(&one.name)));
    }
    for (at, one) in graph.actions.iter().enumerate() {
        let times: Vec<String> = times(one).iter().map(|time| escaped(time)).collect();
        lines.push(format!("  a{at}{{{{\"{}<br/>{}\"}}}}", escaped(one.name.as_str()), times.join("<br/>")));
    }
    for edge in &graph.edges {
        lines.push(format!("  {} -->|{}| {}", id(&edge.from), edge.why.as_str(), id(&edge.to)));
    }
    for (at, one) in graph.actions.iter().enumerate() {
        lines.extend(triggers(graph, one).into_iter().map(|from| format!("  {} -.-> a{at}", id(from))));
        lines.extend(needs(graph, one).into_iter().map(|need| format!("  {} -.->|needs| a{at}", id(need))));
    }
    lines.join("\n")
}

/// Returns the triggers of an action as text, without deploys of components, which the diagram shows as arrows.
fn times(action: &GraphAction) -> Vec<String> {
    let other = action.triggers.iter().filter(|trigger| !matches!(trigger, Trigger::PostDeployComponent { .. }));
    let words: Vec<String> = other.map(describe_trigger).collect();
    if words.is_empty() { vec!["action".to_owned()] } else { words }
}

/// Returns the components after which an action runs. Most triggers name a component. For a trigger after all
/// components, these are the components that no other component depends on.
fn triggers<'a>(graph: &'a Graph, action: &'a GraphAction) -> BTreeSet<&'a ComponentName> {
    let mut found = BTreeSet::new();
    for trigger in &action.triggers {
        match trigger {
            Trigger::PostDeployComponent { component } => drop(found.insert(component)),
            Trigger::PostDeployAllComponents | Trigger::PostProvision => {
                let components = graph.components.iter().filter(|one| one.kind != "sandbox");
                let last = components.map(|one| &one.name);
                found.extend(last.filter(|name| graph.edges.iter().all(|edge| edge.from != **name)));
            }
            Trigger::Event { component, .. } => found.extend(component),
            Trigger::Manual | Trigger::Cron { .. } => {}
        }
    }
    found
}

/// Returns the components whose outputs an action reads, without the components that start the action, which already
/// have an arrow.
fn needs<'a>(graph: &'a Graph, action: &'a GraphAction) -> BTreeSet<&'a ComponentName> {
    let triggers = triggers(graph, action);
    action.needs.iter().filter(|need| !triggers.contains(need)).collect()
}

fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{escaped}\"")
}

/// Escapes a label. Mermaid reads labels as HTML in which entities begin with `#`.
fn escaped(text: &str) -> String {
    let one = |c: char| match c {
        '"' => "#quot;".to_owned(),
        '<' => "#lt;".to_owned(),
        '>' => "#gt;".to_owned(),
        '#' => "#35;".to_owned(),
        '`' => "'".to_owned(),
        c => c.to_string(),
    };
    text.chars().map(one).collect()
}

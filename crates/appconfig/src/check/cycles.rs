//! Reports components that depend on themselves.

use std::collections::{BTreeMap, BTreeSet};

use crate::check::links::Edge;
use crate::report::draft::Draft;
use crate::state::app::App;

/// Reports cycles of components, each once and with the places of all its dependencies.
pub(crate) fn check(app: &mut App, edges: &[Edge]) {
    let mut graph: BTreeMap<&str, BTreeMap<&str, &Edge>> = BTreeMap::new();
    for edge in edges {
        graph.entry(&edge.from).or_default().entry(&edge.to).or_insert(edge);
    }
    trim(&mut graph);
    let mut done = BTreeSet::new();
    let mut reported: BTreeSet<BTreeSet<&str>> = BTreeSet::new();
    for start in graph.keys().copied() {
        if let Some(cycle) = find(&graph, start, &done)
            && reported.insert(cycle.iter().map(|edge| edge.from.as_str()).collect())
        {
            app.drafts.push(describe(app, &cycle));
        }
        done.insert(start);
    }
}

/// Removes components that have no incoming or no outgoing edges, because they are not on a cycle. Repeats this until
/// no such component is left.
fn trim<'a>(graph: &mut BTreeMap<&'a str, BTreeMap<&'a str, &'a Edge>>) {
    let mut sources: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, edges) in &*graph {
        for to in edges.keys() {
            sources.entry(to).or_default().insert(from);
        }
    }
    let mut idle: Vec<&str> = sources.keys().copied().filter(|name| !graph.contains_key(name)).collect();
    idle.extend(graph.keys().copied().filter(|name| !sources.contains_key(name)));
    while let Some(name) = idle.pop() {
        for to in graph.remove(name).unwrap_or_default().into_keys() {
            let left = sources.get_mut(to).is_some_and(|from| from.remove(name) && from.is_empty());
            if left {
                idle.push(to);
            }
        }
        for from in sources.remove(name).unwrap_or_default() {
            let left = graph.get_mut(from).is_some_and(|to| to.remove(name).is_some() && to.is_empty());
            if left {
                idle.push(from);
            }
        }
    }
}

/// Returns the edges of the shortest cycle through `start` that has no component of `done`.
fn find<'a>(
    graph: &BTreeMap<&'a str, BTreeMap<&'a str, &'a Edge>>,
    start: &'a str,
    done: &BTreeSet<&'a str>,
) -> Option<Vec<&'a Edge>> {
    let mut came_by: BTreeMap<&str, &Edge> = BTreeMap::new();
    let mut level = vec![start];
    while !level.is_empty() {
        let mut next = Vec::new();
        for at in level {
            for (to, edge) in graph.get(at).into_iter().flatten() {
                if *to == start {
                    let mut way = vec![*edge];
                    let mut back = at;
                    while back != start {
                        let edge = came_by.get(back)?;
                        way.push(edge);
                        back = &edge.from;
                    }
                    way.reverse();
                    return Some(way);
                }
                if !done.contains(to) && !came_by.contains_key(to) {
                    came_by.insert(to, edge);
                    next.push(*to);
                }
            }
        }
        level = next;
    }
    None
}

fn describe(app: &App, cycle: &[&Edge]) -> Draft {
    let start = cycle.first().map_or("", |edge| edge.from.as_str());
    let via: Vec<String> = cycle.iter().skip(1).map(|edge| format!("`{}`", edge.from)).collect();
    let way = if via.is_empty() { String::new() } else { format!(" via {}", via.join(", ")) };
    let place = cycle.first().map_or(crate::read::files::Place { file: 0, span: 0..0 }, |edge| edge.place.clone());
    let mut draft = Draft::error(place, format!("component `{start}` depends on itself{way}"));
    for edge in cycle.iter().skip(1) {
        draft = draft.related(edge.place.clone(), format!("`{}` needs `{}`", edge.from, edge.to));
    }
    let steps: Vec<String> =
        cycle.iter().map(|edge| format!("{} -> {} ({})", edge.from, edge.to, app.files.short(&edge.place))).collect();
    draft.help(format!("remove one of: {}", steps.join(", ")))
}

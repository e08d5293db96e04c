//! Orders the nodes of a graph: each node comes after its dependencies. Finds the nodes that can be reached from others.

use std::collections::{BTreeMap, BTreeSet};

/// A node's name and the names of the nodes that it depends on.
pub type Named<'a> = (&'a str, BTreeSet<&'a str>);

/// The order of a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order<'a> {
    /// The step of each node, from 1. The dependencies of a node have lower steps.
    pub steps: BTreeMap<&'a str, usize>,
    /// The names of the nodes that are on a cycle, or that depend on a node on a cycle.
    pub stuck: BTreeSet<&'a str>,
}

/// The reason why a graph has no order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disorder<'a> {
    /// Two nodes have the same name.
    Duplicate(&'a str),
    /// `node` depends on `missing`, but no node has this name.
    Unknown { node: &'a str, missing: &'a str },
    /// The node is on a cycle, or depends on a node on a cycle.
    Cycle(&'a str),
}

/// Returns the order of `nodes` by Kahn's algorithm, which visits each edge once. Dependencies that are not among the
/// nodes are ignored.
pub fn order<'a>(nodes: &[Named<'a>]) -> Order<'a> {
    let known: BTreeSet<&str> = nodes.iter().map(|(name, _)| *name).collect();
    let mut waits: BTreeMap<&'a str, BTreeSet<&'a str>> = BTreeMap::new();
    let mut dependents: BTreeMap<&'a str, Vec<&'a str>> = BTreeMap::new();
    for (name, dependencies) in nodes {
        let waits = waits.entry(name).or_default();
        for dependency in dependencies.iter().filter(|dependency| known.contains(*dependency)) {
            waits.insert(dependency);
            dependents.entry(dependency).or_default().push(name);
        }
    }
    let mut steps = BTreeMap::new();
    let mut ready: Vec<&str> = waits.iter().filter(|(_, left)| left.is_empty()).map(|(name, _)| *name).collect();
    let mut step = 0;
    while !ready.is_empty() {
        step += 1;
        let mut next = Vec::new();
        for done in ready {
            waits.remove(done);
            steps.insert(done, step);
            for dependent in dependents.remove(done).unwrap_or_default() {
                let Some(left) = waits.get_mut(dependent) else { continue };
                if left.remove(done) && left.is_empty() {
                    next.push(dependent);
                }
            }
        }
        ready = next;
    }
    Order { steps, stuck: waits.into_keys().collect() }
}

/// Checks that `nodes` are an acyclic graph of distinct names.
///
/// # Errors
/// [`Disorder`] with the first finding: duplicates, then unknown names, then cycles.
pub fn check<'a>(nodes: &[Named<'a>]) -> Result<(), Disorder<'a>> {
    let mut names = BTreeSet::new();
    if let Some((name, _)) = nodes.iter().find(|(name, _)| !names.insert(*name)) {
        return Err(Disorder::Duplicate(name));
    }
    for (node, dependencies) in nodes {
        if let Some(missing) = dependencies.iter().find(|name| !names.contains(*name)) {
            return Err(Disorder::Unknown { node, missing });
        }
    }
    order(nodes).stuck.first().map_or(Ok(()), |name| Err(Disorder::Cycle(name)))
}

/// Returns `from` and all nodes that can be reached from it. `next` returns the nodes to which a node has an edge.
pub fn reachable<N: Ord>(from: impl IntoIterator<Item = N>, next: impl Fn(&N) -> Vec<N>) -> BTreeSet<N> {
    let mut found = BTreeSet::new();
    let mut open: Vec<N> = from.into_iter().collect();
    while let Some(node) = open.pop() {
        if !found.contains(&node) {
            open.extend(next(&node));
            found.insert(node);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node<const N: usize>(name: &'static str, dependencies: [&'static str; N]) -> Named<'static> {
        (name, BTreeSet::from(dependencies))
    }

    #[test]
    fn a_node_comes_after_all_that_it_depends_on() {
        let nodes = [node("web", ["api", "db"]), node("api", ["db", "elsewhere"]), node("db", [])];

        let found = order(&nodes);

        assert_eq!(found.steps, BTreeMap::from([("db", 1), ("api", 2), ("web", 3)]));
        assert!(found.stuck.is_empty());
    }

    #[test]
    fn a_cycle_and_what_is_behind_it_are_stuck() {
        let nodes = [node("a", ["b"]), node("b", ["a"]), node("c", ["b"]), node("d", [])];

        let found = order(&nodes);

        assert_eq!(found.stuck, BTreeSet::from(["a", "b", "c"]));
        assert_eq!(check(&nodes), Err(Disorder::Cycle("a")));
        assert_eq!(check(&[node("a", []), node("a", [])]), Err(Disorder::Duplicate("a")));
        assert_eq!(check(&[node("a", ["x"])]), Err(Disorder::Unknown { node: "a", missing: "x" }));
    }

    #[test]
    fn what_can_be_reached_is_found_through_others_and_on_a_cycle() {
        let edges = BTreeMap::from([("a", vec!["b", "c"]), ("b", vec!["d"]), ("d", vec!["b"]), ("e", vec!["a"])]);
        let next = |node: &&'static str| edges.get(node).cloned().unwrap_or_default();

        assert_eq!(reachable(["a"], next), BTreeSet::from(["a", "b", "c", "d"]));
        assert_eq!(reachable(["c", "d"], next), BTreeSet::from(["b", "c", "d"]));
        assert_eq!(reachable([], next), BTreeSet::new());
    }
}

//! Finds the circles of a directed graph.

use std::collections::{BTreeMap, BTreeSet};

/// Returns each largest set of nodes that all reach each other, sorted; nodes alone are left out.
pub(crate) fn circles(arrows: &BTreeMap<String, BTreeSet<String>>) -> Vec<Vec<String>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        arrows.keys().map(|node| (node.as_str(), reached_from(node, arrows))).collect();
    let mut circles = BTreeSet::new();
    for (node, far) in &reached {
        if far.contains(node) {
            let circle = far.iter().filter(|other| reached.get(*other).is_some_and(|back| back.contains(node)));
            circles.insert(circle.map(|file| (*file).to_owned()).collect::<Vec<_>>());
        }
    }
    circles.into_iter().collect()
}

fn reached_from<'a>(start: &str, arrows: &'a BTreeMap<String, BTreeSet<String>>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut waiting: Vec<&str> = arrows.get(start).into_iter().flatten().map(String::as_str).collect();
    while let Some(node) = waiting.pop() {
        if reached.insert(node) {
            waiting.extend(arrows.get(node).into_iter().flatten().map(String::as_str));
        }
    }
    reached
}

#[test]
fn nodes_on_a_way_back_are_a_circle_and_others_are_not() {
    let arrows = [("a", vec!["b"]), ("b", vec!["c"]), ("c", vec!["a", "d"]), ("d", vec![])];
    let arrows = arrows.map(|(from, to)| (from.to_owned(), to.into_iter().map(str::to_owned).collect())).into();

    assert_eq!(circles(&arrows), [["a", "b", "c"]]);
}

//! The picture of a dependency graph as SVG: a column for each layer, and the state of each node in words.

use std::collections::BTreeMap;

use maud::{Markup, html};

use crate::badge::tone_of;

/// The largest number of nodes that are drawn. A table shows a larger graph better.
pub const LARGEST_GRAPH: usize = 60;

const WIDTH: usize = 180;
const HEIGHT: usize = 44;
const GAP_X: usize = 60;
const GAP_Y: usize = 16;
/// The number of characters that fit into a box.
const LETTERS: usize = 22;

/// A node of a graph.
#[derive(Debug, Clone)]
pub struct Node<'a> {
    pub name: &'a str,
    pub state: &'a str,
    /// The names of the nodes that this one waits for.
    pub dependencies: Vec<&'a str>,
}

/// A graph of nodes, such as those of a workflow.
#[derive(Debug)]
pub struct Graph<'a> {
    /// The title for assistive technology.
    pub title: &'a str,
    pub nodes: Vec<Node<'a>>,
}

/// The upper left corner of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Corner {
    x: usize,
    y: usize,
}

impl Graph<'_> {
    /// Returns the picture; nothing for an empty graph, and for one of more than [`LARGEST_GRAPH`] nodes.
    pub fn render(&self) -> Markup {
        if self.nodes.is_empty() || self.nodes.len() > LARGEST_GRAPH {
            return Markup::default();
        }
        let corners = self.corners();
        let width = corners.values().map(|corner| corner.x + WIDTH).max().unwrap_or_default() + 2;
        let height = corners.values().map(|corner| corner.y + HEIGHT).max().unwrap_or_default() + 2;
        html! {
            figure {
                svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="graph-title graph-desc"
                    width=(width) height=(height) viewBox={ "0 0 " (width) " " (height) } {
                    title id="graph-title" { (self.title) }
                    desc id="graph-desc" { (self.description()) }
                    (self.edges(&corners))
                    @for node in &self.nodes {
                        @if let Some(corner) = corners.get(node.name) { (drawn_node(node, *corner)) }
                    }
                }
            }
        }
    }

    /// Returns the graph in words.
    fn description(&self) -> String {
        let sentences = self.nodes.iter().map(|node| {
            let state = node.state.replace('_', " ");
            match node.dependencies.as_slice() {
                [] => format!("{} is {state}.", node.name),
                some => format!("{} is {state} and depends on {}.", node.name, some.join(", ")),
            }
        });
        sentences.collect::<Vec<_>>().join(" ")
    }

    fn edges(&self, corners: &BTreeMap<&str, Corner>) -> Markup {
        let edges = self.nodes.iter().flat_map(|node| {
            let to = corners.get(node.name).copied();
            let from = node.dependencies.iter().filter_map(move |name| corners.get(name).copied());
            from.filter_map(move |from| Some((from, to?)))
        });
        html! {
            @for (from, to) in edges {
                path .edge d={
                    "M" (from.x + WIDTH) " " (from.y + HEIGHT / 2)
                    " C" (from.x + WIDTH + GAP_X / 2) " " (from.y + HEIGHT / 2)
                    " " (to.x.saturating_sub(GAP_X / 2)) " " (to.y + HEIGHT / 2)
                    " " (to.x) " " (to.y + HEIGHT / 2)
                } {}
            }
        }
    }

    /// Returns the place of each node: its layer decides the column, the order of the nodes the row.
    fn corners(&self) -> BTreeMap<&str, Corner> {
        let layers = self.layers();
        let mut used = BTreeMap::<usize, usize>::new();
        let mut corners = BTreeMap::new();
        for node in &self.nodes {
            let layer = layers.get(node.name).copied().unwrap_or_default();
            let row = used.entry(layer).or_default();
            corners.insert(node.name, Corner { x: 1 + layer * (WIDTH + GAP_X), y: 1 + *row * (HEIGHT + GAP_Y) });
            *row += 1;
        }
        corners
    }

    /// Returns the layer of each node: one more than the highest layer of its dependencies. There are at most as many
    /// rounds as nodes, so that a circle ends too.
    fn layers(&self) -> BTreeMap<&str, usize> {
        let mut layers: BTreeMap<&str, usize> = self.nodes.iter().map(|node| (node.name, 0)).collect();
        for _ in 1..self.nodes.len() {
            let mut is_changed = false;
            for node in &self.nodes {
                let above = node.dependencies.iter().filter_map(|name| layers.get(name)).max();
                let layer = above.map_or(0, |above| above + 1).min(self.nodes.len() - 1);
                is_changed |= layers.insert(node.name, layer) != Some(layer);
            }
            if !is_changed {
                break;
            }
        }
        layers
    }
}

fn drawn_node(node: &Node<'_>, corner: Corner) -> Markup {
    let Corner { x, y } = corner;
    html! {
        g class=(tone_of(node.state).class()) {
            rect .box x=(x) y=(y) width=(WIDTH) height=(HEIGHT) rx="6" {}
            text x=(x + 10) y=(y + 19) { (shortened(node.name)) }
            text .state x=(x + 10) y=(y + 35) { (shortened(&node.state.replace('_', " "))) }
        }
    }
}

/// Returns the text, cut at the width of a box.
fn shortened(text: &str) -> String {
    if text.chars().count() <= LETTERS {
        return text.to_owned();
    }
    text.chars().take(LETTERS - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node<'a>(name: &'a str, dependencies: &[&'a str]) -> Node<'a> {
        Node { name, state: "waiting", dependencies: dependencies.to_vec() }
    }

    fn graph<'a>(nodes: Vec<Node<'a>>) -> Graph<'a> {
        Graph { title: "Workflow", nodes }
    }

    #[test]
    fn a_node_is_right_of_everything_that_it_depends_on() {
        let graph = graph(vec![node("web", &["api", "db"]), node("api", &["db"]), node("db", &[]), node("log", &[])]);

        let layers = graph.layers();

        assert_eq!(layers, BTreeMap::from([("api", 1), ("db", 0), ("log", 0), ("web", 2)]));
        let corners = graph.corners();
        assert_eq!(corners["db"].x, corners["log"].x);
        assert_ne!(corners["db"].y, corners["log"].y);
    }

    #[test]
    fn a_circle_and_an_unknown_dependency_are_drawn_too() {
        let picture = graph(vec![node("a", &["b"]), node("b", &["a", "nobody"])]).render().into_string();

        assert_eq!(picture.matches("<rect").count(), 2, "{picture}");
        assert_eq!(picture.matches("<path").count(), 2, "{picture}");
        assert_eq!(picture.matches("</path>").count(), 2, "an open element would contain the ones after it: {picture}");
    }

    #[test]
    fn the_picture_has_a_title_and_a_description_in_words() {
        let picture = graph(vec![node("<db>", &[]), node("web", &["<db>"])]).render().into_string();

        assert!(picture.contains("<title id=\"graph-title\">Workflow</title>"), "{picture}");
        assert!(picture.contains("&lt;db&gt; is waiting. web is waiting and depends on &lt;db&gt;."), "{picture}");
        assert!(!picture.contains("<db>"), "{picture}");
    }

    #[test]
    fn a_large_graph_is_left_to_its_table() {
        let names: Vec<String> = (0..=LARGEST_GRAPH).map(|number| format!("n{number}")).collect();

        assert!(graph(names.iter().map(|name| node(name, &[])).collect()).render().into_string().is_empty());
        assert!(graph(Vec::new()).render().into_string().is_empty());
    }
}

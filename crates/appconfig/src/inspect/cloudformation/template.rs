//! A CloudFormation template: its sections and the places of its parts.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::read::document::Node;
use crate::read::files::Place;

/// A parsed template.
pub(super) struct Template {
    pub(super) file: usize,
    pub(super) root: Node,
    /// Whether the template calls a macro, which may add sections and resources that are not known here.
    pub(super) macros: bool,
}

impl Template {
    pub(super) fn section(&self, name: &str) -> Option<&Node> {
        self.root.get(name)
    }

    /// Returns the names that a section defines.
    pub(super) fn names(&self, section: &str) -> BTreeSet<&str> {
        let entries = self.section(section).map(Node::entries).unwrap_or_default();
        entries.iter().map(|entry| entry.key.as_str()).collect()
    }

    pub(super) fn place(&self, node: &Node) -> Place {
        self.place_of(&node.span)
    }

    pub(super) fn place_of(&self, span: &Range<usize>) -> Place {
        Place { file: self.file, span: span.clone() }
    }
}

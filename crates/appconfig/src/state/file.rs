//! One file after its keys were checked, with the templates and texts that were found in it.

use std::collections::BTreeMap;

use crate::kinds::Kind;
use crate::read::document::{Entry, Node, offset_in_file};
use crate::read::files::{Files, Place};

/// One TOML file, with the templates and texts that were found in it.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) file: usize,
    pub(crate) kind: Kind,
    pub(crate) root: Node,
    /// The paths that its templates read, and the templates in files that it names.
    pub(crate) uses: Vec<Reading>,
    /// Texts of values that name a file or an address, by the position of the value.
    pub(crate) contents: BTreeMap<usize, Content>,
}

/// The text that a value names.
#[derive(Debug)]
pub(crate) enum Content {
    /// It cannot be read, which was reported.
    Unreadable,
    /// It is not fetched yet.
    Unfetched,
    Text {
        file: usize,
        text: String,
    },
}

/// One path that a template reads.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) place: Place,
    pub(crate) path: Vec<String>,
    pub(crate) guarded: bool,
}

impl Checked {
    pub(crate) fn place(&self, node: &Node) -> Place {
        Place { file: self.file, span: node.span.clone() }
    }

    pub(crate) fn key_place(&self, entry: &Entry) -> Place {
        Place { file: self.file, span: entry.key_span.clone() }
    }

    /// Returns the place of the value under `key` of `node`, or of `node` itself.
    pub(crate) fn place_of(&self, node: &Node, key: &str) -> Place {
        self.place(node.get(key).unwrap_or(node))
    }

    /// Returns the text of a value, or of the file or address that it names; an empty text for an address that is not
    /// fetched yet.
    pub(crate) fn content<'a>(&'a self, node: &'a Node) -> Option<&'a str> {
        match self.contents.get(&node.span.start) {
            Some(Content::Text { text, .. }) => Some(text),
            Some(Content::Unfetched) => Some(""),
            Some(Content::Unreadable) => None,
            None => node.as_text(),
        }
    }

    /// Returns whether the value names an address that is not fetched yet.
    pub(crate) fn is_unfetched(&self, node: &Node) -> bool {
        matches!(self.contents.get(&node.span.start), Some(Content::Unfetched))
    }

    /// Returns the place of byte `offset` of [`Self::content`], one character long.
    pub(crate) fn place_in(&self, files: &Files, node: &Node, offset: usize) -> Place {
        let (file, at) = match self.contents.get(&node.span.start) {
            Some(Content::Text { file, .. }) => (*file, offset),
            Some(Content::Unreadable | Content::Unfetched) | None => {
                (self.file, offset_in_file(files.text(self.file), &node.span, offset))
            }
        };
        Place { file, span: at..at + 1 }
    }
}

//! A file whose keys were checked, with the templates and texts that were found in it.

use std::collections::BTreeMap;

use crate::kinds::Kind;
use crate::read::document::{Entry, Node, offset_in_file};
use crate::read::files::{Files, Place};

/// A checked TOML file, with the templates and texts that were found in it.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) file: usize,
    pub(crate) kind: Kind,
    pub(crate) root: Node,
    /// The values that templates read, by a path such as `.nuon.install.id`: templates in this file, and in the files
    /// that it names.
    pub(crate) uses: Vec<Reading>,
    /// The texts that values name by file or address, by the position of the value in the file.
    pub(crate) contents: BTreeMap<usize, Content>,
}

/// The text that a value names by file or address.
#[derive(Debug)]
pub(crate) enum Content {
    /// The text cannot be read. This was reported.
    Unreadable,
    /// The caller has not fetched the text yet.
    Unfetched,
    Text {
        file: usize,
        text: String,
    },
}

/// A path that a template reads.
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

    /// Returns the place of the value under `key` of `node`; the place of `node` itself if it does not have the key.
    pub(crate) fn place_of(&self, node: &Node, key: &str) -> Place {
        self.place(node.get(key).unwrap_or(node))
    }

    /// Returns the text of a value, or the text of the file or address that the value names. The text is empty while
    /// the caller has not fetched it.
    pub(crate) fn content<'a>(&'a self, node: &'a Node) -> Option<&'a str> {
        match self.contents.get(&node.span.start) {
            Some(Content::Text { text, .. }) => Some(text),
            Some(Content::Unfetched) => Some(""),
            Some(Content::Unreadable) => None,
            None => node.as_text(),
        }
    }

    /// Returns whether the value names an address whose text the caller has not fetched yet.
    pub(crate) fn is_unfetched(&self, node: &Node) -> bool {
        matches!(self.contents.get(&node.span.start), Some(Content::Unfetched))
    }

    /// Returns the place of the byte at `offset` of [`Self::content`]. The place is one byte long.
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

//! Holds one file against the table of its kind: unknown, missing and mistyped keys, files that values name, and
//! templates.

use std::collections::BTreeMap;

use freehold_template::{Template, nearest};

use crate::build::Purpose;
use crate::diagnostic::Draft;
use crate::document::{Data, Entry, Node, offset_in_file};
use crate::files::{Files, Place};
use crate::kinds::{COMPONENT_TYPES, Kind, component_keys};
use crate::spec::{Holds, Key, seconds};

/// One file that is TOML, with what was found in it.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) file: usize,
    pub(crate) kind: Kind,
    pub(crate) root: Node,
    /// The paths that its templates, and those in files it names, read.
    pub(crate) uses: Vec<Reading>,
    /// Texts of values that name a file, by where the value starts; nothing for one that could not be read.
    contents: BTreeMap<usize, Option<Content>>,
}

/// The text of a file that a value names.
#[derive(Debug)]
struct Content {
    file: usize,
    text: String,
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

    /// Returns the text of a value that is a text or names a file.
    pub(crate) fn content<'a>(&'a self, node: &'a Node) -> Option<&'a str> {
        match self.contents.get(&node.span.start) {
            Some(content) => content.as_ref().map(|content| content.text.as_str()),
            None => node.as_text(),
        }
    }

    /// Returns the place of byte `offset` of [`Self::content`], one character long.
    pub(crate) fn place_in(&self, files: &Files, node: &Node, offset: usize) -> Place {
        let (file, at) = match self.contents.get(&node.span.start) {
            Some(Some(content)) => (content.file, offset),
            Some(None) | None => (self.file, offset_in_file(files.text(self.file), &node.span, offset)),
        };
        Place { file, span: at..at + 1 }
    }
}

/// Checks `root`, the tree of `file`.
pub(crate) fn validate(
    files: &mut Files,
    drafts: &mut Vec<Draft>,
    file: usize,
    kind: Kind,
    root: Node,
    purpose: Purpose,
) -> Checked {
    let mut validator = Validator { files, drafts, file, purpose, uses: Vec::new(), contents: BTreeMap::new() };
    if !kind.is_open() {
        let special = match kind {
            Kind::Component => component_keys(root.text("type").unwrap_or_default()),
            _ => &[],
        };
        let known_type = kind != Kind::Component || root.text("type").is_some_and(|t| COMPONENT_TYPES.contains(&t));
        validator.table(&root, &[kind.keys(), special], known_type);
    }
    let Validator { uses, contents, .. } = validator;
    Checked { file, kind, root, uses, contents }
}

struct Validator<'a> {
    files: &'a mut Files,
    drafts: &'a mut Vec<Draft>,
    file: usize,
    purpose: Purpose,
    uses: Vec<Reading>,
    contents: BTreeMap<usize, Option<Content>>,
}

impl Validator<'_> {
    fn place(&self, span: &std::ops::Range<usize>) -> Place {
        Place { file: self.file, span: span.clone() }
    }

    fn table(&mut self, node: &Node, keys: &[&[Key]], report_unknown: bool) {
        for entry in node.entries() {
            match keys.iter().copied().flatten().find(|key| key.name == entry.key) {
                Some(key) => self.value(&entry.value, &key.holds, &entry.key),
                None if report_unknown => {
                    let names = || keys.iter().copied().flatten().map(|key| key.name);
                    let near = nearest(&entry.key, names());
                    let place = self.place(&entry.key_span);
                    let draft = Draft::warning(place, format!("unknown key `{}`; it has no effect", entry.key));
                    self.drafts.push(match near {
                        Some(near) => draft.meant(Some(near)),
                        None => draft.help(format!("known keys here: {}", names().collect::<Vec<_>>().join(", "))),
                    });
                }
                None => {}
            }
        }
        for key in keys.iter().copied().flatten().filter(|key| key.must && node.get(key.name).is_none()) {
            let draft = Draft::error(self.place(&node.span), format!("key `{}` is missing", key.name));
            self.drafts.push(draft.help(format!("add `{}`", key.holds.example(key.name))));
        }
    }

    fn wrong(&mut self, node: &Node, holds: &Holds, key: &str) {
        let message = format!("`{key}` is {}", node.kind());
        self.drafts.push(Draft::error(self.place(&node.span), message).expected(holds.expected()));
    }

    fn value(&mut self, node: &Node, holds: &Holds, key: &str) {
        match (holds, &node.data) {
            (Holds::Any, _) | (Holds::Text, Data::Text(_)) | (Holds::Flag, Data::Flag(_)) => {}
            (Holds::Whole, Data::Whole(number)) if *number >= 0 => {}
            (Holds::Template, Data::Text(text)) => self.inline_template(node, text),
            (Holds::TemplateFile, Data::Text(text)) => {
                if !self.named_file(node, text, key, true) {
                    self.inline_template(node, text);
                }
            }
            (Holds::File, Data::Text(text)) => {
                self.named_file(node, text, key, false);
            }
            (Holds::Word(words), Data::Text(text)) => {
                if !words.contains(&text.as_str()) {
                    let draft = Draft::error(self.place(&node.span), format!("`{key}` is `{text}`"));
                    self.drafts.push(draft.expected(holds.expected()).meant(nearest(text, words.iter().copied())));
                }
            }
            (Holds::Duration(most), Data::Text(text)) => match seconds(text) {
                Some(secs) if (1..=*most).contains(&secs) => {}
                Some(secs) => {
                    let draft = Draft::error(self.place(&node.span), format!("`{key}` is {secs} seconds"));
                    self.drafts.push(draft.expected(format!("1 to {most} seconds")));
                }
                None => {
                    let draft = Draft::error(self.place(&node.span), format!("`{key}` is `{text}`"));
                    self.drafts.push(draft.expected(holds.expected()));
                }
            },
            (Holds::Texts, Data::List(items)) => {
                for item in items.iter().filter(|item| item.as_text().is_none()) {
                    let draft = Draft::error(self.place(&item.span), format!("`{key}` holds {}", item.kind()));
                    self.drafts.push(draft.expected("a string"));
                }
            }
            (Holds::Scalars, Data::Table(entries)) => {
                for entry in entries {
                    match &entry.value.data {
                        Data::Text(text) => self.inline_template(&entry.value, text),
                        Data::List(_) | Data::Table(_) => self.wrong(&entry.value, &Holds::Text, &entry.key),
                        Data::Whole(_) | Data::Fraction(_) | Data::Flag(_) | Data::Date(_) => {}
                    }
                }
            }
            (Holds::Values, Data::Table(_)) => self.values(node),
            (Holds::Table(keys), Data::Table(_)) => self.table(node, &[keys], true),
            (Holds::Tables(keys), Data::List(items)) => {
                for item in items {
                    match &item.data {
                        Data::Table(_) => self.table(item, &[keys], true),
                        _ => self.wrong(item, &Holds::Table(keys), key),
                    }
                }
            }
            _ => self.wrong(node, holds, key),
        }
    }

    fn values(&mut self, node: &Node) {
        match &node.data {
            Data::Text(text) => self.inline_template(node, text),
            Data::List(items) => items.iter().for_each(|item| self.values(item)),
            Data::Table(entries) => entries.iter().for_each(|entry| self.values(&entry.value)),
            Data::Whole(_) | Data::Fraction(_) | Data::Flag(_) | Data::Date(_) => {}
        }
    }

    /// Reads the file that `text` names; returns whether it names one.
    fn named_file(&mut self, node: &Node, text: &str, key: &str, template: bool) -> bool {
        if !names_file(text) {
            return false;
        }
        self.contents.insert(node.span.start, None);
        if ADDRESSES.iter().any(|scheme| text.starts_with(scheme)) {
            let severity = self.purpose.unsupported();
            let draft = Draft::new(
                severity,
                self.place(&node.span),
                format!("`{key}` names an address, which is not fetched yet"),
            );
            self.drafts.push(draft.help("save the text beside the config and name it as `./path`"));
            return true;
        }
        let Some(path) = self.files.named(self.file, text) else {
            let draft = Draft::error(self.place(&node.span), format!("`{text}` is outside of the app's directory"));
            self.drafts.push(draft.help("move the file into the app's directory"));
            return true;
        };
        let file = match self.files.read(&path) {
            Ok(file) => file,
            Err(reason) => {
                let draft = Draft::error(self.place(&node.span), format!("`{text}` cannot be read: {reason}"));
                self.drafts.push(
                    draft.help("create the file, or correct the path: beside this file, or from the app's directory"),
                );
                return true;
            }
        };
        let content = self.files.text(file).to_owned();
        if template {
            self.template(&content, |offset| Place { file, span: offset..offset });
        }
        self.contents.insert(node.span.start, Some(Content { file, text: content }));
        true
    }

    fn inline_template(&mut self, node: &Node, text: &str) {
        if !text.contains("{{") {
            return;
        }
        let raw = self.files.text(self.file).to_owned();
        let (file, span) = (self.file, node.span.clone());
        self.template(text, move |offset| {
            let at = offset_in_file(&raw, &span, offset);
            Place { file, span: at..at }
        });
    }

    /// Parses a template; `place` says where one of its bytes is.
    fn template(&mut self, text: &str, place: impl Fn(usize) -> Place) {
        match Template::parse(text) {
            Ok(template) => {
                for found in template.uses() {
                    let mut place = place(found.offset);
                    place.span.end = place.span.start + path_length(text, found.offset);
                    self.uses.push(Reading { place, path: found.path, guarded: found.guarded });
                }
            }
            Err(error) => {
                let mut place = place(error.offset);
                place.span.end = place.span.start + 1;
                self.drafts.push(Draft::error(place, format!("template: {}", error.message)));
            }
        }
    }
}

/// How texts start that are to be fetched.
const ADDRESSES: [&str; 4] = ["https://", "http://", "git::", "file://"];

/// Whether `text` says where the text is, instead of being it.
fn names_file(text: &str) -> bool {
    let mut starts = ADDRESSES.into_iter().chain(["./", "../"]);
    !text.contains('\n') && starts.any(|start| text.starts_with(start))
}

/// Returns how many bytes of `text` from `offset` on are the path itself.
fn path_length(text: &str, offset: usize) -> usize {
    let rest = text.get(offset..).unwrap_or_default();
    rest.find(|c: char| !(c.is_alphanumeric() || "._$-".contains(c))).unwrap_or(rest.len()).max(1)
}

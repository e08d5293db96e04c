//! Checks one file against the key table of its kind: unknown, missing and mistyped keys, the files that values name,
//! and templates.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use freehold_template::{Template, nearest};

use crate::check::effect;
use crate::check::references;
use crate::kinds::spec::{Holds, Key, seconds};
use crate::kinds::{COMPONENT_TYPES, Kind, component_keys};
use crate::read::addresses::{Naming, naming};
use crate::read::document::{Data, Entry, Node, Offsets};
use crate::read::files::Place;
use crate::report::draft::Draft;
use crate::state::app::App;
use crate::state::file::{Checked, Content, Reading};

/// Checks `root`, the parsed content of `file`.
pub(crate) fn validate(app: &mut App, file: usize, kind: Kind, root: Node) -> Checked {
    let mut validator = Validator { app, file, kind, uses: Vec::new(), contents: BTreeMap::new() };
    if !root.entries().is_empty() {
        let unused = effect::of_file(kind, validator.place(&(0..0)), validator.app.files.path(file));
        validator.app.drafts.extend(unused);
    }
    if let Some(draft) = runner_config(kind, file, &root) {
        validator.app.drafts.push(draft);
    } else if !kind.is_open() {
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

/// Returns the error for a `runner.toml` that is the config with which a runner starts, and not the app's settings of
/// its runners.
fn runner_config(kind: Kind, file: usize, root: &Node) -> Option<Draft> {
    let queue = root.entry("orders_queue_url").filter(|_| kind == Kind::Runner && root.get("tenant_key").is_some())?;
    let place = Place { file, span: queue.key_span.clone() };
    let message = "this is the config that a runner starts with, and not a file of an app";
    Some(
        Draft::error(place, message)
            .help("move it out of the app's directory; `freehold-runner run --config` reads it"),
    )
}

struct Validator<'a> {
    app: &'a mut App,
    file: usize,
    kind: Kind,
    uses: Vec<Reading>,
    contents: BTreeMap<usize, Content>,
}

/// Converts positions in a template to positions in a file.
enum Locate<'a> {
    /// The whole file is the template.
    File(usize),
    /// The template is a string in the file.
    Inline(usize, Offsets<'a>),
}

impl Locate<'_> {
    fn place(&mut self, offset: usize, length: usize) -> Place {
        let (file, start) = match self {
            Self::File(file) => (*file, offset),
            Self::Inline(file, offsets) => (*file, offsets.of(offset)),
        };
        Place { file, span: start..start + length }
    }
}

impl Validator<'_> {
    fn place(&self, span: &Range<usize>) -> Place {
        Place { file: self.file, span: span.clone() }
    }

    const fn drafts(&mut self) -> &mut Vec<Draft> {
        &mut self.app.drafts
    }

    fn table(&mut self, node: &Node, keys: &[&[Key]], report_unknown: bool) {
        for entry in node.entries() {
            match keys.iter().copied().flatten().find(|key| key.name == entry.key) {
                Some(key) => {
                    let unused = effect::of_key(self.kind, key, entry, self.file);
                    self.drafts().extend(unused);
                    self.value(&entry.value, &key.holds, &entry.key);
                    if key.filled && entry.value.as_text() == Some("") {
                        let draft = Draft::error(self.place(&entry.value.span), format!("`{}` is empty", entry.key));
                        self.drafts().push(draft.expected("a text of at least one character"));
                    }
                }
                None if report_unknown => {
                    let names = || keys.iter().copied().flatten().map(|key| key.name);
                    let near = nearest(&entry.key, names());
                    let place = self.place(&entry.key_span);
                    let draft = Draft::warning(place, format!("unknown key `{}`; it has no effect", entry.key));
                    self.drafts().push(match near {
                        Some(near) => draft.meant(Some(near)),
                        None => draft.help(format!("known keys here: {}", names().collect::<Vec<_>>().join(", "))),
                    });
                }
                None => {}
            }
        }
        for key in keys.iter().copied().flatten().filter(|key| key.must && node.get(key.name).is_none()) {
            // Nothing else reports the unknown keys of a file whose type is not known, so a likely typo is reported here.
            let is_unknown = |name: &str| !keys.iter().copied().flatten().any(|key| key.name == name);
            let typo =
                node.entries().iter().find(|entry| is_unknown(&entry.key) && nearest(&entry.key, [key.name]).is_some());
            if let Some(typo) = typo.filter(|_| !report_unknown) {
                let message = format!("key `{}` is missing, and `{}` is not a key of this file", key.name, typo.key);
                let draft = Draft::error(self.place(&typo.key_span), message);
                self.drafts().push(draft.meant(Some(key.name)));
                continue;
            }
            let draft = Draft::error(self.place(&node.span), format!("key `{}` is missing", key.name));
            let add = format!("add `{}`", key.holds.example(key.name));
            self.drafts().push(draft.help(match key.holds {
                Holds::Word([_, _, ..]) => format!("{add}; the value is {}", key.holds.expected()),
                _ => add,
            }));
        }
    }

    fn wrong(&mut self, node: &Node, holds: &Holds, key: &str) {
        let message = format!("`{key}` is {}", node.kind());
        let draft = Draft::error(self.place(&node.span), message).expected(holds.expected());
        self.drafts().push(draft);
    }

    fn value(&mut self, node: &Node, holds: &Holds, key: &str) {
        match (holds, &node.data) {
            (Holds::Any, _) | (Holds::Text, Data::Text(_)) | (Holds::Flag, Data::Flag(_)) => {}
            (Holds::Whole, Data::Whole(number)) if *number >= 0 => {}
            (Holds::Template, Data::Text(text)) => self.inline_template(node, text),
            (Holds::TemplateFile, Data::Text(text)) => {
                if !self.named_text(node, text, true) {
                    self.path_as_text(node, text, key);
                    self.inline_template(node, text);
                }
            }
            (Holds::File, Data::Text(text)) => {
                if !self.named_text(node, text, false) {
                    self.path_as_text(node, text, key);
                }
            }
            (Holds::Word(words), Data::Text(text)) => {
                if !words.contains(&text.as_str()) {
                    let draft = Draft::error(self.place(&node.span), format!("`{key}` is `{text}`"));
                    let near = synonym(text, words).or_else(|| nearest(text, words.iter().copied()));
                    self.drafts().push(draft.expected(holds.expected()).meant(near));
                }
            }
            (Holds::Duration(most), Data::Text(text)) => match seconds(text) {
                Some(secs) if (1..=*most).contains(&secs) => {}
                Some(secs) => {
                    let draft = Draft::error(self.place(&node.span), format!("`{key}` is {secs} seconds"));
                    self.drafts().push(draft.expected(format!("1 to {most} seconds")));
                }
                None => {
                    let draft = Draft::error(self.place(&node.span), format!("`{key}` is `{text}`"));
                    self.drafts().push(draft.expected(holds.expected()));
                }
            },
            (Holds::Texts, Data::List(items)) => self.texts(items, key),
            (Holds::Scalars, Data::Table(entries)) => self.scalars(entries),
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

    fn texts(&mut self, items: &[Node], key: &str) {
        for item in items {
            if let Some(text) = item.as_text() {
                self.inline_template(item, text);
                continue;
            }
            let draft = Draft::error(self.place(&item.span), format!("`{key}` holds {}", item.kind()));
            self.drafts().push(draft.expected("a string"));
        }
    }

    fn scalars(&mut self, entries: &[Entry]) {
        for entry in entries {
            match &entry.value.data {
                Data::Text(text) => self.inline_template(&entry.value, text),
                Data::List(_) | Data::Table(_) => self.wrong(&entry.value, &Holds::Text, &entry.key),
                Data::Whole(_) | Data::Fraction(_) | Data::Flag(_) | Data::Date(_) => {}
            }
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

    /// Reports a value that is the path of an existing file but lacks `./`. For a `readme` this is only a warning. The keys
    /// `path` and `source` always name files; `build/components/` checks them.
    fn path_as_text(&mut self, node: &Node, text: &str, key: &str) {
        let is_path = || {
            let path = self.app.files.named(self.file, text);
            path.is_some_and(|path| self.app.files.tree().is_file(&path))
        };
        if ["path", "source"].contains(&key) || text.is_empty() || text.contains(['\n', '{', ' ']) || !is_path() {
            return;
        }
        let (place, message) = (self.place(&node.span), format!("`{text}` is read as a text, not as a path"));
        let draft = if key == "readme" { Draft::warning(place, message) } else { Draft::error(place, message) };
        self.drafts().push(draft.help(format!("write `./{text}`")));
        if key != "readme" {
            self.contents.insert(node.span.start, Content::Unreadable);
        }
    }

    /// Reads the text at the path or address in `text`. Returns false if `text` is the text itself.
    fn named_text(&mut self, node: &Node, text: &str, template: bool) -> bool {
        let Some(naming) = naming(text) else { return false };
        let content = match naming {
            Naming::Remote => self.fetched(text),
            Naming::Malformed => {
                let draft = Draft::error(self.place(&node.span), format!("`{text}` is not the address of a file"));
                self.drafts().push(draft.expected("`git::https://host/owner/name//path/of/file?ref=branch`"));
                Content::Unreadable
            }
            Naming::Path(path) | Naming::FileAddress(path) => self.read(node, text, path),
        };
        if template && let Content::Text { file, text } = &content {
            let found = readings(text, Locate::File(*file));
            self.take(found);
        }
        self.contents.insert(node.span.start, content);
        true
    }

    /// Reads a file of the app's directory.
    fn read(&mut self, node: &Node, text: &str, path: &str) -> Content {
        let relative = if Path::new(path).is_absolute() {
            self.app.files.tree().relative(Path::new(path))
        } else {
            self.app.files.named(self.file, path)
        };
        let Some(relative) = relative else {
            let draft = Draft::error(self.place(&node.span), format!("`{text}` is outside of the app's directory"));
            self.drafts().push(draft.help("move the file into the app's directory"));
            return Content::Unreadable;
        };
        match self.app.files.read(&relative) {
            Ok(file) => Content::Text { file, text: self.app.files.text(file).to_owned() },
            Err(reason) => {
                // If two files name the same unreadable file, this is one mistake.
                let place = self.place(&node.span);
                let App { drafts, unreadable, .. } = &mut *self.app;
                if let Some(first) = unreadable.get(&relative).and_then(|at| drafts.get_mut(*at)) {
                    first.also(place, "named here too");
                    return Content::Unreadable;
                }
                unreadable.insert(relative, drafts.len());
                let draft = match self.app.files.absent_directory(self.file, path) {
                    Some(directory) => {
                        Draft::absent(self.app.purpose.unsupported(), place, &format!("`{text}`"), directory)
                    }
                    None => {
                        let message = format!("`{text}` cannot be read: {reason}");
                        let help = "create the file, or correct the path: it is relative to this file or to the app's \
                                    directory";
                        Draft::error(place, message).help(help)
                    }
                };
                self.drafts().push(draft);
                Content::Unreadable
            }
        }
    }

    /// Returns the text at an address. If the caller did not provide it, records that it is needed.
    fn fetched(&mut self, address: &str) -> Content {
        let App { files, fetched, addresses, .. } = &mut *self.app;
        let Some(text) = fetched.get(address) else {
            addresses.missing.insert(address.to_owned());
            return Content::Unfetched;
        };
        let file =
            *addresses.files.entry(address.to_owned()).or_insert_with(|| files.add(address.to_owned(), text.clone()));
        Content::Text { file, text: text.clone() }
    }

    fn inline_template(&mut self, node: &Node, text: &str) {
        if let Some(found) = references::in_single_braces(text) {
            let start = Offsets::new(self.app.files.text(self.file), &node.span).of(found.start);
            let place = self.place(&(start..start + found.len()));
            self.drafts().push(references::single_braces(place, text.get(found).unwrap_or_default()));
        }
        if text.contains("{{") {
            let offsets = Offsets::new(self.app.files.text(self.file), &node.span);
            let found = readings(text, Locate::Inline(self.file, offsets));
            self.take(found);
        }
    }

    fn take(&mut self, found: Result<Vec<Reading>, Box<Draft>>) {
        match found {
            Ok(found) => self.uses.extend(found),
            Err(draft) => self.drafts().push(*draft),
        }
    }
}

/// The names of types in other languages, each with the type of an input that it means.
const SYNONYMS: [(&str, &str); 10] = [
    ("int", "number"),
    ("integer", "number"),
    ("float", "number"),
    ("boolean", "bool"),
    ("str", "string"),
    ("text", "string"),
    ("array", "list"),
    ("set", "list"),
    ("map", "json"),
    ("object", "json"),
];

/// Returns the word among `words` that `text` means in another language.
fn synonym(text: &str, words: &[&'static str]) -> Option<&'static str> {
    let (_, meant) = SYNONYMS.iter().find(|(other, _)| text.eq_ignore_ascii_case(other))?;
    words.iter().copied().find(|word| word == meant)
}

/// Parses a template. Returns the paths that it reads.
fn readings(text: &str, mut locate: Locate<'_>) -> Result<Vec<Reading>, Box<Draft>> {
    let template = Template::parse(text).map_err(|error| {
        Box::new(Draft::error(locate.place(error.offset, 1), format!("template: {}", error.message)))
    })?;
    let uses = template.uses().into_iter();
    let read = uses.map(|found| {
        let place = locate.place(found.offset, path_length(text, found.offset));
        Reading { place, path: found.path, guarded: found.guarded }
    });
    Ok(read.collect())
}

/// Returns the length, in bytes, of the path that starts at `offset` in `text`.
fn path_length(text: &str, offset: usize) -> usize {
    let rest = text.get(offset..).unwrap_or_default();
    rest.find(|c: char| !(c.is_alphanumeric() || "._$-".contains(c))).unwrap_or(rest.len()).max(1)
}

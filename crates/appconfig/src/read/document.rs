//! Parses a TOML file into a tree in which every key and value has its position.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::Value;
use toml_edit::{Document, Item, TableLike};

/// A parsed value and its position, in bytes of the file.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) span: Range<usize>,
    pub(crate) data: Data,
}

/// The content of a value.
#[derive(Debug, Clone)]
pub(crate) enum Data {
    Text(String),
    Whole(i64),
    Fraction(f64),
    Flag(bool),
    Date(String),
    List(Vec<Node>),
    Table(Vec<Entry>),
}

/// A key and its value.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_span: Range<usize>,
    pub(crate) value: Node,
}

/// A syntax error: its place and the reason.
#[derive(Debug)]
pub(crate) struct Malformed {
    pub(crate) message: String,
    pub(crate) span: Range<usize>,
}

/// Parses `text` as TOML.
pub(crate) fn parse(text: &str) -> Result<Node, Malformed> {
    let document = Document::parse(text).map_err(|error| Malformed {
        message: error.message().lines().next().unwrap_or_default().trim().to_owned(),
        span: error.span().unwrap_or(0..0),
    })?;
    Ok(Node { span: 0..0, data: Data::Table(table(document.as_table(), &(0..0))) })
}

fn table(table: &dyn TableLike, around: &Range<usize>) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (name, item) in table.iter() {
        let key = table.key(name);
        let key_span = key.and_then(toml_edit::Key::span).unwrap_or_else(|| around.clone());
        entries.push(Entry { key: name.to_owned(), value: item_node(item, &key_span), key_span });
    }
    entries
}

fn item_node(item: &Item, around: &Range<usize>) -> Node {
    let span = item.span().filter(|span| !span.is_empty()).unwrap_or_else(|| around.clone());
    let data = match item {
        Item::None => Data::Table(Vec::new()),
        Item::Value(value) => return value_node(value, around),
        Item::Table(inner) => Data::Table(table(inner, &span)),
        Item::ArrayOfTables(tables) => Data::List(
            tables
                .iter()
                .map(|inner| {
                    let span = inner.span().unwrap_or_else(|| span.clone());
                    Node { data: Data::Table(table(inner, &span)), span }
                })
                .collect(),
        ),
    };
    Node { span, data }
}

fn value_node(value: &toml_edit::Value, around: &Range<usize>) -> Node {
    let span = value.span().unwrap_or_else(|| around.clone());
    let data = match value {
        toml_edit::Value::String(text) => Data::Text(text.value().clone()),
        toml_edit::Value::Integer(number) => Data::Whole(*number.value()),
        toml_edit::Value::Float(number) => Data::Fraction(*number.value()),
        toml_edit::Value::Boolean(flag) => Data::Flag(*flag.value()),
        toml_edit::Value::Datetime(date) => Data::Date(date.value().to_string()),
        toml_edit::Value::Array(items) => Data::List(items.iter().map(|item| value_node(item, &span)).collect()),
        toml_edit::Value::InlineTable(inner) => Data::Table(table(inner, &span)),
    };
    Node { span, data }
}

impl Node {
    /// Returns the entries of a table; empty for another value.
    pub(crate) fn entries(&self) -> &[Entry] {
        match &self.data {
            Data::Table(entries) => entries,
            _ => &[],
        }
    }

    /// Returns the elements of a list. A single table counts as a list with one element.
    pub(crate) fn items(&self) -> &[Node] {
        match &self.data {
            Data::List(items) => items,
            Data::Table(_) => std::slice::from_ref(self),
            _ => &[],
        }
    }

    /// Returns the elements of a list by value; none for another value.
    pub(crate) fn into_items(self) -> Vec<Self> {
        match self.data {
            Data::List(items) => items,
            _ => Vec::new(),
        }
    }

    /// Returns the elements of a list; empty for another value.
    pub(crate) fn elements(&self) -> &[Node] {
        match &self.data {
            Data::List(items) => items,
            _ => &[],
        }
    }

    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| entry.key == key)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// Returns the elements of the list under `key`, usually tables. A single table counts as a list with one element.
    pub(crate) fn tables(&self, key: &str) -> &[Node] {
        self.get(key).map_or(&[], Node::items)
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        match &self.data {
            Data::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the string under `key`.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.get(key).and_then(Node::as_text)
    }

    /// Returns the boolean under `key`; `false` if there is none.
    pub(crate) fn flag(&self, key: &str) -> bool {
        matches!(self.get(key), Some(Node { data: Data::Flag(true), .. }))
    }

    /// Returns whether the value is `false`, zero or empty.
    pub(crate) fn is_nothing(&self) -> bool {
        match &self.data {
            Data::Text(text) | Data::Date(text) => text.is_empty(),
            Data::Whole(number) => *number == 0,
            Data::Fraction(number) => *number == 0.0,
            Data::Flag(flag) => !flag,
            Data::List(items) => items.is_empty(),
            Data::Table(entries) => entries.is_empty(),
        }
    }

    /// Returns the name of the value's type in messages.
    pub(crate) const fn kind(&self) -> &'static str {
        match self.data {
            Data::Text(_) => "a string",
            Data::Whole(_) | Data::Fraction(_) => "a number",
            Data::Flag(_) => "a boolean",
            Data::Date(_) => "a date",
            Data::List(_) => "a list",
            Data::Table(_) => "a table",
        }
    }

    /// Returns the value as JSON, with sorted keys in every build. A date becomes a string.
    pub(crate) fn to_json(&self) -> Value {
        match &self.data {
            Data::Text(text) | Data::Date(text) => Value::from(text.as_str()),
            Data::Whole(number) => Value::from(*number),
            Data::Fraction(number) => Value::from(*number),
            Data::Flag(flag) => Value::from(*flag),
            Data::List(items) => items.iter().map(Self::to_json).collect(),
            Data::Table(entries) => {
                let sorted: BTreeMap<&String, &Self> = entries.iter().map(|entry| (&entry.key, &entry.value)).collect();
                Value::Object(sorted.into_iter().map(|(key, value)| (key.clone(), value.to_json())).collect())
            }
        }
    }

    /// Returns a scalar as the text that environment variables and stack parameters need; `None` for lists and tables.
    pub(crate) fn to_scalar_text(&self) -> Option<String> {
        match &self.data {
            Data::Text(text) | Data::Date(text) => Some(text.clone()),
            Data::Whole(number) => Some(number.to_string()),
            Data::Fraction(number) => Some(number.to_string()),
            Data::Flag(flag) => Some(flag.to_string()),
            Data::List(_) | Data::Table(_) => None,
        }
    }
}

/// Converts an offset in the value of a TOML string to an offset in the file, both in bytes. `span` is the position of
/// the string in the file, with its quotes.
pub(crate) fn offset_in_file(text: &str, span: &Range<usize>, offset: usize) -> usize {
    Offsets::new(text, span).of(offset)
}

/// Converts offsets in the value of one TOML string to offsets in the file. Offsets that are passed in rising order
/// need only one pass over the string.
#[derive(Debug)]
pub(crate) struct Offsets<'a> {
    raw: &'a str,
    start: usize,
    first: usize,
    escapes: bool,
    /// The progress of the search, in bytes of `raw`.
    at: usize,
    /// The progress of the search, in bytes of the string's value.
    decoded: usize,
}

impl<'a> Offsets<'a> {
    /// Returns a converter for the string at `span` of `text`. `span` includes the quotes.
    pub(crate) fn new(text: &'a str, span: &Range<usize>) -> Self {
        let raw = text.get(span.clone()).unwrap_or_default();
        let (quotes, escapes) = match raw {
            r if r.starts_with("'''") => (3, false),
            r if r.starts_with("\"\"\"") => (3, true),
            r if r.starts_with('"') => (1, true),
            _ => (1, false),
        };
        // The first line break after three quotes does not belong to the string (TOML 1.0, "String").
        let first = match raw.get(3..).filter(|_| quotes == 3) {
            Some(rest) if rest.starts_with("\r\n") => quotes + 2,
            Some(rest) if rest.starts_with('\n') => quotes + 1,
            _ => quotes,
        };
        Self { raw, start: span.start, first, escapes, at: first, decoded: 0 }
    }

    /// Returns the offset in the file of byte `offset` of the string's value.
    pub(crate) fn of(&mut self, offset: usize) -> usize {
        if offset < self.decoded {
            (self.at, self.decoded) = (self.first, 0);
        }
        while self.decoded < offset {
            let Some(rest) = self.raw.get(self.at..) else { break };
            let Some(first) = rest.chars().next() else { break };
            let (width, length) =
                if self.escapes && first == '\\' { escape(rest) } else { (first.len_utf8(), first.len_utf8()) };
            self.at += width;
            self.decoded += length;
        }
        self.start + self.at.min(self.raw.len())
    }
}

/// Returns the length of the escape sequence at the start of `rest`, and the length of the character that it encodes,
/// both in bytes.
fn escape(rest: &str) -> (usize, usize) {
    let code = |digits: usize| {
        let value = rest.get(2..2 + digits).and_then(|hex| u32::from_str_radix(hex, 16).ok()).and_then(char::from_u32);
        (2 + digits, value.map_or(1, char::len_utf8))
    };
    match rest.as_bytes().get(1) {
        Some(b'u') => code(4),
        Some(b'U') => code(8),
        Some(b'x') => code(2),
        Some(b'\n' | b'\r' | b' ' | b'\t') => {
            let after = rest.get(1..).unwrap_or_default();
            (1 + after.len() - after.trim_start().len(), 0)
        }
        _ => (2, 1),
    }
}

//! Parses a template into a tree in which every value has its line; short forms such as `!Ref` are expanded.

use std::collections::BTreeMap;

use saphyr_parser::{Event, Parser, Span, StrInput, Tag};

/// How deep values may nest.
const MAX_DEPTH: usize = 64;
/// How many values a template may hold: the largest templates that CloudFormation accepts have a tenth of that.
const MAX_VALUES: usize = 500_000;

/// Why a text is not a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct Unreadable {
    pub line: usize,
    pub reason: String,
}

/// A value and where it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    /// From 1.
    pub(crate) line: usize,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Text(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl Node {
    /// Returns the entries of a map; none of anything else.
    pub(crate) fn entries(&self) -> &[(String, Self)] {
        match &self.kind {
            Kind::Map(entries) => entries,
            Kind::Text(_) | Kind::List(_) => &[],
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        self.entries().iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    pub(crate) fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            Kind::List(_) | Kind::Map(_) => None,
        }
    }

    /// Returns the values of a list, or a single value in place of a list; of an `Fn::If`, both sides. `AWS::NoValue` is
    /// left out.
    pub(crate) fn each(&self) -> Vec<&Self> {
        if let Some(sides) = self.get("Fn::If") {
            return sides.items().iter().skip(1).flat_map(Self::each).collect();
        }
        match &self.kind {
            Kind::List(items) => items.iter().flat_map(Self::each).collect(),
            Kind::Map(_) if self.get("Ref").and_then(Self::text) == Some("AWS::NoValue") => Vec::new(),
            Kind::Map(_) | Kind::Text(_) => vec![self],
        }
    }

    /// Returns whether the value is `text`, under any condition.
    pub(crate) fn names(&self, text: &str) -> bool {
        self.each().iter().any(|one| one.to_text() == text)
    }

    /// Returns the condition of an `Fn::If`.
    pub(crate) fn condition(&self) -> Option<&str> {
        self.get("Fn::If")?.items().first()?.text()
    }

    /// Returns the condition of an `Fn::If` that has `AWS::NoValue` on one side, and whether a true condition chooses the
    /// other side.
    pub(crate) fn choice(&self) -> Option<(&str, bool)> {
        let sides: Vec<bool> = self.get("Fn::If")?.items().iter().skip(1).map(|side| side.each().is_empty()).collect();
        match sides.as_slice() {
            [false, true] => Some((self.condition()?, true)),
            [true, false] => Some((self.condition()?, false)),
            _ => None,
        }
    }

    /// Returns whether the value is `AWS::NoValue` under some condition.
    pub(crate) fn may_be_nothing(&self) -> bool {
        match self.get("Fn::If") {
            Some(sides) => sides.items().iter().skip(1).any(Self::may_be_nothing),
            None => self.get("Ref").and_then(Self::text) == Some("AWS::NoValue"),
        }
    }

    pub(crate) fn items(&self) -> &[Self] {
        match &self.kind {
            Kind::List(items) => items,
            Kind::Text(_) | Kind::Map(_) => &[],
        }
    }

    /// Returns the value as CloudFormation's `Fn::Sub` would write it: `${Name}` for a reference. A value that is not
    /// known is `*`, so that a rule assumes the worst.
    pub(crate) fn to_text(&self) -> String {
        if let Some(text) = self.text() {
            return text.to_owned();
        }
        if let Some(name) = self.get("Ref").and_then(Self::text) {
            return format!("${{{name}}}");
        }
        if let Some(sub) = self.get("Fn::Sub") {
            return sub.text().or_else(|| sub.items().first()?.text()).unwrap_or("*").to_owned();
        }
        if let Some(of) = self.get("Fn::GetAtt") {
            let parts: Vec<&str> = of.items().iter().filter_map(Self::text).collect();
            return format!("${{{}}}", parts.join("."));
        }
        "*".to_owned()
    }

    /// Calls `look` with this value and every one below it.
    pub(crate) fn walk<'n>(&'n self, look: &mut impl FnMut(&'n Self)) {
        look(self);
        match &self.kind {
            Kind::Text(_) => {}
            Kind::List(items) => items.iter().for_each(|item| item.walk(look)),
            Kind::Map(entries) => entries.iter().for_each(|(_, value)| value.walk(look)),
        }
    }
}

/// Reads a template.
///
/// # Errors
/// When the text is not a template: the reason and the line.
pub(crate) fn read(text: &str) -> Result<Node, Unreadable> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader { events: Parser::new_from_str(text), anchors: BTreeMap::new(), left: MAX_VALUES, line: 1 };
    let mut event = reader.next()?;
    while matches!(event, Event::StreamStart | Event::DocumentStart(_)) {
        event = reader.next()?;
    }
    if matches!(event, Event::StreamEnd) {
        return Err(reader.wrong("it is empty"));
    }
    let root = reader.value(event, 0)?;
    let mut event = reader.next()?;
    while matches!(event, Event::DocumentEnd) {
        event = reader.next()?;
    }
    if matches!(event, Event::StreamEnd) { Ok(root) } else { Err(reader.wrong("there is a second document")) }
}

struct Reader<'t> {
    events: Parser<'t, StrInput<'t>>,
    anchors: BTreeMap<usize, (Node, usize)>,
    /// How many more values may come.
    left: usize,
    line: usize,
}

impl<'t> Reader<'t> {
    fn next(&mut self) -> Result<Event<'t>, Unreadable> {
        match self.events.next() {
            Some(Ok((event, span))) => {
                let Span { start, .. } = span;
                self.line = start.line();
                Ok(event)
            }
            Some(Err(error)) => Err(Unreadable { line: error.marker().line(), reason: error.info().to_owned() }),
            None => Ok(Event::StreamEnd),
        }
    }

    fn wrong(&self, reason: impl Into<String>) -> Unreadable {
        Unreadable { line: self.line, reason: reason.into() }
    }

    fn value(&mut self, event: Event<'t>, depth: usize) -> Result<Node, Unreadable> {
        if depth > MAX_DEPTH {
            return Err(self.wrong(format!("it nests deeper than {MAX_DEPTH}")));
        }
        let (line, before) = (self.line, self.left);
        self.count(1)?;
        let (anchor, tag, kind) = match event {
            Event::Scalar(text, _, anchor, tag) => (anchor, tag, Kind::Text(text.into_owned())),
            Event::SequenceStart(anchor, tag) => (anchor, tag, Kind::List(self.list(depth)?)),
            Event::MappingStart(anchor, tag) => (anchor, tag, Kind::Map(self.map(depth)?)),
            Event::Alias(anchor) => {
                let (node, size) = self
                    .anchors
                    .get(&anchor)
                    .cloned()
                    .ok_or_else(|| self.wrong("an alias refers to an anchor that does not exist"))?;
                self.count(size)?;
                return Ok(node);
            }
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd
            | Event::SequenceEnd
            | Event::MappingEnd => return Err(self.wrong("it ends too early")),
        };
        let node = written_out(Node { line, kind }, tag.as_deref());
        if anchor > 0 {
            self.anchors.insert(anchor, (node.clone(), before - self.left));
        }
        Ok(node)
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Node>, Unreadable> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                Event::SequenceEnd => return Ok(items),
                event => items.push(self.value(event, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Vec<(String, Node)>, Unreadable> {
        let mut entries: Vec<(String, Node)> = Vec::new();
        loop {
            let key = match self.next()? {
                Event::MappingEnd => return Ok(entries),
                event => self.value(event, depth + 1)?,
            };
            let Some(name) = key.text() else { return Err(self.wrong("a key is not a text")) };
            // Some readers use the last of equal keys, others the first.
            if entries.iter().any(|(known, _)| known == name) {
                return Err(Unreadable { line: key.line, reason: format!("key `{name}` is given twice") });
            }
            let event = self.next()?;
            let value = self.value(event, depth + 1)?;
            entries.push((name.to_owned(), value));
        }
    }

    fn count(&mut self, values: usize) -> Result<(), Unreadable> {
        let left = self.left.checked_sub(values);
        self.left = left.ok_or_else(|| self.wrong(format!("it holds more than {MAX_VALUES} values")))?;
        Ok(())
    }
}

/// Expands a short form: `!Ref A` is `{Ref: A}`, `!GetAtt A.B` is `{Fn::GetAtt: [A, B]}`.
fn written_out(node: Node, tag: Option<&Tag>) -> Node {
    let Some(tag) = tag.filter(|tag| tag.handle == "!") else { return node };
    let line = node.line;
    let name = match tag.suffix.as_str() {
        "Ref" | "Condition" => tag.suffix.clone(),
        other => format!("Fn::{other}"),
    };
    let value = match (&*name, node.text()) {
        ("Fn::GetAtt", Some(text)) => {
            let parts = text.splitn(2, '.').map(|part| Node { line, kind: Kind::Text(part.to_owned()) });
            Node { line, kind: Kind::List(parts.collect()) }
        }
        _ => node,
    };
    Node { line, kind: Kind::Map(vec![(name, value)]) }
}

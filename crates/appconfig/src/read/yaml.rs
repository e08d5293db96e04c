//! Parses YAML into the same tree as TOML, in which every key and value has its position. Scalars become strings, and
//! short forms of CloudFormation such as `!Ref` become their long forms.

use std::collections::BTreeMap;
use std::ops::Range;

use saphyr_parser::{Event, Parser, Span, StrInput, Tag};

use crate::read::document::{Data, Entry, Malformed, Node};

/// The maximum depth of nested values.
const MAX_DEPTH: usize = 64;
/// The maximum number of values in a document. Values that aliases repeat are counted again.
const MAX_VALUES: usize = 200_000;

/// Parses `text` as one document; an empty text is an empty table.
pub(crate) fn parse(text: &str) -> Result<Node, Malformed> {
    let plain = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader {
        events: Parser::new_from_str(plain),
        offsets: Offsets::new(plain, text.len() - plain.len()),
        anchors: BTreeMap::new(),
        left: MAX_VALUES,
        last: 0..0,
    };
    let mut event = reader.next()?;
    while matches!(event, Event::StreamStart | Event::DocumentStart(_)) {
        event = reader.next()?;
    }
    if matches!(event, Event::StreamEnd) {
        return Ok(Node { span: 0..0, data: Data::Table(Vec::new()) });
    }
    let root = reader.value(event, 0)?;
    let mut event = reader.next()?;
    while matches!(event, Event::DocumentEnd) {
        event = reader.next()?;
    }
    if matches!(event, Event::StreamEnd) { Ok(root) } else { Err(reader.wrong("there is a second document")) }
}

/// Converts positions in characters to positions in bytes. A text of ASCII needs no table.
struct Offsets {
    table: Vec<usize>,
    start: usize,
    length: usize,
}

impl Offsets {
    fn new(text: &str, start: usize) -> Self {
        let table = if text.is_ascii() { Vec::new() } else { text.char_indices().map(|(at, _)| at).collect() };
        Self { table, start, length: text.len() }
    }

    fn byte(&self, index: usize) -> usize {
        let at = if self.table.is_empty() { index } else { self.table.get(index).copied().unwrap_or(self.length) };
        self.start + at.min(self.length)
    }
}

struct Reader<'t> {
    events: Parser<'t, StrInput<'t>>,
    offsets: Offsets,
    /// The value of each anchor, and the number of values in it.
    anchors: BTreeMap<usize, (Node, usize)>,
    left: usize,
    /// The position of the last event, in bytes.
    last: Range<usize>,
}

impl<'t> Reader<'t> {
    fn next(&mut self) -> Result<Event<'t>, Malformed> {
        match self.events.next() {
            Some(Ok((event, Span { start, end, .. }))) => {
                let start = self.offsets.byte(start.index());
                self.last = start..self.offsets.byte(end.index()).max(start);
                Ok(event)
            }
            Some(Err(error)) => {
                let at = self.offsets.byte(error.marker().index());
                Err(Malformed { message: error.info().to_owned(), span: at..at + 1 })
            }
            None => Ok(Event::StreamEnd),
        }
    }

    fn wrong(&self, message: impl Into<String>) -> Malformed {
        Malformed { message: message.into(), span: self.last.clone() }
    }

    fn value(&mut self, event: Event<'t>, depth: usize) -> Result<Node, Malformed> {
        if depth > MAX_DEPTH {
            return Err(self.wrong(format!("the value is nested more than {MAX_DEPTH} levels deep")));
        }
        let (span, before) = (self.last.clone(), self.left);
        self.count(1)?;
        let (anchor, tag, data) = match event {
            Event::Scalar(text, _, anchor, tag) => (anchor, tag, Data::Text(text.into_owned())),
            Event::SequenceStart(anchor, tag) => (anchor, tag, Data::List(self.list(depth)?)),
            Event::MappingStart(anchor, tag) => (anchor, tag, Data::Table(self.table(depth)?)),
            Event::Alias(anchor) => {
                let known = self.anchors.get(&anchor).cloned();
                let (node, size) =
                    known.ok_or_else(|| self.wrong("an alias refers to an anchor that does not exist"))?;
                self.count(size)?;
                return Ok(Node { span, data: node.data });
            }
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd
            | Event::SequenceEnd
            | Event::MappingEnd => return Err(self.wrong("the document ends too early")),
        };
        let node = written_out(Node { span, data }, tag.as_deref());
        if anchor > 0 {
            self.anchors.insert(anchor, (node.clone(), before - self.left));
        }
        Ok(node)
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Node>, Malformed> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                Event::SequenceEnd => return Ok(items),
                event => items.push(self.value(event, depth + 1)?),
            }
        }
    }

    fn table(&mut self, depth: usize) -> Result<Vec<Entry>, Malformed> {
        let mut entries = Vec::new();
        loop {
            let key = match self.next()? {
                Event::MappingEnd => return Ok(entries),
                event => self.value(event, depth + 1)?,
            };
            let Data::Text(name) = key.data else {
                return Err(Malformed { message: "a key is not a string".to_owned(), span: key.span });
            };
            let event = self.next()?;
            entries.push(Entry { key: name, key_span: key.span, value: self.value(event, depth + 1)? });
        }
    }

    fn count(&mut self, values: usize) -> Result<(), Malformed> {
        let left = self.left.checked_sub(values);
        self.left = left.ok_or_else(|| self.wrong(format!("the document has more than {MAX_VALUES} values")))?;
        Ok(())
    }
}

/// Converts a short form to its long form: `!Ref A` becomes `{Ref: A}`, `!GetAtt A.B` becomes `{Fn::GetAtt: [A, B]}`.
/// YAML's own tags (`!!str`) are not short forms.
fn written_out(node: Node, tag: Option<&Tag>) -> Node {
    let Some(tag) = tag.filter(|tag| tag.handle == "!" && !tag.suffix.is_empty()) else { return node };
    let span = node.span.clone();
    let key = match tag.suffix.as_str() {
        "Ref" | "Condition" => tag.suffix.clone(),
        other => format!("Fn::{other}"),
    };
    let value = match (key.as_str(), node.as_text()) {
        ("Fn::GetAtt", Some(text)) => {
            let parts = text.splitn(2, '.').map(|part| Node { span: span.clone(), data: Data::Text(part.to_owned()) });
            Node { span: span.clone(), data: Data::List(parts.collect()) }
        }
        _ => node,
    };
    Node { span: span.clone(), data: Data::Table(vec![Entry { key, key_span: span, value }]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_bytes_and_short_forms_are_written_out() {
        let text = "é: !Ref Name\nb:\n  - !GetAtt A.B.C\n  - {c: \"d\"}\n";

        let root = parse(text).unwrap();

        let reference = root.get("é").and_then(|node| node.get("Ref")).unwrap();
        assert_eq!(reference.as_text(), Some("Name"));
        assert!(text[reference.span.clone()].ends_with("Name"), "{:?}", reference.span);
        let list = root.get("b").unwrap().items();
        let parts = list[0].get("Fn::GetAtt").unwrap().items();
        assert_eq!(parts.iter().filter_map(Node::as_text).collect::<Vec<_>>(), ["A", "B.C"]);
        assert_eq!(&text[list[1].get("c").unwrap().span.clone()], "\"d\"");
    }

    #[test]
    fn a_mistake_is_placed() {
        assert!(parse("é: [1, 2\nb: }").unwrap_err().span.start >= 10);
        assert_eq!(parse("a: 1\n---\nb: 2\n").unwrap_err().message, "there is a second document");
        assert_eq!(parse("").unwrap().entries().len(), 0);
    }

    #[test]
    fn repeated_aliases_and_deep_nesting_are_refused() {
        let laughs = (1..9).fold("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned(), |text, at| {
            let list = vec![format!("*a{}", at - 1); 10].join(", ");
            format!("{text}a{at}: &a{at} [{list}]\n")
        });

        assert!(parse(&laughs).unwrap_err().message.contains("more than"));
        assert!(parse(&"[".repeat(100_000)).is_err());
        assert!(parse(&"- ".repeat(100_000)).is_err());
    }
}

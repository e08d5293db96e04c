//! Reads a template strictly: refuses a text that two YAML readers could read as two different templates.

use std::borrow::Cow;
use std::collections::BTreeSet;

use saphyr_parser::{Event, Parser, ScalarStyle, StrInput, Tag};

use crate::node::{Kind, Node};
use crate::scalar::is_text;

/// The maximum depth of nested values.
const MAX_DEPTH: usize = 64;
/// The largest template that CloudFormation reads, in bytes (AWS CloudFormation quotas, "Template body size in an S3
/// object").
const MAX_BYTES: usize = 1_000_000;
/// The names in CloudFormation's short forms, such as `Ref` in `!Ref`.
const SHORT_FORMS: [&str; 21] = [
    "And",
    "Base64",
    "Cidr",
    "Condition",
    "Contains",
    "EachMemberEquals",
    "EachMemberIn",
    "Equals",
    "FindInMap",
    "GetAtt",
    "GetAZs",
    "If",
    "ImportValue",
    "Join",
    "Not",
    "Or",
    "Ref",
    "Select",
    "Split",
    "Sub",
    "Transform",
];

/// The reason why a text is not a template, and the line of the mistake.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct Unreadable {
    pub line: usize,
    pub reason: String,
}

/// Parses a template.
///
/// # Errors
/// [`Unreadable`] when the text is not a template.
pub(crate) fn read(text: &str) -> Result<Node, Unreadable> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    check_characters(text)?;
    let text = with_joined_surrogates(text);
    let mut reader = Reader { events: Parser::new_from_str(&text), line: 1 };
    let mut event = reader.next()?;
    while matches!(event, Event::StreamStart | Event::DocumentStart(_)) {
        event = reader.next()?;
    }
    if matches!(event, Event::StreamEnd) {
        return Err(reader.wrong("the template is empty"));
    }
    let root = reader.value(event, 0)?;
    let mut event = reader.next()?;
    while matches!(event, Event::DocumentEnd) {
        event = reader.next()?;
    }
    if matches!(event, Event::StreamEnd) { Ok(root) } else { Err(reader.wrong("there is a second document")) }
}

/// Refuses a text that is too large, has directives, or has characters that YAML readers interpret in different ways.
fn check_characters(text: &str) -> Result<(), Unreadable> {
    if text.len() > MAX_BYTES {
        let reason =
            format!("the template has {} bytes, more than the {MAX_BYTES} that CloudFormation reads", text.len());
        return Err(Unreadable { line: 1, reason });
    }
    for (at, line) in text.split('\n').enumerate() {
        let wrong = |reason: String| Unreadable { line: at + 1, reason };
        let line = line.strip_suffix('\r').unwrap_or(line);
        let is_odd = |c: char| {
            c != '\t' && c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
        };
        if let Some(odd) = line.chars().find(|c| is_odd(*c)) {
            return Err(wrong(format!(
                "the template has the character U+{:04X}, which readers of YAML interpret in different ways",
                u32::from(odd)
            )));
        }
        if line.starts_with('%') {
            return Err(wrong("the template has a directive, which can change what a tag means".to_owned()));
        }
    }
    Ok(())
}

/// Replaces each pair of surrogates in a JSON template, such as `\\ud83d\\ude00` (RFC 8259, section 7), by the one
/// escape that YAML has for the character, because readers of YAML refuse surrogates. Returns other templates unchanged.
fn with_joined_surrogates(text: &str) -> Cow<'_, str> {
    let is_json = || serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    if !text.contains("\\u") || !is_json() {
        return Cow::Borrowed(text);
    }
    let mut joined = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, escape)) = rest.split_once('\\') {
        joined.push_str(before);
        let unit = |text: &str| u16::from_str_radix(text.get(1..5).filter(|_| text.starts_with('u'))?, 16).ok();
        let second = escape.get(5..).and_then(|text| text.strip_prefix('\\'));
        let pair = unit(escape).zip(second.and_then(unit));
        let character =
            pair.and_then(|(high, low)| char::decode_utf16([high, low]).collect::<Result<Vec<_>, _>>().ok());
        match character.as_deref() {
            Some([character]) => {
                joined.push_str(&format!("\\U{:08X}", u32::from(*character)));
                rest = escape.get(11..).unwrap_or_default();
            }
            _ => {
                // The character after the backslash may be another backslash, which does not begin an escape.
                let end = escape.chars().next().map_or(0, char::len_utf8);
                joined.push('\\');
                joined.push_str(escape.get(..end).unwrap_or_default());
                rest = escape.get(end..).unwrap_or_default();
            }
        }
    }
    joined.push_str(rest);
    Cow::Owned(joined)
}

struct Reader<'t> {
    events: Parser<'t, StrInput<'t>>,
    line: usize,
}

impl<'t> Reader<'t> {
    fn next(&mut self) -> Result<Event<'t>, Unreadable> {
        match self.events.next() {
            Some(Ok((event, span))) => {
                self.line = span.start.line();
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
            return Err(self.wrong(format!("the value is nested more than {MAX_DEPTH} levels deep")));
        }
        let line = self.line;
        let (anchor, tag, is_plain, kind) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                (anchor, tag, style == ScalarStyle::Plain, Kind::Text(text.into_owned()))
            }
            Event::SequenceStart(anchor, tag) => {
                self.check_anchor(anchor)?;
                (anchor, tag, false, Kind::List(self.list(depth)?))
            }
            Event::MappingStart(anchor, tag) => {
                self.check_anchor(anchor)?;
                (anchor, tag, false, Kind::Map(self.map(depth)?))
            }
            Event::Alias(_) => return Err(self.wrong("the template has an alias, which CloudFormation does not read")),
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd
            | Event::SequenceEnd
            | Event::MappingEnd => return Err(self.wrong("the document ends too early")),
        };
        self.check_anchor(anchor)?;
        written_out(Node { line, is_plain, kind }, tag.as_deref())
    }

    fn check_anchor(&self, anchor: usize) -> Result<(), Unreadable> {
        if anchor == 0 {
            Ok(())
        } else {
            Err(self.wrong("the template has an anchor, which CloudFormation does not read"))
        }
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
        let mut known = BTreeSet::new();
        loop {
            let key = match self.next()? {
                Event::MappingEnd => return Ok(entries),
                event => self.value(event, depth + 1)?,
            };
            let Some(name) = key.text() else { return Err(self.wrong("a key is not a string")) };
            let wrong = |reason| Unreadable { line: key.line, reason };
            if name == "<<" {
                return Err(wrong("the template merges maps (`<<`), which CloudFormation does not read".to_owned()));
            }
            if key.is_plain && !is_text(name) {
                return Err(wrong(format!("key `{name}` is not a string; put it into quotes")));
            }
            // Of two equal keys, some readers use the last and others the first.
            if !known.insert(name.to_owned()) {
                return Err(wrong(format!("key `{name}` is given twice")));
            }
            let event = self.next()?;
            let value = self.value(event, depth + 1)?;
            entries.push((name.to_owned(), value));
        }
    }
}

/// Expands a short form: `!Ref A` is `{Ref: A}`, `!GetAtt A.B` is `{Fn::GetAtt: [A, B]}`.
fn written_out(node: Node, tag: Option<&Tag>) -> Result<Node, Unreadable> {
    let Some(tag) = tag else { return Ok(node) };
    let line = node.line;
    if tag.handle != "!" || !SHORT_FORMS.contains(&tag.suffix.as_str()) {
        let reason = format!("the tag `{}{}` is not a function of CloudFormation", tag.handle, tag.suffix);
        return Err(Unreadable { line, reason });
    }
    let name = match tag.suffix.as_str() {
        "Ref" | "Condition" => tag.suffix.clone(),
        other => format!("Fn::{other}"),
    };
    let value = match (&*name, node.text()) {
        ("Fn::GetAtt", Some(text)) => {
            let part = |part: &str| Node { line, is_plain: false, kind: Kind::Text(part.to_owned()) };
            Node { line, is_plain: false, kind: Kind::List(text.splitn(2, '.').map(part).collect()) }
        }
        // A scalar with a tag is always a text, even when it looks like a number.
        (_, Some(_)) => Node { is_plain: false, ..node },
        (_, None) => node,
    };
    Ok(Node { line, is_plain: false, kind: Kind::Map(vec![(name, value)]) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    #[test]
    fn what_readers_take_for_different_things_is_refused() {
        for (text, why) in [
            ("a: &x 1\n", "line 1: the template has an anchor"),
            ("a: &x [1]\n", "line 1: the template has an anchor"),
            ("a: 1\nb: &x {c: 1}\n", "line 2: the template has an anchor"),
            ("a: {<<: {b: 1}}\n", "line 1: the template merges maps"),
            ("a: !!binary aGVsbG8=\n", "line 1: the tag `tag:yaml.org,2002:binary` is not"),
            ("a: !!str 1\n", "line 1: the tag `tag:yaml.org,2002:str` is not"),
            ("a: !Reff B\n", "line 1: the tag `!Reff` is not"),
            ("a: ! B\n", "line 1: the tag"),
            ("a: !<tag:x> B\n", "line 1: the tag"),
            ("%TAG ! tag:x,\n---\na: !Ref B\n", "line 1: the template has a directive"),
            ("a: 1\n---\nb: 1\n", "line 2: there is a second document"),
            ("a: 1\n# x\u{85}b: 1\n", "line 2: the template has the character U+0085"),
            ("a: 1\n# x\u{2028}b: 1\n", "line 2: the template has the character U+2028"),
            ("a: 1\n# x\rb: 1\n", "line 2: the template has the character U+000D"),
            ("a: \"\u{0}\"\n", "line 1: the template has the character U+0000"),
            ("{\"a\": 1, \"\\u0061\": 2}", "line 1: key `a` is given twice"),
            ("no: 1\n", "line 1: key `no` is not a string"),
            ("012345670123: 1\n", "line 1: key `012345670123` is not a string"),
            ("{a: 1}: 1\n", "line 1: a key is not a string"),
        ] {
            assert!(refused(text).starts_with(why), "{text:?}: {}", refused(text));
        }
        assert!(refused(&"a: 1\n".repeat(300_000)).contains("more than the 1000000 that CloudFormation reads"));
        assert!(refused(&("[".repeat(70) + &"]".repeat(70))).contains("is nested more than 64 levels deep"));
    }

    #[test]
    fn a_pair_of_surrogates_in_json_is_one_character_and_in_yaml_a_mistake() {
        let text = |template: &str| read(template).unwrap().get("a").and_then(Node::text).map(str::to_owned).unwrap();

        assert_eq!(text("{\"a\": \"x\\ud83d\\ude00y\"}"), "x😀y");
        assert_eq!(text("{\"a\": \"\\\\ud83d\\u00e9\\\"\\\\\"}"), "\\ud83dé\"\\");
        assert!(read("a: \"\\ud83d\\ude00\"\n").is_err());
        assert!(read("{\"a\": \"\\ud83d\"}").is_err());
        assert!(read("{\"a\": \"\\ude00\\ud83d\"}").is_err());
    }

    #[test]
    fn a_map_of_many_keys_is_read_in_little_time() {
        let many: String = (0..100_000).map(|at| format!("k{at}: 1\n")).collect();

        assert_eq!(read(&many).unwrap().entries().len(), 100_000);
    }
}

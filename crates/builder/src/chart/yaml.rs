//! Reads the YAML of charts and their repositories: maps, lists, texts, booleans and null. A number stays a text,
//! because a version such as `1.10` looks like a number.

use std::collections::BTreeMap;

use saphyr_parser::{Event, Parser, ScalarStyle, StrInput};
use serde_json::{Map, Value};

/// The maximum depth of nested values.
const MAX_DEPTH: usize = 64;
/// The maximum number of values in a text. A value with an anchor counts once more, and an alias counts like the value
/// that it repeats; there, a long string counts as one more value for each [`BYTES_OF_VALUE`] bytes.
const MAX_VALUES: usize = 1_000_000;
const BYTES_OF_VALUE: usize = 64;

/// Returns the first document of `text`.
pub(crate) fn read(text: &str) -> Result<Value, String> {
    Ok(find(text, &[])?.unwrap_or(Value::Null))
}

/// Returns the value at the path `keys` in the first document of `text`; skips the rest without keeping it in memory.
pub(super) fn find(text: &str, keys: &[&str]) -> Result<Option<Value>, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader { events: Parser::new_from_str(text), anchors: BTreeMap::new(), left: MAX_VALUES };
    let mut event = reader.next()?;
    while matches!(event, Event::StreamStart | Event::DocumentStart(_)) {
        event = reader.next()?;
    }
    match event {
        Event::StreamEnd => Ok(None),
        event => reader.under(event, keys),
    }
}

struct Reader<'t> {
    events: Parser<'t, StrInput<'t>>,
    anchors: BTreeMap<usize, Value>,
    /// The number of values that may still be read.
    left: usize,
}

impl<'t> Reader<'t> {
    fn next(&mut self) -> Result<Event<'t>, String> {
        match self.events.next() {
            Some(Ok((event, _))) => Ok(event),
            Some(Err(error)) => Err(format!("line {}: {}", error.marker().line(), error.info())),
            None => Ok(Event::StreamEnd),
        }
    }

    fn under(&mut self, event: Event<'t>, keys: &[&str]) -> Result<Option<Value>, String> {
        let Some((key, keys)) = keys.split_first() else { return self.value(event, 0).map(Some) };
        if !matches!(event, Event::MappingStart(..)) {
            return Ok(None);
        }
        loop {
            let name = match self.next()? {
                Event::MappingEnd => return Ok(None),
                event => self.value(event, 0)?,
            };
            let event = self.next()?;
            if name.as_str() == Some(key) {
                return self.under(event, keys);
            }
            self.pass_over(&event)?;
        }
    }

    /// Reads to the end of the value that begins with `event`.
    fn pass_over(&mut self, event: &Event<'t>) -> Result<(), String> {
        let mut depth = change(event);
        while depth > 0 {
            depth += match self.next()? {
                Event::StreamEnd => return Err("the document ends too early".to_owned()),
                event => change(&event),
            };
        }
        Ok(())
    }

    fn value(&mut self, event: Event<'t>, depth: usize) -> Result<Value, String> {
        if depth > MAX_DEPTH {
            return Err(format!("the value is nested more than {MAX_DEPTH} levels deep"));
        }
        self.count(1)?;
        let (anchor, value) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let plain = style == ScalarStyle::Plain && tag.is_none();
                (anchor, scalar(&text, plain))
            }
            Event::SequenceStart(anchor, _) => {
                let mut items = Vec::new();
                loop {
                    match self.next()? {
                        Event::SequenceEnd => break (anchor, Value::Array(items)),
                        event => items.push(self.value(event, depth + 1)?),
                    }
                }
            }
            Event::MappingStart(anchor, _) => {
                let mut map = Map::new();
                loop {
                    let key = match self.next()? {
                        Event::MappingEnd => break (anchor, Value::Object(map)),
                        event => self.value(event, depth + 1)?,
                    };
                    let event = self.next()?;
                    let value = self.value(event, depth + 1)?;
                    let key = key.as_str().map_or_else(|| key.to_string(), str::to_owned);
                    map.insert(key, value);
                }
            }
            Event::Alias(anchor) => {
                let value =
                    self.anchors.get(&anchor).cloned().ok_or("an alias refers to an anchor that does not exist")?;
                self.count(size(&value))?;
                (0, value)
            }
            _ => return Err("the document ends too early".to_owned()),
        };
        if anchor > 0 {
            self.count(size(&value))?;
            self.anchors.insert(anchor, value.clone());
        }
        Ok(value)
    }

    fn count(&mut self, values: usize) -> Result<(), String> {
        self.left = self.left.checked_sub(values).ok_or(format!("the document has more than {MAX_VALUES} values"))?;
        Ok(())
    }
}

/// Returns by how many levels an event changes the depth: 1, -1 or 0.
const fn change(event: &Event<'_>) -> i32 {
    match event {
        Event::SequenceStart(..) | Event::MappingStart(..) => 1,
        Event::SequenceEnd | Event::MappingEnd => -1,
        _ => 0,
    }
}

/// Returns the value of a scalar by the core schema (YAML 1.2.2, section 10.3.2), except that a number stays a text.
fn scalar(text: &str, plain: bool) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" if plain => Value::Null,
        "true" | "True" | "TRUE" if plain => Value::Bool(true),
        "false" | "False" | "FALSE" if plain => Value::Bool(false),
        text => Value::from(text),
    }
}

fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Object(map) => {
            1 + map.iter().map(|(key, value)| key.len() / BYTES_OF_VALUE + size(value)).sum::<usize>()
        }
        Value::String(text) => 1 + text.len() / BYTES_OF_VALUE,
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn versions_stay_as_they_were_written() {
        let text = "# chart\nversion: 1.10\nappVersion: \"2\"\ndeprecated: true\nhome:\nsources: [a, *x]\n";

        assert!(read(text).is_err(), "an alias of nothing");
        assert_eq!(
            read(&text.replace(", *x", "")).unwrap(),
            json!({ "version": "1.10", "appVersion": "2", "deprecated": true, "home": null, "sources": ["a"] })
        );
    }

    #[test]
    fn one_part_is_found_and_the_rest_is_passed_over() {
        let text =
            "a: [1, {b: 2}]\nentries:\n  other: {x: [1]}\n  web:\n  - version: 1.0.0\n  - version: 2.0.0\nz: 1\n";

        assert_eq!(
            find(text, &["entries", "web"]).unwrap(),
            Some(json!([{ "version": "1.0.0" }, { "version": "2.0.0" }]))
        );
        assert_eq!(find(text, &["entries", "none"]).unwrap(), None);
        assert_eq!(find(text, &["z", "none"]).unwrap(), None);
    }

    #[test]
    fn aliases_that_multiply_are_refused() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for at in 1..9 {
            let before = format!("*a{},", at - 1).repeat(10);
            text.push_str(&format!("a{at}: &a{at} [{before}]\n"));
        }

        let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(1_000_000), "*a, ".repeat(1_000));

        assert!(read(&text).unwrap_err().contains("more than"));
        assert!(read(&long).unwrap_err().contains("more than"));
        assert!(read(&"[".repeat(100)).is_err());
    }
}

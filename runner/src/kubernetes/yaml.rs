//! Reads YAML as `kubectl` and Helm do (sigs.k8s.io/yaml). A text may have many documents. Scalars follow YAML 1.1, in
//! which `yes` is a boolean and `0644` is octal.

use std::collections::BTreeMap;

use saphyr_parser::{Event, Parser, ScalarStyle, StrInput, Tag};
use serde_json::{Map, Number, Value};

/// The maximum depth of nested values.
const MAX_DEPTH: usize = 100;
/// The maximum number of values in a text. A value with an anchor counts once more, and an alias counts like the value
/// that it repeats; there, a long string counts as one more value for each [`BYTES_OF_VALUE`] bytes.
const MAX_VALUES: usize = 2_000_000;
const BYTES_OF_VALUE: usize = 64;

/// Returns the documents of `text`. An empty document is null.
///
/// # Errors
/// A message with the line of the mistake.
pub(crate) fn documents(text: &str) -> Result<Vec<Value>, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader { events: Parser::new_from_str(text), anchors: BTreeMap::new(), left: MAX_VALUES, line: 1 };
    let mut all = Vec::new();
    loop {
        match reader.next()? {
            Event::StreamEnd => return Ok(all),
            Event::StreamStart | Event::DocumentEnd | Event::Nothing => {}
            Event::DocumentStart(_) => reader.anchors.clear(),
            event => all.push(reader.value(event, 0)?),
        }
    }
}

struct Reader<'t> {
    events: Parser<'t, StrInput<'t>>,
    anchors: BTreeMap<usize, Value>,
    left: usize,
    line: usize,
}

impl<'t> Reader<'t> {
    fn next(&mut self) -> Result<Event<'t>, String> {
        match self.events.next() {
            Some(Ok((event, span))) => {
                self.line = span.start.line();
                Ok(event)
            }
            Some(Err(error)) => Err(format!("line {}: {}", error.marker().line(), error.info())),
            None => Ok(Event::StreamEnd),
        }
    }

    fn wrong(&self, what: &str) -> String {
        format!("line {}: {what}", self.line)
    }

    fn value(&mut self, event: Event<'t>, depth: usize) -> Result<Value, String> {
        if depth > MAX_DEPTH {
            return Err(self.wrong(&format!("the value is nested more than {MAX_DEPTH} levels deep")));
        }
        self.count(1)?;
        let (anchor, value) = match event {
            Event::Scalar(text, style, anchor, tag) => (anchor, scalar(&text, style, tag.as_deref())),
            Event::SequenceStart(anchor, _) => (anchor, self.list(depth)?),
            Event::MappingStart(anchor, _) => (anchor, self.map(depth)?),
            Event::Alias(anchor) => {
                let value = self
                    .anchors
                    .get(&anchor)
                    .cloned()
                    .ok_or_else(|| self.wrong("an alias refers to an anchor that does not exist"))?;
                self.count(size(&value))?;
                (0, value)
            }
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd
            | Event::SequenceEnd
            | Event::MappingEnd => return Err(self.wrong("the document ends too early")),
        };
        if anchor > 0 {
            self.count(size(&value))?;
            self.anchors.insert(anchor, value.clone());
        }
        Ok(value)
    }

    fn list(&mut self, depth: usize) -> Result<Value, String> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                Event::SequenceEnd => return Ok(Value::Array(items)),
                event => items.push(self.value(event, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Value, String> {
        let (mut map, mut merged) = (Map::new(), Vec::new());
        loop {
            let (key, plain) = match self.next()? {
                Event::MappingEnd => break,
                Event::Scalar(text, style, 0, None) => (text.into_owned(), style == ScalarStyle::Plain),
                event => match self.value(event, depth + 1)? {
                    Value::String(text) => (text, false),
                    key @ (Value::Null | Value::Bool(_) | Value::Number(_)) => (key.to_string(), false),
                    Value::Array(_) | Value::Object(_) => return Err(self.wrong("a key is not a string")),
                },
            };
            let event = self.next()?;
            let value = self.value(event, depth + 1)?;
            if plain && key == "<<" {
                // Helm and `kubectl` then use the merged value, although the YAML specification gives precedence to the
                // key of the map.
                if let Some(repeated) = common_key(&map, &value) {
                    return Err(
                        self.wrong(&format!("key `{repeated}` is before a `<<` that has it too; write the `<<` first"))
                    );
                }
                merged.push(value);
            } else if map.insert(key.clone(), value).is_some() {
                return Err(self.wrong(&format!("key `{key}` is given twice")));
            }
        }
        merged.into_iter().for_each(|value| merge(&mut map, value));
        Ok(Value::Object(map))
    }

    fn count(&mut self, values: usize) -> Result<(), String> {
        let left = self.left.checked_sub(values);
        self.left = left.ok_or_else(|| self.wrong(&format!("the document has more than {MAX_VALUES} values")))?;
        Ok(())
    }
}

/// Returns a key that both `map` and the value of `<<` have.
fn common_key<'v>(map: &Map<String, Value>, value: &'v Value) -> Option<&'v str> {
    match value {
        Value::Object(more) => more.keys().find(|key| map.contains_key(*key)).map(String::as_str),
        Value::Array(all) => all.iter().find_map(|value| common_key(map, value)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// Adds the keys of `<<` that `map` does not have yet (YAML 1.1, "Merge key").
fn merge(map: &mut Map<String, Value>, value: Value) {
    match value {
        Value::Object(more) => more.into_iter().for_each(|(key, value)| {
            map.entry(key).or_insert(value);
        }),
        Value::Array(all) => all.into_iter().for_each(|value| merge(map, value)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Value {
    match tag {
        Some(tag) if tag.suffix == "str" || tag.suffix == "binary" => Value::from(text),
        Some(_) => plain(text),
        None if style == ScalarStyle::Plain => plain(text),
        None => Value::from(text),
    }
}

/// Returns the value of a plain scalar, by the rules of go-yaml v2, which sigs.k8s.io/yaml uses.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "y" | "Y" | "on" | "On" | "ON" => Value::Bool(true),
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "n" | "N" | "off" | "Off" | "OFF" => Value::Bool(false),
        text => number(text).map_or_else(|| Value::from(text), Value::Number),
    }
}

fn number(text: &str) -> Option<Number> {
    let (sign, digits) = match text.strip_prefix(['-', '+']) {
        Some(rest) if text.starts_with('-') => (-1_i128, rest),
        Some(rest) => (1, rest),
        None => (1, text),
    };
    if !digits.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return None;
    }
    if let Some(whole) = whole(&digits.replace('_', "")) {
        let value = sign * whole;
        return i64::try_from(value).map(Number::from).or_else(|_| u64::try_from(value).map(Number::from)).ok();
    }
    let is_float = digits.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'));
    text.parse::<f64>().ok().filter(|_| is_float).and_then(Number::from_f64)
}

fn whole(digits: &str) -> Option<i128> {
    let radix = |text: &str, radix| (!text.is_empty()).then(|| i128::from_str_radix(text, radix).ok()).flatten();
    if let Some(hex) = digits.strip_prefix("0x") {
        return radix(hex, 16);
    }
    if let Some(binary) = digits.strip_prefix("0b") {
        return radix(binary, 2);
    }
    if let Some(octal) = digits.strip_prefix("0o") {
        return radix(octal, 8);
    }
    if digits.len() > 1 && digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return radix(digits, 8);
    }
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| radix(digits, 10)).flatten()
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
    fn scalars_are_those_of_kubernetes() {
        let text = "mode: 0644\nport: 80\nbig: 1_000\nneg: -5\nhex: 0x1f\nfloat: 1.5\nexp: 1e3\nflag: yes\noff: 'off'\n\
                    time: 08:30\nip: 10.0.0.1\nversion: \"1.20\"\ndate: 2024-01-01\nlead: 089\nempty:\n";

        let all = documents(text).unwrap();

        assert_eq!(
            all,
            [
                json!({ "mode": 420, "port": 80, "big": 1000, "neg": -5, "hex": 31, "float": 1.5, "exp": 1000.0, "flag": true,
                "off": "off", "time": "08:30", "ip": "10.0.0.1", "version": "1.20", "date": "2024-01-01", "lead": 89.0,
                "empty": null })
            ]
        );
    }

    #[test]
    fn a_merge_key_that_would_replace_an_earlier_key_in_helm_is_refused() {
        for text in ["image: own\n<<: {image: other}\n", "image: own\n<<: [{a: 1}, {image: other}]\n"] {
            let refused = documents(text).unwrap_err();

            assert!(refused.contains("key `image` is before a `<<` that has it too"), "{refused}");
        }
        assert_eq!(documents("<<: {image: other}\nimage: own\n").unwrap(), [serde_json::json!({ "image": "own" })]);
    }

    #[test]
    fn documents_anchors_and_merge_keys_are_read() {
        let text = "---\n# nothing\n---\na: &x {one: 1, two: 2}\nb:\n  <<: *x\n  two: 3\n---\n- |\n  text\n";

        let all = documents(text).unwrap();

        assert_eq!(
            all,
            [json!(null), json!({ "a": { "one": 1, "two": 2 }, "b": { "one": 1, "two": 3 } }), json!(["text\n"])]
        );
    }

    /// A few kilobytes must not become gigabytes: the text is read by the runner, outside of a box.
    #[test]
    fn what_aliases_repeat_is_bounded_by_its_bytes() {
        let long = "x".repeat(1_000_000);
        let often = "*long, ".repeat(1_000);
        for value in [long.clone(), format!("{{{long}: 1}}"), format!("[{long}]")] {
            let text = format!("a: &long {value}\nb: [{often}]\n");

            let refused = documents(&text).unwrap_err();

            assert!(refused.ends_with("the document has more than 2000000 values"), "{}", refused.len());
        }
    }

    #[test]
    fn mistakes_have_their_line() {
        assert!(documents("a: 1\nb: [\n").unwrap_err().starts_with("line "));
        assert_eq!(documents("a: 1\na: 2\n").unwrap_err(), "line 2: key `a` is given twice");
        assert!(documents(&"[".repeat(200)).is_err());
    }
}

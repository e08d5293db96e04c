//! Parses the text of a policy document whose strings may be templates. The contract shows this document, and the
//! install stack renders it, so both have the same structure.

use std::collections::BTreeSet;
use std::fmt;

use freehold_template::Template;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The keys whose values the customer does not see, or that decide how a reader interprets the rest of the document.
/// Their values must not contain templates.
pub const PLAIN_KEYS: [&str; 4] = ["Sid", "Id", "Version", "Effect"];

/// The reason why a text is not a policy document with templates in its strings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unparsed {
    /// The text is not JSON. It may be JSON after its templates are rendered.
    NotJson,
    /// The text is JSON, but rendering or parsing it could give a document with another meaning than its text shows.
    Unclear(String),
}

/// Parses the text of a policy: JSON without repeated keys, in which only values contain templates, but not the values
/// of `Sid`, `Id`, `Version` and `Effect`.
pub(crate) fn parse(text: &str) -> Result<Value, Unparsed> {
    if serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() {
        return Err(Unparsed::NotJson);
    }
    let document = without_repeated_keys(text).map_err(Unparsed::Unclear)?;
    check(&document).map_err(Unparsed::Unclear)?;
    Ok(document)
}

/// Parses JSON, and refuses an object with a key that is given twice: parsers differ in which value they use.
pub(crate) fn without_repeated_keys(text: &str) -> Result<Value, String> {
    let OnceEach(value) = serde_json::from_str(text).map_err(|error| error.to_string())?;
    Ok(value)
}

fn check(value: &Value) -> Result<(), String> {
    match value {
        Value::Object(entries) => entries.iter().try_for_each(|(key, value)| {
            if key.contains("{{") {
                return Err(format!("key `{key}` contains a template; write it without one, because only values of a policy can be templates"));
            }
            if PLAIN_KEYS.contains(&key.as_str()) && has_template(value) {
                return Err(format!("`{key}` contains a template; write the text that it stands for"));
            }
            check(value)
        }),
        Value::Array(items) => items.iter().try_for_each(check),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

fn has_template(value: &Value) -> bool {
    texts_in(value).iter().any(|text| text.contains("{{"))
}

/// Returns the texts that are rendered for a policy: each string of a JSON document, or else the whole text.
pub fn rendered_texts(policy: &str) -> Vec<String> {
    let Ok(document) = serde_json::from_str::<Value>(policy) else { return vec![policy.to_owned()] };
    texts_in(&document).into_iter().map(str::to_owned).collect()
}

/// Returns the strings in a JSON value, and the keys of its objects.
pub(crate) fn texts_in(value: &Value) -> Vec<&str> {
    let mut texts = Vec::new();
    collect(value, &mut texts);
    texts
}

/// Returns the names of the inputs that the templates of a policy read. Templates that cannot be parsed are left out.
pub fn inputs_read(policy: &str) -> BTreeSet<String> {
    let templates = rendered_texts(policy).into_iter().filter_map(|text| Template::parse(&text).ok());
    templates.flat_map(|template| template.references()).filter_map(|path| input_of(&path)).collect()
}

/// Returns whether a template of a policy can read the input `name`: by this name, or by a path that leads to all inputs. A
/// template that cannot be parsed may read every input.
pub fn may_read_input(policy: &str, name: &str) -> bool {
    rendered_texts(policy).iter().any(|text| match Template::parse(text) {
        Ok(template) => template.references().iter().any(|path| leads_to_input(path, name)),
        Err(_) => text.contains("{{"),
    })
}

fn leads_to_input(path: &[String], name: &str) -> bool {
    let places = [["nuon", "inputs", "inputs", name], ["nuon", "install", "inputs", name]];
    places.iter().any(|place| path.iter().zip(place).all(|(word, key)| word == key || word == "*"))
}

/// Returns the input that a path of a template reads.
fn input_of(path: &[String]) -> Option<String> {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match path.as_slice() {
        ["nuon", "inputs" | "install", "inputs", name, ..] => Some((*name).to_owned()),
        _ => None,
    }
}

fn collect<'v>(value: &'v Value, texts: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(entries) => entries.iter().for_each(|(key, value)| {
            texts.push(key);
            collect(value, texts);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A JSON value whose objects have each key once.
struct OnceEach(Value);

impl<'de> Deserialize<'de> for OnceEach {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Values).map(Self)
    }
}

struct Values;

impl<'de> Visitor<'de> for Values {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(OnceEach(item)) = items.next_element()? {
            all.push(item);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some((key, OnceEach(value))) = entries.next_entry::<String, OnceEach>()? {
            if all.contains_key(&key) {
                return Err(A::Error::custom(format!("key `{key}` is given twice")));
            }
            all.insert(key, value);
        }
        Ok(Value::Object(all))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn unclear(text: &str) -> String {
        match parse(text) {
            Err(Unparsed::Unclear(reason)) => reason,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn strings_may_be_templates_and_the_structure_may_not() {
        let text = r#"{ "Statement": [{ "Sid": "A", "Effect": "Allow", "Action": "s3:*", "Resource": "{{ .nuon.install.id }}" }] }"#;

        assert_eq!(parse(text).unwrap(), serde_json::from_str::<Value>(text).unwrap());
        assert!(matches!(parse(r#"{ "Resource": {{ .nuon.install.id }} }"#), Err(Unparsed::NotJson)));
        assert!(matches!(parse("{{ .nuon.install.id }}"), Err(Unparsed::NotJson)));
        for key in PLAIN_KEYS {
            let of_key = unclear(&json!({ "Statement": [{ key: "x{{ printf `%c` 34 }}" }] }).to_string());
            assert!(of_key.starts_with(&format!("`{key}` contains a template")), "{of_key}");
        }
        assert!(unclear(r#"{ "{{ `Statement` }}": [] }"#).starts_with("key `{{ `Statement` }}` contains a template"));
        assert!(unclear(r#"{ "\u007b{ .a }}": [] }"#).contains("contains a template"));
        assert!(
            unclear(r#"{ "Statement": [{ "Action": "a", "\u0041ction": "b" }] }"#)
                .starts_with("key `Action` is given twice")
        );
    }

    #[test]
    fn an_input_may_be_read_by_its_name_and_with_all_others() {
        for all in ["{{ range $k, $v := .nuon.inputs.inputs }}{{ $v }}{{ end }}", "{{ toJson .nuon.install }}", "{{ $"]
        {
            assert!(may_read_input(&json!({ "Resource": all }).to_string(), "id"), "{all}");
        }
        let named = json!({ "Resource": "{{ .nuon.install.id }}-{{ .nuon.inputs.inputs.width }}" }).to_string();
        assert!(may_read_input(&named, "width"));
        assert!(!may_read_input(&named, "id") && !may_read_input(&named, "w"));
        assert!(!may_read_input("ReadOnlyAccess", "id"));
    }

    #[test]
    fn inputs_are_found_in_each_string_alone() {
        let escaped = r#"{ "Resource": ["{{ index .nuon.inputs.inputs \"colour\" }}", "\u007b{ .nuon.install.inputs.size }}", "{{"] }"#;

        assert_eq!(inputs_read(escaped), ["colour", "size"].map(str::to_owned).into());
        assert_eq!(inputs_read("{{ .nuon.inputs.inputs.policy }}"), ["policy".to_owned()].into());
    }
}

//! From a table of keys to the JSON Schema of what is written under them.

use serde_json::{Map, Value, json};

use super::{OLD_IMAGE, pattern, rules, sentence};
use crate::kinds::{COMPONENT_TYPES, Kind, component_keys};
use crate::spec::{Holds, Key};

/// Returns the schema of a table with the keys of all `tables`; `path` leads to it, for the rules.
///
/// Keys that are not in the tables are accepted: the reader warns of them and goes on.
pub(super) fn table(path: &str, tables: &[&[Key]]) -> Value {
    let mut object = keys(path, tables);
    for rule in rules::at(path) {
        rule.add_to(&mut object);
    }
    Value::Object(object)
}

fn keys(path: &str, tables: &[&[Key]]) -> Map<String, Value> {
    let all = || tables.iter().copied().flatten();
    let properties: Map<String, Value> = all().map(|key| (key.name.to_owned(), property(path, key))).collect();
    let required: Vec<&str> = all().filter(|key| key.must).map(|key| key.name).collect();
    let mut object = Map::new();
    object.insert("type".to_owned(), json!("object"));
    object.insert("additionalProperties".to_owned(), json!(true));
    object.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        // What an editor writes when it completes the whole table.
        object.insert("x-taplo".to_owned(), json!({ "initKeys": required }));
        object.insert("required".to_owned(), json!(required));
    }
    object
}

fn property(path: &str, key: &Key) -> Value {
    let mut value = held(&format!("{path}.{}", key.name), &key.holds);
    if let Some(object) = value.as_object_mut()
        && let Some(doc) = sentence(key.doc)
    {
        object.insert("description".to_owned(), json!(doc));
    }
    value
}

fn held(path: &str, holds: &Holds) -> Value {
    match holds {
        Holds::Text | Holds::Template | Holds::TemplateFile | Holds::File => json!({ "type": "string" }),
        Holds::Word(words) => json!({ "type": "string", "enum": words }),
        Holds::Flag => json!({ "type": "boolean" }),
        Holds::Whole => json!({ "type": "integer", "minimum": 0 }),
        Holds::Duration(most) => json!({ "type": "string", "pattern": pattern::duration(*most) }),
        Holds::Texts => json!({ "type": "array", "items": { "type": "string" } }),
        Holds::Scalars => {
            json!({ "type": "object", "additionalProperties": { "type": ["string", "number", "boolean"] } })
        }
        Holds::Values => json!({ "type": "object", "additionalProperties": true }),
        Holds::Table(keys) => table(path, &[keys]),
        Holds::Tables(keys) => json!({ "type": "array", "items": table(path, &[keys]) }),
        Holds::Any => json!({}),
    }
}

/// Returns the schema of a table whose values the reader does not look at: its keys with what they mean.
pub(super) fn open_table(keys: &[Key]) -> Value {
    let about = |key: &Key| (key.name.to_owned(), meaning(key));
    json!({ "type": "object", "additionalProperties": true, "properties": keys.iter().map(about).collect::<Map<_, _>>() })
}

/// Returns the schema of any value, with what the key means.
fn meaning(key: &Key) -> Value {
    sentence(key.doc).map_or_else(|| json!({}), |doc| json!({ "description": doc }))
}

/// Returns the schema of a component of type `word`.
pub(super) fn component(word: &str) -> Value {
    let mut schema = table(word, &[Kind::Component.keys(), component_keys(word)]);
    if let Some(object) = schema.as_object_mut() {
        for rule in rules::at("component") {
            rule.add_to(object);
        }
        if let Some(of_type) = object.get_mut("properties").and_then(|all| all.get_mut("type")) {
            let words: Vec<&str> = words_of(word).collect();
            let description = of_type.get("description").cloned();
            *of_type = match words.as_slice() {
                [one] => json!({ "type": "string", "const": one }),
                _ => json!({ "type": "string", "enum": words }),
            };
            if let (Some(of_type), Some(description)) = (of_type.as_object_mut(), description) {
                of_type.insert("description".to_owned(), description);
            }
        }
    }
    schema
}

/// Returns the words that mean the type `word`.
fn words_of(word: &str) -> impl Iterator<Item = &str> {
    std::iter::once(word).chain((word == "container_image").then_some(OLD_IMAGE))
}

/// Returns the schema of a component whose type only its text says.
pub(super) fn any_component() -> Value {
    let mut common = keys("component", &[Kind::Component.keys()]);
    for rule in rules::at("component") {
        rule.add_to(&mut common);
    }
    let types: Vec<&str> = COMPONENT_TYPES.iter().copied().filter(|word| *word != OLD_IMAGE).collect();
    let cases = types.iter().map(|word| {
        let words: Vec<&str> = words_of(word).collect();
        let is_it = json!({ "required": ["type"], "properties": { "type": { "enum": words } } });
        (is_it, component_keys(word), table(word, &[component_keys(word)]))
    });
    switch(common, cases.collect(), json!(true))
}

/// Returns the schema of a table whose form the first condition that holds decides; each with its keys and its schema.
///
/// The keys of all forms are offered with what they mean; what they must hold is asked of the one form only: by an
/// `else` for each, since of a mistake below `oneOf` an editor says only that none fits.
fn switch(common: Map<String, Value>, cases: Vec<(Value, &[Key], Value)>, otherwise: Value) -> Value {
    let mut object = common;
    if let Some(properties) = object.get_mut("properties").and_then(Value::as_object_mut) {
        for key in cases.iter().flat_map(|(_, keys, _)| *keys) {
            properties.entry(key.name).or_insert_with(|| meaning(key));
        }
    }
    let choice = cases.into_iter().rev().fold(
        otherwise,
        |otherwise, (condition, _, schema)| json!({ "if": condition, "then": schema, "else": otherwise }),
    );
    if let Value::Object(choice) = choice {
        object.extend(choice);
    }
    Value::Object(object)
}

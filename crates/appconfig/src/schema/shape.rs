//! Builds the JSON Schema of a table from its keys.

use serde_json::{Map, Value, json};

use super::kind::OLD_IMAGE;
use super::{pattern, rules};
use crate::kinds::spec::{Holds, Key};
use crate::kinds::{COMPONENT_TYPES, Kind, component_keys};

/// Returns the schema of a table with `keys`. `path` identifies the table in the rules.
///
/// Unknown keys are accepted, because the reader only warns about them.
pub(super) fn table(path: &str, keys: &[Key]) -> Value {
    Value::Object(tables(&[(path, keys)]))
}

/// Returns the schema of a table that has the keys and the rules of several tables.
pub(super) fn tables(parts: &[(&str, &[Key])]) -> Map<String, Value> {
    let all = || parts.iter().flat_map(|(path, keys)| keys.iter().map(|key| (*path, key)));
    let properties: Map<String, Value> = all().map(|(path, key)| (key.name.to_owned(), property(path, key))).collect();
    let required: Vec<&str> = all().filter(|(_, key)| key.must).map(|(_, key)| key.name).collect();
    let mut object = Map::new();
    object.insert("type".to_owned(), json!("object"));
    object.insert("additionalProperties".to_owned(), json!(true));
    object.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        // An editor writes these keys when it completes the whole table.
        object.insert("x-taplo".to_owned(), json!({ "initKeys": required }));
        object.insert("required".to_owned(), json!(required));
    }
    for rule in parts.iter().flat_map(|(path, _)| rules::at(path)) {
        rule.add_to(&mut object);
    }
    object
}

fn property(path: &str, key: &Key) -> Value {
    let mut value = held(&format!("{path}.{}", key.name), &key.holds);
    if let Some(object) = value.as_object_mut() {
        object.extend(key.filled.then(|| ("minLength".to_owned(), json!(1))));
        object.extend(key.about().map(|doc| ("description".to_owned(), json!(doc))));
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
        Holds::Table(keys) => table(path, keys),
        Holds::Tables(keys) => json!({ "type": "array", "items": table(path, keys) }),
        Holds::Any => json!({}),
    }
}

/// Returns the schema of a file of `kind`, called `name`. The file has the form of its own kind, or of another kind
/// that [`crate::read::recognition`] recognizes.
pub(super) fn file(kind: Kind, name: &str) -> Value {
    let own = table(name, kind.keys());
    let cases = forms(kind);
    if cases.is_empty() {
        return own;
    }
    let mut common = Map::new();
    common.insert("type".to_owned(), json!("object"));
    common.insert("additionalProperties".to_owned(), json!(true));
    let properties: Map<String, Value> = kind.keys().iter().map(|key| (key.name.to_owned(), meaning(key))).collect();
    common.insert("properties".to_owned(), Value::Object(properties));
    switch(common, cases, own)
}

/// Returns the other forms that a file of `kind` may have: for each form, the condition under which it applies, its
/// keys, and its schema.
fn forms(kind: Kind) -> Vec<(Value, &'static [Key], Value)> {
    let has = |key: &str| json!({ "required": [key] });
    let list = |key: &str| json!({ "required": [key], "properties": { key: { "type": "array" } } });
    let form = |when: Value, name: &str, kind: Kind| vec![(when, kind.keys(), table(name, kind.keys()))];
    let one_of = |key: &str, name: &str, mark: &str| {
        let when = json!({ "required": [mark], "not": { "required": [key] } });
        let keys = kind.keys().iter().find(|one| one.name == key).map(|key| key.holds);
        match keys {
            Some(Holds::Tables(keys)) => vec![(when, keys, table(&format!("{name}.{key}"), keys))],
            _ => Vec::new(),
        }
    };
    match kind {
        Kind::Input | Kind::InputGroup => {
            form(json!({ "anyOf": [has("input"), has("sources"), list("group")] }), "inputs", Kind::Inputs)
        }
        Kind::Inputs => {
            let when = json!({ "required": ["name"], "not": { "anyOf": [has("input"), list("group")] } });
            form(when, "input", Kind::Input)
        }
        Kind::Secret => form(has("secret"), "secrets", Kind::Secrets),
        Kind::Role => {
            let keys: Vec<Value> = Kind::Permissions.keys().iter().map(|key| has(key.name)).collect();
            let mut forms = form(json!({ "anyOf": keys }), "permissions", Kind::Permissions);
            let when = json!({ "required": ["contents"], "not": { "anyOf": [has("type"), has("policies")] } });
            forms.extend(form(when, "named_policy", Kind::NamedPolicy));
            forms
        }
        Kind::BreakGlass => one_of("role", "break_glass", "name"),
        Kind::KubernetesContexts => one_of("kubernetes_context", "kubernetes_contexts", "name"),
        Kind::Policies => one_of("policy", "policies", "contents"),
        Kind::Metadata
        | Kind::NamedPolicy
        | Kind::Secrets
        | Kind::Permissions
        | Kind::OperationRoles
        | Kind::Sandbox
        | Kind::Runner
        | Kind::Stack
        | Kind::Installer
        | Kind::Branch
        | Kind::Triggers
        | Kind::InstallsSource
        | Kind::Component
        | Kind::Action
        | Kind::Install
        | Kind::Runbook => Vec::new(),
    }
}

/// Returns the schema of a table whose values the reader does not check. The schema only describes the keys.
pub(super) fn open_table(keys: &[Key]) -> Value {
    let about = |key: &Key| (key.name.to_owned(), meaning(key));
    json!({ "type": "object", "additionalProperties": true, "properties": keys.iter().map(about).collect::<Map<_, _>>() })
}

/// Returns a schema that accepts any value and describes the key.
fn meaning(key: &Key) -> Value {
    key.about().map_or_else(|| json!({}), |doc| json!({ "description": doc }))
}

/// Returns the schema of a component of type `word`.
pub(super) fn component(word: &str) -> Value {
    let mut schema = tables(&[("component", Kind::Component.keys()), (word, component_keys(word))]);
    let of_type = schema.get_mut("properties").and_then(|all| all.get_mut("type")).and_then(Value::as_object_mut);
    if let Some(of_type) = of_type {
        let words: Vec<&str> = words_of(word).collect();
        match words.as_slice() {
            [one] => {
                of_type.remove("enum");
                of_type.insert("const".to_owned(), json!(one));
            }
            _ => {
                of_type.insert("enum".to_owned(), json!(words));
            }
        }
    }
    Value::Object(schema)
}

/// Returns all names of the component type `word`.
fn words_of(word: &str) -> impl Iterator<Item = &str> {
    std::iter::once(word).chain((word == "container_image").then_some(OLD_IMAGE))
}

/// Returns the schema of a component of any type. Its `type` decides which keys it may have.
pub(super) fn any_component() -> Value {
    let common = tables(&[("component", Kind::Component.keys())]);
    let types: Vec<&str> = COMPONENT_TYPES.iter().copied().filter(|word| *word != OLD_IMAGE).collect();
    let cases = types.iter().map(|word| {
        let words: Vec<&str> = words_of(word).collect();
        let is_it = json!({ "required": ["type"], "properties": { "type": { "enum": words } } });
        (is_it, component_keys(word), table(word, component_keys(word)))
    });
    switch(common, cases.collect(), json!(true))
}

/// Returns the schema of a table that has one of several forms. The first condition that holds decides the form.
///
/// Editors offer the keys of all forms, but only the chosen form checks their values. The forms are nested with `else`.
/// With `oneOf`, an editor would report every mistake only as "no form fits".
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

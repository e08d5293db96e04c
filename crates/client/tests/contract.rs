//! The client has a call for each operation of `docs/openapi.json`, which the API's own code makes.

#![cfg(test)]

use std::collections::{BTreeMap, BTreeSet};

use freehold_client::{Route, calls};
use serde_json::Value;

fn document() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Returns the name of the type that a schema describes: that of its definition, or `Vec<Name>` for a list.
fn name(schema: &Value) -> String {
    match schema["$ref"].as_str() {
        Some(reference) => reference.rsplit('/').next().unwrap().to_owned(),
        None => format!("Vec<{}>", name(&schema["items"])),
    }
}

/// Returns the name that a type of Rust has in the document: without its modules, and `PageOfApp` for `Page<App>`.
fn short(type_name: &str) -> String {
    let parts = type_name.trim_end_matches('>').split('<').map(|part| part.rsplit("::").next().unwrap());
    match parts.collect::<Vec<_>>()[..] {
        ["Page", item] => format!("PageOf{item}"),
        [outer, item] => format!("{outer}<{item}>"),
        [only] => only.to_owned(),
        _ => panic!("`{type_name}` has more parts than the names of the document"),
    }
}

/// Returns one line for each operation of the document: its name, method, path and types.
fn operations(document: &Value) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let of = |content: &Value| name(&content["content"]["application/json"]["schema"]);
            let request = operation.get("requestBody").map_or_else(|| "nothing".to_owned(), of);
            let answer = of(&operation["responses"]["200"]);
            let id = operation["operationId"].as_str().unwrap();
            lines.insert(format!("{id}: {} {path} sends {request}, gets {answer}", method.to_uppercase()));
        }
    }
    lines
}

fn line(route: &Route) -> String {
    let request = route.request.map_or_else(|| "nothing".to_owned(), |name| short(name()));
    let answer = short((route.answer)());
    format!("{}: {} {} sends {request}, gets {answer}", route.operation, route.method, route.path)
}

#[test]
fn every_operation_of_the_api_has_a_call_with_its_method_path_and_types() {
    let calls: BTreeSet<String> = calls::routes().map(|route| line(&route)).collect();

    let wanted = operations(&document());

    assert!(wanted.len() > 70, "docs/openapi.json was read wrongly: {wanted:?}");
    let absent: Vec<_> = wanted.difference(&calls).collect();
    let wrong: Vec<_> = calls.difference(&wanted).collect();
    assert!(
        absent.is_empty() && wrong.is_empty(),
        "crates/client/src/calls.rs lacks {absent:#?} and has instead {wrong:#?}"
    );
}

#[test]
fn a_call_has_a_parameter_for_each_placeholder_of_its_path() {
    for route in calls::routes() {
        let placeholders = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));

        assert_eq!(placeholders.collect::<Vec<_>>(), route.parameters, "{}", route.operation);
    }
}

#[test]
fn a_call_is_named_after_its_operation() {
    let source = include_str!("../src/calls.rs");
    let named: BTreeMap<&str, &str> = source
        .split("    /// ")
        .filter_map(|entry| {
            let (operation, rest) = entry.split_once('\n')?.1.trim_start().split_once(": ")?;
            Some((operation, rest.split_once('(')?.0.split_whitespace().next_back()?))
        })
        .collect();

    for route in calls::routes().filter(|route| route.operation != "CallWebhook") {
        let mut snake = String::new();
        for letter in route.operation.chars() {
            if letter.is_ascii_uppercase() && !snake.is_empty() {
                snake.push('_');
            }
            snake.push(letter.to_ascii_lowercase());
        }
        assert_eq!(named.get(route.operation), Some(&snake.as_str()), "{}", route.operation);
    }
}

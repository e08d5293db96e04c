//! The operations of the API and the actions of the policies are the same.

use std::collections::BTreeSet;

use freehold_access::{UNDECIDED, actions};
use serde_json::Value;

#[test]
fn every_operation_of_the_api_is_an_action_or_needs_no_decision() {
    let document: Value = serde_json::from_str(include_str!("../../../../docs/openapi.json")).unwrap();
    let paths = document["paths"].as_object().unwrap().values().flat_map(|path| path.as_object().unwrap().values());
    let operations: BTreeSet<String> = paths.filter_map(|path| Some(snake(path["operationId"].as_str()?))).collect();
    let known: BTreeSet<&str> = actions().iter().map(|action| action.name).chain(UNDECIDED).collect();

    let unknown: Vec<&String> = operations.iter().filter(|name| !known.contains(name.as_str())).collect();

    assert!(operations.len() > 70, "docs/openapi.json was read wrongly: {operations:?}");
    assert!(unknown.is_empty(), "add these to crates/access/src/actions.rs and access.cedarschema: {unknown:?}");
}

#[test]
fn the_schema_declares_every_action_with_its_class_and_resources() {
    let schema = include_str!("../../src/access.cedarschema");
    let declared = schema.split("\n  action ").skip(1).filter_map(|rest| rest.split_once(" appliesTo "));
    let mut found = BTreeSet::new();
    for (names, rest) in declared {
        let (names, class) = names.split_once(" in [").unwrap();
        let resources = rest.split_once("resource: [").unwrap().1.split(']').next().unwrap();
        found.extend(names.split(',').map(|name| (name.trim(), class.trim_end_matches(']'), resources)));
    }

    let expected: BTreeSet<(&str, &str, &str)> = actions()
        .iter()
        .map(|action| {
            let resources = match (action.has_builds, action.about.as_str()) {
                (true, _) => "Install, App, Tenant",
                (false, "tenant") => "Tenant",
                (false, "app") => "App",
                (false, _) => "Install",
            };
            (action.name, action.class.as_str(), resources)
        })
        .collect();

    assert_eq!(found, expected);
}

/// Returns the name of an operation as the policies write it: `list_apps` for `ListApps`.
fn snake(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

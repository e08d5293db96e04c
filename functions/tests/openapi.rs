//! The OpenAPI document in `docs/` is the one that the code makes.

#![cfg(test)]

use std::collections::BTreeSet;

use freehold_functions::api::openapi;
use freehold_protocol::api::ErrorKind;
use freehold_protocol::app_version::Reference;
use serde_json::Value;

fn operations(document: &Value) -> Vec<&Value> {
    let paths = document["paths"].as_object().unwrap();
    paths.values().flat_map(|path| path.as_object().unwrap().values()).collect()
}

/// Returns what a reference of the document names.
fn shared<'a>(document: &'a Value, reference: &Value) -> &'a Value {
    document.pointer(reference["$ref"].as_str().unwrap().trim_start_matches('#')).unwrap()
}

#[test]
fn the_published_document_is_the_one_that_the_code_makes() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/openapi.json");
    let made = format!("{}\n", serde_json::to_string_pretty(&openapi::document()).unwrap());
    if std::env::var_os("FREEHOLD_UPDATE").is_some() {
        std::fs::write(path, &made).unwrap();
    }

    let published = std::fs::read_to_string(path).unwrap_or_default();

    assert!(
        published == made,
        "docs/openapi.json is out of date; run `FREEHOLD_UPDATE=1 cargo test -p freehold-functions`"
    );
}

#[test]
fn every_route_has_an_answer_and_the_one_error_shape() {
    let document = openapi::document();

    let operations = operations(&document);
    assert_eq!(operations.len(), freehold_functions::api::routes::ROUTES.len());
    for operation in operations {
        let responses = &operation["responses"];
        assert!(responses["200"]["content"]["application/json"]["schema"].is_object());
        for status in ["400", "401", "403", "404", "409", "500", "503"] {
            assert!(shared(&document, &responses[status]).to_string().contains("ErrorBody"), "{status}");
        }
        assert!(shared(&document, &responses["429"])["content"].is_object());
        assert_eq!(responses["413"].is_object(), operation["requestBody"].is_object(), "{}", operation["operationId"]);
    }
}

#[test]
fn every_request_has_a_signature_or_a_token_that_its_operation_accepts() {
    let document = openapi::document();

    let schemes = document["components"]["securitySchemes"].as_object().unwrap();
    for operation in operations(&document) {
        let security = operation.get("security").unwrap_or(&document["security"]);
        let named: Vec<&String> =
            security.as_array().unwrap().iter().flat_map(|one| one.as_object().unwrap().keys()).collect();
        let expected: &[&str] = match operation["operationId"].as_str().unwrap() {
            "CallWebhook" => &["webhook"],
            "AcceptInvitation" => &["person"],
            _ => &["sigv4", "person", "pipeline"],
        };
        assert_eq!(named, expected, "{}", operation["operationId"]);
        assert!(named.iter().all(|name| schemes.contains_key(*name)), "{named:?}");
    }
}

#[test]
fn every_response_names_its_request_and_has_an_example() {
    let document = openapi::document();

    for operation in operations(&document) {
        for (status, response) in operation["responses"].as_object().unwrap() {
            let response = if response["$ref"].is_string() { shared(&document, response) } else { response };
            assert!(response["headers"]["apigw-requestid"].is_object(), "{status} of {}", operation["operationId"]);
            let example = &response["content"]["application/json"]["example"];
            assert!(!example.is_null(), "{status} of {} has no example", operation["operationId"]);
        }
    }
}

#[test]
fn every_body_has_an_example_that_its_type_reads() {
    assert_eq!(openapi::wrong_examples(), Vec::<String>::new());
}

#[test]
fn every_error_has_an_example_of_its_kind() {
    let document = openapi::document();

    for kind in ErrorKind::ALL {
        let response = shared(&document, &operations(&document)[0]["responses"][kind.status().to_string()]);
        let example = &response["content"]["application/json"]["example"];
        assert_eq!(example["error"]["kind"], serde_json::to_value(kind).unwrap(), "{response}");
    }
}

#[test]
fn every_parameter_says_what_the_code_takes() {
    let document = openapi::document();

    for operation in operations(&document) {
        for parameter in operation["parameters"].as_array().unwrap() {
            let schema = match &parameter["schema"] {
                schema if schema["$ref"].is_string() => shared(&document, schema),
                schema => schema,
            };
            assert!(schema["pattern"].is_string(), "{} of {}", parameter["name"], operation["operationId"]);
            assert!(parameter["description"].is_string(), "{} of {}", parameter["name"], operation["operationId"]);
        }
    }
}

#[test]
fn a_set_may_be_sent_with_a_repeated_element_and_no_schema_forbids_it() {
    let one = r#"{ "to": "install_stack", "name": "region" }"#;

    let twice: BTreeSet<Reference> = serde_json::from_str(&format!("[{one}, {one}]")).unwrap();

    assert_eq!(twice, [Reference::InstallStack("region".to_owned())].into());
    assert!(!openapi::document().to_string().contains("uniqueItems"));
}

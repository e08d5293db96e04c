//! The OpenAPI document in `docs/` is the one that the code makes.

#![cfg(test)]

use freehold_functions::api::openapi;

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

    let paths = document["paths"].as_object().unwrap();
    let operations: Vec<_> = paths.values().flat_map(|path| path.as_object().unwrap().values()).collect();
    assert_eq!(operations.len(), freehold_functions::api::routes::ROUTES.len());
    for operation in operations {
        assert!(operation["responses"]["200"]["content"]["application/json"]["schema"].is_object());
        assert!(operation["responses"]["default"]["content"].to_string().contains("ErrorBody"));
    }
}

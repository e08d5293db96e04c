//! The JSON Schemas of all kinds of files, for editors, and the reference in Markdown. Both are generated from the
//! tables of keys that the checks use, and from the rules in this directory.
//!
//! The schemas are draft-07, because the validator of taplo supports no later draft. They use neither `$ref` nor
//! `allOf`, because taplo does not complete keys in these.

mod editor;
mod example;
mod kind;
mod pattern;
mod reference;
mod rule;
mod rules;
mod shape;
#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use crate::kinds::Kind;
use crate::schema::kind::Shape;

pub use editor::taplo_config;
pub use kind::{SchemaKind, UnknownSchema, schema_kinds};
pub use reference::reference;

/// Returns the JSON Schema of files of `kind`.
pub fn schema(kind: SchemaKind) -> Value {
    let mut schema = match kind.0 {
        Shape::File(Kind::Component) => shape::any_component(),
        Shape::File(file) if file.is_open() => shape::open_table(file.keys()),
        Shape::File(file) => shape::file(file, kind.name()),
        Shape::Component(word) => shape::component(word),
    };
    if let Some(object) = schema.as_object_mut() {
        object.insert("$schema".to_owned(), json!("http://json-schema.org/draft-07/schema#"));
        object.insert("$id".to_owned(), json!(format!("urn:freehold:app-config:{}", kind.name())));
        object.insert("title".to_owned(), json!(kind.title()));
    }
    schema.sort_all_objects();
    schema
}

/// Returns all schemas with their names. [`taplo_config`] expects each of them at `schemas/<name>.json`.
pub fn schemas() -> impl Iterator<Item = (&'static str, Value)> {
    schema_kinds().map(|kind| (kind.name(), schema(kind)))
}

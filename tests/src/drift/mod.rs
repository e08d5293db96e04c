//! Terraform modules that a seed draws, and changes of their resources behind Freehold's back, each with what a check has to
//! find.
//!
//! The resources are those of Terraform itself (`terraform_data`): what such a resource is, is in the object that holds the
//! state. So a change of the object is what a change of a resource is to a refresh.

mod by_hand;

use std::fmt::Write as _;

use fastrand::Rng;
use serde_json::{Map, Value, json};

pub use by_hand::{Expected, change_some, instances};

/// A value that no message of a check may contain: each one that is written by hand begins with it.
pub const BY_HAND: &str = "changed-by-hand-4711";

/// The files of a drawn module, by name.
#[must_use]
pub fn module(rng: &mut Rng) -> Vec<(String, String)> {
    let mut main = String::from("module \"inner\" { source = \"./inner\" }\n");
    for (number, form) in
        ["", "count = 2", "for_each = toset([\"a\", \"b.c\"])", "", "count = 3"].into_iter().enumerate()
    {
        resource(&mut main, &format!("r{number}"), form, rng);
    }
    let mut inner = String::new();
    for (number, form) in ["", "for_each = toset([\"x y\", \"z\"])"].into_iter().enumerate() {
        resource(&mut inner, &format!("i{number}"), form, rng);
    }
    vec![("main.tf".to_owned(), main), ("inner/main.tf".to_owned(), inner)]
}

fn resource(text: &mut String, name: &str, form: &str, rng: &mut Rng) {
    let (input, trigger) = (input(rng), json!(format!("t{}", rng.u32(..1000))));
    // What is written as JSON is an expression of Terraform too.
    let _ = writeln!(
        text,
        "resource \"terraform_data\" \"{name}\" {{\n  {form}\n  input = {input}\n  triggers_replace = {trigger}\n}}"
    );
}

/// Draws an object of texts, numbers, switches, lists and maps.
fn input(rng: &mut Rng) -> Value {
    let mut all = Map::new();
    for name in ["name", "size", "enabled", "zones", "tags", "owner"] {
        if rng.u8(..4) == 0 {
            continue;
        }
        let text = format!("v{}", rng.u32(..1000));
        let value = match name {
            "size" => json!(rng.u32(..1000)),
            "enabled" => json!(rng.bool()),
            "zones" => json!([text, "second"]),
            "tags" => json!({ "Owner": text, "Team": "shop" }),
            _ => json!(text),
        };
        all.insert(name.to_owned(), value);
    }
    all.insert("always".to_owned(), json!("there"));
    Value::Object(all)
}

//! Places in the tree that an order carries, made where they are missing.

use serde_json::{Value, json};

/// Returns the value under `key` in `place`. A `place` that is not a map becomes one.
pub(super) fn child<'a>(place: &'a mut Value, key: &str) -> &'a mut Value {
    if !place.is_object() {
        *place = json!({});
    }
    match place {
        Value::Object(map) => map.entry(key).or_insert(Value::Null),
        // INVARIANT: it is a map now.
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => place,
    }
}

//! Accesses values in an order's tree, and creates them when they are missing.

use serde_json::{Value, json};

/// Returns the value under `key` in `place`. If `place` is not a map, an empty map replaces it.
pub(super) fn child<'a>(place: &'a mut Value, key: &str) -> &'a mut Value {
    if !place.is_object() {
        *place = json!({});
    }
    match place {
        Value::Object(map) => map.entry(key).or_insert(Value::Null),
        // INVARIANT: `place` is a map, because the code above made it one.
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => place,
    }
}

//! Converts arguments for the functions of Sprig.

use serde_json::{Map, Value};

use crate::format::print;
use crate::value::{V, kind};

/// Returns a value as a map.
pub(super) fn map(value: &Value) -> Result<&Map<String, Value>, String> {
    value.as_object().ok_or_else(|| format!("expected a map, got {}", kind(value)))
}

/// Returns a value as a list.
pub(super) fn list(value: &Value) -> Result<&Vec<Value>, String> {
    value.as_array().ok_or_else(|| format!("expected a list, got {}", kind(value)))
}

/// Returns the last argument, which may come through a pipe; null when there is none.
pub(super) fn last<'t>(args: &[V<'t>]) -> V<'t> {
    args.last().cloned().unwrap_or_else(V::null)
}

/// Returns the elements of a list as texts, without nulls. A value that is not a list counts as a list with one
/// element.
pub(super) fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().filter(|item| !item.is_null()).map(print).collect(),
        Value::Null => Vec::new(),
        other => vec![print(other)],
    }
}

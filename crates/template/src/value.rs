//! Values during a rendering: references into the JSON tree where possible, otherwise computed values with shared
//! ownership.

use std::rc::Rc;

use serde_json::{Number, Value};

/// A value of the JSON tree over which the template is rendered, or a value that the template computed.
#[derive(Debug, Clone)]
pub(crate) enum V<'t> {
    Tree(&'t Value),
    Made(Rc<Value>),
}

impl<'t> V<'t> {
    pub(crate) fn made(value: Value) -> Self {
        Self::Made(Rc::new(value))
    }

    pub(crate) fn null() -> Self {
        Self::Tree(&Value::Null)
    }

    pub(crate) fn get(&self) -> &Value {
        match self {
            Self::Tree(value) => value,
            Self::Made(value) => value,
        }
    }

    /// Returns the child that `pick` finds. Copies the child of a computed value.
    pub(crate) fn child(&self, pick: impl Fn(&Value) -> Option<&Value>) -> Option<V<'t>> {
        match self {
            Self::Tree(value) => pick(value).map(V::Tree),
            Self::Made(value) => pick(value).map(|child| V::made(child.clone())),
        }
    }
}

/// Returns whether Go's templates treat `value` as true: not null, false, zero or empty.
pub(crate) fn truth(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
    }
}

/// Returns the type of a value, for messages.
pub(crate) const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

/// Returns the name of a value's type in Go's reflection.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}

/// Returns `number` as an integer; `None` when it has a fraction or is too large.
pub(crate) fn whole(number: &Number) -> Option<i64> {
    number.as_i64().or_else(|| {
        let float = number.as_f64()?;
        #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
        (float.fract() == 0.0 && float.abs() < 9e15).then_some(float as i64)
    })
}

/// The maximum depth of a value that a template computes.
const MAX_DEPTH: usize = 100;

/// Returns the approximate size of `value` in bytes; `None` when it is nested deeper than [`MAX_DEPTH`].
pub(crate) fn size(value: &Value) -> Option<usize> {
    size_at(value, 0)
}

fn size_at(value: &Value, depth: usize) -> Option<usize> {
    if depth > MAX_DEPTH {
        return None;
    }
    Some(match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 16,
        Value::String(text) => 16 + text.len(),
        Value::Array(items) => {
            let mut total = 16;
            for item in items {
                total += size_at(item, depth + 1)?;
            }
            total
        }
        Value::Object(map) => {
            let mut total = 16;
            for (key, item) in map {
                total += key.len() + size_at(item, depth + 1)?;
            }
            total
        }
    })
}

/// Returns the entries of a map, sorted by key.
pub(crate) fn entries(map: &serde_json::Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_by(|a, b| a.0.cmp(b.0));
    entries
}

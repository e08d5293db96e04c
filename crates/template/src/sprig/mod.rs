//! The functions of Sprig (<https://masterminds.github.io/sprig/>) that app configs use, with Sprig's argument order:
//! the value comes last, so that it can come through a pipe.

mod choice;
mod data;
mod lists;
mod maps;
mod numbers;
mod patterns;
mod text;

use serde_json::{Map, Value};

use crate::format::print;
use crate::functions::Function;
use crate::value::{V, kind};

pub(crate) static TABLES: [&[Function]; 7] = [
    choice::FUNCTIONS,
    data::FUNCTIONS,
    lists::FUNCTIONS,
    maps::FUNCTIONS,
    numbers::FUNCTIONS,
    patterns::FUNCTIONS,
    text::FUNCTIONS,
];

/// The functions that may also be written `mustX`.
pub(crate) const HAVE_MUST: [&str; 28] = [
    "append",
    "chunk",
    "compact",
    "first",
    "fromJson",
    "has",
    "initial",
    "last",
    "merge",
    "mergeOverwrite",
    "prepend",
    "push",
    "regexFind",
    "regexFindAll",
    "regexMatch",
    "regexReplaceAll",
    "regexReplaceAllLiteral",
    "regexSplit",
    "rest",
    "reverse",
    "slice",
    "toJson",
    "toPrettyJson",
    "toRawJson",
    "uniq",
    "without",
    "concat",
    "dict",
];

fn map(value: &Value) -> Result<&Map<String, Value>, String> {
    value.as_object().ok_or_else(|| format!("expected a map, got {}", kind(value)))
}

fn list(value: &Value) -> Result<&Vec<Value>, String> {
    value.as_array().ok_or_else(|| format!("expected a list, got {}", kind(value)))
}

fn last<'t>(args: &[V<'t>]) -> V<'t> {
    args.last().cloned().unwrap_or_else(V::null)
}

/// Returns the elements of a list as texts without its nulls; another value is a list of one.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().filter(|item| !item.is_null()).map(print).collect(),
        Value::Null => Vec::new(),
        other => vec![print(other)],
    }
}

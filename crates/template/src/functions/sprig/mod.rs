//! The functions of Sprig (<https://masterminds.github.io/sprig/>) that app configs use, with Sprig's argument order:
//! the value comes last, so that it can come through a pipe.

mod arguments;
mod choice;
mod data;
mod lists;
mod maps;
mod numbers;
mod patterns;
mod text;

use crate::functions::function::Function;

pub(crate) static TABLES: [&[Function]; 7] = [
    choice::FUNCTIONS,
    data::FUNCTIONS,
    lists::FUNCTIONS,
    maps::FUNCTIONS,
    numbers::FUNCTIONS,
    patterns::FUNCTIONS,
    text::FUNCTIONS,
];

/// The functions that can also be called by a name with `must`, such as `mustFirst`.
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

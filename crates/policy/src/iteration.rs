//! Makes the engine continue where OPA continues. `some x in y` has no results when `y` is not a collection: plans are
//! full of attributes that are null or a text in one resource and a list in another. A `sprintf` always returns a text.

use anyhow::Result;
use regorus::{Engine, Value};

use crate::token::token;

/// The function in which each collection is wrapped. Policies do not call it.
const FUNCTION: &str = "freehold_collection";

/// A module with a `sprintf` that always has a value, and the beginning of its call. For arguments that do not fit the format the
/// engine has no value, so that a rule with such a message would not deny. OPA denies, with another text.
pub(crate) const SPRINTF: (&str, &str) = (
    "package freehold_format\n\
     text(format, all) := made if { made := sprintf(format, all) } else := concat(\" \", [format, json.marshal(all)])\n",
    "data.freehold_format.text(",
);

/// Adds the function to an engine: it returns a collection as it is, and an empty one for any other value.
pub(crate) fn add_to(engine: &mut Engine) -> Result<()> {
    let collection = |arguments: Vec<Value>| {
        let value = arguments.into_iter().next().unwrap_or(Value::Undefined);
        Ok(match value {
            Value::Array(_) | Value::Set(_) | Value::Object(_) | Value::Undefined => value,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Value::new_array(),
        })
    };
    engine.add_extension(FUNCTION.to_owned(), 1, Box::new(collection))
}

/// Returns `text` with the collection wrapped in the function in each `some ... in`, and with calls of the `sprintf`
/// that always has a value. Lines stay where they are.
pub(crate) fn tolerant(text: &str) -> String {
    let mut found = String::with_capacity(text.len() + 64);
    let mut rest = text;
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        let is_start = !(before.is_ascii_alphanumeric() || before == '_' || before == '.');
        if is_start && let Some(arguments) = rest.strip_prefix("sprintf(") {
            found.push_str(SPRINTF.1);
            before = '(';
            rest = arguments;
            continue;
        }
        if is_start && let Some((head, collection)) = some_in(rest) {
            let body = tolerant(collection);
            found.push_str(&format!("{head}{FUNCTION}({body})"));
            rest = rest.get(head.len() + collection.len()..).unwrap_or_default();
            before = ')';
            continue;
        }
        let length = token(rest);
        let (taken, left) = rest.split_at(length);
        found.push_str(taken);
        before = taken.chars().next_back().unwrap_or(first);
        rest = left;
    }
    found
}

/// Returns `some x in ` and the collection after it, if `text` begins with both.
fn some_in(text: &str) -> Option<(&str, &str)> {
    let after = text.strip_prefix("some").filter(|after| after.starts_with([' ', '\t']))?;
    let at = [" in ", "\tin ", " in\t"].iter().filter_map(|word| after.find(word)).min()?;
    let variables = after.get(..at)?;
    if !variables.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, ' ' | '\t' | ',' | '_')) {
        return None;
    }
    let head = text.get(.."some".len() + at + 4)?;
    let rest = text.get(head.len()..)?;
    let collection = rest.get(..end(rest))?.trim_end();
    (!collection.is_empty()).then_some((head, collection))
}

/// Returns where the expression at the start of `text` ends.
fn end(text: &str) -> usize {
    let (mut at, mut depth) = (0, 0_u32);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        match rest.chars().next() {
            Some('(' | '[' | '{') => depth += 1,
            Some(')' | ']' | '}') if depth == 0 => return at,
            Some(')' | ']' | '}') => depth -= 1,
            Some('\n' | ';' | '#') if depth == 0 => return at,
            Some(' ' | '\t') if depth == 0 && rest.trim_start().starts_with("with ") => return at,
            Some(_) | None => {}
        }
        at += token(rest);
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_collection_is_put_into_the_function() {
        for (text, expected) in [
            ("some x in input.a\nx > 1", "some x in freehold_collection(input.a)\nx > 1"),
            ("some k, v in f({\"a\": [1]}) # why", "some k, v in freehold_collection(f({\"a\": [1]})) # why"),
            ("x := [y | some y in a; y]", "x := [y | some y in freehold_collection(a); y]"),
            ("some x in [z | some z in b]", "some x in freehold_collection([z | some z in freehold_collection(b)])"),
            ("some x in a with input as b", "some x in freehold_collection(a) with input as b"),
            ("a if { some x in b }", "a if { some x in freehold_collection(b) }"),
        ] {
            assert_eq!(tolerant(text), expected);
        }
    }

    #[test]
    fn texts_comments_and_other_words_stay() {
        for text in
            ["# some x in y\n", "a := \"some x in y\"", "awesome x in y", "x in y", "some x\nx in y", "`some x in y`"]
        {
            assert_eq!(tolerant(text), text);
        }
    }
}

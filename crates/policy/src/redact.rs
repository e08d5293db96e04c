//! Takes values of an input document out of a message, so that the message can leave the customer's account.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::messages::CUT;

/// The text that replaces a value.
const TAKEN_OUT: &str = "[value]";
/// Values of fewer characters are too common in other words to be taken out.
const SHORTEST: usize = 4;
/// The keys of an input document whose texts name things: addresses, types and kinds of change of a plan, and kinds and
/// names of a Kubernetes object. A vendor knows them anyway, and a message without them helps nobody.
const NAMES: [&str; 16] = [
    "address",
    "previous_address",
    "module_address",
    "type",
    "name",
    "mode",
    "provider_name",
    "actions",
    "action_reason",
    "kind",
    "apiVersion",
    "namespace",
    "operation",
    "group",
    "version",
    "component",
];

/// Returns `message` without the values of `input`. Texts that the policy itself contains stay, because the author of
/// the policy wrote them.
pub fn redacted(message: &str, inputs: &[Value], policy: &str) -> String {
    let mut values = BTreeSet::new();
    let mut names = BTreeSet::new();
    inputs.iter().for_each(|input| collect(input, "", &mut values, &mut names));
    let mut values: Vec<&String> =
        values.iter().filter(|value| !names.contains(*value) && !policy.contains(value.as_str())).collect();
    // A long value may contain a short one.
    values.sort_by_key(|value| std::cmp::Reverse(value.len()));
    let mut text = message.to_owned();
    for form in values.iter().flat_map(|value| [escaped(value), (*value).clone()]) {
        if text.contains(&form) {
            text = text.replace(&form, TAKEN_OUT);
        }
    }
    match text.strip_suffix(CUT) {
        Some(rest) => format!("{}{CUT}", without_end(rest, &values)),
        None => text,
    }
}

/// Returns a value as a collection shows it: as JSON, with a newline as two characters.
fn escaped(value: &str) -> String {
    let quoted = Value::from(value).to_string();
    quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value).to_owned()
}

/// Returns a text whose end was cut off. If it now ends with the beginning of a value, or of a line of a value, this
/// beginning is replaced. The earlier lines of the value may be gone already, because they are secrets.
fn without_end(text: &str, values: &[&String]) -> String {
    let mut longest = 0;
    for form in values.iter().flat_map(|value| [escaped(value), (*value).clone()]) {
        let ends = std::iter::once(form.as_str()).chain(form.lines()).map(|piece| shared_length(text, piece));
        longest = ends.fold(longest, usize::max);
    }
    match text.get(..text.len() - longest) {
        Some(rest) if longest > 0 => format!("{rest}{TAKEN_OUT}"),
        Some(_) | None => text.to_owned(),
    }
}

/// Returns the length of the longest beginning of `piece` with which `text` ends, in bytes; 0 if it is shorter than
/// [`SHORTEST`].
fn shared_length(text: &str, piece: &str) -> usize {
    let lengths = piece.char_indices().map(|(at, _)| at).chain([piece.len()]);
    let fitting = lengths.skip(SHORTEST).take_while(|length| *length <= text.len());
    fitting.filter(|length| piece.get(..*length).is_some_and(|part| text.ends_with(part))).last().unwrap_or(0)
}

fn collect(value: &Value, key: &str, values: &mut BTreeSet<String>, names: &mut BTreeSet<String>) {
    let mut add = |text: String| {
        if text.chars().count() >= SHORTEST {
            let into = if NAMES.contains(&key) { &mut *names } else { &mut *values };
            into.insert(text);
        }
    };
    match value {
        Value::String(text) => add(text.clone()),
        Value::Number(number) => add(number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, key, values, names)),
        Value::Object(entries) => entries.iter().for_each(|(key, value)| collect(value, key, values, names)),
        Value::Null | Value::Bool(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::messages::messages;

    #[test]
    fn values_go_and_names_stay() {
        let input = json!({ "plan": { "resource_changes": [{ "address": "aws_vpc.main", "type": "aws_vpc",
            "change": { "actions": ["create"], "after": { "cidr_block": "10.0.0.0/8", "port": 54321, "name": "main" } } }] } });
        let message = "VPC 'aws_vpc.main' has 10.0.0.0/8 at 54321, not 0.0.0.0/0";

        let text = redacted(message, &[input], "msg := \"not 0.0.0.0/0\"");

        assert_eq!(text, "VPC 'aws_vpc.main' has [value] at [value], not 0.0.0.0/0");
    }

    #[test]
    fn a_value_goes_in_its_json_form_too() {
        let input = json!({ "plan": { "after": { "key": "-----BEGIN\nabc \"d\"" } } });
        let message = format!("it has {}", json!({ "key": "-----BEGIN\nabc \"d\"" }));

        assert_eq!(redacted(&message, &[input], ""), r#"it has {"key":"[value]"}"#);
    }

    #[test]
    fn a_message_that_was_cut_within_a_value_has_no_part_of_it() {
        let (long, lines) = ("0123456789".repeat(300), "first of all\nsecond of all");
        let input = json!({ "plan": { "after": { "long": long, "lines": lines } } });
        let cut = messages(&json!([format!("it has {long}")]), "").remove(0);
        let of = |message: &str| redacted(message, std::slice::from_ref(&input), "");

        assert!(cut.starts_with("it has 0123456789") && cut.ends_with('…'), "{cut}");
        assert_eq!(of(&cut), "it has [value]…");
        assert_eq!(of("it has [redacted]\nsecond o…"), "it has [redacted]\n[value]…");
        assert_eq!(of("it has [redacted]\\nsecond o…"), "it has [redacted]\\n[value]…");
        assert_eq!(of("it has sec…"), "it has sec…", "too short to be a value");
    }

    proptest! {
        #[test]
        fn a_value_of_four_characters_never_leaves(value in "[a-z0-9]{4,20}", before in "[A-Z ]{0,9}") {
            let input = json!({ "plan": { "after": { "x": value } } });

            let text = redacted(&format!("{before}{value}."), &[input], "");

            prop_assert_eq!(text, format!("{before}[value]."));
        }
    }
}

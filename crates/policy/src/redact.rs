//! Takes values of an input document out of a message, so that the message can leave the customer's account.

use std::collections::BTreeSet;

use serde_json::Value;

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
    for value in values {
        // A value in a collection is shown as JSON, with a newline as two characters.
        let quoted = Value::from(value.as_str()).to_string();
        let escaped = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value);
        for form in [escaped, value.as_str()] {
            if text.contains(form) {
                text = text.replace(form, TAKEN_OUT);
            }
        }
    }
    text
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

    proptest! {
        #[test]
        fn a_value_of_four_characters_never_leaves(value in "[a-z0-9]{4,20}", before in "[A-Z ]{0,9}") {
            let input = json!({ "plan": { "after": { "x": value } } });

            let text = redacted(&format!("{before}{value}."), &[input], "");

            prop_assert_eq!(text, format!("{before}[value]."));
        }
    }
}

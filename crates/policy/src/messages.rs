//! Converts the value of rule `deny` or `warn` into messages.

use serde_json::Value;

/// The maximum number of messages of one rule.
const MOST: usize = 200;
/// The maximum length of one message, in characters.
const LONGEST: usize = 2_000;
/// The end of a message that was cut.
pub(crate) const CUT: char = '…';

/// Returns the messages of a rule. `what` is the message of a rule that is true and has no message.
///
/// The usual form is a set of texts (`deny contains "..." if ...`). A set of objects with `msg` or `message` is common too.
/// `deny[msg] if ...` makes an object with the messages as keys. A rule without a message is true or false. Any other value
/// counts as a message, so that a mistake in the form of a rule never permits anything.
pub(crate) fn messages(value: &Value, what: &str) -> Vec<String> {
    let mut found: Vec<String> = match value {
        Value::Null | Value::Bool(false) => Vec::new(),
        Value::Bool(true) => vec![what.to_owned()],
        Value::Array(items) => items.iter().map(message).collect(),
        Value::Object(entries) => {
            let messages = entries.iter().filter(|(_, value)| !matches!(value, Value::Bool(false) | Value::Null));
            messages
                .map(|(key, value)| match value {
                    Value::Bool(true) => key.clone(),
                    Value::String(text) => format!("{key}: {text}"),
                    other => format!("{key}: {other}"),
                })
                .collect()
        }
        other @ (Value::String(_) | Value::Number(_)) => vec![message(other)],
    };
    for one in &mut found {
        if let Some((at, _)) = one.char_indices().nth(LONGEST) {
            one.truncate(at);
            one.push(CUT);
        }
    }
    found.sort();
    found.dedup();
    if found.len() > MOST {
        let left = found.len() - MOST;
        found.truncate(MOST);
        found.push(format!("and {left} more"));
    }
    found
}

fn message(item: &Value) -> String {
    match item {
        Value::String(text) => text.clone(),
        Value::Object(entries) => ["msg", "message"]
            .iter()
            .find_map(|key| entries.get(*key)?.as_str())
            .map_or_else(|| item.to_string(), str::to_owned),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_form_of_a_rule_gives_messages() {
        for (value, expected) in [
            (json!(["b", "a", "a"]), vec!["a", "b"]),
            (json!([{ "msg": "a" }, { "message": "b" }, { "other": 1 }]), vec!["a", "b", r#"{"other":1}"#]),
            (json!({ "a": true, "b": false, "c": "why" }), vec!["a", "c: why"]),
            (json!(true), vec!["denied"]),
            (json!(false), vec![]),
            (json!("a"), vec!["a"]),
            (json!(1), vec!["1"]),
            (json!([]), vec![]),
        ] {
            assert_eq!(messages(&value, "denied"), expected, "{value}");
        }
    }

    #[test]
    fn messages_are_limited_in_length_and_number() {
        let many: Vec<String> = (0..300).map(|at| format!("{at:03}")).collect();

        let (found, long) = (messages(&json!(many), ""), messages(&json!(["é".repeat(3_000)]), ""));

        assert_eq!((found.len(), found.last().map(String::as_str)), (201, Some("and 100 more")));
        assert_eq!(long[0].chars().count(), 2_001);
    }
}

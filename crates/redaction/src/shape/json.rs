//! Redacts the texts in a JSON document, without changing its structure.

use serde_json::{Map, Value};

use super::assignments::names_secret;
use super::redact_by_shape;
use crate::spans::MASK;

/// The length of the id of a key, in hex digits.
const KEY_ID: usize = 32;

/// Replaces in `value`, and in everything inside it, what has the shape of a secret. Returns the number of masks. A field with
/// the name of a secret loses all texts and numbers in it, except for digests. The fields `key_ids` keep a text that is the id
/// of a key, which has the shape of a secret and is none.
pub fn redact_json_by_shape(value: &mut Value, key_ids: &[&str]) -> usize {
    match value {
        Value::String(text) => redact_text(text),
        Value::Array(all) => all.iter_mut().map(|one| redact_json_by_shape(one, key_ids)).sum(),
        Value::Object(fields) => redact_fields(fields, |name, value| {
            if names_secret(name) {
                return mask(value);
            }
            let is_kept = key_ids.contains(&name) && value.as_str().is_some_and(is_key_id);
            if is_kept { 0 } else { redact_json_by_shape(value, key_ids) }
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// Replaces all texts and numbers in `value`. Returns the number of masks.
fn mask(value: &mut Value) -> usize {
    match value {
        Value::String(text) if is_digest(text) => 0,
        Value::String(_) | Value::Number(_) => {
            *value = Value::from(MASK);
            1
        }
        Value::Array(all) => all.iter_mut().map(mask).sum(),
        Value::Object(fields) => redact_fields(fields, |_, value| mask(value)),
        Value::Null | Value::Bool(_) => 0,
    }
}

fn redact_text(text: &mut String) -> usize {
    let redacted = redact_by_shape(text);
    *text = redacted.text;
    redacted.places
}

/// Redacts the names of fields by their shape, and their values with `redact`.
fn redact_fields(fields: &mut Map<String, Value>, redact: impl Fn(&str, &mut Value) -> usize) -> usize {
    let mut places = 0;
    let redacted = std::mem::take(fields).into_iter().map(|(mut name, mut value)| {
        places += redact(&name, &mut value);
        places += redact_text(&mut name);
        (name, value)
    });
    *fields = redacted.collect();
    places
}

/// Returns whether a text is a digest, such as that of a secret's value.
fn is_digest(text: &str) -> bool {
    let is_hex = |hex: &str| hex.len() == 64 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    text.strip_prefix("sha256:").is_some_and(is_hex)
}

fn is_key_id(text: &str) -> bool {
    text.len() == KEY_ID && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_names_and_fields_of_secrets_are_redacted_and_the_structure_stays() {
        let (id, secret) = ("7300c0ae1429cd153252736a781b78f4", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY");
        let digest = format!("sha256:{}", "0d".repeat(32));
        let mut value = json!({
            "runner": id, "other": id, "pin_token": 1234, "secrets": { "licence": digest, "short": "sha256:x" },
            "db_password": { "value": ["a", { secret: "b" }], "sensitive": true },
            "list": [{ "text": format!("x {secret}") }, null, 7, true], secret: "y",
        });

        let places = redact_json_by_shape(&mut value, &["runner"]);

        let expected = json!({
            "runner": id, "other": MASK, "pin_token": MASK, "secrets": { "licence": digest, "short": MASK },
            "db_password": { "value": [MASK, { MASK: MASK }], "sensitive": true },
            "list": [{ "text": "x [redacted]" }, null, 7, true], MASK: "y",
        });
        assert_eq!((value, places), (expected, 8));
    }
}

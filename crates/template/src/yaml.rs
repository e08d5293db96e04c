//! Writes values as YAML in block style. A string has no quotes when every YAML reader reads it as a string without
//! them, and double quotes with JSON's escapes otherwise. Go's encoder uses other quotes for some strings; their value
//! is the same.

use serde_json::Value;

use crate::format::number_text;
use crate::json::{self, Form};
use crate::value::entries;

/// Returns `value` as YAML, without a line break at the end.
///
/// # Errors
/// The reason, when the text is longer than `max_bytes`. Indentation can make it much longer than the value.
pub(crate) fn write(value: &Value, max_bytes: usize) -> Result<String, String> {
    let mut out = String::new();
    block(value, 0, &mut out, max_bytes)?;
    Ok(out.trim_matches('\n').to_owned())
}

/// Writes a list or map that is not empty on new lines, and any other value on the current line.
fn block(value: &Value, depth: usize, out: &mut String, max_bytes: usize) -> Result<(), String> {
    if out.len() > max_bytes {
        return Err(format!("the result is larger than {max_bytes} bytes"));
    }
    match value {
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                start(depth, out);
                out.push('-');
                nested(item, depth + 1, out, max_bytes)?;
            }
        }
        Value::Object(map) if !map.is_empty() => {
            for (key, item) in entries(map) {
                start(depth, out);
                out.push_str(&scalar(key));
                out.push(':');
                // A list below a key is not indented further than the key.
                let inner = if item.is_array() { depth } else { depth + 1 };
                match item {
                    Value::Array(items) if !items.is_empty() => block(item, inner, out, max_bytes)?,
                    Value::Object(map) if !map.is_empty() => block(item, inner, out, max_bytes)?,
                    other => {
                        out.push(' ');
                        short(other, out);
                    }
                }
            }
        }
        other => short(other, out),
    }
    Ok(())
}

/// Writes a list element after its dash. A map or list starts on the same line as the dash.
fn nested(item: &Value, depth: usize, out: &mut String, max_bytes: usize) -> Result<(), String> {
    out.push(' ');
    let from = out.len();
    block(item, depth, out, max_bytes)?;
    let begins = "\n".to_owned() + &"  ".repeat(depth);
    if out.get(from..).is_some_and(|text| text.starts_with(&begins)) {
        out.replace_range(from..from + begins.len(), "");
    }
    Ok(())
}

fn start(depth: usize, out: &mut String) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

fn short(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&number_text(number)),
        Value::String(text) => out.push_str(&scalar(text)),
        Value::Array(_) => out.push_str("[]"),
        Value::Object(_) => out.push_str("{}"),
    }
}

fn scalar(text: &str) -> String {
    if stands_bare(text) {
        return text.to_owned();
    }
    // JSON does not escape these characters, but some YAML readers do not accept them as ordinary text.
    json::write(&text.into(), Form::Raw)
        .replace('\u{85}', "\\u0085")
        .replace('\u{feff}', "\\ufeff")
        .replace('\u{7f}', "\\u007f")
}

fn stands_bare(text: &str) -> bool {
    let words = ["true", "false", "yes", "no", "on", "off", "y", "n", "null"];
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-./ ".contains(c))
        && !text.ends_with(' ')
        && !words.contains(&text.to_ascii_lowercase().as_str())
}

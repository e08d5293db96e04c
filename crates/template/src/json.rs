//! Writes values as JSON, byte for byte as Go's encoder does: with sorted keys and, on request, with escapes for HTML.

use serde_json::Value;

use crate::format::number_text;
use crate::value::entries;

/// The layout and the escapes of the JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// On one line; `<`, `>` and `&` are written as `\u003c`, `\u003e` and `\u0026`.
    Escaped,
    Raw,
    /// On several lines, indented by two spaces; escaped as in `Escaped`.
    Pretty,
}

/// Returns `value` as JSON.
pub(crate) fn write(value: &Value, form: Form) -> String {
    let mut out = String::new();
    put(value, form, 0, &mut out);
    out
}

fn put(value: &Value, form: Form, depth: usize, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&number_text(number)),
        Value::String(text) => string(text, form, out),
        Value::Array(items) if items.is_empty() => out.push_str("[]"),
        Value::Object(map) if map.is_empty() => out.push_str("{}"),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                separate(at, form, depth + 1, out);
                put(item, form, depth + 1, out);
            }
            line(form, depth, out);
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            for (at, (key, item)) in entries(map).into_iter().enumerate() {
                separate(at, form, depth + 1, out);
                string(key, form, out);
                out.push_str(if form == Form::Pretty { ": " } else { ":" });
                put(item, form, depth + 1, out);
            }
            line(form, depth, out);
            out.push('}');
        }
    }
}

fn separate(at: usize, form: Form, depth: usize, out: &mut String) {
    if at > 0 {
        out.push(',');
    }
    line(form, depth, out);
}

fn line(form: Form, depth: usize, out: &mut String) {
    if form == Form::Pretty {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    }
}

fn string(text: &str, form: Form, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' if form != Form::Raw => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            '\u{2028}' | '\u{2029}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c if u32::from(c) < 0x20 => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

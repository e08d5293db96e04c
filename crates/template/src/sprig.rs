//! The functions of Sprig (<https://masterminds.github.io/sprig/>) that app configs use, with Sprig's argument order:
//! the value comes last, so that it can come through a pipe.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::format::print;
use crate::functions::{Answer, Function, MANY, Room, at, lenient, light, number, plain, text};
use crate::value::{V, entries, kind, truth};

pub(crate) static FUNCTIONS: &[Function] = &[
    lenient("default", 1, 2, |args, _| fallback(args)),
    lenient("coalesce", 0, MANY, |args, _| {
        Ok(args.iter().find(|arg| truth(arg.get())).cloned().unwrap_or_else(V::null))
    }),
    lenient("empty", 1, 1, |args, _| made(!truth(at(args, 0)))),
    lenient("required", 2, 2, |args, _| match at(args, 1) {
        Value::Null => Err(text(at(args, 0))?.to_owned()),
        Value::String(value) if value.is_empty() => Err(text(at(args, 0))?.to_owned()),
        _ => Ok(last(args)),
    }),
    lenient("hasKey", 2, 2, |args, _| made(at(args, 0).get(text(at(args, 1))?).is_some())),
    light("ternary", 3, 3, |args, _| {
        let pick = if truth(at(args, 2)) { args.first() } else { args.get(1) };
        Ok(pick.cloned().unwrap_or_else(V::null))
    }),
    light("get", 2, 2, |args, _| {
        let (map, name) = (map(at(args, 0))?, text(at(args, 1))?);
        if !map.contains_key(name) {
            return made("");
        }
        Ok(args.first().and_then(|arg| arg.child(|v| v.get(name))).unwrap_or_else(V::null))
    }),
    light("first", 1, 1, |args, _| {
        let _ = list(at(args, 0))?;
        Ok(args.first().and_then(|arg| arg.child(|v| v.as_array()?.first())).unwrap_or_else(V::null))
    }),
    light("last", 1, 1, |args, _| {
        let _ = list(at(args, 0))?;
        Ok(args.first().and_then(|arg| arg.child(|v| v.as_array()?.last())).unwrap_or_else(V::null))
    }),
    plain("keys", 1, 1, |args, _| {
        made(entries(map(at(args, 0))?).into_iter().map(|(key, _)| key.clone()).collect::<Vec<_>>())
    }),
    plain("values", 1, 1, |args, _| {
        made(entries(map(at(args, 0))?).into_iter().map(|(_, value)| value.clone()).collect::<Vec<_>>())
    }),
    plain("list", 0, MANY, |args, _| made(args.iter().map(|arg| arg.get().clone()).collect::<Vec<_>>())),
    plain("dict", 0, MANY, |args, _| dict(args)),
    plain("quote", 0, MANY, |args, _| made(joined(args, |text| Value::String(text).to_string()))),
    plain("squote", 0, MANY, |args, _| made(joined(args, |text| format!("'{text}'")))),
    plain("join", 2, 2, join),
    plain("split", 2, 2, |args, _| {
        let parts = text(at(args, 1))?.split(text(at(args, 0))?).enumerate();
        made(parts.map(|(n, part)| (format!("_{n}"), Value::from(part))).collect::<Map<_, _>>())
    }),
    plain("splitList", 2, 2, |args, room| {
        room.check(text(at(args, 1))?.len().saturating_mul(4))?;
        made(text(at(args, 1))?.split(text(at(args, 0))?).map(Value::from).collect::<Vec<_>>())
    }),
    plain("toJson", 1, 1, |args, _| made(at(args, 0).to_string())),
    plain("toPrettyJson", 1, 1, |args, room| {
        room.check(crate::value::size(at(args, 0)).unwrap_or(usize::MAX).saturating_mul(4))?;
        made(serde_json::to_string_pretty(at(args, 0)).map_err(|_| "the value is not JSON".to_owned())?)
    }),
    plain("fromJson", 1, 1, |args, _| {
        let value: Value = serde_json::from_str(text(at(args, 0))?)
            .map_err(|e| format!("the text is not JSON (line {}, column {})", e.line(), e.column()))?;
        Ok(V::made(value))
    }),
    plain("b64enc", 1, 1, |args, _| made(BASE64.encode(text(at(args, 0))?))),
    plain("b64dec", 1, 1, |args, _| {
        let bytes = BASE64.decode(text(at(args, 0))?).map_err(|_| "the text is not base64".to_owned())?;
        made(String::from_utf8(bytes).map_err(|_| "the decoded bytes are not UTF-8 text".to_owned())?)
    }),
    plain("sha256sum", 1, 1, |args, _| {
        let sum = Sha256::digest(text(at(args, 0))?.as_bytes());
        made(sum.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
    }),
    plain("upper", 1, 1, |args, _| made(text(at(args, 0))?.to_uppercase())),
    plain("lower", 1, 1, |args, _| made(text(at(args, 0))?.to_lowercase())),
    plain("title", 1, 1, |args, _| made(title(text(at(args, 0))?))),
    plain("trim", 1, 1, |args, _| made(text(at(args, 0))?.trim())),
    plain("trimSuffix", 2, 2, |args, _| {
        let value = text(at(args, 1))?;
        made(value.strip_suffix(text(at(args, 0))?).unwrap_or(value))
    }),
    plain("trimPrefix", 2, 2, |args, _| {
        let value = text(at(args, 1))?;
        made(value.strip_prefix(text(at(args, 0))?).unwrap_or(value))
    }),
    plain("replace", 3, 3, |args, room| {
        let (old, new, value) = (text(at(args, 0))?, text(at(args, 1))?, text(at(args, 2))?);
        room.check(value.len() + value.matches(old).count().saturating_mul(new.len()))?;
        made(value.replace(old, new))
    }),
    plain("contains", 2, 2, |args, _| made(text(at(args, 1))?.contains(text(at(args, 0))?))),
    plain("hasPrefix", 2, 2, |args, _| made(text(at(args, 1))?.starts_with(text(at(args, 0))?))),
    plain("hasSuffix", 2, 2, |args, _| made(text(at(args, 1))?.ends_with(text(at(args, 0))?))),
    plain("indent", 2, 2, |args, room| made(indent(args, room)?)),
    plain("nindent", 2, 2, |args, room| made(format!("\n{}", indent(args, room)?))),
    plain("trunc", 2, 2, |args, _| made(trunc(number(at(args, 0))?, text(at(args, 1))?))),
    plain("toString", 1, 1, |args, _| made(print(at(args, 0)))),
    plain("int", 1, 1, |args, _| made(int(at(args, 0))?)),
    plain("add", 1, MANY, |args, _| fold(args, i64::checked_add)),
    plain("sub", 2, 2, |args, _| fold(args, i64::checked_sub)),
    plain("mul", 1, MANY, |args, _| fold(args, i64::checked_mul)),
    plain("div", 2, 2, |args, _| {
        if int(at(args, 1))? == 0 {
            return Err("division by zero".to_owned());
        }
        fold(args, i64::checked_div)
    }),
];

fn made<'t>(value: impl Into<Value>) -> Answer<'t> {
    Ok(V::made(value.into()))
}

fn last<'t>(args: &[V<'t>]) -> V<'t> {
    args.last().cloned().unwrap_or_else(V::null)
}

fn map(value: &Value) -> Result<&Map<String, Value>, String> {
    value.as_object().ok_or_else(|| format!("expected a map, got {}", kind(value)))
}

fn list(value: &Value) -> Result<&Vec<Value>, String> {
    value.as_array().ok_or_else(|| format!("expected a list, got {}", kind(value)))
}

fn fallback<'t>(args: &[V<'t>]) -> Answer<'t> {
    match args {
        [_, value] if truth(value.get()) => Ok(value.clone()),
        [fallback, ..] => Ok(fallback.clone()),
        [] => Ok(V::null()),
    }
}

fn dict<'t>(args: &[V<'t>]) -> Answer<'t> {
    let mut map = Map::new();
    for pair in args.chunks(2) {
        let value = pair.get(1).ok_or("the last key has no value")?;
        map.insert(text(at(pair, 0))?.to_owned(), value.get().clone());
    }
    made(map)
}

fn joined(args: &[V<'_>], each: impl Fn(String) -> String) -> String {
    let texts: Vec<String> = args.iter().filter(|arg| !arg.get().is_null()).map(|arg| each(print(arg.get()))).collect();
    texts.join(" ")
}

fn join<'t>(args: &[V<'t>], room: Room) -> Answer<'t> {
    let separator = text(at(args, 0))?;
    let Value::Array(items) = at(args, 1) else {
        return made(print(at(args, 1)));
    };
    room.check(items.len().saturating_mul(separator.len()))?;
    made(items.iter().map(print).collect::<Vec<_>>().join(separator))
}

fn indent(args: &[V<'_>], room: Room) -> Result<String, String> {
    let width = usize::try_from(number(at(args, 0))?).map_err(|_| "the width is negative".to_owned())?;
    let value = text(at(args, 1))?;
    room.check(value.len() + value.split('\n').count().saturating_mul(width))?;
    let space = " ".repeat(width);
    Ok(format!("{space}{}", value.replace('\n', &format!("\n{space}"))))
}

fn title(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut start = true;
    for c in text.chars() {
        if start {
            out.extend(c.to_uppercase());
        } else {
            out.push(c);
        }
        start = c.is_whitespace();
    }
    out
}

/// Returns the first `length` characters, or the last ones when it is negative.
fn trunc(length: i64, text: &str) -> String {
    let count = usize::try_from(length.unsigned_abs()).unwrap_or(usize::MAX);
    if length >= 0 {
        return text.chars().take(count).collect();
    }
    text.chars().skip(text.chars().count().saturating_sub(count)).collect()
}

fn int(value: &Value) -> Result<i64, String> {
    match value {
        Value::Bool(flag) => Ok(i64::from(*flag)),
        Value::String(text) => text.trim().parse().map_err(|_| "the string is not a whole number".to_owned()),
        #[expect(clippy::cast_possible_truncation, reason = "a fraction is cut, as in Sprig; the cast saturates")]
        Value::Number(number) => Ok(number.as_i64().unwrap_or_else(|| number.as_f64().unwrap_or_default() as i64)),
        other => Err(format!("expected a number, got {}", kind(other))),
    }
}

fn fold<'t>(args: &[V<'t>], step: fn(i64, i64) -> Option<i64>) -> Answer<'t> {
    let mut total = int(at(args, 0))?;
    for arg in args.iter().skip(1) {
        total = step(total, int(arg.get())?).ok_or("the result does not fit into 64 bits")?;
    }
    made(total)
}

//! The functions of Go's `text/template` itself (<https://pkg.go.dev/text/template#hdr-Functions>).

use std::cmp::Ordering;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::format::print;
use crate::functions::function::{Answer, Function, MANY, at, lenient, light, made, number, plain, text};
use crate::printf::printf;
use crate::suggestion::nearest;
use crate::value::{V, kind, truth};

/// All but the unreserved characters of RFC 3986, section 2.3.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

pub(super) static FUNCTIONS: &[Function] = &[
    lenient("and", 1, MANY, |args, _| first_where(args, |value| !truth(value))),
    lenient("or", 1, MANY, |args, _| first_where(args, truth)),
    lenient("not", 1, 1, |args, _| made(!truth(at(args, 0)))),
    light("index", 1, MANY, |args, _| index(args, false)),
    plain("slice", 1, 3, |args, _| slice(args)),
    light("len", 1, 1, |args, _| len(at(args, 0))),
    light("eq", 2, MANY, |args, _| eq(args)),
    light("ne", 2, 2, |args, _| made(!same(at(args, 0), at(args, 1), "ne")?)),
    light("lt", 2, 2, |args, _| ordered(args, "lt", Ordering::is_lt)),
    light("le", 2, 2, |args, _| ordered(args, "le", Ordering::is_le)),
    light("gt", 2, 2, |args, _| ordered(args, "gt", Ordering::is_gt)),
    light("ge", 2, 2, |args, _| ordered(args, "ge", Ordering::is_ge)),
    plain("print", 0, MANY, |args, _| made(spaced(args, false))),
    plain("println", 0, MANY, |args, _| made(spaced(args, true) + "\n")),
    plain("printf", 1, MANY, |args, room| {
        let values: Vec<&Value> = args.iter().skip(1).map(V::get).collect();
        made(printf(text(at(args, 0))?, &values, room.0)?)
    }),
    plain("html", 0, MANY, |args, room| {
        let plain = printed(args);
        room.check(plain.len().saturating_mul(5))?;
        made(html(&plain))
    }),
    plain("urlquery", 0, MANY, |args, room| {
        let plain = printed(args);
        room.check(plain.len().saturating_mul(3))?;
        made(url_query(&plain))
    }),
];

fn first_where<'t>(args: &[V<'t>], found: impl Fn(&Value) -> bool) -> Answer<'t> {
    let pick = args.iter().find(|arg| found(arg.get())).or_else(|| args.last());
    Ok(pick.cloned().unwrap_or_else(V::null))
}

/// Looks up the other arguments, one after the other, as keys or positions in the first argument. If `lenient`, a
/// missing key of a map gives null.
pub(crate) fn index<'t>(args: &[V<'t>], lenient: bool) -> Answer<'t> {
    let Some((first, keys)) = args.split_first() else {
        return Ok(V::null());
    };
    let mut value = first.clone();
    for key in keys {
        let missing = match (value.get(), key.get()) {
            (Value::Object(map), Value::String(name)) => !map.contains_key(name.as_str()),
            _ => false,
        };
        if lenient && missing {
            return Ok(V::null());
        }
        value = element(&value, key.get())?;
    }
    Ok(value)
}

fn element<'t>(value: &V<'t>, key: &Value) -> Answer<'t> {
    match (value.get(), key) {
        (Value::Object(map), Value::String(name)) => value.child(|v| v.get(name.as_str())).ok_or_else(|| {
            let near = nearest(name, map.keys().map(String::as_str));
            format!(
                "the map has no key `{name}`{}",
                near.map_or_else(String::new, |n| format!("; did you mean `{n}`?"))
            )
        }),
        (Value::Array(items), Value::Number(_)) => {
            let at = usize::try_from(number(key)?).map_err(|_| "the position is negative".to_owned())?;
            value
                .child(|v| v.get(at))
                .ok_or_else(|| format!("there is no element at position {at}: the list has {} elements", items.len()))
        }
        (Value::Object(_), _) => Err(format!("a map is indexed by a string, got {}", kind(key))),
        (Value::Array(_), _) => Err(format!("a list is indexed by a number, got {}", kind(key))),
        (other, _) => Err(format!("expected a list or a map, got {}", kind(other))),
    }
}

fn slice<'t>(args: &[V<'t>]) -> Answer<'t> {
    let value = at(args, 0);
    let length = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.len(),
        other => return Err(format!("expected a list or a string, got {}", kind(other))),
    };
    let bound = |position: usize, otherwise: usize| match args.get(position) {
        None => Ok(otherwise),
        Some(bound) => usize::try_from(number(bound.get())?).map_err(|_| "the position is negative".to_owned()),
    };
    let (from, to) = (bound(1, 0)?, bound(2, length)?);
    let outside = || {
        let bytes = if value.is_string() { "; positions count bytes and must not split a character" } else { "" };
        format!("cannot take positions {from} to {to} of a value of length {length}{bytes}")
    };
    match value {
        Value::Array(items) => made(items.get(from..to).ok_or_else(outside)?.to_vec()),
        other => made(text(other)?.get(from..to).ok_or_else(outside)?),
    }
}

fn len<'t>(value: &Value) -> Answer<'t> {
    made(match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.len(),
        Value::Object(map) => map.len(),
        other => return Err(format!("expected a list, a map or a string, got {}", kind(other))),
    })
}

fn eq<'t>(args: &[V<'t>]) -> Answer<'t> {
    for other in args.iter().skip(1) {
        if same(at(args, 0), other.get(), "eq")? {
            return made(true);
        }
    }
    made(false)
}

fn same(one: &Value, two: &Value, name: &str) -> Result<bool, String> {
    match (one, two) {
        (Value::Number(a), Value::Number(b)) => Ok(a == b || a.as_f64() == b.as_f64()),
        (Value::Null, _) | (_, Value::Null) => Ok(one == two),
        // Real configs write `eq "true" .nuon.inputs.inputs.on`, and the answer to an input of type `bool` is a
        // boolean. A number is refused, since it has more than one spelling.
        (Value::String(text), flag @ Value::Bool(_)) | (flag @ Value::Bool(_), Value::String(text)) => {
            Ok(*text == print(flag))
        }
        _ if std::mem::discriminant(one) == std::mem::discriminant(two) => Ok(one == two),
        _ => Err(format!("cannot compare {} with {}; write `{name} (toString ...) \"...\"`", kind(one), kind(two))),
    }
}

fn ordered<'t>(args: &[V<'t>], name: &str, holds: impl Fn(Ordering) -> bool) -> Answer<'t> {
    let (one, two) = (at(args, 0), at(args, 1));
    let order = match (one, two) {
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            _ => a.as_f64().partial_cmp(&b.as_f64()),
        },
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        _ => None,
    };
    let order = order.ok_or_else(|| {
        format!("cannot order {} and {}; `{name}` takes two numbers or two strings", kind(one), kind(two))
    })?;
    made(holds(order))
}

/// Joins arguments as Go's `fmt.Print` does: with a space between two arguments when neither is a string, or between
/// all arguments when `always` is set.
fn spaced(args: &[V<'_>], always: bool) -> String {
    let mut out = String::new();
    let mut before: Option<&Value> = None;
    for arg in args.iter().map(V::get) {
        if before.is_some_and(|before| always || !(before.is_string() || arg.is_string())) {
            out.push(' ');
        }
        out.push_str(&print(arg));
        before = Some(arg);
    }
    out
}

/// Returns the text that `html` and `urlquery` escape: the arguments in the form in which `print` writes them.
fn printed(args: &[V<'_>]) -> String {
    spaced(args, false)
}

fn html(plain: &str) -> String {
    let mut out = String::with_capacity(plain.len());
    for c in plain.chars() {
        match c {
            '\0' => out.push('\u{fffd}'),
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            c => out.push(c),
        }
    }
    out
}

/// Returns a text as Go's `url.QueryEscape` writes it, with `+` for a space. Each `%20` is a space, because a `%` of
/// the text becomes `%25`.
fn url_query(plain: &str) -> String {
    utf8_percent_encode(plain, ESCAPED).to_string().replace("%20", "+")
}

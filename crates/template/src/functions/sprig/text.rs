//! The functions of Sprig on strings. Lengths and positions are in bytes, as in Go. A position inside a character is
//! moved to a boundary of this character.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::format::{print, quoted};
use crate::functions::function::{Function, MANY, Room, at, made, number, plain, text};
use crate::value::V;

pub(super) static FUNCTIONS: &[Function] = &[
    plain("quote", 0, MANY, |args, room| {
        let quoted = joined(args, |text| quoted(&text));
        room.check(quoted.len())?;
        made(quoted)
    }),
    plain("squote", 0, MANY, |args, _| made(joined(args, |text| format!("'{text}'")))),
    plain("cat", 0, MANY, |args, _| made(joined(args, |text| text))),
    plain("toString", 1, 1, |args, _| made(print(at(args, 0)))),
    plain("upper", 1, 1, |args, _| made(text(at(args, 0))?.chars().map(upper).collect::<String>())),
    plain("lower", 1, 1, |args, _| made(text(at(args, 0))?.chars().map(lower).collect::<String>())),
    plain("title", 1, 1, |args, _| made(starts(text(at(args, 0))?, separates, upper))),
    plain("untitle", 1, 1, |args, _| made(starts(text(at(args, 0))?, char::is_whitespace, lower))),
    plain("trim", 1, 1, |args, _| made(text(at(args, 0))?.trim())),
    plain("trimAll", 2, 2, |args, _| trim_all(args)),
    plain("trimall", 2, 2, |args, _| trim_all(args)),
    plain("trimSuffix", 2, 2, |args, _| {
        let value = text(at(args, 1))?;
        made(value.strip_suffix(text(at(args, 0))?).unwrap_or(value))
    }),
    plain("trimPrefix", 2, 2, |args, _| {
        let value = text(at(args, 1))?;
        made(value.strip_prefix(text(at(args, 0))?).unwrap_or(value))
    }),
    plain("nospace", 1, 1, |args, _| {
        made(text(at(args, 0))?.chars().filter(|c| !c.is_whitespace()).collect::<String>())
    }),
    plain("replace", 3, 3, |args, room| {
        let (old, new, value) = (text(at(args, 0))?, text(at(args, 1))?, text(at(args, 2))?);
        room.check(value.len() + value.matches(old).count().saturating_mul(new.len()))?;
        made(value.replace(old, new))
    }),
    plain("repeat", 2, 2, |args, room| {
        let count = usize::try_from(number(at(args, 0))?).map_err(|_| "the count is negative".to_owned())?;
        let value = text(at(args, 1))?;
        room.check(value.len().saturating_mul(count))?;
        made(if value.is_empty() { String::new() } else { value.repeat(count) })
    }),
    plain("split", 2, 2, |args, room| made(numbered(parts(args, 1, usize::MAX, room)?))),
    plain("splitn", 3, 3, |args, room| {
        let most = usize::try_from(number(at(args, 1))?).unwrap_or(usize::MAX);
        made(numbered(parts(args, 2, most, room)?))
    }),
    plain("splitList", 2, 2, |args, room| {
        made(parts(args, 1, usize::MAX, room)?.into_iter().map(Value::from).collect::<Vec<_>>())
    }),
    plain("contains", 2, 2, |args, _| made(text(at(args, 1))?.contains(text(at(args, 0))?))),
    plain("hasPrefix", 2, 2, |args, _| made(text(at(args, 1))?.starts_with(text(at(args, 0))?))),
    plain("hasSuffix", 2, 2, |args, _| made(text(at(args, 1))?.ends_with(text(at(args, 0))?))),
    plain("indent", 2, 2, |args, room| made(indent(args, room)?)),
    plain("nindent", 2, 2, |args, room| made(format!("\n{}", indent(args, room)?))),
    plain("trunc", 2, 2, |args, _| made(trunc(number(at(args, 0))?, text(at(args, 1))?))),
    plain("substr", 3, 3, |args, _| made(substr(number(at(args, 0))?, number(at(args, 1))?, text(at(args, 2))?)?)),
];

fn joined(args: &[V<'_>], each: impl Fn(String) -> String) -> String {
    let texts: Vec<String> = args.iter().filter(|arg| !arg.get().is_null()).map(|arg| each(print(arg.get()))).collect();
    texts.join(" ")
}

/// Returns the upper case of a character. Like Go, does not use Unicode mappings to more than one character.
fn upper(c: char) -> char {
    let mut all = c.to_uppercase();
    match (all.next(), all.next()) {
        (Some(one), None) => one,
        _ => c,
    }
}

fn lower(c: char) -> char {
    c.to_lowercase().next().unwrap_or(c)
}

/// Applies `each` to the first character of each word; `separates` decides which characters separate words.
fn starts(text: &str, separates: fn(char) -> bool, each: fn(char) -> char) -> String {
    let mut out = String::with_capacity(text.len());
    let mut start = true;
    for c in text.chars() {
        out.push(if start { each(c) } else { c });
        start = separates(c);
    }
    out
}

/// Returns whether `c` is a separator for Go's `strings.Title`.
fn separates(c: char) -> bool {
    match c {
        c if c.is_ascii() => !(c.is_ascii_alphanumeric() || c == '_'),
        c => c.is_whitespace(),
    }
}

fn trim_all<'t>(args: &[V<'t>]) -> crate::functions::function::Answer<'t> {
    let out: BTreeSet<char> = text(at(args, 0))?.chars().collect();
    made(text(at(args, 1))?.trim_matches(|c| out.contains(&c)))
}

/// Splits argument `value` at the separator, which is argument 0, into at most `most` parts. An empty separator splits
/// it into its characters.
fn parts<'a>(args: &'a [V<'_>], value: usize, most: usize, room: Room) -> Result<Vec<&'a str>, String> {
    let (separator, plain) = (text(at(args, 0))?, text(at(args, value))?);
    room.check(plain.len().saturating_mul(4))?;
    if most == 0 {
        return Ok(Vec::new());
    }
    if !separator.is_empty() {
        return Ok(plain.splitn(most, separator).collect());
    }
    let mut found = Vec::new();
    let mut rest = plain;
    while let Some(first) = rest.chars().next() {
        if found.len() + 1 == most {
            break;
        }
        let (one, others) = rest.split_at(first.len_utf8());
        found.push(one);
        rest = others;
    }
    if !rest.is_empty() {
        found.push(rest);
    }
    Ok(found)
}

fn numbered(parts: Vec<&str>) -> Map<String, Value> {
    parts.into_iter().enumerate().map(|(n, part)| (format!("_{n}"), Value::from(part))).collect()
}

fn indent(args: &[V<'_>], room: Room) -> Result<String, String> {
    let width = usize::try_from(number(at(args, 0))?).map_err(|_| "the width is negative".to_owned())?;
    let value = text(at(args, 1))?;
    room.check(value.len().saturating_add(value.split('\n').count().saturating_mul(width)))?;
    let space = " ".repeat(width);
    Ok(format!("{space}{}", value.replace('\n', &format!("\n{space}"))))
}

/// Returns the first `length` bytes of a text, or the last bytes when `length` is negative. Never splits a character.
fn trunc(length: i64, text: &str) -> &str {
    let count = usize::try_from(length.unsigned_abs()).unwrap_or(usize::MAX).min(text.len());
    if length >= 0 {
        return text.get(..text.floor_char_boundary(count)).unwrap_or_default();
    }
    if count == text.len() {
        return text;
    }
    text.get(text.ceil_char_boundary(text.len() - count)..).unwrap_or_default()
}

fn substr(start: i64, end: i64, text: &str) -> Result<&str, String> {
    let byte = |at: i64| text.floor_char_boundary(usize::try_from(at).unwrap_or(usize::MAX).min(text.len()));
    let found = match (start, end) {
        (start, end) if start < 0 => text.get(..byte(end)),
        (start, end) if end < 0 => text.get(byte(start)..),
        (start, end) => text.get(byte(start)..byte(end)),
    };
    found.ok_or_else(|| format!("the start {start} is after the end {end}"))
}

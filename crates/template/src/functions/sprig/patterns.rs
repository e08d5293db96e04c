//! The functions of Sprig with regular expressions. The syntax is that of Go's `regexp` without Unicode classes, and a
//! search takes linear time.

use regex_lite::{NoExpand, Regex, RegexBuilder};
use serde_json::Value;

use crate::functions::function::{Answer, Function, Room, at, made, number, plain, search, text};
use crate::value::V;

/// The largest compiled pattern, in bytes. This limit also bounds the time per byte of text.
const MAX_PATTERN_BYTES: usize = 16 * 1024;

pub(super) static FUNCTIONS: &[Function] = &[
    search("regexMatch", 2, 2, |args, _| made(pattern(args)?.is_match(text(at(args, 1))?))),
    search("regexFind", 2, 2, |args, _| {
        made(pattern(args)?.find(text(at(args, 1))?).map_or("", |found| found.as_str()))
    }),
    search("regexFindAll", 3, 3, |args, _| {
        let found = pattern(args)?;
        let most = most(at(args, 2))?;
        made(found.find_iter(text(at(args, 1))?).take(most).map(|one| Value::from(one.as_str())).collect::<Vec<_>>())
    }),
    search("regexReplaceAll", 3, 3, |args, room| replaced(args, room, false)),
    search("regexReplaceAllLiteral", 3, 3, |args, room| replaced(args, room, true)),
    search("regexSplit", 3, 3, |args, _| {
        let (found, plain) = (pattern(args)?, text(at(args, 1))?);
        made(split(&found, plain, most(at(args, 2))?))
    }),
    plain("regexQuoteMeta", 1, 1, |args, _| made(quote_meta(text(at(args, 0))?))),
];

fn pattern(args: &[V<'_>]) -> Result<Regex, String> {
    let word = text(at(args, 0))?;
    RegexBuilder::new(word)
        .size_limit(MAX_PATTERN_BYTES)
        .nest_limit(20)
        .build()
        .map_err(|error| format!("the pattern cannot be used: {error}"))
}

/// Returns the maximum number of matches that the template asks for; a negative number means all.
fn most(value: &Value) -> Result<usize, String> {
    Ok(usize::try_from(number(value)?).unwrap_or(usize::MAX))
}

fn replaced<'t>(args: &[V<'t>], room: Room, literal: bool) -> Answer<'t> {
    let (found, plain, by) = (pattern(args)?, text(at(args, 1))?, text(at(args, 2))?);
    // Each `$1` in the replacement may repeat the matched text.
    let each = by.matches('$').count().saturating_add(1).saturating_mul(plain.len());
    let most = found.find_iter(plain).count().saturating_mul(by.len()).saturating_add(each);
    room.check(most.saturating_add(plain.len()))?;
    made(match literal {
        true => found.replace_all(plain, NoExpand(by)).into_owned(),
        false => found.replace_all(plain, by).into_owned(),
    })
}

/// Splits a text at the matches as Go's `Split` does: an empty match at the start or end does not add an empty part.
fn split(found: &Regex, plain: &str, most: usize) -> Vec<String> {
    if most == 0 {
        return Vec::new();
    }
    if !found.as_str().is_empty() && plain.is_empty() {
        return vec![String::new()];
    }
    let (mut parts, mut begin, mut end) = (Vec::new(), 0, 0);
    for one in found.find_iter(plain) {
        if parts.len() + 1 >= most {
            break;
        }
        end = one.start();
        if one.end() != 0 {
            parts.push(plain.get(begin..end).unwrap_or_default().to_owned());
        }
        begin = one.end();
    }
    if end != plain.len() {
        parts.push(plain.get(begin..).unwrap_or_default().to_owned());
    }
    parts
}

/// Returns a pattern that matches exactly this text. Escapes the same characters as Go.
fn quote_meta(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if "\\.+*?()|[]{}^$".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

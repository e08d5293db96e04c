//! Finds values that a text itself names as secret: after `password=`, in the credentials of a URL, in a private key.

use std::ops::Range;

/// The names of secrets, in lower case. More letters may follow, as in `secret_key`.
const NAMES: [&str; 19] = [
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "token",
    "apikey",
    "api_key",
    "api-key",
    "accesskey",
    "access_key",
    "access-key",
    "privatekey",
    "private_key",
    "private-key",
    "credential",
    "authorization",
    "cookie",
    "signature",
];
/// Ends of such names, after which no more letters follow.
const ENDS_OF_NAMES: [&str; 2] = ["_pass", "-pass"];
/// Those of the names whose value is the rest of the line.
const WHOLE_LINE: [&str; 2] = ["authorization", "cookie"];
/// The most letters after a name, and before one.
const LONGEST_NAME: usize = 64;
/// What follows the credentials in the address of a database, as drivers in Go have it: `app:hunter2@tcp(db:3306)/app`.
const ADDRESSES: [&str; 2] = ["@tcp(", "@unix("];
/// The longest such credentials, in bytes.
const LONGEST_CREDENTIALS: usize = 256;
const KEY_BEGINS: &str = "private key-----";
const KEY_ENDS: &str = "-----end";

/// What ends a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// This quote with this number of backslashes before it. A text inside another text has some before each quote.
    Quote {
        quote: u8,
        backslashes: usize,
    },
    Line,
    /// A character that no value without quotes has.
    Word,
    /// A line with less space at its start than the first line of the value, as in YAML after `|`.
    Block,
}

/// Returns whether a name is that of a secret, such as `db_password`.
pub(super) fn names_secret(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    NAMES.iter().any(|one| lower.contains(one)) || ENDS_OF_NAMES.iter().any(|end| lower.ends_with(*end))
}

/// Returns the places of such values in `text`.
pub(super) fn find(text: &[u8]) -> Vec<Range<usize>> {
    // With ASCII letters in lower case, all positions stay the same.
    let lower = text.to_ascii_lowercase();
    let Ok(lower) = std::str::from_utf8(&lower) else { return std::iter::once(0..text.len()).collect() };
    let mut found: Vec<Range<usize>> =
        NAMES.iter().chain(&ENDS_OF_NAMES).flat_map(|name| values(lower, name)).collect();
    found.extend(places_after(lower, "://").filter_map(|(at, rest)| Some(at..at + userinfo(rest)?)));
    found.extend(ADDRESSES.iter().flat_map(|mark| credentials_before(lower, mark)));
    found.extend(private_keys(lower));
    found
}

/// Returns each place where `mark` ends, and the text behind it.
fn places_after<'a>(text: &'a str, mark: &str) -> impl Iterator<Item = (usize, &'a str)> {
    text.match_indices(mark).filter_map(move |(at, found)| {
        let end = at + found.len();
        Some((end, text.get(end..)?))
    })
}

/// Returns the places of the values of this name.
fn values(text: &str, name: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut last: Option<End> = None;
    for (at, rest) in places_after(text, name) {
        let before = text.get(..at - name.len()).unwrap_or_default();
        let Some((value, end)) = value(before, name, rest) else { continue };
        let start = at + rest.len() - value.len();
        // A value inside the one before ends where that one does. To look again would take quadratic time.
        let around = found.last().filter(|around| last == Some(end) && around.contains(&start));
        let stop = around.map_or_else(|| start + end.after(value), |around| around.end);
        if stop > start {
            found.push(start..stop);
            last = Some(end);
        }
    }
    found
}

/// Returns the text from the start of the value in `rest`, which follows a name, and what ends the value.
fn value<'a>(before: &str, name: &str, rest: &'a str) -> Option<(&'a str, End)> {
    let more = rest.bytes().take(LONGEST_NAME).take_while(|byte| is_of_name(*byte)).count();
    if more > 0 && ENDS_OF_NAMES.contains(&name) {
        return None;
    }
    let behind_name = rest.get(more..)?;
    let sign = behind_name.trim_start_matches(['"', '\'', '\\', ' ', '\t', ']']);
    let value = match sign.strip_prefix([':', '=']) {
        Some(value) => value.trim_start_matches(['=', ' ', '\t', '[']),
        None if is_option(before) => {
            let value = behind_name.strip_prefix(' ')?.trim_start_matches(' ');
            Some(value).filter(|value| !value.starts_with('-'))?
        }
        None => return None,
    };
    if let Some(block) = block(value) {
        return Some((block, End::Block));
    }
    let value = value.trim_start_matches(['>', ' ', '\t', '[']);
    let backslashes = value.bytes().take_while(|byte| *byte == b'\\').count();
    let inner = value.get(backslashes..)?;
    match inner.bytes().next()? {
        quote @ (b'"' | b'\'') => Some((inner.get(1..)?, End::Quote { quote, backslashes })),
        _ if WHOLE_LINE.contains(&name) => Some((inner, End::Line)),
        _ => Some((inner, End::Word)),
    }
}

const fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// Returns whether the name behind `before` is that of an option, such as `--db-password`.
fn is_option(before: &str) -> bool {
    let length = before.bytes().rev().take(LONGEST_NAME).take_while(|byte| is_of_name(*byte)).count();
    before.get(before.len() - length..).is_some_and(|start| start.starts_with("--"))
}

/// Returns the lines behind the `|` or `>` of a block in YAML.
fn block(value: &str) -> Option<&str> {
    let (first, lines) = value.strip_prefix(['|', '>'])?.split_once('\n')?;
    first.trim_end().bytes().all(|byte| matches!(byte, b'+' | b'-' | b'0'..=b'9')).then_some(lines)
}

impl End {
    /// Returns the length of the value at the start of `text`.
    fn after(self, text: &str) -> usize {
        let found = match self {
            Self::Quote { quote, backslashes } => quote_in(text, quote, backslashes),
            Self::Line => text.find('\n'),
            Self::Word => text.find([' ', '\t', '\r', '\n', '"', '\'', ',', ';', '&', ')', '}', ']', '<']),
            Self::Block => Some(block_length(text)),
        };
        found.unwrap_or(text.len())
    }
}

/// Returns the end of the text before the quote that ends it, or before the end of the line. A quote with more backslashes
/// before it belongs to the text, except for two, which are one backslash.
fn quote_in(text: &str, quote: u8, backslashes: usize) -> Option<usize> {
    let mut run = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte == b'\n' || (byte == quote && (run <= backslashes || (backslashes == 0 && run % 2 == 0))) {
            return Some(at - run.min(backslashes));
        }
        run = if byte == b'\\' { run + 1 } else { 0 };
    }
    None
}

fn block_length(text: &str) -> usize {
    let space = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let least = text.lines().next().map_or(0, space);
    let lines =
        text.split_inclusive('\n').take_while(|line| least > 0 && (line.trim().is_empty() || space(line) >= least));
    lines.map(str::len).sum()
}

/// Returns the length of the credentials in `rest`, which follows the `://` of a URL.
fn userinfo(rest: &str) -> Option<usize> {
    let is_end = |c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\'' | '<' | '>');
    let authority = rest.get(..rest.find(is_end).unwrap_or(rest.len()))?;
    authority.rfind('@').filter(|length| *length > 0)
}

/// Returns the places of the texts without spaces and quotes before `mark`.
fn credentials_before(text: &str, mark: &str) -> Vec<Range<usize>> {
    let is_of_text = |byte: u8| !byte.is_ascii_whitespace() && !matches!(byte, b'"' | b'\'' | b'`');
    let length = |at: usize| {
        let nearest = text.as_bytes().get(at.saturating_sub(LONGEST_CREDENTIALS)..at).unwrap_or_default();
        nearest.iter().rev().take_while(|byte| is_of_text(**byte)).count()
    };
    text.match_indices(mark).map(|(at, _)| at - length(at)..at).collect()
}

/// Returns the places of private keys in PEM form, up to the end of the text if their end is missing.
fn private_keys(text: &str) -> impl Iterator<Item = Range<usize>> {
    places_after(text, KEY_BEGINS).filter_map(move |(at, rest)| {
        let is_begin = text.get(..at)?.rsplit('\n').next()?.contains("-----begin ");
        is_begin.then(|| at..at + rest.find(KEY_ENDS).unwrap_or(rest.len()))
    })
}

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
/// Those of them whose value is the rest of the line.
const WHOLE_LINE: [&str; 2] = ["authorization", "cookie"];
const KEY_BEGINS: &str = "private key-----";
const KEY_ENDS: &str = "-----end";

/// Returns whether a name is that of a secret, such as `db_password`.
pub(super) fn names_secret(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    NAMES.iter().any(|one| lower.contains(one))
}

/// Returns the places of such values in `text`.
pub(super) fn find(text: &[u8]) -> Vec<Range<usize>> {
    // With ASCII letters in lower case, all positions stay the same.
    let lower = text.to_ascii_lowercase();
    let Ok(lower) = std::str::from_utf8(&lower) else { return std::iter::once(0..text.len()).collect() };
    let mut found: Vec<Range<usize>> = NAMES.iter().flat_map(|name| values(lower, name)).collect();
    found.extend(places_after(lower, "://").filter_map(|(at, rest)| Some(at..at + userinfo(rest)?)));
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

fn values(text: &str, name: &str) -> Vec<Range<usize>> {
    let whole_line = WHOLE_LINE.contains(&name);
    let value = |(at, rest): (usize, &str)| {
        let value = value(rest, whole_line)?;
        Some(at + value.start..at + value.end)
    };
    places_after(text, name).filter_map(value).collect()
}

/// Returns the place of the value in `rest`, which follows a name.
fn value(rest: &str, whole_line: bool) -> Option<Range<usize>> {
    let behind_name = rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    let sign = behind_name.trim_start_matches(['"', '\'', '\\', ' ', '\t', ']']);
    let value = sign.strip_prefix([':', '='])?.trim_start_matches(['=', '>', ' ', '\t', '\\']);
    let (value, ends): (&str, &[char]) = match value.chars().next()? {
        '"' => (value.get(1..)?, &['"', '\n']),
        '\'' => (value.get(1..)?, &['\'', '\n']),
        _ if whole_line => (value, &['\n']),
        _ => (value, &[' ', '\t', '\r', '\n', '"', '\'', ',', ';', '&', ')', '}', ']', '<']),
    };
    let start = rest.len() - value.len();
    let length = value.find(ends).unwrap_or(value.len());
    (length > 0).then_some(start..start + length)
}

/// Returns the length of the credentials in `rest`, which follows the `://` of a URL.
fn userinfo(rest: &str) -> Option<usize> {
    let is_end = |c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\'' | '<' | '>');
    let authority = rest.get(..rest.find(is_end).unwrap_or(rest.len()))?;
    authority.rfind('@').filter(|length| *length > 0)
}

/// Returns the places of private keys in PEM form, up to the end of the text if their end is missing.
fn private_keys(text: &str) -> impl Iterator<Item = Range<usize>> {
    places_after(text, KEY_BEGINS).filter_map(move |(at, rest)| {
        let is_begin = text.get(..at)?.rsplit('\n').next()?.contains("-----begin ");
        is_begin.then(|| at..at + rest.find(KEY_ENDS).unwrap_or(rest.len()))
    })
}

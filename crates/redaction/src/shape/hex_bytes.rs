//! Finds bytes in hex with something between them, as debuggers and `xxd` print them.

use std::ops::Range;

/// The fewest bytes. A MAC address has six, and a time has fewer.
const LEAST: usize = 8;
/// The most characters between two bytes, without `0x`.
const SEPARATOR: usize = 3;

/// Returns the places of such bytes in `text`.
pub(super) fn find(text: &[u8]) -> Vec<Range<usize>> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at < text.len() {
        let in_word = at.checked_sub(1).and_then(|before| text.get(before)).is_some_and(u8::is_ascii_alphanumeric);
        let rest = text.get(at..).unwrap_or_default();
        let dump = if in_word { None } else { dump(rest).or_else(|| groups(rest)) };
        if let Some(length) = dump {
            found.push(at..at + length);
        }
        at += dump.unwrap_or(1);
    }
    found
}

/// Returns the length of the bytes at the start of `text`, if there are enough of them.
fn dump(text: &[u8]) -> Option<usize> {
    let (mut count, mut end, mut next) = (0, 0, 0);
    while let Some(length) = one_byte(text.get(next..).unwrap_or_default()) {
        count += 1;
        end = next + length;
        let rest = text.get(end..).unwrap_or_default();
        let between = rest.iter().take(SEPARATOR).take_while(|byte| b" \t\r\n:,-".contains(byte)).count();
        if between == 0 && !rest.starts_with(b"\\x") {
            break;
        }
        next = end + between;
    }
    (count >= LEAST).then_some(end)
}

/// Returns the length of the groups of bytes at the start of `text`, as `xxd` and `hexdump` print them, if there are enough.
/// Numbers without a letter are not bytes.
fn groups(text: &[u8]) -> Option<usize> {
    let size = group(text).filter(|size| matches!(size, 4 | 8))?;
    let mut end = size;
    while text.get(end) == Some(&b' ') && group(text.get(end + 1..).unwrap_or_default()) == Some(size) {
        end += 1 + size;
    }
    let bytes = (end + 1) / (size + 1) * size / 2;
    (bytes >= LEAST && text.iter().take(end).any(u8::is_ascii_alphabetic)).then_some(end)
}

/// Returns the number of hex digits at the start of `text`, if nothing else follows in the same word.
fn group(text: &[u8]) -> Option<usize> {
    let digits = text.iter().take(2 * LEAST).take_while(|byte| byte.is_ascii_hexdigit()).count();
    (!text.get(digits).is_some_and(u8::is_ascii_alphanumeric)).then_some(digits)
}

/// Returns the length of the two hex digits at the start of `text`, with `0x` or `\x` before them.
fn one_byte(text: &[u8]) -> Option<usize> {
    let prefix = if text.starts_with(b"0x") || text.starts_with(b"\\x") { 2 } else { 0 };
    let is_end = !text.get(prefix + 2).is_some_and(u8::is_ascii_alphanumeric);
    let digits = text.get(prefix..prefix + 2)?;
    (is_end && digits.iter().all(u8::is_ascii_hexdigit)).then_some(prefix + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_found_with_every_separator_and_a_time_is_not() {
        for separator in [":", " ", "-", ", 0x", "\\x", "  ", "\n"] {
            let text = ["68", "75", "6E", "74", "65", "72", "32", "21"].join(separator);

            let whole = 2..2 + text.len();
            assert_eq!(find(format!("x {text} y").as_bytes()), std::slice::from_ref(&whole), "{text}");
        }
        for text in ["6875 6e74 6572 3221", "68756e74 65723221 68756e74"] {
            let whole = 10..10 + text.len();
            assert_eq!(find(format!("00000000: {text}  x").as_bytes()), std::slice::from_ref(&whole), "{text}");
        }
        for text in ["2026-11-30 22:50:55 10", "0a:1b:2c:3d:4e:5f", "10.0.0.1, 10.0.0.2", "8080 8081 8082 8083"] {
            assert!(find(text.as_bytes()).is_empty(), "{text}");
        }
    }
}

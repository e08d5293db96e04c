//! The encodings in which programs print a secret, as texts to search for.

use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use data_encoding::BASE32_NOPAD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

/// All characters except the unreserved ones (RFC 3986 section 2.3).
const RESERVED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
const RESERVED_BUT_SLASH: AsciiSet = RESERVED.remove(b'/');

/// Returns the forms of any secret: unchanged, in URL, JSON and shell quoting, and as base64, base32 and hex.
pub(super) fn of_secret(text: &str) -> Vec<Vec<u8>> {
    let url = percent_encode(text.as_bytes(), NON_ALPHANUMERIC).to_string();
    let json = serde_json::to_string(text).unwrap_or_default();
    let hex = hex(text.as_bytes());
    let mut forms = vec![
        text.to_owned(),
        url.to_lowercase(),
        url.replace("%20", "+"),
        percent_encode(text.as_bytes(), &RESERVED).to_string(),
        percent_encode(text.as_bytes(), &RESERVED_BUT_SLASH).to_string(),
        url,
        json.get(1..json.len().saturating_sub(1)).unwrap_or_default().to_owned(),
        // A single quote inside single quotes, as shells and Python write it.
        text.replace('\'', r"'\''"),
        text.replace('\'', "'\"'\"'"),
        hex.to_uppercase(),
        separated(&hex, ':'),
        separated(&hex, ' '),
        hex,
    ];
    forms.extend(base64(text.as_bytes()));
    forms.extend(base32(text.as_bytes()));
    forms.into_iter().map(String::into_bytes).collect()
}

/// Returns the forms of a credential, whose parts are redacted too: unchanged, reversed, and as base64, base32 and hex.
pub(super) fn of_credential(text: &str) -> Vec<Vec<u8>> {
    let mut forms = vec![text.to_owned(), text.chars().rev().collect(), hex(text.as_bytes())];
    forms.extend(base64(text.as_bytes()));
    forms.extend(base32(text.as_bytes()));
    forms.into_iter().map(String::into_bytes).collect()
}

fn hex(secret: &[u8]) -> String {
    freehold_protocol::digest::hex(secret)
}

fn separated(hex: &str, by: char) -> String {
    let mut text = String::with_capacity(hex.len() * 3 / 2);
    for (at, digit) in hex.chars().enumerate() {
        if at > 0 && at % 2 == 0 {
            text.push(by);
        }
        text.push(digit);
    }
    text
}

fn base64(secret: &[u8]) -> Vec<String> {
    let inside = |offset| {
        [inside(secret, offset, 6, |bytes| base64::Engine::encode(&STANDARD_NO_PAD, bytes)), {
            inside(secret, offset, 6, |bytes| base64::Engine::encode(&URL_SAFE_NO_PAD, bytes))
        }]
    };
    (0..3).flat_map(inside).collect()
}

fn base32(secret: &[u8]) -> Vec<String> {
    (0..5).map(|offset| inside(secret, offset, 5, |bytes| BASE32_NOPAD.encode(bytes))).collect()
}

/// Encodes `secret`, placed `offset` bytes after the start of a group. Returns only the digits (of `bits` bits each)
/// that no byte before or after the secret can change.
fn inside(secret: &[u8], offset: usize, bits: usize, encode: impl Fn(&[u8]) -> String) -> String {
    let mut padded = vec![0; offset];
    padded.extend_from_slice(secret);
    let first = (offset * 8).div_ceil(bits);
    let whole = padded.len() * 8 / bits;
    encode(&padded).get(first..whole).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_that_others_cannot_change_are_the_same_in_every_text() {
        for offset in 0..5 {
            let digits = inside(b"foobar", offset, 5, |bytes| BASE32_NOPAD.encode(bytes));
            let around = [&[0xff; 5][..offset], b"foobar", &[0xff; 4]].concat();

            assert!(digits.len() >= 8, "{digits}");
            assert!(BASE32_NOPAD.encode(&around).contains(&digits), "{digits} after {offset} bytes");
        }
    }
}

//! Ten ways in which programs print a secret. Written apart from the code that finds them.

use std::fmt::Write as _;
use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use freehold_fuzz::Draw;

/// A way to print a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    Raw,
    /// Of more than the secret, so that it begins anywhere in a group; wrapped as `base64` does.
    Base64,
    Base64Url,
    /// In either case, with separators or none, wrapped as `xxd -p` does.
    Hex,
    Base32,
    /// Some characters or all of them, in either case.
    Percent,
    Json,
    /// Quotes and backslashes anywhere.
    Shell,
    Xml,
    Reversed,
}

/// All of them.
pub const SPELLINGS: [Spelling; 10] = [
    Spelling::Raw,
    Spelling::Base64,
    Spelling::Base64Url,
    Spelling::Hex,
    Spelling::Base32,
    Spelling::Percent,
    Spelling::Json,
    Spelling::Shell,
    Spelling::Xml,
    Spelling::Reversed,
];

/// A printed secret.
#[derive(Debug)]
pub struct Spelled {
    pub text: String,
    /// Where nothing but the secret decides what is printed.
    pub secret: Range<usize>,
}

impl Spelling {
    /// Prints `secret` after a name, as a program would.
    pub fn spell(self, draw: &mut Draw, secret: &str) -> Spelled {
        let name = &"AWS_KEY="[draw.below(8)..];
        match self {
            Self::Raw => plain(name, secret),
            Self::Base64 => encoded(draw, name, secret, 6, |bytes| STANDARD.encode(bytes)),
            Self::Base64Url => encoded(draw, name, secret, 6, |bytes| URL_SAFE_NO_PAD.encode(bytes)),
            Self::Base32 => encoded(draw, name, secret, 5, base32),
            Self::Hex => hex(draw, name, secret),
            Self::Percent => escaped(draw, name, secret, |draw, text, character| {
                let code = u32::from(character);
                let _ = if draw.one_in(2) { write!(text, "%{code:02x}") } else { write!(text, "%{code:02X}") };
            }),
            Self::Json => escaped(draw, name, secret, |draw, text, character| {
                let code = u32::from(character);
                let _ = match (character, draw.below(3)) {
                    ('/', 0) => write!(text, "\\/"),
                    (_, 1) => write!(text, "\\u{code:04x}"),
                    (_, _) => write!(text, "\\u{code:04X}"),
                };
            }),
            Self::Shell => escaped(draw, name, secret, |draw, text, character| {
                let quote = *draw.pick(&["\\", "''", "\"\"", "'\"\"'"]);
                let _ = write!(text, "{quote}{character}");
            }),
            Self::Xml => escaped(draw, name, secret, |draw, text, character| {
                let code = u32::from(character);
                let _ = if draw.one_in(2) { write!(text, "&#{code};") } else { write!(text, "&#x{code:X};") };
            }),
            Self::Reversed => plain(name, &secret.chars().rev().collect::<String>()),
        }
    }
}

fn plain(name: &str, secret: &str) -> Spelled {
    let text = format!("{name}{secret}");
    Spelled { secret: name.len()..text.len(), text }
}

/// Encodes the name, the secret and what follows as one, and wraps it.
fn encoded(draw: &mut Draw, name: &str, secret: &str, bits: usize, encode: impl Fn(&[u8]) -> String) -> Spelled {
    let text = encode(format!("{name}{secret};").as_bytes());
    let secret = (name.len() * 8).div_ceil(bits)..(name.len() + secret.len()) * 8 / bits;
    let width = *draw.pick(&[usize::MAX, 76, 64]);
    wrapped(&text, secret, width)
}

fn wrapped(text: &str, secret: Range<usize>, width: usize) -> Spelled {
    let lines: Vec<String> =
        text.as_bytes().chunks(width).map(|line| String::from_utf8_lossy(line).into_owned()).collect();
    Spelled {
        text: lines.join("\n"),
        secret: secret.start + secret.start / width..secret.end + (secret.end - 1) / width,
    }
}

fn hex(draw: &mut Draw, name: &str, secret: &str) -> Spelled {
    let upper = draw.one_in(2);
    let separator = *draw.pick(&["", ":", " ", "-", ", 0x", "\\x", "  "]);
    let bytes = secret.bytes().map(|byte| if upper { format!("{byte:02X}") } else { format!("{byte:02x}") });
    let digits = bytes.collect::<Vec<_>>().join(separator);
    if separator.is_empty() && draw.one_in(2) {
        let length = digits.len();
        return wrapped(&digits, 0..length, 60);
    }
    plain(&format!("{name} "), &digits)
}

/// Escapes all characters, or some.
fn escaped(draw: &mut Draw, name: &str, secret: &str, escape: impl Fn(&mut Draw, &mut String, char)) -> Spelled {
    let often = *draw.pick(&[1, 2, 5]);
    let mut text = name.to_owned();
    for character in secret.chars() {
        if !character.is_ascii_alphanumeric() || draw.one_in(often) {
            escape(draw, &mut text, character);
        } else {
            text.push(character);
        }
    }
    Spelled { secret: name.len()..text.len(), text }
}

/// RFC 4648 section 6, bit by bit.
fn base32(bytes: &[u8]) -> String {
    let bits: Vec<u8> = bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| (byte >> bit) & 1)).collect();
    let digit = |five: &[u8]| {
        let value = (0..5).fold(0, |sum, at| sum * 2 + usize::from(five.get(at).copied().unwrap_or(0)));
        char::from(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[value])
    };
    let mut text: String = bits.chunks(5).map(digit).collect();
    text.push_str(&"=".repeat((8 - text.len() % 8) % 8));
    text
}

//! Views of a text: with its escapes decoded, or only its letters and digits. Each byte has its position in the
//! original text.

use std::ops::Range;

/// The maximum depth of nested escapes, such as JSON in JSON in a URL.
pub(super) const LEVELS: usize = 3;

/// A text derived from an original text.
#[derive(Debug, Default)]
pub(super) struct View {
    pub(super) bytes: Vec<u8>,
    /// The position of each byte in the original text. `None` for a quick search that only asks whether anything is
    /// found.
    places: Option<Vec<Range<usize>>>,
}

impl View {
    /// Returns the view of the unchanged text.
    pub(super) fn of(text: &[u8]) -> Self {
        Self { bytes: text.to_vec(), places: Some((0..text.len()).map(|at| at..at + 1).collect()) }
    }

    /// Returns a view without positions, which cost ten times as much to compute. Most lines do not need them.
    pub(super) fn without_places(text: &[u8]) -> Self {
        Self { bytes: text.to_vec(), places: None }
    }

    /// Returns an empty view. The new view records positions if this view does.
    fn empty(&self) -> Self {
        Self { bytes: Vec::with_capacity(self.bytes.len()), places: self.places.as_ref().map(|_| Vec::new()) }
    }

    fn places(&self) -> &[Range<usize>] {
        self.places.as_deref().unwrap_or_default()
    }

    /// Returns the position in the original text of the bytes at `span`.
    pub(super) fn source(&self, span: &Range<usize>) -> Range<usize> {
        let places = self.places().get(span.clone()).unwrap_or_default();
        places.first().map_or(0, |first| first.start)..places.last().map_or(0, |last| last.end)
    }

    /// Returns `span` of the original text, extended by adjacent base64 characters (`+`, `/`, `=`), even with quotes
    /// between them.
    pub(super) fn widened(&self, span: &Range<usize>) -> Range<usize> {
        let start = self.places().partition_point(|place| place.end <= span.start);
        let end = self.places().partition_point(|place| place.start < span.end);
        let (before, after) = (self.bytes.get(..start).unwrap_or_default(), self.bytes.get(end..).unwrap_or_default());
        let before = signs(before.iter().rev(), b"+/");
        let after = signs(after.iter(), b"+/=-_");
        self.source(&(start.saturating_sub(before)..end + after))
    }

    /// Returns only the letters and digits. Leaves out a `0x` at the start of a number.
    pub(super) fn compact(&self) -> Self {
        let mut compact = self.empty();
        let mut at = 0;
        let mut in_word = false;
        while let Some(byte) = self.bytes.get(at) {
            if !in_word && matches!(self.bytes.get(at..at + 2), Some(b"0x" | b"0X")) {
                at += 2;
                in_word = true;
                continue;
            }
            in_word = byte.is_ascii_alphanumeric();
            if in_word {
                compact.push(*byte, self, at..at + 1);
            }
            at += 1;
        }
        compact
    }

    /// Returns the text without quotes and backslashes, which shells accept between the characters of a word.
    pub(super) fn unquoted(&self) -> Self {
        let mut unquoted = self.empty();
        for (at, byte) in self.bytes.iter().enumerate() {
            if !matches!(byte, b'\'' | b'"' | b'\\') {
                unquoted.push(*byte, self, at..at + 1);
            }
        }
        unquoted
    }

    /// Returns the text with its escapes decoded, or `None` when the text has no escapes.
    pub(super) fn decoded(&self) -> Option<Self> {
        if !may_have_escapes(&self.bytes) {
            return None;
        }
        let mut decoded = self.empty();
        let mut at = 0;
        let mut escapes = false;
        while let Some(byte) = self.bytes.get(at) {
            let read = if begins_escape(*byte) { self.bytes.get(at..).and_then(escape) } else { None };
            let character = read.and_then(|(code, length)| Some((char::from_u32(code)?, length)));
            if let Some((character, length)) = character {
                let mut buffer = [0; 4];
                let written = character.encode_utf8(&mut buffer).bytes();
                written.for_each(|byte| decoded.push(byte, self, at..at + length));
                escapes = true;
                at += length;
            } else {
                decoded.push(*byte, self, at..at + 1);
                at += 1;
            }
        }
        escapes.then_some(decoded)
    }

    /// Adds a byte, which is at `span` in `from`.
    fn push(&mut self, byte: u8, from: &Self, span: Range<usize>) {
        self.bytes.push(byte);
        if let Some(places) = &mut self.places {
            places.push(from.source(&span));
        }
    }
}

/// Returns the length of the prefix that consists of `signs` and quotes, up to its last sign.
fn signs<'a>(bytes: impl Iterator<Item = &'a u8>, signs: &[u8]) -> usize {
    let run = bytes.take_while(|byte| signs.contains(byte) || b"'\"\\".contains(byte));
    run.enumerate().filter(|(_, byte)| signs.contains(byte)).last().map_or(0, |(at, _)| at + 1)
}

/// Returns whether `text` contains a byte that starts an escape.
pub(super) fn may_have_escapes(text: &[u8]) -> bool {
    text.iter().copied().any(begins_escape)
}

const fn begins_escape(byte: u8) -> bool {
    matches!(byte, b'%' | b'\\' | b'&')
}

/// Returns the code point of the escape at the start of `text`, and the length of the escape in bytes.
fn escape(text: &[u8]) -> Option<(u32, usize)> {
    match text {
        [b'%', rest @ ..] => number(rest, 16, 2, 2).map(|(value, digits)| (value, 1 + digits)),
        [b'\\', b'u', b'{', rest @ ..] => {
            let (value, digits) = number(rest, 16, 1, 6)?;
            (rest.get(digits) == Some(&b'}')).then_some((value, 4 + digits))
        }
        [b'\\', b'u', rest @ ..] => number(rest, 16, 4, 4).map(|(value, digits)| (value, 2 + digits)),
        [b'\\', b'U', rest @ ..] => number(rest, 16, 8, 8).map(|(value, digits)| (value, 2 + digits)),
        [b'\\', b'x', rest @ ..] => number(rest, 16, 2, 2).map(|(value, digits)| (value, 2 + digits)),
        [b'\\', b'0'..=b'3', ..] => number(text.get(1..)?, 8, 3, 3).map(|(value, digits)| (value, 1 + digits)),
        [b'\\', byte, ..] if byte.is_ascii_punctuation() => Some((u32::from(*byte), 2)),
        [b'&', b'#', b'x' | b'X', rest @ ..] => entity(rest, 16).map(|(value, length)| (value, 3 + length)),
        [b'&', b'#', rest @ ..] => entity(rest, 10).map(|(value, length)| (value, 2 + length)),
        [b'&', rest @ ..] => named(rest).map(|(value, length)| (value, 1 + length)),
        _ => None,
    }
}

fn entity(text: &[u8], radix: u32) -> Option<(u32, usize)> {
    let (value, digits) = number(text, radix, 1, 7)?;
    (text.get(digits) == Some(&b';')).then_some((value, digits + 1))
}

fn named(text: &[u8]) -> Option<(u32, usize)> {
    let names: [(&[u8], u8); 8] = [
        (b"amp;", b'&'),
        (b"lt;", b'<'),
        (b"gt;", b'>'),
        (b"quot;", b'"'),
        (b"apos;", b'\''),
        (b"plus;", b'+'),
        (b"sol;", b'/'),
        (b"equals;", b'='),
    ];
    let (name, byte) = names.into_iter().find(|(name, _)| text.starts_with(name))?;
    Some((u32::from(byte), name.len()))
}

/// Returns the number at the start of `text`, if it has at least `least` digits, and how many digits it has (at most
/// `most`).
fn number(text: &[u8], radix: u32, least: usize, most: usize) -> Option<(u32, usize)> {
    let digits = text.iter().take(most).take_while(|byte| char::from(**byte).is_digit(radix)).count();
    let value = text.iter().take(digits).filter_map(|byte| char::from(*byte).to_digit(radix));
    (digits >= least).then(|| (value.fold(0, |sum, digit| sum * radix + digit), digits))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoded(text: &str) -> String {
        let view = View::of(text.as_bytes()).decoded().unwrap_or_else(|| View::of(text.as_bytes()));
        String::from_utf8_lossy(&view.bytes).into_owned()
    }

    #[test]
    fn escapes_are_read_as_what_they_stand_for() {
        for text in
            [r"%2b%2B", r"\u002b\u002B", r"\x2b\053", r"\+\u{2b}", "&#43;&#x2b;", "&#0043;&plus;", r"\U0000002b+"]
        {
            assert_eq!(decoded(text), "++", "{text}");
        }
        for text in ["100%", r"C:\new", "a & b", "&#;", "%g1", r"\u12"] {
            assert_eq!(decoded(text), text);
        }
    }

    proptest! {
        #[test]
        fn a_span_of_a_view_leads_to_its_source(text in "[a-z%\\\\&#;u0-9x: -]{0,60}") {
            let plain = View::of(text.as_bytes());
            for view in [plain.compact(), plain.decoded().unwrap_or_default()] {
                let mut end = 0;
                for at in 0..view.bytes.len() {
                    let source = view.source(&(at..at + 1));
                    prop_assert!(source.start >= end || source.end == end, "bytes of one escape share their place");
                    prop_assert!(source.start < source.end && source.end <= text.len());
                    end = source.end;
                }
            }
        }
    }
}

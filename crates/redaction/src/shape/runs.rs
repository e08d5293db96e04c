//! Finds runs of letters and digits that are neither words, numbers nor ids: keys, tokens, and what encodes them.

use std::ops::Range;

/// A run of this many characters at the end of a line may be one line of a text that a program wrapped.
const WRAPPED: usize = 48;
/// The longest word that is a secret only as a part of a longer run, in characters.
const SHORT: usize = 8;
/// The length from which a run is a secret if one of its short words mixes digits, upper and lower case.
const MIXED_RUN: usize = 16;
/// The longest number, in digits: a time in nanoseconds since 1970 is not shown.
const NUMBER: usize = 15;
/// The longest words in one case, and in mixed case, in characters.
const LOWER: usize = 24;
const UPPER: usize = 15;
const MIXED: usize = 40;

/// Returns the places of such runs in `text`.
pub(super) fn find(text: &[u8]) -> Vec<Range<usize>> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(byte) = text.get(at) {
        if !is_of_run(*byte) {
            at += 1;
            continue;
        }
        let run = at..end_of_run(text, at);
        at = run.end;
        if is_secret(text, &run) {
            found.push(run);
        }
    }
    found
}

/// Returns whether a run may contain this character: those of base64 in both alphabets.
const fn is_of_run(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'_' | b'-')
}

/// Returns the end of the run that begins at `start`. A long run at the end of a line continues on the next line.
fn end_of_run(text: &[u8], start: usize) -> usize {
    let mut line = start;
    loop {
        let rest = text.get(line..).unwrap_or_default();
        let length = rest.iter().take_while(|byte| is_of_run(**byte)).count();
        let line_end = match rest.get(length..) {
            Some([b'\r', b'\n', ..]) => 2,
            Some([b'\n', ..]) => 1,
            Some(_) | None => 0,
        };
        let continues = rest.get(length + line_end).is_some_and(|byte| is_of_run(*byte));
        if length < WRAPPED || line_end == 0 || !continues {
            return line + length;
        }
        line += length + line_end;
    }
}

fn is_secret(text: &[u8], run: &Range<usize>) -> bool {
    let mut at = run.start;
    let mut words = text.get(run.clone()).unwrap_or_default().split(|byte| !byte.is_ascii_alphanumeric());
    words.any(|word| {
        let place = at..at + word.len();
        at = place.end + 1;
        is_opaque(word, run.len()) && !is_id(text, &place)
    })
}

/// Returns whether a word of a run of `run` characters is neither a word of a language, nor a number, nor a time.
fn is_opaque(word: &[u8], run: usize) -> bool {
    let count = |is: fn(&u8) -> bool| word.iter().filter(|byte| is(byte)).count();
    let digits = count(u8::is_ascii_digit);
    if word.len() <= SHORT {
        let has_both_cases = count(u8::is_ascii_uppercase) > 0 && count(u8::is_ascii_lowercase) > 0;
        return run >= MIXED_RUN && digits > 0 && has_both_cases;
    }
    if digits == word.len() {
        return digits > NUMBER;
    }
    let at_end = word.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let letters = word.len() - digits;
    if at_end == digits && (digits == 0 || (digits <= 4 && letters <= 12)) {
        return !is_wordlike(word.get(..letters).unwrap_or_default());
    }
    !is_time(word)
}

/// Returns whether a text is the end of a time, such as `123456789Z`, or a time without separators.
fn is_time(word: &[u8]) -> bool {
    let Some((b'Z', digits)) = word.split_last() else { return false };
    let are_digits = |part: &[u8]| part.iter().all(u8::is_ascii_digit);
    match digits.split_at_checked(8) {
        Some((day, [b'T', time @ ..])) => are_digits(day) && time.len() == 6 && are_digits(time),
        Some(_) | None => digits.len() <= 9 && are_digits(digits),
    }
}

/// Returns whether letters look like words: in one case, or as `CreateAutoScalingGroup`.
fn is_wordlike(letters: &[u8]) -> bool {
    let upper = letters.iter().filter(|byte| byte.is_ascii_uppercase()).count();
    if upper == 0 {
        return letters.len() <= LOWER;
    }
    if upper == letters.len() {
        return upper <= UPPER;
    }
    let is_weak = |part: &&[u8]| part.len() <= 2 || (part.len() > 5 && part.iter().all(u8::is_ascii_uppercase));
    let most = if letters.len() > SHORT { 1 } else { 2 };
    letters.len() <= MIXED && parts(letters).into_iter().filter(is_weak).count() <= most
}

/// Returns the words of a text such as `IAMFullAccess`: `IAM`, `Full`, `Access`.
fn parts(letters: &[u8]) -> Vec<&[u8]> {
    let is_lower = |at: usize| letters.get(at).is_some_and(u8::is_ascii_lowercase);
    let begins = |at: &usize| match at.checked_sub(1) {
        Some(before) => !is_lower(*at) && (is_lower(before) || is_lower(at + 1)),
        None => true,
    };
    let starts: Vec<usize> = (0..letters.len()).filter(begins).collect();
    let ends = starts.iter().skip(1).copied().chain([letters.len()]);
    starts.iter().zip(ends).filter_map(|(start, end)| letters.get(*start..end)).collect()
}

/// Returns whether the word at `place` is the last part of a digest, of an id of Freehold, of the id of a resource of AWS,
/// or of the position of an audit record.
fn is_id(text: &[u8], place: &Range<usize>) -> bool {
    let before = text.get(..place.start).unwrap_or_default();
    let word = text.get(place.clone()).unwrap_or_default();
    if !word.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return false;
    }
    let prefix = |mark: u8, is_of_prefix: fn(&u8) -> bool| {
        let (last, rest) = before.split_last()?;
        (*last == mark).then(|| rest.iter().rev().take_while(|byte| is_of_prefix(byte)).count())
    };
    match word.len() {
        64 => before.ends_with(b"sha256:"),
        20 => prefix(b'_', u8::is_ascii_lowercase).is_some_and(|letters| (2..=5).contains(&letters)),
        17 => {
            let letters = prefix(b'-', u8::is_ascii_lowercase);
            word.first() == Some(&b'0') && letters.is_some_and(|letters| (1..=10).contains(&letters))
        }
        12 => prefix(b'-', u8::is_ascii_digit) == Some(12),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_numbers_and_times_are_not_opaque() {
        for word in [
            "internationalization",
            "AUTHORIZATION",
            "AmazonSSMManagedInstanceCore",
            "IAMFullAccess",
            "222222222222",
            "123456789Z",
            "20261130T225055Z",
            "server0123",
        ] {
            assert!(!is_opaque(word.as_bytes(), 40), "{word}");
        }
        for word in ["7c9d8b6f5a", "bPxRfiCYEXAMPLEKEY", "MFRGGZDFMZTWQ2LK", "8lk7T9sg", "1234567890123456"] {
            assert!(is_opaque(word.as_bytes(), 40), "{word}");
        }
        assert!(!is_opaque(b"8lk7T9sg", 8), "a short word alone");
    }

    #[test]
    fn a_name_is_split_into_its_words() {
        let shown = |text: &str| -> Vec<String> {
            parts(text.as_bytes()).iter().map(|part| String::from_utf8_lossy(part).into_owned()).collect()
        };

        assert_eq!(shown("IAMFullAccess"), ["IAM", "Full", "Access"]);
        assert_eq!(shown("getItem"), ["get", "Item"]);
    }

    #[test]
    fn a_wrapped_text_is_one_run() {
        let line = "QUJD".repeat(16);
        let text = format!("{line}\n{line}\nQUJD\nwords");

        let found = find(text.as_bytes());

        let run = 0..text.len() - "\nwords".len();
        assert_eq!(found, std::slice::from_ref(&run));
    }
}

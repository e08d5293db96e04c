//! Finds secrets in output, in the forms that programs print, and replaces them.

use aho_corasick::{AhoCorasick, MatchKind};
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

/// Shorter secrets (in bytes) are not redacted: they would redact half of every log.
pub const SHORTEST: usize = 4;

const MASK: &str = "[redacted]";

/// All characters but the unreserved ones (RFC 3986 section 2.3).
const RESERVED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
const RESERVED_BUT_SLASH: AsciiSet = RESERVED.remove(b'/');

/// The secrets to redact.
#[derive(Debug, Default)]
pub struct Secrets {
    patterns: Vec<Vec<u8>>,
    automaton: Option<AhoCorasick>,
    longest: usize,
}

impl Secrets {
    /// Adds a secret: as it is, each of its lines, and their base64 (at every alignment), URL and JSON forms.
    pub fn add(&mut self, secret: &str) {
        let lines = secret.lines().map(str::trim).filter(|line| *line != secret);
        for text in std::iter::once(secret).chain(lines) {
            if text.trim().len() >= SHORTEST {
                self.add_forms(text);
            }
        }
        self.longest = self.patterns.iter().map(Vec::len).max().unwrap_or(0);
        // A set too large for the automaton would be a bug; then all text is redacted.
        self.automaton = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&self.patterns).ok();
    }

    /// Returns `bytes` with every secret replaced.
    pub fn redact(&self, bytes: &[u8]) -> Vec<u8> {
        if self.patterns.is_empty() {
            return bytes.to_vec();
        }
        let Some(automaton) = &self.automaton else {
            return MASK.as_bytes().to_vec();
        };
        let mut out = Vec::with_capacity(bytes.len());
        let mut at = 0;
        for found in automaton.find_iter(bytes) {
            out.extend_from_slice(bytes.get(at..found.start()).unwrap_or_default());
            out.extend_from_slice(MASK.as_bytes());
            at = found.end();
        }
        out.extend_from_slice(bytes.get(at..).unwrap_or_default());
        out
    }

    /// Returns the length of the longest form, in bytes.
    pub const fn longest(&self) -> usize {
        self.longest
    }

    fn add_forms(&mut self, text: &str) {
        let url = percent_encode(text.as_bytes(), NON_ALPHANUMERIC).to_string();
        let json = serde_json::to_string(text).unwrap_or_default();
        self.push(text.as_bytes());
        self.push(url.to_lowercase().as_bytes());
        self.push(url.replace("%20", "+").as_bytes());
        self.push(percent_encode(text.as_bytes(), &RESERVED).to_string().as_bytes());
        self.push(percent_encode(text.as_bytes(), &RESERVED_BUT_SLASH).to_string().as_bytes());
        self.push(url.as_bytes());
        self.push(json.trim_matches('"').as_bytes());
        for offset in 0..3 {
            self.push(base64_inside(&STANDARD_NO_PAD, text.as_bytes(), offset).as_bytes());
            self.push(base64_inside(&URL_SAFE_NO_PAD, text.as_bytes(), offset).as_bytes());
        }
    }

    fn push(&mut self, pattern: &[u8]) {
        if pattern.len() >= SHORTEST && !self.patterns.iter().any(|known| known == pattern) {
            self.patterns.push(pattern.to_vec());
        }
    }
}

/// Returns the base64 digits that depend on `secret` alone when it begins `offset` bytes after a group's start.
fn base64_inside(engine: &impl base64::Engine, secret: &[u8], offset: usize) -> String {
    let mut padded = vec![0; offset];
    padded.extend_from_slice(secret);
    let encoded = engine.encode(&padded);
    let first = (offset * 8).div_ceil(6);
    let whole = padded.len() * 8 / 6;
    encoded.get(first..whole).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use proptest::prelude::*;

    use super::*;

    fn redacted(secret: &str, text: &str) -> String {
        let mut secrets = Secrets::default();
        secrets.add(secret);
        String::from_utf8(secrets.redact(text.as_bytes())).unwrap()
    }

    #[test]
    fn url_and_json_forms_are_taken_out() {
        let secret = "p@ss w\"rd/1~x";

        for form in ["p%40ss%20w%22rd%2F1~x", "p%40ss+w%22rd%2F1%7Ex", "p%40ss%20w%22rd/1~x", "p@ss w\\\"rd/1~x"] {
            assert_eq!(redacted(secret, &format!("<{form}>")), "<[redacted]>", "{form}");
        }
    }

    #[test]
    fn each_line_of_a_key_file_is_a_secret() {
        let key = "-----BEGIN KEY-----\nMIIBVQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END KEY-----\n";

        assert_eq!(redacted(key, "got hkiG9w0BAQEFAASC"), "got [redacted]");
    }

    #[test]
    fn a_very_short_secret_does_not_take_out_everything() {
        assert_eq!(redacted("a", "banana"), "banana");
    }

    proptest! {
        #[test]
        fn no_base64_of_anything_around_a_secret_shows_it(before in "[ -~]{0,5}", secret in "[ -~]{12,40}", after in "[ -~]{0,5}") {
            let encoded = STANDARD.encode(format!("{before}{secret}{after}"));

            let shown = redacted(&secret, &encoded);

            // What may be left are digits that mix the secret's edge with its surroundings.
            prop_assert!(secret.trim().len() < SHORTEST || shown.replace("[redacted]", "").len() <= encoded.len() - (secret.len() * 8 / 6 - 2));
        }
    }
}

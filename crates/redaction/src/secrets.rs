//! The secrets that somebody knows, and the search for all their forms.

use std::collections::BTreeSet;
use std::ops::Range;

use aho_corasick::{AhoCorasick, BuildError, MatchKind};

use crate::forms;
use crate::fragments::Fragments;
use crate::spans::{masked, merged};
use crate::views::{LEVELS, View, may_have_escapes};

/// The shortest secret that is redacted, in bytes. A shorter one would redact half of every log.
pub const SHORTEST: usize = 4;

/// The maximum number of bytes that an escape uses for one byte: `\u{2b}` and `&#x2b;`, with a backslash before them.
const ESCAPED: usize = 7;

/// The secrets to redact.
#[derive(Debug, Default)]
pub struct Secrets {
    patterns: BTreeSet<Vec<u8>>,
    whole: Option<AhoCorasick>,
    parts: Fragments,
    longest: usize,
    /// True when the search could not be built because there are too many secrets, which would be a bug. Then all text
    /// is redacted.
    is_broken: bool,
}

impl Secrets {
    /// Adds a secret and each of its lines: unchanged and as base64 and base32 (at every alignment), hex, URL, JSON and
    /// shell forms.
    pub fn add(&mut self, secret: &str) {
        self.add_all(&[secret], false);
    }

    /// Adds each of `secrets` like [`Secrets::add`], but prepares the search only once.
    pub fn add_each(&mut self, secrets: &[&str]) {
        self.add_all(secrets, false);
    }

    /// Adds random texts of letters and digits, such as AWS credentials. Parts of them are redacted too.
    pub fn add_credentials(&mut self, secrets: &[&str]) {
        self.add_all(secrets, true);
    }

    fn add_all(&mut self, secrets: &[&str], are_credentials: bool) {
        let (mut new_patterns, mut new_parts) = (false, false);
        for secret in secrets {
            let parts = if are_credentials { self.add_parts(secret) } else { None };
            match parts {
                Some(are_new) => new_parts |= are_new,
                None => new_patterns |= self.add_lines(secret),
            }
        }
        // The same credentials are added again at each request to the credentials endpoint, and new credentials for
        // each step of a job. Preparing the search again for the patterns of a thousand other secrets would take
        // seconds, in which the runner renews no lease.
        if new_patterns || (new_parts && self.whole.is_none()) {
            self.is_broken |= self.build_patterns().is_err();
        }
        if new_parts {
            self.is_broken |= self.parts.build().is_err();
        }
    }

    /// Returns `bytes` with each secret replaced by a mask.
    pub fn redact(&self, bytes: &[u8]) -> Vec<u8> {
        masked(bytes, &self.find(bytes))
    }

    /// Returns a place where `bytes` can be cut when more bytes will follow: no secret extends across it.
    pub fn cut(&self, bytes: &[u8]) -> usize {
        let at = bytes.len().saturating_sub(self.longest);
        let crossing = self.find(bytes).into_iter().find(|span| (span.start..span.end).contains(&at));
        // Text that is one whole secret is emitted at once, as one mask.
        crossing.map_or(at, |span| if span.start > 0 { span.start } else { span.end })
    }

    /// Returns the length of the longest form of a secret, in bytes.
    pub const fn longest(&self) -> usize {
        self.longest
    }

    fn build_patterns(&mut self) -> Result<(), BuildError> {
        self.whole = Some(AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&self.patterns)?);
        Ok(())
    }

    /// Returns the positions of secrets, in order and without overlaps.
    fn find(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        if self.is_broken {
            return std::iter::once(0..bytes.len()).collect();
        }
        let Some(whole) = &self.whole else { return Vec::new() };
        let mut spans: Vec<_> = whole.find_iter(bytes).map(|found| found.range()).collect();
        if may_have_escapes(bytes) || !self.parts.is_empty() {
            let mut found = Vec::new();
            self.find_in_views(View::without_places(bytes), whole, &mut found);
            if !found.is_empty() {
                self.find_in_views(View::of(bytes), whole, &mut spans);
            }
        }
        merged(spans)
    }

    /// Adds the positions of secrets in `view` without separators, and in `view` with its escapes decoded, level by
    /// level.
    fn find_in_views(&self, mut view: View, whole: &AhoCorasick, spans: &mut Vec<Range<usize>>) {
        for _ in 0..=LEVELS {
            if !self.parts.is_empty() {
                let compact = view.compact();
                spans.extend(self.parts.find(&compact.bytes).iter().map(|part| view.widened(&compact.source(part))));
            }
            let Some(decoded) = view.decoded() else { return };
            spans.extend(whole.find_iter(&decoded.bytes).map(|found| decoded.source(&found.range())));
            view = decoded;
        }
    }

    /// Adds the parts of a credential. Returns whether they are new, or `None` when the credential is too short to have
    /// parts.
    fn add_parts(&mut self, credential: &str) -> Option<bool> {
        if !Fragments::takes(credential) {
            return None;
        }
        self.longest = self.longest.max(ESCAPED * credential.len());
        let forms = forms::of_credential(credential);
        Some(forms.iter().filter(|form| self.parts.add(form)).count() > 0)
    }

    fn add_lines(&mut self, secret: &str) -> bool {
        let lines = secret.lines().map(str::trim).filter(|line| *line != secret);
        let texts = std::iter::once(secret).chain(lines).filter(|text| text.trim().len() >= SHORTEST);
        texts.filter(|text| self.add_whole(text)).count() > 0
    }

    fn add_whole(&mut self, text: &str) -> bool {
        self.longest = self.longest.max(ESCAPED * text.len());
        let mut is_new = false;
        for form in forms::of_secret(text) {
            if form.len() >= SHORTEST {
                self.longest = self.longest.max(form.len());
                is_new |= self.patterns.insert(form);
            }
        }
        is_new
    }
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
    fn a_new_credential_does_not_prepare_the_search_for_other_secrets_again() {
        let mut secrets = Secrets::default();
        let (secret, credential) = ("the secret of the app", "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY");
        secrets.add(secret);
        // A pattern that the search does not know shows whether the search is prepared again.
        secrets.patterns.insert(b"another".to_vec());

        secrets.add_credentials(&[credential]);
        let text = secrets.redact(format!("{secret}, {credential}, another").as_bytes());

        assert_eq!(String::from_utf8(text).unwrap(), "[redacted], [redacted], another");
    }

    #[test]
    fn each_line_of_a_key_file_is_a_secret() {
        let key = "-----BEGIN KEY-----\nMIIBVQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END KEY-----\n";

        assert_eq!(redacted(key, "got hkiG9w0BAQEFAASC"), "got [redacted]");
    }

    const KEY: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

    fn without_credential(text: &str) -> String {
        let mut secrets = Secrets::default();
        secrets.add_credentials(&[KEY]);
        String::from_utf8(secrets.redact(text.as_bytes())).unwrap()
    }

    #[test]
    fn every_mixture_of_escapes_is_taken_out() {
        for form in [
            "wJalrXUtnFEMI%2fK7MDENG%2BbPxRfiCYEXAMPLEKEY",
            "%77JalrXUtnFEMI%2fK7MDENG\\u002bbPxRfiCYEXAMPLEKE\\u0059",
            "wJalrXUtnFEMI\\/K7MDENG&#43;bPxRfiCYEXAMPLEKEY",
            "wJalrXUtnFEMI%252fK7MDENG%252BbPxRfiCYEXAMPLEKEY",
            "wJalrXUtnFEMI&#x2F;K7MDENG\\\\u002bbPxRfiCYEXAMPLEKEY",
        ] {
            assert_eq!(redacted(KEY, &format!("<{form}>")), "<[redacted]>", "{form}");
            assert_eq!(without_credential(&format!("<{form}>")), "<[redacted]>", "{form}");
        }
    }

    #[test]
    fn separators_within_a_credential_do_not_hide_it() {
        let spaced: String = KEY.chars().flat_map(|character| [character, ' ', ' ']).collect();
        let hex: Vec<String> = KEY.bytes().map(|byte| format!("{byte:02X}")).collect();
        let dumped: String = KEY.bytes().map(|byte| format!("0x{byte:02x}, ")).collect();
        for form in [
            spaced.trim(),
            &hex.join(":"),
            &hex.join(" "),
            dumped.trim_end_matches(", "),
            &format!("\\x{}", hex.join("\\x")),
        ] {
            assert_eq!(without_credential(&format!("<{form}>")).replace("0x", ""), "<[redacted]>", "{form}");
        }
    }

    #[test]
    fn the_lines_of_a_wrapped_or_cut_credential_are_taken_out() {
        let encoded = STANDARD.encode(format!("aws_secret_access_key={KEY}"));
        for line in [&encoded[30..60], &KEY[3..18], &KEY[22..], &KEY.chars().rev().collect::<String>()[..20]] {
            assert_eq!(without_credential(&format!("<{line}>")), "<[redacted]>", "{line}");
        }
    }

    #[test]
    fn the_signs_at_the_end_of_a_credential_are_taken_out_and_the_quotes_around_it_stay() {
        let mut secrets = Secrets::default();
        secrets.add_credentials(&["IQoJb3JpZ2luX2VjE4ED+/=="]);
        for (text, expected) in [
            (r#"{"t": "IQoJb3JpZ2luX2VjE4ED+/==", "n": 1}"#, r#"{"t": "[redacted]", "n": 1}"#),
            (r"T=IQoJb3JpZ2luX2VjE4ED\u002B\/\u003D\u003d;", "T=[redacted];"),
            (r#"T=IQoJb3JpZ2luX2VjE4ED'+'"/"\=\= x"#, "T=[redacted] x"),
        ] {
            assert_eq!(String::from_utf8_lossy(&secrets.redact(text.as_bytes())), expected);
        }
    }

    #[test]
    fn what_only_begins_like_a_credential_stays() {
        assert_eq!(without_credential("wJalrXUtn and FEMI/K7MDE"), "wJalrXUtn and FEMI/K7MDE");
    }

    #[test]
    fn a_very_short_secret_does_not_take_out_everything() {
        assert_eq!(redacted("a", "banana"), "banana");
    }

    proptest! {
        #[test]
        fn no_base64_of_anything_around_a_secret_shows_it(before in "[ -~]{0,5}", secret in "[ -~]{12,40}", after in "[ -~]{0,5}") {
            let encoded = STANDARD.encode(format!("{before}{secret}{after}"));

            let output = redacted(&secret, &encoded);

            // What may be left are digits that mix the secret's edge with its surroundings.
            prop_assert!(secret.trim().len() < SHORTEST || output.replace("[redacted]", "").len() <= encoded.len() - (secret.len() * 8 / 6 - 2));
        }
    }
}

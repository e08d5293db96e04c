//! Finds texts that have the shape of a secret, although nobody knows the secret: for texts that a person sends out of the
//! customer's account.
//!
//! Long runs of letters and digits that are neither words nor numbers are redacted, and so are dumps of bytes, private keys,
//! the credentials in a URL, and what follows a name such as `password=`. Digests, ids of Freehold and of AWS resources stay.
//! A secret that looks like a word, and that no such name precedes, is not found.

mod assignments;
mod hex_bytes;
mod json;
mod runs;

use std::ops::Range;

pub use json::redact_json_by_shape;

use crate::spans::{masked, merged};
use crate::views::{LEVELS, View};

/// A text without what has the shape of a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redacted {
    pub text: String,
    /// The number of places with a mask.
    pub places: usize,
}

/// Returns `text` with a mask in place of each part that has the shape of a secret.
pub fn redact_by_shape(text: &str) -> Redacted {
    let spans = find(text.as_bytes());
    let bytes = masked(text.as_bytes(), &spans);
    Redacted { text: String::from_utf8_lossy(&bytes).into_owned(), places: spans.len() }
}

/// Returns the places of such parts in `text`, with its escapes decoded level by level.
fn find(text: &[u8]) -> Vec<Range<usize>> {
    let (mut view, mut spans) = (View::of(text), Vec::new());
    for _ in 0..=LEVELS {
        let found = assignments::find(&view.bytes).into_iter().chain(hex_bytes::find(&view.bytes));
        spans.extend(found.map(|span| view.source(&span)));
        let unquoted = view.unquoted();
        spans.extend(runs::find(&unquoted.bytes).iter().map(|span| unquoted.source(span)));
        let Some(decoded) = view.decoded() else { break };
        view = decoded;
    }
    merged(spans)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn redacted(text: &str) -> String {
        redact_by_shape(text).text
    }

    #[test]
    fn what_helps_to_find_a_mistake_stays() {
        for text in [
            "2026-11-30T22:50:55.123456789Z INFO freehold_runner::work::poll: Took order of job `job_0123456789abcdef0123`",
            "User: arn:aws:sts::222222222222:assumed-role/fh-acme--globex--provision/job_0123456789abcdef0123 is not \
             authorized to perform: s3:CreateBucket on resource: \"arn:aws:s3:::fh-acme--globex--222222222222\"",
            "pulled sha256:05b3abf2579a5eb66403cd78be557fd860633a1fe2103c7642030defe32c657f from \
             222222222222.dkr.ecr.eu-west-1.amazonaws.com/fh-acme--globex",
            "i-0123456789abcdef0 in vpc-0a1b2c3d4e5f67890, eu-west-1a, t3.medium: UPDATE_ROLLBACK_COMPLETE",
            "Access denied for operation 'AWS::AutoScaling::AutoScalingGroup' (HandlerErrorCode: AccessDenied)",
            "last record: 000000000044-4b5e57f6eb2f of /usr/lib/x86_64-linux-gnu/libc.so.6",
            "the password is wrong, and the secret was not found",
            "{\"level\":\"info\",\"msg\":\"started\\nlistening on 0.0.0.0:8080\",\"ts\":1795250000000}",
        ] {
            assert_eq!(redacted(text), text);
        }
    }

    #[test]
    fn what_has_the_shape_of_a_secret_goes() {
        for (text, expected) in [
            ("key wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY!", "key [redacted]!"),
            ("id AKIAIOSFODNN7EXAMPLE.", "id [redacted]."),
            ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0", "[redacted].[redacted]"),
            ("ghp_16C7e42F292c6912E7710c838347Ae178B4a", "[redacted]"),
            ("request 7f3a2f00-1b2c-4d5e-8f90-4a5b6c7d8e9f", "request [redacted]"),
            ("postgres://app:hunter2@db.internal:5432/app", "postgres://[redacted]@db.internal:5432/app"),
            ("https://hunter2@example.com/x", "https://[redacted]@example.com/x"),
            ("db_password = \"correct horse\" # x", "db_password = \"[redacted]\" # x"),
            ("Authorization: Basic dXNlcjpw YQ\nnext", "Authorization: [redacted]\nnext"),
            ("Authorization:[Bearer a b] x\nnext", "Authorization:[[redacted]\nnext"),
            ("?token=abc&x=1", "?token=[redacted]&x=1"),
            ("password=\"a\\\" b c\" d", "password=\"[redacted]\" d"),
            ("{\\\"password\\\":\\\"a b\\\",\\\"n\\\":1}", "{\\\"password\\\":\\\"[redacted]\\\",\\\"n\\\":1}"),
            ("\"password\": [\"hunter2\"]", "\"password\": [\"[redacted]\"]"),
            ("password: |\n  a\n\n  b\nnext: c", "password: |\n[redacted]next: c"),
            ("password => a", "password => [redacted]"),
            ("mysql --db-password hunter2 --verbose", "mysql --db-password [redacted] --verbose"),
            ("SMTP_PASS=hunter2 first_passed=3", "SMTP_PASS=[redacted] first_passed=3"),
            ("\"app:hunter2@tcp(db:3306)/app\"", "\"[redacted]@tcp(db:3306)/app\""),
            ("00000000: 6875 6e74 6572 3221  x", "00000000: [redacted]  x"),
            ("{\"client_secret\":\"abc\",\"n\":1}", "{\"client_secret\":\"[redacted]\",\"n\":1}"),
            ("68:75:6e:74:65:72:32:21 x", "[redacted] x"),
            (
                "-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----",
                "-----BEGIN PRIVATE KEY-----[redacted]-----END PRIVATE KEY-----",
            ),
            ("-----BEGIN RSA PRIVATE KEY-----\nabc def", "-----BEGIN RSA PRIVATE KEY-----[redacted]"),
        ] {
            assert_eq!(redacted(text), expected, "{text}");
        }
    }

    #[test]
    fn a_long_text_of_names_is_redacted_in_linear_time() {
        for name in ["token=", "cookie:", "password", "secret=\\\"", "token: |\n  "] {
            let text = name.repeat(300_000 / name.len());

            // With quadratic time, this takes minutes.
            assert!(redact_by_shape(&text).text.len() <= 2 * text.len(), "{name}");
        }
    }

    #[test]
    fn places_are_counted() {
        assert_eq!(redact_by_shape("password=a token=b").places, 2);
        assert_eq!(redact_by_shape("nothing here").places, 0);
    }

    proptest! {
        #[test]
        fn any_text_is_redacted_without_a_crash_and_words_around_a_secret_stay(text in "\\PC{0,80}", key in "[A-Z][a-z][0-9][A-Za-z0-9+/]{37}") {
            let out = redacted(&format!("before {key} after {text}"));

            prop_assert!(!out.contains(&key), "{}", out);
            prop_assert!(out.starts_with("before [redacted]"), "{}", out);
        }
    }
}

//! Texts in a page: times, code, lines of a log, and parts of an address.

use std::fmt::Write as _;

use freehold_protocol::Timestamp;
use freehold_protocol::time::rfc3339;
use maud::{Markup, html};

/// Returns a time in UTC for people, with its exact value for programs.
pub fn time(at: Timestamp) -> Markup {
    // A time after the year 9999 has no such form.
    let Some(exact) = rfc3339::text(at) else { return html! { (at.as_millis()) " ms" } };
    let seconds: String = exact.chars().take(19).map(|letter| if letter == 'T' { ' ' } else { letter }).collect();
    html! { time datetime=(exact) { (seconds) " UTC" } }
}

/// Returns a name or an id as code.
pub fn code(text: impl std::fmt::Display) -> Markup {
    html! { code { (text.to_string()) } }
}

/// Returns text with its lines, such as a log, in a region that the keyboard can scroll.
pub fn lines(label: &str, text: &str) -> Markup {
    html! { pre tabindex="0" role="region" aria-label=(label) { (text) } }
}

/// Returns one part of a path, or the value of a query parameter. All but the unreserved characters of RFC 3986 are
/// percent-encoded.
pub fn encoded(part: &str) -> String {
    let mut encoded = String::with_capacity(part.len());
    for byte in part.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a `String` cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_readable_and_exact() {
        assert_eq!(
            time(Timestamp::from_millis(1_700_000_000_123)).into_string(),
            "<time datetime=\"2023-11-14T22:13:20.123Z\">2023-11-14 22:13:20 UTC</time>"
        );
        assert_eq!(time(Timestamp::from_millis(u64::MAX)).into_string(), "18446744073709551615 ms");
    }

    #[test]
    fn a_part_of_a_path_cannot_leave_its_place() {
        assert_eq!(encoded("a/../b?c#d&e\"<ä"), "a%2F..%2Fb%3Fc%23d%26e%22%3C%C3%A4");
        assert_eq!(encoded("globex-1_2.3~"), "globex-1_2.3~");
    }
}

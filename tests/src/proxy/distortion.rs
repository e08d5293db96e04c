//! Answers that are not as the service gave them.

use std::time::{Duration, SystemTime};

use aws_smithy_types::date_time::{DateTime, Format};

use crate::http::Message;

/// Returns half of an answer, with the announced length, so that the client can tell; an empty body loses part of its head.
pub(crate) fn half(answer: &Message) -> Vec<u8> {
    let bytes = answer.bytes();
    let kept = if answer.body.is_empty() { bytes.len() / 2 } else { answer.head.len() + answer.body.len() / 2 };
    bytes[..kept].to_vec()
}

/// Changes one bit in the middle.
pub(crate) fn flip(body: &mut [u8]) {
    let middle = body.len() / 2;
    if let Some(byte) = body.get_mut(middle) {
        *byte ^= 1;
    }
}

/// Lets the session in an answer of STS end after `time`; the length stays, so that the head stays true.
pub(crate) fn shorten_session(answer: &mut Message, time: Duration) {
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    let Some((before, rest)) = text.split_once("<Expiration>") else { return };
    let Some((ends, after)) = rest.split_once("</Expiration>") else { return };
    let earlier = DateTime::from(SystemTime::now() + time).fmt(Format::DateTime).unwrap_or_default();
    // `2026-01-01T00:00:00` is the new part; the zone stays, and fractions of a second do.
    if let (Some(seconds), Some(zone)) = (earlier.get(..19), ends.get(19..)) {
        answer.body = format!("{before}<Expiration>{seconds}{zone}</Expiration>{after}").into_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::testing::request;

    #[test]
    fn a_flipped_body_differs_in_one_bit() {
        let mut body = *b"a body";

        flip(&mut body);

        let bits: u32 = body.iter().zip(b"a body").map(|(one, other)| (one ^ other).count_ones()).sum();
        assert_eq!(bits, 1);
    }

    #[test]
    fn a_shortened_session_ends_before_it_would() {
        let body = "<Credentials><Expiration>2099-01-01T00:00:00Z</Expiration></Credentials>";
        let mut answer = request("GET / HTTP/1.1", "", body);

        shorten_session(&mut answer, Duration::from_secs(60));

        let text = String::from_utf8(answer.body).unwrap();
        assert_eq!(text.len(), body.len());
        assert!(!text.contains("2099"), "{text}");
    }
}

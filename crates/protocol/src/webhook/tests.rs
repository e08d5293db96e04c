//! Signed calls, and calls that somebody changed.

use proptest::prelude::*;

use super::*;

const NOW: Timestamp = Timestamp::from_millis(1_764_000_000_000);

fn key(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

fn public(seed: u8) -> PublicKey {
    PublicKey::from(key(seed).verifying_key())
}

fn parsed(headers: &[(&'static str, String); 3]) -> CallHeaders {
    let [(_, id), (_, time), (_, signature)] = headers;
    CallHeaders::parse(Some(id), Some(time), Some(signature)).unwrap()
}

#[test]
fn a_signed_call_is_accepted_from_its_key_only() {
    let call = parsed(&CallHeaders::sign("build-7", b"{}", &key(1), NOW).named());

    assert!(call.are_signed_by(&public(1), b"{}"));
    assert!(!call.are_signed_by(&public(2), b"{}"));
    assert!(!call.are_signed_by(&public(1), b"{} "));
}

#[test]
fn one_right_signature_among_others_is_enough() {
    let signed = CallHeaders::sign("build-7", b"{}", &key(1), NOW).named();
    let other = CallHeaders::sign("build-7", b"{}", &key(2), NOW).named();
    let all = format!("v1,AAAA v1a,? {} {}", other[2].1, signed[2].1);

    assert!(CallHeaders { signatures: all, ..parsed(&signed) }.are_signed_by(&public(1), b"{}"));
}

#[test]
fn the_signed_text_is_that_of_standard_webhooks() {
    assert_eq!(signed_text("msg_1", 1_764_000_000, b"{\"a\":1}"), b"msg_1.1764000000.{\"a\":1}");
}

#[test]
fn a_header_of_another_form_is_named() {
    let [(_, id), (_, time), (_, signature)] = CallHeaders::sign("a", b"", &key(1), NOW).named();
    let long = "a".repeat(129);
    for (parts, name) in [
        ((None, Some(&*time), Some(&*signature)), ID),
        ((Some("a.1"), Some(&*time), Some(&*signature)), ID),
        ((Some(&*long), Some(&*time), Some(&*signature)), ID),
        ((Some(&*id), Some("1e9"), Some(&*signature)), TIMESTAMP),
        ((Some(&*id), Some("-1"), Some(&*signature)), TIMESTAMP),
        ((Some(&*id), Some(&*time), None), SIGNATURE),
        ((Some(&*id), Some(&*time), Some("")), SIGNATURE),
    ] {
        assert_eq!(CallHeaders::parse(parts.0, parts.1, parts.2), Err(CallError::Header(name)));
    }
}

#[test]
fn a_call_is_accepted_for_five_minutes_around_its_time() {
    let call = CallHeaders::sign("a", b"", &key(1), NOW);

    assert_eq!(call.check_time(NOW.plus_secs(300)), Ok(()));
    assert_eq!(call.check_time(NOW.plus_secs(301)), Err(CallError::Time { apart: 301, side: "behind" }));
    let early = CallHeaders::sign("a", b"", &key(1), NOW.plus_secs(301));
    assert_eq!(early.check_time(NOW), Err(CallError::Time { apart: 301, side: "ahead of" }));
}

proptest! {
    /// Whatever somebody changes of a call, the signature does not hold any more.
    #[test]
    fn a_changed_call_is_refused(id in "[a-z0-9_-]{1,12}", other in "[a-z0-9_-]{1,12}", body in ".{0,30}", more in ".{1,5}",
        later in 1_u64..900) {
        let [(_, _), (_, time), (_, signature)] = CallHeaders::sign(&id, body.as_bytes(), &key(1), NOW).named();
        let call = |id: &str, time: &str| CallHeaders::parse(Some(id), Some(time), Some(&signature)).unwrap();

        prop_assert!(call(&id, &time).are_signed_by(&public(1), body.as_bytes()));
        let longer = format!("{body}{more}");
        prop_assert!(!call(&id, &time).are_signed_by(&public(1), longer.as_bytes()));
        let moved = (NOW.as_secs() + later).to_string();
        prop_assert!(!call(&id, &moved).are_signed_by(&public(1), body.as_bytes()));
        prop_assert_eq!(call(&other, &time).are_signed_by(&public(1), body.as_bytes()), id == other);
    }
}

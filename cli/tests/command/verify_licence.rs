//! `freehold customer verify-licence`: the real binary, a signed licence, and nothing else.

use ed25519_dalek::SigningKey;
use freehold_protocol::envelope::{Delegate, PublicKey};
use freehold_protocol::licence::Licence;
use freehold_protocol::{Envelope, KeyUse, Timestamp};
use serde_json::{Value, json};

use crate::support::{freehold, text};

const AT: Timestamp = Timestamp::from_millis(1_700_000_000_000);

fn key(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

fn signed(root: u8) -> String {
    let licence: Licence = serde_json::from_value(json!({
        "tenant": "acme", "install": "globex", "app": "shop", "serial": 3, "issued_at": AT, "signed_at": AT,
        "not_after": AT.plus_secs(60), "facts": { "seats": 50, "note": "a\u{1b}[2Jb" },
    }))
    .unwrap();
    let delegate = Delegate {
        tenant: licence.tenant.clone(),
        public_key: key(2).verifying_key().into(),
        not_before: AT,
        not_after: AT.plus_secs(60),
        send_until: None,
        uses: [KeyUse::Licences].into(),
    };
    let certificate = Envelope::seal(&delegate, &[&key(root)]).unwrap();
    Envelope::seal_delegated(&licence, &key(2), &certificate).unwrap().to_json().unwrap()
}

/// Verifies `licence` under root 1; returns the exit code, what was printed, and the complaint on one line.
fn run(licence: &str, args: &[&str]) -> (Option<i32>, String, String) {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("licence.json"), licence).unwrap();
    let root: String = PublicKey::from(key(1).verifying_key()).into();
    let all = [&["customer", "verify-licence", "licence.json", "--root-key", &root][..], args].concat();
    let done = freehold(place.path(), &all).output().unwrap();
    let error = text(&done.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    (done.status.code(), text(&done.stdout), error)
}

#[test]
fn a_licence_is_verified_offline_and_shown_with_its_end() {
    let (code, out, error) = run(&format!("{}\n", signed(1)), &["--install", "globex"]);
    let (_, json, _) = run(&signed(1), &["--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();

    assert_eq!(code, Some(0), "{error}");
    for part in ["globex of tenant acme", "fact seats  50", "a?[2Jb", "2023-11-14 22:14:20Z; the licence is over"] {
        assert!(out.contains(part), "{part}: {out}");
    }
    assert!(out.trim_end().ends_with("the signature is valid under the root key that you passed"), "{out}");
    assert_eq!((&json["over"], &json["licence"]["facts"]["seats"]), (&json!(true), &json!(50)));
}

#[test]
fn a_licence_of_another_root_or_install_and_another_file_are_refused() {
    let cases: [(String, &[&str], &str); 3] = [
        (signed(9), &[], "is not a valid licence: message is not signed by key"),
        (signed(1), &["--install", "initech"], "it belongs to install `globex` of tenant `acme`"),
        ("{}".to_owned(), &[], "is not a valid licence: message is not a signed envelope"),
    ];
    for (licence, args, reason) in cases {
        let (code, out, error) = run(&licence, args);

        assert_eq!((code, out.as_str()), (Some(1), ""), "{error}");
        assert!(error.contains(reason), "{error}");
    }
}

//! The wire format of licences.

use freehold_protocol::licence::Licence;

use super::*;

fn licence() -> Licence {
    Licence {
        tenant: "acme".parse().unwrap(),
        install: "globex".parse().unwrap(),
        app: "demo".parse().unwrap(),
        serial: 3,
        issued_at: AT,
        signed_at: AT.plus_secs(60),
        not_after: Some(AT.plus_secs(3600)),
        withdrawn: false,
        facts: serde_json::from_value(json!({ "features": ["sso"], "plan": "team", "seats": 50 })).unwrap(),
    }
}

#[test]
fn licences() {
    golden("licence", &licence());
    golden("licence-withdrawn", &Licence { withdrawn: true, facts: BTreeMap::new(), ..licence() });
}

/// `tests/guides` reads this file as the example of `docs/licences.md` does.
#[test]
fn a_signed_licence() {
    let delegate = Delegate {
        tenant: "acme".parse().unwrap(),
        public_key: key(3).verifying_key().into(),
        not_before: AT,
        not_after: AT.plus_secs(13 * 3600),
        send_until: None,
        uses: [KeyUse::Licences].into(),
    };
    let certificate = Envelope::seal(&delegate, &[&key(1)]).unwrap();

    let signed = Envelope::seal_delegated(&licence(), &key(3), &certificate).unwrap();

    golden("envelope-licence", &signed);
    let opened = Licence::open_under(signed.to_json().unwrap().as_bytes(), &key(1).verifying_key().into()).unwrap();
    assert_eq!(opened, licence());
}

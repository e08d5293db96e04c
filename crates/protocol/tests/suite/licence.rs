//! Licences: which are accepted, and each way in which one is refused.

use ed25519_dalek::SigningKey;
use freehold_protocol::envelope::{Delegate, PublicKey};
use freehold_protocol::licence::{Licence, LicenceError};
use freehold_protocol::limits::MAX_LICENCE_BYTES;
use freehold_protocol::succession::{Roots, Succession};
use freehold_protocol::{Envelope, EnvelopeError, KeyUse, KeyUses, Payload, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::json;

const AT: Timestamp = Timestamp::from_millis(1_795_250_000_000);

fn key(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

fn public(seed: u8) -> PublicKey {
    key(seed).verifying_key().into()
}

fn licence() -> Licence {
    Licence {
        tenant: "acme".parse().unwrap(),
        install: "globex".parse().unwrap(),
        app: "shop".parse().unwrap(),
        serial: 3,
        issued_at: AT,
        signed_at: AT.plus_secs(60),
        not_after: Some(AT.plus_secs(3600)),
        withdrawn: false,
        facts: [("plan".to_owned(), json!("team")), ("seats".to_owned(), json!(50))].into(),
    }
}

/// Returns the certificate of key 2 by the root with this seed. It is valid for an hour from `AT`.
fn certificate(root: u8, uses: KeyUses) -> Envelope {
    let delegate = Delegate {
        tenant: "acme".parse().unwrap(),
        public_key: public(2),
        not_before: AT,
        not_after: AT.plus_secs(3600),
        send_until: None,
        uses,
    };
    Envelope::seal(&delegate, &[&key(root)]).unwrap()
}

fn text_of<P: Payload>(payload: &P, certificate: &Envelope) -> String {
    Envelope::seal_delegated(payload, &key(2), certificate).unwrap().to_json().unwrap()
}

fn signed(licence: &Licence) -> String {
    text_of(licence, &certificate(1, [KeyUse::Licences].into()))
}

fn refusal(text: &str) -> String {
    Licence::open_under(text.as_bytes(), &public(1)).unwrap_err().to_string()
}

/// A payload with exactly these bytes.
#[derive(Debug, Serialize, Deserialize)]
struct Bytes(String);

impl Payload for Bytes {
    const TYPE: &'static str = Licence::TYPE;

    fn bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        Ok(self.0.clone().into_bytes())
    }
}

#[test]
fn a_signed_licence_is_read_under_the_root_key_long_after_its_certificate() {
    let opened = Licence::open_under(signed(&licence()).as_bytes(), &public(1)).unwrap();

    assert_eq!(opened, licence());
    assert_eq!(opened.check_install(&licence().tenant, &licence().install), Ok(()));
}

#[test]
fn a_licence_of_a_wrong_key_or_another_kind_of_key_or_time_is_refused() {
    let stranger = text_of(&licence(), &certificate(9, [KeyUse::Licences].into()));
    let of_orders = text_of(&licence(), &certificate(1, [KeyUse::Orders, KeyUse::Contracts].into()));
    let late = signed(&Licence { signed_at: AT.plus_secs(3601), ..licence() });
    let early = signed(&Licence { signed_at: Timestamp::from_millis(1), ..licence() });
    let of_other_tenant = signed(&Licence { tenant: "other".parse().unwrap(), ..licence() });
    let alone = Envelope::seal(&licence(), &[&key(1)]).unwrap().to_json().unwrap();

    assert!(refusal(&stranger).starts_with("message is not signed by key"), "{}", refusal(&stranger));
    assert!(refusal(&of_orders).contains("may not sign licences: its certificate is for orders, contracts"));
    for text in [&late, &early] {
        assert!(refusal(text).ends_with("is not valid at this time"), "{}", refusal(text));
    }
    assert_eq!(refusal(&of_other_tenant), "certificate is for tenant `acme`");
    assert_eq!(refusal(&alone), "message carries no certificate that the tenant's root key signed");
}

#[test]
fn a_changed_licence_has_no_valid_signature() {
    let mut envelope: Envelope = serde_json::from_str(&signed(&licence())).unwrap();
    let more = Licence { facts: [("seats".to_owned(), json!(5000))].into(), ..licence() };
    envelope.payload = serde_json::from_str::<Envelope>(&signed(&more)).unwrap().payload;

    let refused = refusal(&envelope.to_json().unwrap());

    assert!(refused.ends_with("does not match the message"), "{refused}");
}

#[test]
fn facts_and_fields_that_are_given_twice_are_refused_although_they_are_signed() {
    let plain = String::from_utf8(licence().bytes().unwrap()).unwrap();
    let twice = |from: &str, to: &str| {
        assert!(plain.contains(from), "{plain}");
        refusal(&text_of(&Bytes(plain.replace(from, to)), &certificate(1, [KeyUse::Licences].into())))
    };

    let fact = twice(r#""seats":50"#, r#""seats":50,"seats":5000"#);
    let field = twice(r#""serial":3"#, r#""serial":3,"serial":9"#);

    assert!(fact.contains("fact `seats` is given twice"), "{fact}");
    assert!(field.contains("duplicate field `serial`"), "{field}");
}

#[test]
fn a_field_of_a_later_version_does_not_matter() {
    let later = String::from_utf8(licence().bytes().unwrap()).unwrap().replacen('{', r#"{"colour":"red","#, 1);
    let text = text_of(&Bytes(later), &certificate(1, [KeyUse::Licences].into()));

    assert_eq!(Licence::open_under(text.as_bytes(), &public(1)).unwrap(), licence());
}

#[test]
fn a_text_above_the_limit_is_not_parsed() {
    let text = " ".repeat(MAX_LICENCE_BYTES + 1);

    assert_eq!(refusal(&text), "it has 32769 bytes, and a signed licence has at most 32768");
}

#[test]
fn a_licence_belongs_to_one_install_of_one_tenant() {
    let other = licence().check_install(&"acme".parse().unwrap(), &"initech".parse().unwrap());
    let others = licence().check_install(&"other".parse().unwrap(), &"globex".parse().unwrap());

    assert_eq!(other.unwrap_err().to_string(), "it belongs to install `globex` of tenant `acme`");
    assert!(others.is_err());
}

#[test]
fn a_licence_that_a_former_root_certified_counts_if_it_was_signed_before_the_end_of_this_root() {
    let follows = |until| {
        let next = Succession { tenant: licence().tenant, from: public(1), to: public(5), until, second: None };
        let mut roots = Roots::given(licence().tenant, public(1), None);
        roots.follow(&[Envelope::seal(&next, &[&key(5), &key(1)]).unwrap()]).unwrap();
        Licence::open(signed(&licence()).as_bytes(), &roots)
    };

    assert_eq!(follows(AT.plus_secs(61)).unwrap(), licence());
    assert!(matches!(follows(AT), Err(LicenceError::Envelope(EnvelopeError::RootEnded { .. }))));
}

#[test]
fn a_licence_is_over_after_its_end_and_when_it_was_withdrawn() {
    let end = AT.plus_secs(3600);
    let endless = Licence { not_after: None, ..licence() };

    assert!(!licence().is_over(end) && licence().is_over(end.plus_secs(1)));
    assert!(!endless.is_over(end.plus_secs(1)));
    assert!(Licence { withdrawn: true, ..endless }.is_over(AT));
}

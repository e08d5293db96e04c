//! A reader of a statement demands the use of this statement from the certificate of the key that signed it.

use std::fmt::Debug;

use ed25519_dalek::SigningKey;
use freehold_protocol::audit::Receipt;
use freehold_protocol::contract::SignedContract;
use freehold_protocol::envelope::{Delegate, PublicKey};
use freehold_protocol::grant::ArtifactGrant;
use freehold_protocol::licence::Licence;
use freehold_protocol::order::{Cancel, Order, Retired};
use freehold_protocol::{Delegated, Envelope, EnvelopeError, KeyUse, KeyUses, Payload, TenantName, Timestamp};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const AT: Timestamp = Timestamp::from_millis(1_795_250_000_000);

fn root() -> SigningKey {
    SigningKey::from_bytes(&[1; 32])
}

fn worker() -> SigningKey {
    SigningKey::from_bytes(&[2; 32])
}

fn tenant() -> TenantName {
    "acme".parse().unwrap()
}

/// A certificate as any version may have written it.
#[derive(Debug, Serialize, Deserialize)]
struct AnyCertificate(Value);

impl Payload for AnyCertificate {
    const TYPE: &'static str = Delegate::TYPE;
}

/// Returns a certificate with the field `uses` as it is here, or without the field.
fn certificate(uses: Option<Value>) -> Envelope {
    let delegate = Delegate {
        tenant: tenant(),
        public_key: worker().verifying_key().into(),
        not_before: AT,
        not_after: AT.plus_secs(60),
        send_until: None,
        uses: KeyUses::default(),
    };
    let mut fields = serde_json::to_value(delegate).unwrap();
    match uses {
        Some(uses) => fields["uses"] = uses,
        None => drop(fields.as_object_mut().unwrap().remove("uses")),
    }
    Envelope::seal(&AnyCertificate(fields), &[&root()]).unwrap()
}

fn read<P: Delegated>(text: &str, cert: &Envelope) -> Result<P, EnvelopeError> {
    let statement: P = serde_json::from_str(text).unwrap();
    let envelope = Envelope::seal_delegated(&statement, &worker(), cert).unwrap();
    let sent = Envelope::parse(envelope.to_json().unwrap().as_bytes()).unwrap();
    sent.open_delegated(&PublicKey::from(root().verifying_key()), &tenant(), AT)
}

/// Returns what became of one statement of the type `P` under the certificate: accepted, or the message of the refusal.
fn outcome<P: Delegated + Debug>(text: &str, cert: &Envelope) -> (KeyUse, Result<(), String>) {
    let read = read::<P>(text, cert);
    if let Err(error) = &read {
        assert!(matches!(error, EnvelopeError::NotPermitted { lacks, .. } if *lacks == P::USE), "{error}");
    }
    (P::USE, read.map(drop).map_err(|error| error.to_string()))
}

/// Returns what became of one statement of each kind.
fn outcomes(cert: &Envelope) -> [(KeyUse, Result<(), String>); 7] {
    [
        outcome::<Order>(include_str!("../../golden/order-container-image.json"), cert),
        outcome::<Cancel>(include_str!("../../golden/cancel.json"), cert),
        outcome::<Retired>(include_str!("../../golden/retired.json"), cert),
        outcome::<ArtifactGrant>(include_str!("../../golden/grant.json"), cert),
        outcome::<SignedContract>(include_str!("../../golden/signed-contract.json"), cert),
        outcome::<Receipt>(include_str!("../../golden/receipt.json"), cert),
        outcome::<Licence>(include_str!("../../golden/licence.json"), cert),
    ]
}

#[test]
fn the_kinds_of_statements_have_each_their_own_use() {
    let kinds = outcomes(&certificate(None)).map(|(kind, _)| kind);

    assert_eq!(kinds, KeyUse::ALL);
}

#[test]
fn of_each_set_of_uses_exactly_the_granted_are_accepted() {
    for set in 0_u32..1 << KeyUse::ALL.len() {
        let granted: Vec<KeyUse> =
            (0..).zip(KeyUse::ALL).filter(|(at, _)| set & (1 << at) != 0).map(|(_, one)| one).collect();

        for (kind, outcome) in outcomes(&certificate(Some(json!(granted)))) {
            assert_eq!(outcome.is_ok(), granted.contains(&kind), "{kind} under {granted:?}: {outcome:?}");
        }
    }
}

#[test]
fn a_certificate_without_known_uses_signs_nothing_and_the_refusal_says_what_it_has() {
    for uses in [None, Some(json!([])), Some(json!(["everything", "unknown", "Orders", "order", "*"]))] {
        assert!(outcomes(&certificate(uses)).iter().all(|(_, outcome)| outcome.is_err()));
    }
    let error_of = |uses, at: usize| outcomes(&certificate(uses))[at].1.clone().unwrap_err();
    let (order, cancel) = (error_of(None, 0), error_of(Some(json!(["everything"])), 1));
    let contract = error_of(Some(json!(["grants", "cancels"])), 4);
    insta::assert_snapshot!([order, cancel, contract].join("\n"), @r"
    delegate key `6a3803d5f059902a1c6dafbc9ba47292` may not sign orders: its certificate is for nothing
    delegate key `6a3803d5f059902a1c6dafbc9ba47292` may not sign cancels: its certificate is for something unknown
    delegate key `6a3803d5f059902a1c6dafbc9ba47292` may not sign contracts: its certificate is for cancels, grants
    ");
}

proptest! {
    /// Names that later versions may add neither grant anything nor take anything away.
    #[test]
    fn names_that_are_not_known_change_nothing(
        known in proptest::sample::subsequence(KeyUse::ALL.to_vec(), 0..=7),
        others in proptest::collection::vec("[a-z_*]{0,12}", 0..4),
    ) {
        let is_known = |name: &String| KeyUse::ALL.iter().any(|one| one.as_str() == name);
        let others: Vec<String> = others.into_iter().filter(|name| !is_known(name)).collect();
        let mut names: Vec<String> = known.iter().map(|one| one.as_str().to_owned()).collect();
        names.extend(others);

        for (kind, outcome) in outcomes(&certificate(Some(json!(names)))) {
            prop_assert_eq!(outcome.is_ok(), known.contains(&kind), "{} under {:?}: {:?}", kind, names, outcome);
        }
    }

    /// The list is closed: a field that is not a list of names makes no certificate.
    #[test]
    fn a_field_that_is_not_a_list_of_names_is_refused(number in any::<u32>()) {
        for uses in [json!(number), json!([number]), json!("orders"), json!(null), json!({"orders": true})] {
            let order = include_str!("../../golden/order-container-image.json");
            let error = read::<Order>(order, &certificate(Some(uses))).unwrap_err();
            prop_assert!(matches!(error, EnvelopeError::Malformed(_)), "{}", error);
        }
    }
}

//! Root keys that follow each other: what a reader with an older root believes, and what nobody can make it believe.

use ed25519_dalek::SigningKey;
use freehold_protocol::audit::{ChainHead, Receipt};
use freehold_protocol::envelope::{Delegate, EnvelopeError, PublicKey, SuccessionError};
use freehold_protocol::limits::MAX_SUCCESSIONS;
use freehold_protocol::succession::{Roots, Succession};
use freehold_protocol::{Digest, Envelope, KeyUse, TenantName, Timestamp};
use proptest::prelude::*;

const DELEGATE: u8 = 200;

fn key(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

fn public(seed: u8) -> PublicKey {
    key(seed).verifying_key().into()
}

fn tenant() -> TenantName {
    "acme".parse().unwrap()
}

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn pinned(seed: u8, second: Option<u8>) -> Roots {
    Roots::given(tenant(), public(seed), second.map(public))
}

/// Says that root `to` follows `from`, signed by `signers`.
fn succession(from: u8, to: u8, until: u64, second: Option<u8>, signers: &[u8]) -> Envelope {
    let keys: Vec<SigningKey> = signers.iter().copied().map(key).collect();
    let statement = Succession {
        tenant: tenant(),
        from: public(from),
        to: public(to),
        until: at(until),
        second: second.map(public),
    };
    Envelope::seal(&statement, &keys.iter().collect::<Vec<_>>()).unwrap()
}

/// Returns roots 1 to `length` + 1, each of which the one before it signed too.
fn chain(length: u8) -> Vec<Envelope> {
    (1..=length).map(|one| succession(one, one + 1, u64::from(one) * 100, None, &[one, one + 1])).collect()
}

/// A message of a delegate key that `root` certified, with the successions that its sender knows.
fn message(root: u8, known: &[Envelope]) -> Envelope {
    let delegate = Delegate {
        tenant: tenant(),
        public_key: public(DELEGATE),
        not_before: at(0),
        not_after: at(1_000_000),
        send_until: Some(at(1_000_000)),
        uses: [KeyUse::Receipts].into(),
    };
    let mut certificate = Envelope::seal(&delegate, &[&key(root)]).unwrap();
    certificate.attached = known.iter().map(|one| one.to_json().unwrap()).collect();
    let receipt = Receipt {
        tenant: tenant(),
        install: "globex".parse().unwrap(),
        head: ChainHead { seq: 1, digest: Digest::of(b"") },
        runner: public(3).key_id(),
        received_at: at(1),
        issued_at: at(1),
    };
    Envelope::seal_delegated(&receipt, &key(DELEGATE), &certificate).unwrap()
}

fn sent(roots: &Roots, message: &Envelope, when: u64) -> Result<(), EnvelopeError> {
    roots.open_sent::<Receipt>(message, at(when), at(when)).map(drop)
}

#[test]
fn a_message_of_the_next_root_is_believed_by_a_reader_that_knows_the_former_one() {
    let roots = pinned(1, None);

    assert_eq!(sent(&roots, &message(2, &chain(1)), 50), Ok(()));
    assert_eq!(sent(&roots, &message(3, &chain(2)), 500), Ok(()));
    assert!(matches!(sent(&roots, &message(2, &[]), 50), Err(EnvelopeError::Unsigned(_))));
}

#[test]
fn what_the_former_root_certified_counts_if_it_was_sent_before_its_end() {
    let mut roots = pinned(1, None);
    roots.follow(&chain(1)).unwrap();

    assert_eq!(sent(&roots, &message(1, &[]), 100), Ok(()));
    let late = sent(&roots, &message(1, &[]), 3_100);
    assert_eq!(late, Err(EnvelopeError::RootEnded { root: public(1).key_id(), late_secs: 3 }));
    // The message itself brings the news.
    assert!(matches!(sent(&pinned(1, None), &message(1, &chain(1)), 3_100), Err(EnvelopeError::RootEnded { .. })));
}

#[test]
fn an_announced_second_root_follows_without_the_first_one() {
    let alone = succession(1, 2, 0, Some(5), &[2]);
    let mut roots = pinned(1, Some(2));

    assert_eq!(roots.follow(std::slice::from_ref(&alone)), Ok(()));
    // The next one was announced with it.
    assert_eq!(roots.follow(&[alone.clone(), succession(2, 5, 10, None, &[5])]), Ok(()));
    assert_eq!(roots.current(), &public(5));
    let unannounced = pinned(1, None).follow(&[alone]);
    assert!(matches!(unannounced, Err(SuccessionError::Unsigned(_))), "{unannounced:?}");
}

#[test]
fn whoever_stole_the_first_root_cannot_let_another_than_the_announced_one_follow() {
    let (thief, mut roots) = (7, pinned(1, Some(2)));

    let stolen = roots.follow(&[succession(1, thief, 0, None, &[1, thief])]);
    let unsigned = roots.follow(&[succession(1, 2, 0, None, &[1, thief])]);

    assert!(matches!(stolen, Err(SuccessionError::NotTheSecond { .. })), "{stolen:?}");
    assert!(matches!(unsigned, Err(SuccessionError::Unsigned(_))), "{unsigned:?}");
    assert_eq!(roots, pinned(1, Some(2)));
}

#[test]
fn a_fork_a_return_another_tenant_and_an_earlier_end_are_refused() {
    let mut roots = pinned(1, None);
    roots.follow(&chain(2)).unwrap();
    let follow = |statement: Envelope| roots.clone().follow(&[statement]).unwrap_err();

    assert!(matches!(follow(succession(1, 9, 0, None, &[1, 9])), SuccessionError::Forked { .. }));
    // The same successor with another end.
    assert!(matches!(follow(succession(1, 2, 999, None, &[1, 2])), SuccessionError::Forked { .. }));
    assert!(matches!(follow(succession(3, 1, 300, None, &[3, 1])), SuccessionError::Returns(_)));
    assert!(matches!(follow(succession(3, 4, 300, Some(2), &[3, 4])), SuccessionError::Returns(_)));
    assert!(matches!(follow(succession(3, 4, 199, None, &[3, 4])), SuccessionError::Backwards(_)));
    assert!(matches!(follow(succession(8, 9, 0, None, &[8, 9])), SuccessionError::Elsewhere(_)));
    let other =
        Succession { tenant: "other".parse().unwrap(), from: public(3), to: public(4), until: at(300), second: None };
    let other = Envelope::seal(&other, &[&key(3), &key(4)]).unwrap();
    assert!(matches!(follow(other), SuccessionError::OtherTenant(_)));
    let many = vec![chain(1).remove(0); MAX_SUCCESSIONS + 1];
    assert_eq!(roots.clone().follow(&many), Err(SuccessionError::TooMany));
}

#[test]
fn a_reader_with_a_later_root_skips_what_was_before_it() {
    let mut roots = pinned(2, None);

    assert_eq!(roots.follow(&chain(3)), Ok(()));
    assert_eq!((roots.current(), roots.statements().len()), (&public(4), 2));
    assert_eq!(pinned(4, None).follow(&chain(3)), Ok(()));
}

proptest! {
    /// However the statements arrive, in parts, again and as shorter chains, a reader ends at the same root.
    #[test]
    fn parts_of_one_chain_lead_to_its_end(
        length in 1u8..8,
        parts in proptest::collection::vec(0u8..8, 0..12),
        pin in 1u8..8,
    ) {
        let all = chain(length);
        let pin = pin.min(length + 1);
        let mut roots = pinned(pin, None);
        for part in parts {
            let known = usize::from(part.min(length));
            let _ = roots.follow(&all[..known]);
        }
        prop_assert_eq!(roots.follow(&all), Ok(()));
        prop_assert_eq!(roots.current(), &public(length + 1));
        let before = roots.clone();
        prop_assert_eq!(roots.follow(&all[..usize::from(length) / 2 + 1]).is_ok(), pin <= length / 2 + 2);
        prop_assert_eq!(roots, before);
    }

    /// Without the private part of the last root, no statement moves a reader from it.
    #[test]
    fn nobody_without_the_keys_moves_a_reader(
        length in 0u8..4,
        from in 1u8..8,
        to in 1u8..12,
        signers in proptest::collection::vec(8u8..14, 0..3),
        second in proptest::option::of(1u8..12),
        until in 0u64..1000,
    ) {
        let mut roots = pinned(1, None);
        roots.follow(&chain(length)).unwrap();
        let before = roots.clone();

        let forged = succession(from, to, until, second, &signers);
        let _ = roots.follow(&[chain(length), vec![forged]].concat());

        prop_assert_eq!(roots, before);
    }

    /// One changed byte of a statement is not followed as another statement.
    #[test]
    fn a_changed_statement_is_not_believed(place in 0usize..400, bit in 0u8..8) {
        let good = chain(1).remove(0);
        let mut bytes = good.to_json().unwrap().into_bytes();
        let place = place % bytes.len();
        bytes[place] ^= 1 << bit;
        let mut roots = pinned(1, None);
        let followed = Envelope::parse(&bytes).is_ok_and(|changed| roots.follow(&[changed]).is_ok());
        prop_assert!(!followed || roots.current() == &public(2));
    }
}

use ed25519_dalek::SigningKey;

use super::*;
use crate::audit::{ChainHead, Receipt, message_name};
use crate::order::Order;
use crate::report::{Fence, Report, ReportBody};

const FENCE: Fence = Fence { dispatch: 1, receive: 1 };

pub(super) fn key(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

pub(super) fn id(seed: u8) -> String {
    KeyId::of(&key(seed).verifying_key()).to_string()
}

fn job(number: u64) -> JobId {
    format!("job_{number:020x}").parse().unwrap()
}

fn joined(seed: u8) -> AuditEvent {
    AuditEvent::Joined { host: format!("i-{seed}"), version: "1.0.0".into() }
}

/// Returns the bytes of a record.
fn record(seed: u8, seq: u64, previous: &Digest, install: &str, event: AuditEvent) -> Vec<u8> {
    let record = AuditRecord {
        tenant: "acme".parse().unwrap(),
        install: install.parse().unwrap(),
        runner: KeyId::of(&key(seed).verifying_key()),
        seq,
        previous: previous.clone(),
        at: Timestamp::from_millis(seq * 1000),
        event,
    };
    Envelope::seal(&record, &[&key(seed)]).unwrap().to_json().unwrap().into_bytes()
}

fn ended(seq: u64) -> AuditEvent {
    AuditEvent::Ended { job: job(seq), fence: FENCE, result: "succeeded".into(), log: None, order: None, sent_at: None }
}

/// Returns a whole chain, of which each record is by the key of the next seed.
pub(super) fn chain(seeds: &[u8]) -> RecordsCopy {
    let mut copy = RecordsCopy::default();
    for &seed in seeds {
        let begins = copy.keys.insert(id(seed), PublicKey::from(key(seed).verifying_key()).to_string()).is_none();
        let seq = copy.records.len() as u64 + 1;
        let event = if begins { joined(seed) } else { ended(seq) };
        add(&mut copy, seed, seq, "globex", event);
    }
    copy
}

/// Adds a record that follows the one before it.
pub(super) fn add(copy: &mut RecordsCopy, seed: u8, seq: u64, install: &str, event: AuditEvent) {
    let previous = copy.records.get(&record_name(seq - 1)).map_or_else(|| Digest::of(b""), |bytes| Digest::of(bytes));
    copy.records.insert(record_name(seq), record(seed, seq, &previous, install, event));
}

pub(super) fn found(copy: &RecordsCopy) -> Vec<String> {
    verify(copy, Known::default()).problems.iter().map(ToString::to_string).collect()
}

fn position(copy: &RecordsCopy, seq: u64) -> Position {
    Position::of(seq, &copy.records[&record_name(seq)])
}

#[test]
fn only_twelve_digits_are_the_number_of_a_record() {
    assert_eq!(record_number("000000000007.json"), Some(7));
    for name in ["7.json", "+00000000007.json", "1000000000000.json", "18446744073709551615.json", "000000000007"] {
        assert_eq!(record_number(name), None, "{name}");
    }
}

#[test]
fn a_whole_chain_of_several_runners_has_no_problem() {
    let copy = chain(&[1, 1, 2, 1, 2, 3, 3]);

    let verified = verify(
        &copy,
        Known { runners: &[id(1), id(2), id(3)], seen: &[position(&copy, 3), position(&copy, 7)], ..Known::default() },
    );

    assert_eq!(verified.problems, []);
    assert_eq!(verified.last, Some(position(&copy, 7)));
    let writers: Vec<(u64, u64, u64)> =
        verified.runners.iter().map(|each| (each.from, each.to, each.records)).collect();
    assert_eq!(writers, [(1, 4, 3), (3, 5, 2), (6, 7, 2)]);
    assert_eq!(verified.runners[2].host, "i-3");
}

fn started(n: u64, asked_by: Option<AskedBy>) -> AuditEvent {
    AuditEvent::Started {
        workflow: format!("wf_{n:020x}").parse().unwrap(),
        job: job(n),
        fence: FENCE,
        work: "action".into(),
        mode: crate::order::Mode::Maintenance,
        group: None,
        serial: None,
        role: None,
        asked_by,
        order: Digest::of(b"order"),
        sent_at: None,
    }
}

#[test]
fn who_asked_for_jobs_is_listed_once_with_the_number_of_starts() {
    let mut copy = chain(&[1, 1]);
    let ana = || Some(AskedBy::Caller { arn: "arn:aws:iam::111111111111:user/ana".parse().unwrap() });
    for (seq, asked_by) in (3..).zip([ana(), None, Some(AskedBy::Schedule), ana()]) {
        add(&mut copy, 1, seq, "globex", started(seq, asked_by));
    }

    let askers = verify(&copy, Known::default()).askers;

    let starts: Vec<_> =
        askers.iter().map(|one| (one.asked_by.clone(), one.starts, one.from.as_millis(), one.to.as_millis())).collect();
    let expected = [(ana(), 2, 3000, 6000), (None, 1, 4000, 4000), (Some(AskedBy::Schedule), 1, 5000, 5000)];
    assert_eq!(starts, expected);
}

#[test]
fn jobs_without_a_record_of_their_end_are_listed() {
    let mut copy = chain(&[1, 1]);
    add(&mut copy, 1, 3, "globex", started(4, None));
    add(&mut copy, 1, 4, "globex", ended(4));
    add(&mut copy, 1, 5, "globex", started(5, None));

    let verified = verify(&copy, Known::default());

    assert_eq!((verified.problems, verified.without_end), (vec![], [job(5)].into()));
}

#[test]
fn missing_records_are_named_by_their_numbers() {
    let mut copy = chain(&[1; 6]);
    for seq in [5, 3] {
        copy.records.remove(&record_name(seq));
    }
    let mut of_three = chain(&[1; 6]);
    for seq in [4, 3, 2] {
        of_three.records.remove(&record_name(seq));
    }

    assert_eq!(found(&copy), ["record 3 is missing", "record 5 is missing"]);
    assert_eq!(found(&of_three), ["records 2 to 4 are missing"]);
    assert_eq!(verify(&of_three, Known::default()).problems[0].record, Some(2));
}

#[test]
fn the_first_records_are_missed_too() {
    let mut copy = chain(&[1, 1, 1]);
    copy.records.remove(&record_name(1));

    let first_of_key = format!(
        "record 2 is the first record of runner key {} but does not announce that this key joins the chain",
        id(1)
    );
    assert_eq!(found(&copy), ["record 1 is missing", first_of_key.as_str()]);
}

#[test]
fn a_changed_record_is_found_by_its_signature() {
    let mut copy = chain(&[1; 3]);
    let envelope = Envelope::parse(&copy.records[&record_name(2)]).unwrap();
    let other = Envelope::parse(&chain(&[1; 3]).records[&record_name(3)]).unwrap();
    let changed = Envelope { payload: other.payload, ..envelope };
    copy.records.insert(record_name(2), changed.to_json().unwrap().into_bytes());

    let expected =
        format!("record 2 is not as its runner wrote it: signature of key `{}` does not match the message", id(1));
    assert_eq!(
        found(&copy),
        [expected.as_str(), "record 3 does not follow record 2: it names another record as its predecessor"]
    );
}

#[test]
fn what_no_signature_covers_cannot_be_added_to_the_last_record() {
    let mut attached = chain(&[1, 1]);
    let mut envelope = Envelope::parse(&attached.records[&record_name(2)]).unwrap();
    envelope.attached = vec!["a text".into()];
    attached.records.insert(record_name(2), envelope.to_json().unwrap().into_bytes());
    let mut spaced = chain(&[1, 1]);
    spaced.records.get_mut(&record_name(2)).unwrap().push(b'\n');

    for copy in [attached, spaced] {
        assert_eq!(found(&copy), ["record 2 is not as its runner wrote it: something was added to its envelope"]);
    }
}

#[test]
fn two_records_that_changed_places_are_both_found() {
    let mut copy = chain(&[1; 4]);
    let (second, third) = (copy.records[&record_name(2)].clone(), copy.records[&record_name(3)].clone());
    copy.records.insert(record_name(2), third);
    copy.records.insert(record_name(3), second);

    let expected = [
        "`000000000002.json` is not record 2: its runner wrote it as record 3",
        "`000000000003.json` is not record 3: its runner wrote it as record 2",
        "record 4 does not follow record 3: it names another record as its predecessor",
    ];
    assert_eq!(found(&copy), expected);
}

#[test]
fn a_record_of_another_chain_or_install_does_not_fit() {
    let mut of_other_chain = chain(&[1; 3]);
    of_other_chain.records.insert(record_name(3), record(1, 3, &Digest::of(b"x"), "globex", ended(3)));
    let mut of_other_install = chain(&[1, 1]);
    add(&mut of_other_install, 1, 3, "initech", ended(3));

    assert_eq!(
        found(&of_other_chain),
        ["record 3 does not follow record 2: it names another record as its predecessor"]
    );
    assert_eq!(
        found(&of_other_install),
        [
            "record 3 belongs to install `initech` of tenant `acme`, and the records before it belong to install `globex` of \
             tenant `acme`"
        ]
    );
}

#[test]
fn a_key_that_did_not_join_is_found() {
    let mut copy = chain(&[1, 1]);
    copy.keys.insert(id(2), PublicKey::from(key(2).verifying_key()).to_string());
    add(&mut copy, 2, 3, "globex", ended(3));

    assert_eq!(
        found(&copy),
        [format!(
            "record 3 is the first record of runner key {} but does not announce that this key joins the chain",
            id(2)
        )]
    );
}

#[test]
fn a_key_that_is_missing_exchanged_or_not_accepted_verifies_nothing() {
    let (mut missing, mut exchanged) = (chain(&[1, 2]), chain(&[1, 2]));
    missing.keys.remove(&id(2));
    exchanged.keys.insert(id(2), PublicKey::from(key(3).verifying_key()).to_string());

    let unknown = format!(
        "record 2 cannot be verified: the public key `{}.pub` is missing; copy everything below `audit/`",
        id(2)
    );
    assert_eq!(found(&missing), [unknown]);
    let other = format!("record 2 cannot be verified: `{}.pub` is another key: its id is {}", id(2), id(3));
    assert_eq!(found(&exchanged), [other]);
    let pinned = verify(&chain(&[1, 2]), Known { runners: &[id(1), id(3)], ..Known::default() }).problems;
    let pinned: Vec<&str> = pinned.iter().map(|problem| problem.text.as_str()).collect();
    assert_eq!(
        pinned,
        [
            format!("record 2 belongs to runner key {}, which is not a key that `--runner` names", id(2)),
            format!("there are no records of runner key {}", id(3)),
        ]
    );
}

#[test]
fn a_chain_that_was_cut_or_forked_is_found_with_the_record_that_was_seen() {
    let whole = chain(&[1; 5]);
    let mut cut = whole.clone();
    cut.records.remove(&record_name(5));
    let mut forked = cut.clone();
    add(&mut forked, 1, 5, "globex", ended(99));
    let seen = position(&whole, 5);

    let texts = |copy| {
        verify(copy, Known { seen: std::slice::from_ref(&seen), ..Known::default() })
            .problems
            .into_iter()
            .map(|each| each.text)
    };

    assert_eq!((found(&cut), found(&forked)), (Vec::<String>::new(), Vec::new()), "no copy alone can show it");
    assert_eq!(
        texts(&cut).collect::<Vec<_>>(),
        [format!("record 5, which an earlier copy had as `{seen}`, is missing; the last record before it is 4")]
    );
    let other = position(&forked, 5);
    assert_eq!(
        texts(&forked).collect::<Vec<_>>(),
        [format!("record 5 is `{other}`, and an earlier copy had `{seen}`: the chain was forked; {NONE_CONFIRMED}")]
    );
}

#[test]
fn names_that_no_record_has_are_problems_like_any_other() {
    let mut copy = chain(&[1, 1]);
    let largest = format!("{}.json", u64::MAX);
    for name in ["x.json", "3.json", "+00000000003.json", "000000000000.json", &largest] {
        copy.records.insert(name.to_owned(), b"{}".to_vec());
    }

    let problems = found(&copy);

    for name in ["x.json", "3.json", "+00000000003.json", &largest] {
        assert!(problems.contains(&format!("`{name}` is not the name of a record")), "{problems:?}");
    }
    assert!(
        problems.contains(&"record 0 has an invalid number: records are numbered from 1".to_owned()),
        "{problems:?}"
    );
}

#[test]
fn a_position_is_read_as_it_is_written() {
    let position = position(&chain(&[1]), 1);

    assert_eq!(position.to_string().parse(), Ok(position.clone()));
    for wrong in ["", "1", "1-", "x-4b5e57f6eb2f", "1-4b5e57f6eb2", "1-4B5E57F6EB2F", "1-4b5e57f6eb2ff"] {
        assert!(wrong.parse::<Position>().is_err(), "{wrong}");
    }
}

const ROOT: u8 = 9;
const NONE_CONFIRMED: &str = "no record before it is confirmed";

/// Returns a chain of 8 records that differs from the whole one from a record on.
fn forked_from(first: u64) -> RecordsCopy {
    let mut copy = chain(&[1; 8]);
    for seq in first..=8 {
        add(&mut copy, 1, seq, "globex", ended(90 + seq));
    }
    copy
}

fn head(copy: &RecordsCopy, seq: u64) -> ChainHead {
    ChainHead { seq, digest: Digest::of(&copy.records[&record_name(seq)]) }
}

/// Returns a receipt that the key of `root` certified, for a record of the chain.
fn receipt(copy: &RecordsCopy, seq: u64, (root, install): (u8, &str)) -> Vec<u8> {
    let tenant: TenantName = "acme".parse().unwrap();
    let delegate = crate::envelope::Delegate {
        send_until: None,
        tenant: tenant.clone(),
        public_key: key(8).verifying_key().into(),
        not_before: Timestamp::from_millis(0),
        not_after: Timestamp::from_millis(1_000_000),
        uses: [crate::KeyUse::Receipts].into(),
    };
    let certificate = Envelope::seal(&delegate, &[&key(root)]).unwrap();
    let at = Timestamp::from_millis(5_000);
    let receipt = Receipt {
        tenant,
        install: install.parse().unwrap(),
        head: head(copy, seq),
        runner: KeyId::of(&key(1).verifying_key()),
        received_at: at,
        issued_at: at,
    };
    Envelope::seal_delegated(&receipt, &key(8), &certificate).unwrap().to_json().unwrap().into_bytes()
}

fn report(copy: &RecordsCopy, seq: u64) -> Vec<u8> {
    let report = Report {
        tenant: "acme".parse().unwrap(),
        install: "globex".parse().unwrap(),
        runner: KeyId::of(&key(1).verifying_key()),
        at: Timestamp::from_millis(1),
        head: Some(head(copy, seq)),
        body: ReportBody::Heartbeat,
    };
    Envelope::seal(&report, &[&key(1)]).unwrap().to_json().unwrap().into_bytes()
}

fn with_root(copy: &RecordsCopy) -> Verified {
    let root = PublicKey::from(key(ROOT).verifying_key());
    let roots = Roots::given("acme".parse().unwrap(), root, None);
    verify(copy, Known { roots: Some(&roots), ..Known::default() })
}

fn found_with_root(copy: &RecordsCopy) -> Vec<(Option<u64>, String)> {
    with_root(copy).problems.into_iter().map(|problem| (problem.record, problem.text)).collect()
}

#[test]
fn a_chain_with_the_records_that_receipts_and_reports_name_is_whole() {
    let mut copy = chain(&[1; 5]);
    for seq in [2, 4] {
        copy.receipts.insert(record_name(seq), receipt(&copy, seq, (ROOT, "globex")));
    }
    let sent = report(&copy, 3);
    copy.reports.insert(message_name(&Digest::of(&sent)), sent);

    let verified = with_root(&copy);

    assert_eq!((verified.problems, verified.receipts, verified.confirmed), (vec![], 2, Some(4)));
}

#[test]
fn a_cut_tail_and_a_fork_are_named_by_the_receipt_of_a_record_and_by_the_head_of_a_report() {
    let whole = chain(&[1; 5]);
    let mut by_receipt = whole.clone();
    by_receipt.receipts.insert(record_name(5), receipt(&whole, 5, (ROOT, "globex")));
    by_receipt.records.remove(&record_name(5));
    let mut by_report = whole.clone();
    let sent = report(&whole, 5);
    let name = message_name(&Digest::of(&sent));
    by_report.reports.insert(name.clone(), sent);
    by_report.records.remove(&record_name(5));
    let mut forked = by_receipt.clone();
    add(&mut forked, 1, 5, "globex", ended(77));

    let (confirmed, last) = ("record 5 that the control plane confirmed", "the last record before it is 4");
    assert_eq!(
        found_with_root(&by_receipt),
        [(Some(5), format!("receipt 5: the chain was cut: it lacks {confirmed}; {last}"))]
    );
    let cut = format!("the chain was cut: it lacks record 5 that report `{name}` names; {last}");
    assert_eq!(found_with_root(&by_report), [(Some(5), cut)]);
    let fork = "record 5 is not the one that the control plane confirmed";
    let fork = format!("receipt 5: the chain was forked: {fork}; {NONE_CONFIRMED}");
    assert_eq!(found_with_root(&forked), [(Some(5), fork)]);
}

#[test]
fn a_cut_and_a_fork_are_placed_between_the_last_record_beyond_doubt_and_the_first_that_differs() {
    let whole = chain(&[1; 8]);
    let (cut, forked) = (chain(&[1; 3]), forked_from(4));
    let places = |mut copy: RecordsCopy| {
        for seq in [7, 2, 5] {
            copy.receipts.insert(record_name(seq), receipt(&whole, seq, (ROOT, "globex")));
        }
        let sent = report(&whole, 6);
        copy.reports.insert(message_name(&Digest::of(&sent)), sent);
        with_root(&copy).problems.iter().map(|problem| (problem.after, problem.record)).collect::<Vec<_>>()
    };

    assert_eq!(places(cut), [5, 6, 7].map(|record| (Some(3), Some(record))));
    assert_eq!(places(forked), [5, 6, 7].map(|record| (Some(2), Some(record))));
}

#[test]
fn the_receipt_in_an_order_proves_a_fork_too_and_a_changed_order_is_a_problem() {
    let whole = chain(&[1; 8]);
    let mut order: Order = serde_json::from_str(include_str!("../../../golden/order-container-image.json")).unwrap();
    order.receipt = Some(Box::new(Envelope::parse(&receipt(&whole, 5, (ROOT, "globex"))).unwrap()));
    let sent = Envelope::seal(&order, &[&key(8)]).unwrap().to_json().unwrap().into_bytes();
    let name = message_name(&Digest::of(&sent));
    let with = |mut copy: RecordsCopy, bytes: &[u8]| {
        copy.orders.insert(name.clone(), bytes.to_vec());
        found_with_root(&copy)
    };

    let fork = "the chain was forked: record 5 is not the one that the control plane confirmed";
    let fork = format!("the receipt in order `{name}`: {fork}; {NONE_CONFIRMED}");
    assert_eq!(with(forked_from(4), &sent), [(Some(5), fork)]);
    assert!(with(chain(&[1; 4]), &sent).is_empty(), "an order is copied after the records");
    let changed = with(whole, &[&sent[..], b" "].concat());
    assert!(changed[0].1.starts_with(&format!("order `{name}` is not the one that arrived: ")), "{changed:?}");
}

#[test]
fn a_receipt_of_another_install_of_another_signer_or_in_the_place_of_another_is_a_problem() {
    let whole = chain(&[1; 3]);
    let of = |bytes: Vec<u8>| {
        let mut copy = whole.clone();
        copy.receipts.insert(record_name(3), bytes);
        found_with_root(&copy).remove(0).1
    };

    let replayed = of(receipt(&whole, 2, (ROOT, "globex")));
    let foreign = of(receipt(&whole, 3, (ROOT, "initech")));
    let forged = of(receipt(&whole, 3, (7, "globex")));

    assert_eq!(replayed, "receipt 3: it is the receipt of record 2, stored in place of this one");
    assert_eq!(foreign, "receipt 3: it belongs to install `initech` of tenant `acme`");
    assert!(forged.starts_with("receipt 3: the control plane did not sign it: "), "{forged}");
}

#[test]
fn a_changed_report_is_a_problem() {
    let mut copy = chain(&[1; 3]);
    let mut sent = report(&copy, 3);
    let name = message_name(&Digest::of(&sent));
    sent.push(b' ');
    copy.reports.insert(name.clone(), sent);

    let (record, text) = found_with_root(&copy).remove(0);

    assert_eq!(record, None);
    assert!(text.starts_with(&format!("report `{name}` is not the one that was sent: ")), "{text}");
}

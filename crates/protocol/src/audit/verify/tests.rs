use ed25519_dalek::SigningKey;

use super::*;
use crate::report::Fence;

const FENCE: Fence = Fence { dispatch: 1, receive: 1 };

fn key(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

fn id(seed: u8) -> String {
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
    AuditEvent::Ended { job: job(seq), fence: FENCE, result: "succeeded".into() }
}

/// Returns a whole chain, of which each record is by the key of the next seed.
fn chain(seeds: &[u8]) -> RecordsCopy {
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
fn add(copy: &mut RecordsCopy, seed: u8, seq: u64, install: &str, event: AuditEvent) {
    let previous = copy.records.get(&record_name(seq - 1)).map_or_else(|| Digest::of(b""), |bytes| Digest::of(bytes));
    copy.records.insert(record_name(seq), record(seed, seq, &previous, install, event));
}

fn found(copy: &RecordsCopy) -> Vec<String> {
    verify(copy, &[], &[]).problems.iter().map(ToString::to_string).collect()
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

    let verified = verify(&copy, &[id(1), id(2), id(3)], &[position(&copy, 3), position(&copy, 7)]);

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
    }
}

#[test]
fn who_asked_for_jobs_is_listed_once_with_the_number_of_starts() {
    let mut copy = chain(&[1, 1]);
    let ana = || Some(AskedBy::Caller { arn: "arn:aws:iam::111111111111:user/ana".parse().unwrap() });
    for (seq, asked_by) in (3..).zip([ana(), None, Some(AskedBy::Schedule), ana()]) {
        add(&mut copy, 1, seq, "globex", started(seq, asked_by));
    }

    let askers = verify(&copy, &[], &[]).askers;

    let listed: Vec<_> =
        askers.iter().map(|one| (one.asked_by.clone(), one.starts, one.from.as_millis(), one.to.as_millis())).collect();
    let expected = [(ana(), 2, 3000, 6000), (None, 1, 4000, 4000), (Some(AskedBy::Schedule), 1, 5000, 5000)];
    assert_eq!(listed, expected);
}

#[test]
fn jobs_without_a_record_of_their_end_are_listed() {
    let mut copy = chain(&[1, 1]);
    add(&mut copy, 1, 3, "globex", started(4, None));
    add(&mut copy, 1, 4, "globex", ended(4));
    add(&mut copy, 1, 5, "globex", started(5, None));

    let verified = verify(&copy, &[], &[]);

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
    assert_eq!(verify(&of_three, &[], &[]).problems[0].record, Some(2));
}

#[test]
fn the_first_records_are_missed_too() {
    let mut copy = chain(&[1, 1, 1]);
    copy.records.remove(&record_name(1));

    let first_of_key = format!("record 2 is the first record of runner key {} and does not say that it joins", id(1));
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
    assert_eq!(found(&copy), [expected.as_str(), "record 3 does not follow record 2: it names another one before it"]);
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
        "record 4 does not follow record 3: it names another one before it",
    ];
    assert_eq!(found(&copy), expected);
}

#[test]
fn a_record_of_another_chain_or_install_does_not_fit() {
    let mut of_other_chain = chain(&[1; 3]);
    of_other_chain.records.insert(record_name(3), record(1, 3, &Digest::of(b"x"), "globex", ended(3)));
    let mut of_other_install = chain(&[1, 1]);
    add(&mut of_other_install, 1, 3, "initech", ended(3));

    assert_eq!(found(&of_other_chain), ["record 3 does not follow record 2: it names another one before it"]);
    assert_eq!(
        found(&of_other_install),
        [
            "record 3 is of install `initech` of tenant `acme`, and the records before it are of install `globex` of tenant `acme`"
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
        [format!("record 3 is the first record of runner key {} and does not say that it joins", id(2))]
    );
}

#[test]
fn a_key_that_is_missing_exchanged_or_not_accepted_verifies_nothing() {
    let (mut missing, mut exchanged) = (chain(&[1, 2]), chain(&[1, 2]));
    missing.keys.remove(&id(2));
    exchanged.keys.insert(id(2), PublicKey::from(key(3).verifying_key()).to_string());

    let unknown =
        format!("record 2 cannot be verified: the public key `{}.pub` is missing; copy all below `audit/`", id(2));
    assert_eq!(found(&missing), [unknown]);
    let other = format!("record 2 cannot be verified: `{}.pub` is another key: its id is {}", id(2), id(3));
    assert_eq!(found(&exchanged), [other]);
    let pinned = verify(&chain(&[1, 2]), &[id(1), id(3)], &[]).problems;
    let pinned: Vec<&str> = pinned.iter().map(|problem| problem.text.as_str()).collect();
    assert_eq!(
        pinned,
        [
            format!("record 2 is of runner key {}, which is not a key that `--runner` names", id(2)),
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

    let texts = |copy| verify(copy, &[], std::slice::from_ref(&seen)).problems.into_iter().map(|each| each.text);

    assert_eq!((found(&cut), found(&forked)), (Vec::<String>::new(), Vec::new()), "no copy alone can show it");
    assert_eq!(
        texts(&cut).collect::<Vec<_>>(),
        [format!("record 5, which an earlier copy had as `{seen}`, is missing")]
    );
    let other = position(&forked, 5);
    assert_eq!(
        texts(&forked).collect::<Vec<_>>(),
        [format!("record 5 is `{other}`, and an earlier copy had `{seen}`: the chain was forked")]
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
    assert!(problems.contains(&"record 0 has a number that no record has".to_owned()), "{problems:?}");
}

#[test]
fn a_position_is_read_as_it_is_written() {
    let position = position(&chain(&[1]), 1);

    assert_eq!(position.to_string().parse(), Ok(position.clone()));
    for wrong in ["", "1", "1-", "x-4b5e57f6eb2f", "1-4b5e57f6eb2", "1-4B5E57F6EB2F", "1-4b5e57f6eb2ff"] {
        assert!(wrong.parse::<Position>().is_err(), "{wrong}");
    }
}

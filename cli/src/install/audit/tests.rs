use std::collections::BTreeMap;

use ed25519_dalek::SigningKey;
use freehold_protocol::audit::{AuditEvent, AuditRecord};
use freehold_protocol::report::Fence;
use freehold_protocol::{Digest, Envelope, KeyId, Timestamp};

use super::Verify;
use super::chain::name_of;
use super::folder::Files;

const FENCE: Fence = Fence { dispatch: 1, receive: 1 };

fn key(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

fn id(seed: u8) -> String {
    KeyId::of(&key(seed).verifying_key()).to_string()
}

fn ended(job: u64) -> AuditEvent {
    AuditEvent::Ended { job: format!("job_{job:020x}").parse().unwrap(), fence: FENCE, result: "succeeded".into() }
}

/// Returns the name and the bytes of a record.
fn record(seed: u8, seq: u64, previous: &Digest, install: &str) -> (String, Vec<u8>) {
    let record = AuditRecord {
        tenant: "acme".parse().unwrap(),
        install: install.parse().unwrap(),
        runner: KeyId::of(&key(seed).verifying_key()),
        seq,
        previous: previous.clone(),
        at: Timestamp::from_millis(seq * 1000),
        event: ended(seq),
    };
    let bytes = Envelope::seal(&record, &[&key(seed)]).unwrap().to_json().unwrap().into_bytes();
    (name_of(seq, &Digest::of(&bytes)), bytes)
}

/// Returns a chain of `count` records as the bucket has it.
fn chain(seed: u8, count: u64) -> Files {
    let mut files = Files { key: Some(public(seed)), records: BTreeMap::new() };
    let mut head = Digest::of(b"");
    for seq in 1..=count {
        let (name, bytes) = record(seed, seq, &head, "globex");
        head = Digest::of(&bytes);
        files.records.insert(name, bytes);
    }
    files
}

fn public(seed: u8) -> String {
    freehold_protocol::envelope::PublicKey::from(key(seed).verifying_key()).to_string()
}

fn name(files: &Files, seq: usize) -> String {
    files.records.keys().nth(seq - 1).unwrap().clone()
}

/// Returns the problems of a copy with these files of the runner key of seed 1.
fn problems(files: Files) -> Vec<String> {
    with(&[], &[], files)
}

fn with(runners: &[String], seen: &[String], files: Files) -> Vec<String> {
    let verify = Verify { directory: "audit".into(), runners: runners.to_vec(), seen: seen.to_vec() };
    let verified = verify.verified(&[(id(1), files)].into());
    let problems: Vec<String> = verified.all_problems().map(|text| text.replace(&format!("{}: ", id(1)), "")).collect();
    assert_eq!(verified.verified, problems.is_empty());
    problems
}

#[test]
fn a_whole_chain_has_no_problem() {
    assert_eq!(with(&[id(1)], &[name(&chain(1, 5), 5)], chain(1, 5)), [""; 0]);
}

#[test]
fn missing_records_are_named_by_their_numbers() {
    let mut files = chain(1, 6);
    for seq in [5, 3, 1] {
        files.records.remove(&name(&files, seq));
    }
    let mut of_three = chain(1, 6);
    for seq in [4, 3, 2] {
        of_three.records.remove(&name(&of_three, seq));
    }

    assert_eq!(problems(files), ["record 1 is missing", "record 3 is missing", "record 5 is missing"]);
    assert_eq!(problems(of_three), ["records 2 to 4 are missing"]);
}

#[test]
fn a_changed_record_is_found_by_its_signature() {
    let mut files = chain(1, 3);
    let second = name(&files, 2);
    let text = String::from_utf8(files.records[&second].clone()).unwrap();
    let envelope: Envelope = serde_json::from_str(&text).unwrap();
    let other = Envelope { payload: record_payload(&chain(1, 4), 4), ..envelope };
    files.records.insert(second.clone(), other.to_json().unwrap().into_bytes());

    let found = problems(files);

    let runner = id(1);
    let change = format!(
        "record `{second}` is not as its runner wrote it: signature of key `{runner}` does not match the message"
    );
    assert_eq!(found[0], change);
    assert!(found[1].ends_with("does not follow the record before it"), "{found:?}");
}

fn record_payload(files: &Files, seq: usize) -> String {
    Envelope::parse(&files.records[&name(files, seq)]).unwrap().payload
}

#[test]
fn two_records_that_changed_places_are_both_found() {
    let mut files = chain(1, 4);
    let (second, third) = (name(&files, 2), name(&files, 3));
    let (a, b) = (files.records[&second].clone(), files.records[&third].clone());
    files.records.insert(second.clone(), b);
    files.records.insert(third.clone(), a);

    let found = problems(files);

    assert_eq!(found[0], format!("record `{second}` has another name than its runner gave it: `{third}`"));
    assert_eq!(found[1], format!("record `{third}` has another name than its runner gave it: `{second}`"));
}

#[test]
fn a_record_with_a_valid_signature_that_belongs_to_another_chain_does_not_follow() {
    let mut files = chain(1, 3);
    files.records.remove(&name(&files, 2));
    let (other, bytes) = record(1, 2, &Digest::of(b"another"), "globex");
    files.records.insert(other.clone(), bytes);

    let found = problems(files);

    assert_eq!(found[0], format!("record `{other}` does not follow the record before it"));
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn two_records_with_one_number_are_found() {
    let mut files = chain(1, 2);
    let first = files.records.values().next().cloned().unwrap();
    let (name, bytes) = record(1, 2, &Digest::of(&first), "initech");
    files.records.insert(name, bytes);

    assert!(problems(files).contains(&"there are two records with the number 2".to_owned()));
}

#[test]
fn a_number_beyond_all_is_a_problem_like_any_other() {
    let mut files = chain(1, 2);
    for name in [format!("{}-0", u64::MAX), format!("{}-1", u64::MAX), "x".to_owned(), "9-0".to_owned()] {
        files.records.insert(name, b"{}".to_vec());
    }

    let found = problems(files);

    assert!(found.iter().any(|problem| problem.starts_with(&format!("records 3 to {} are missing", u64::MAX - 1))));
}

#[test]
fn a_chain_that_was_cut_at_its_end_is_found_with_the_record_that_was_seen() {
    let last = name(&chain(1, 5), 5);

    assert_eq!(problems(chain(1, 4)), [""; 0]);
    let expected = format!("record `{last}`, which an earlier copy had, is missing");
    assert_eq!(with(&[], &[last], chain(1, 4)), [expected]);
}

#[test]
fn records_of_a_foreign_key_are_refused() {
    let mut signed_by_other = chain(1, 2);
    let (name, bytes) = record(2, 3, &Digest::of(signed_by_other.records.values().last().unwrap()), "globex");
    signed_by_other.records.insert(name.clone(), bytes);
    let exchanged_key = Files { key: Some(public(2)), ..chain(2, 2) };
    let without_key = Files { key: None, ..chain(1, 2) };

    let (other, own) = (id(2), id(1));
    assert_eq!(
        problems(signed_by_other),
        [format!("record `{name}` is not as its runner wrote it: message is not signed by key `{own}`")]
    );
    assert_eq!(problems(exchanged_key), [format!("`{own}.pub` is another key: its id is {other}")]);
    assert_eq!(problems(without_key), [format!("the public key `{own}.pub` is missing; copy all below `audit/`")]);
    assert_eq!(
        with(std::slice::from_ref(&other), &[], chain(1, 2)),
        [
            format!("runner key {own} is not a key that `--runner` names"),
            format!("there are no records of runner key {other}"),
        ]
    );
}

#[test]
fn records_of_another_install_are_found() {
    let mut files = chain(1, 1);
    let (name, bytes) = record(1, 2, &Digest::of(files.records.values().next().unwrap()), "initech");
    files.records.insert(name, bytes);

    assert_eq!(
        problems(files),
        [
            "record 2 is of install `initech` of tenant `acme`, and the records before it are of install `globex` of tenant `acme`"
        ]
    );
}

#[test]
fn a_folder_is_read_as_the_bucket_has_it_and_an_empty_one_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let empty = super::folder::read(place.path()).unwrap_err().to_string();
    let files = chain(1, 2);
    std::fs::create_dir(place.path().join(id(1))).unwrap();
    std::fs::write(place.path().join(format!("{}.pub", id(1))), public(1) + "\n").unwrap();
    for (name, bytes) in &files.records {
        std::fs::write(place.path().join(id(1)).join(format!("{name}.json")), bytes).unwrap();
    }

    let read = super::folder::read(place.path()).unwrap();

    assert!(empty.contains("has no audit records"), "{empty}");
    assert_eq!(read[&id(1)].records, files.records);
    assert_eq!(problems(read.into_values().next().unwrap()), [""; 0]);
}

/// Returns the chain of a runner with the key of seed 1 that made the key of seed 2 after `count` records, as the files
/// of the two keys.
fn renewed(count: u64, more: u64) -> BTreeMap<String, Files> {
    let first = chain(1, count);
    let mut second = Files { key: Some(public(2)), records: BTreeMap::new() };
    let mut head = Digest::of(first.records.values().last().unwrap());
    for seq in count + 1..=count + more {
        let (name, bytes) = record(2, seq, &head, "globex");
        head = Digest::of(&bytes);
        second.records.insert(name, bytes);
    }
    [(id(1), first), (id(2), second)].into()
}

fn of_all(files: &BTreeMap<String, Files>) -> Vec<String> {
    let verify = Verify { directory: "audit".into(), runners: Vec::new(), seen: Vec::new() };
    verify.verified(files).all_problems().collect()
}

#[test]
fn a_new_key_continues_the_records_of_the_former_key() {
    let files = renewed(3, 2);
    let verify = Verify { directory: "audit".into(), runners: Vec::new(), seen: Vec::new() };

    let verified = verify.verified(&files);

    assert_eq!(verified.all_problems().collect::<Vec<_>>(), [""; 0]);
    let second = verified.chains.iter().find(|chain| chain.runner == id(2)).unwrap();
    let former = second.continues.as_ref().unwrap();
    assert_eq!((&former.runner, &former.record), (&id(1), &name(&files[&id(1)], 3)));
    assert!(verified.chains.iter().filter(|chain| chain.continues.is_some()).count() == 1);
}

#[test]
fn a_former_chain_that_was_cut_or_changed_or_removed_is_found_by_the_key_that_continues_it() {
    let missing = format!("{}: records 1 to 3 are missing", id(2));
    let (mut cut, mut removed, mut other) = (renewed(3, 2), renewed(3, 2), renewed(3, 2));
    let last = name(&cut[&id(1)], 3);
    cut.get_mut(&id(1)).unwrap().records.remove(&last);
    removed.remove(&id(1));
    let (changed, bytes) = record(1, 3, &Digest::of(b"x"), "globex");
    let records = &mut other.get_mut(&id(1)).unwrap().records;
    records.remove(&last);
    records.insert(changed, bytes);

    assert_eq!(of_all(&cut), std::slice::from_ref(&missing));
    assert_eq!(of_all(&removed), std::slice::from_ref(&missing));
    assert!(of_all(&other).contains(&missing));
}

#[test]
fn a_former_key_that_signs_on_after_the_new_key_is_found() {
    let mut files = renewed(3, 2);
    files.insert(id(1), chain(1, 4));
    let (third, fourth) = (name(&files[&id(1)], 3), name(&files[&id(1)], 4));

    let first = name(&files[&id(2)], 1);
    let expected = format!(
        "{}: record `{first}` and record `{fourth}` of key {} both follow record `{third}` of that key",
        id(2),
        id(1)
    );
    assert_eq!(of_all(&files), [expected]);
}

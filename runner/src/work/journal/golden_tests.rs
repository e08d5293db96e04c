//! The journal as files: what this version writes (`golden/journal.jsonl`) and what the version before wrote
//! (`golden/previous/journal.jsonl`). A runner that was upgraded reads the journal of the version before; one that went back
//! reads the journal of the version after, if its format has the same number.

use std::path::{Path, PathBuf};

use freehold_protocol::report::{Block, Fence, Outcome};
use freehold_protocol::{Digest, Timestamp};
use serde_json::{Value, json};

use super::{Decision, FILE, FORMAT, Journal, Record};
use crate::testing::{job_id, order};

const FIRST: Fence = Fence { dispatch: 1, receive: 1 };

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(golden(name)).unwrap()
}

fn ends() -> Vec<Outcome> {
    let (outputs, sensitive) =
        ([("name".to_owned(), json!("bucket"))].into(), [("token".to_owned(), Digest::of(b"t"))]);
    vec![
        Outcome::Succeeded { outputs, sensitive: sensitive.into(), artifact: None },
        Outcome::Failed { reason: "exit status 1".to_owned(), partial: true },
        Outcome::Blocked { block: Block::ModeDisabled, reason: "mode `provision` is off".to_owned() },
        Outcome::Cancelled,
        Outcome::Interrupted { reason: "the runner shut down before the job ended".to_owned() },
    ]
}

/// Returns records of each kind: jobs 1 to 5 have ended, job 11 was accepted, 12 was started by its third delivery, 13 was put
/// back, and 14 and 15 were cancelled.
fn records() -> Vec<Record> {
    let ended = (1..).zip(ends()).flat_map(|(n, outcome)| {
        let job = job_id(n);
        let started = Record::Started { job: job.clone(), fence: FIRST };
        [Record::accepted(&order(n, u64::from(n))), started, Record::Finished { job, fence: FIRST, outcome }]
    });
    let others = [
        Record::accepted(&order(11, 11)),
        Record::accepted(&order(12, 12)),
        Record::Started { job: job_id(12), fence: Fence { dispatch: 1, receive: 3 } },
        // The version before ignores `sent_at`, so the format has the same number. `golden/files.json` has the field.
        Record::PutBack { job: job_id(13), fence: Fence { dispatch: 1, receive: 2 }, sent_at: None },
        Record::Cancelled { job: job_id(14), dispatch: 1, receive: None },
        Record::Cancelled { job: job_id(15), dispatch: 1, receive: Some(1) },
    ];
    ended.chain(others).collect()
}

/// Returns the lines of a journal with their values replaced by their types: which records there are, and their fields.
fn shapes(text: &str) -> Vec<String> {
    fn shape(value: &Value) -> String {
        match value {
            Value::Object(fields) => {
                let field = |(name, value): (&String, &Value)| match (name.as_str(), value) {
                    ("record" | "outcome" | "block", Value::String(word)) => format!("{name}={word}"),
                    _ => format!("{name}:{}", shape(value)),
                };
                format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(","))
            }
            Value::Array(items) => format!("[{}]", items.iter().map(shape).collect::<Vec<_>>().join(",")),
            Value::String(_) => "text".to_owned(),
            Value::Number(_) => "number".to_owned(),
            Value::Bool(_) => "bool".to_owned(),
            Value::Null => "null".to_owned(),
        }
    }
    text.lines().skip(1).map(|line| shape(&serde_json::from_str(line).unwrap())).collect()
}

fn format_of(text: &str) -> u64 {
    let header: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    header["format"].as_u64().unwrap()
}

#[test]
fn the_journal_that_this_version_writes_is_the_golden_one() {
    let state = tempfile::tempdir().unwrap();
    Journal::open(state.path()).unwrap().append(&records()).unwrap();
    let written = std::fs::read_to_string(state.path().join(FILE)).unwrap();

    if std::env::var_os("FREEHOLD_UPDATE").is_some() {
        std::fs::write(golden("journal.jsonl"), &written).unwrap();
    }

    assert_eq!(written, read("journal.jsonl"));
}

#[test]
fn each_record_of_a_journal_is_read_and_nothing_of_it_is_lost() {
    crate::testing::check_golden_values::<Record>("Record");
}

#[test]
fn the_journal_of_the_version_before_is_read_and_every_job_in_it_is_decided_as_it_was() {
    let state = tempfile::tempdir().unwrap();
    std::fs::write(state.path().join(FILE), read("previous/journal.jsonl")).unwrap();

    let mut journal = Journal::open(state.path()).unwrap();

    let again = |journal: &Journal| {
        let sent_at = Some(Timestamp::from_millis(50));
        let decide = |n: u32, receive: u32| journal.state().decide(&order(n, 99), receive, sent_at);
        for (n, outcome) in (1..).zip(ends()) {
            assert_eq!(decide(n, 2), Decision::Again(outcome));
        }
        assert_eq!((decide(11, 1), decide(12, 4)), (Decision::Start, Decision::Resume));
        assert_eq!((decide(13, 3), decide(13, 4)), (Decision::Start, Decision::Resume));
        assert_eq!((decide(14, 1), decide(15, 1)), (Decision::Cancelled, Decision::Cancelled));
        assert!(matches!(journal.state().decide(&order(21, 1), 1, sent_at), Decision::Replayed { .. }));
    };
    again(&journal);
    journal.append(&[Record::accepted(&order(22, 98))]).unwrap();
    drop(journal);
    again(&Journal::open(state.path()).unwrap());
}

#[test]
fn a_record_that_the_version_before_does_not_know_comes_with_another_number_of_the_format() {
    let (before, now) = (read("previous/journal.jsonl"), read("journal.jsonl"));
    let known = shapes(&before);

    let unknown: Vec<_> = shapes(&now).into_iter().filter(|shape| !known.contains(shape)).collect();

    assert_eq!(format_of(&now), u64::from(FORMAT));
    assert!(unknown.is_empty() || format_of(&now) > format_of(&before), "raise FORMAT: {unknown:?}");
}

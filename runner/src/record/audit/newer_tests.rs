//! A runner of a newer version was put back: this version continues the chain after its events, and writes those that
//! it left.

use std::collections::BTreeMap;

use freehold_protocol::audit::record_name;
use freehold_protocol::envelope::decode_base64;
use freehold_protocol::{Digest, Envelope};
use serde_json::{Value, json};

use super::memory::{Fate, Memory, author};
use super::*;

/// Returns an event that this version cannot read.
fn resumed() -> Value {
    json!({ "event": "resumed", "job": "job_00000000000000000001", "parts": [{ "name": "web", "bytes": 7 }] })
}

fn later(event: Value) -> AuditEvent {
    serde_json::from_value(event).unwrap()
}

fn known() -> AuditEvent {
    AuditEvent::Sent { reports: Vec::new() }
}

fn machine(directory: &Path, bucket: &Arc<Memory>) -> Audit {
    Audit::open(directory, author(1), Some(bucket.clone() as Arc<dyn Bucket>)).unwrap()
}

/// Returns the event of a record in the bucket, as it was written.
fn written(bucket: &Memory, seq: u64) -> Value {
    let objects = bucket.objects.lock().unwrap();
    let payload = Envelope::parse(&objects[&record_name(seq)]).unwrap().payload;
    let record: Value = serde_json::from_slice(&decode_base64(&payload).unwrap()).unwrap();
    record["event"].clone()
}

#[tokio::test]
async fn the_events_that_a_newer_version_left_in_the_state_directory_are_written_as_they_are() {
    let directory = tempfile::tempdir().unwrap();
    let bucket = Arc::new(Memory::default());
    let sent = json!({ "event": "sent", "reports": [], "size": { "bytes": 7 } });
    let line = |event: Value| format!("{}\n", json!({ "entry": { "at": 1_795_250_000_000_u64, "event": event } }));
    std::fs::write(directory.path().join("audit.spool"), line(resumed()) + &line(sent.clone())).unwrap();

    let audit = machine(directory.path(), &bucket);
    audit.record(known()).unwrap();
    audit.flush(BUCKET_LIMIT).await.unwrap();

    assert_eq!(bucket.events(), ["i-1", "resumed", "sent 0", "sent 0"]);
    assert_eq!([2, 3].map(|seq| written(&bucket, seq)), [resumed(), sent]);
}

#[tokio::test]
async fn the_record_of_a_newer_version_whose_answer_was_lost_is_not_written_twice() {
    let directory = tempfile::tempdir().unwrap();
    let bucket = Arc::new(Memory::default());
    bucket.fates.lock().unwrap().extend([Fate::AnswerIsLost, Fate::Works]);
    let newer = machine(directory.path(), &bucket);
    newer.record(later(resumed())).unwrap();
    newer.flush(BUCKET_LIMIT).await.unwrap_err();
    drop(newer);

    let audit = machine(directory.path(), &bucket);
    audit.record(known()).unwrap();
    audit.flush(BUCKET_LIMIT).await.unwrap();
    let records = audit.since(Timestamp::default(), BUCKET_LIMIT, |_| true).await.unwrap().unwrap();

    assert_eq!(bucket.events(), ["i-1", "resumed", "sent 0"]);
    assert_eq!(records[1].event, later(resumed()));
}

#[test]
fn the_chain_of_a_runner_without_a_bucket_continues_after_an_event_of_a_newer_version() {
    let directory = tempfile::tempdir().unwrap();
    let open = || Audit::open(directory.path(), author(1), None).unwrap();
    open().record(later(resumed())).unwrap();

    open().record(known()).unwrap();

    let text = std::fs::read_to_string(directory.path().join("audit.jsonl")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let last: AuditRecord = Envelope::parse(lines[1].as_bytes()).unwrap().peek().unwrap();
    assert_eq!((lines.len(), last.seq, last.previous), (2, 2, Digest::of(lines[0].as_bytes())));
}

#[test]
fn no_event_in_a_golden_file_counts_as_one_of_a_newer_version() {
    for text in [include_str!("../../../golden/files.json"), include_str!("../../../golden/previous/files.json")] {
        let files: BTreeMap<String, Vec<Value>> = serde_json::from_str(text).unwrap();
        let events = files["Line"].iter().filter_map(|line| line.pointer("/entry/event"));
        let events: Vec<AuditEvent> = events.map(|event| later(event.clone())).collect();

        assert!(!events.is_empty());
        assert!(!events.iter().any(|event| matches!(event, AuditEvent::Newer(_))), "{events:?}");
    }
}

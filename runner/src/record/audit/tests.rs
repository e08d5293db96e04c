//! Several machines write to one bucket that fails, and crash. The chain in the bucket must stay whole.

use std::sync::atomic::Ordering;

use freehold_protocol::audit::{AuditRecord, MAX_OBJECT_BYTES, record_name};
use freehold_protocol::report::Fence;
use freehold_protocol::{Digest, Envelope};

use super::memory::{Fate, Memory, author};
use super::*;
use crate::testing::job_id;

impl Audit {
    /// Records an event that is about to happen, and waits until it may happen.
    async fn announce_durably(&self, event: AuditEvent) -> Result<(), AuditError> {
        self.announce(event)?;
        self.flush(BUCKET_LIMIT).await
    }
}

fn ended(n: u32) -> AuditEvent {
    ended_as(n, "succeeded".into())
}

/// Returns an event with a line of about 250 kB.
fn long(n: u32) -> AuditEvent {
    ended_as(n, "x".repeat(250_000))
}

fn ended_as(n: u32, result: String) -> AuditEvent {
    let (job, fence) = (job_id(n), Fence { dispatch: 1, receive: 1 });
    AuditEvent::Ended { job, fence, result, log: None, order: None, sent_at: None }
}

/// Opens the trail of the machine with the key of `seed`.
fn machine(directory: &Path, seed: u8, bucket: &Arc<Memory>) -> Audit {
    Audit::open(directory, author(seed), Some(bucket.clone() as Arc<dyn Bucket>)).unwrap()
}

#[tokio::test]
async fn a_new_machine_continues_where_the_last_one_ended_and_says_so() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let bucket = Arc::new(Memory::default());
    machine(first.path(), 1, &bucket).announce_durably(ended(1)).await.unwrap();
    machine(second.path(), 2, &bucket).announce_durably(ended(2)).await.unwrap();
    // A new key on the first machine.
    machine(first.path(), 3, &bucket).announce_durably(ended(3)).await.unwrap();

    assert_eq!(bucket.events(), ["i-1", "1", "i-2", "2", "i-3", "3"]);
    let verified = bucket.verified();
    let hosts: Vec<(&str, u64, u64)> =
        verified.runners.iter().map(|writer| (writer.host.as_str(), writer.from, writer.to)).collect();
    assert_eq!(hosts, [("i-1", 1, 2), ("i-2", 3, 4), ("i-3", 5, 6)]);
}

/// The bucket has three records, and the answer to the third was lost. The spool has the events of jobs 2 and 3 too.
#[tokio::test]
async fn the_spool_of_the_version_before_is_taken_up_and_the_chain_stays_whole() {
    for text in [include_str!("../../../golden/audit.spool"), include_str!("../../../golden/previous/audit.spool")] {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("audit.spool"), text).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let records: Vec<String> =
            lines.filter_map(|line| Some(line["trying"]["record"].as_str()?.to_owned())).collect();
        let bucket = Arc::new(Memory::default());
        let objects = (1..).zip(&records).map(|(seq, record)| (record_name(seq), record.clone().into_bytes()));
        bucket.objects.lock().unwrap().extend(objects);

        machine(directory.path(), 1, &bucket).announce_durably(ended(4)).await.unwrap();

        assert_eq!(bucket.events(), ["i-1", "1", "2", "3", "4"]);
    }
}

#[test]
fn each_line_of_a_spool_is_read_and_nothing_of_it_is_lost() {
    crate::testing::check_golden_values::<super::waiting_events::Line>("Line");
}

#[tokio::test]
async fn two_machines_at_once_write_one_chain() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let bucket = Arc::new(Memory::default());
    let (one, two) = (machine(first.path(), 1, &bucket), machine(second.path(), 2, &bucket));

    for n in [1, 3] {
        one.announce_durably(ended(n)).await.unwrap();
        two.announce_durably(ended(n + 1)).await.unwrap();
    }

    assert_eq!(bucket.events(), ["i-1", "1", "i-2", "2", "3", "4"]);
}

#[tokio::test]
async fn what_the_bucket_refused_or_an_earlier_process_left_is_written_first() {
    let directory = tempfile::tempdir().unwrap();
    let bucket = Arc::new(Memory::default());
    let first = machine(directory.path(), 1, &bucket);
    first.announce_durably(ended(1)).await.unwrap();
    first.record(ended(2)).unwrap();
    bucket.fates.lock().unwrap().push(Fate::Fails);
    let refused = first.announce_durably(ended(3)).await;
    let before = bucket.events();
    first.announce_durably(ended(4)).await.unwrap();
    first.record(ended(5)).unwrap();
    drop(first);

    machine(directory.path(), 1, &bucket).announce_durably(ended(6)).await.unwrap();

    assert!(matches!(refused, Err(AuditError::Bucket { .. })));
    assert_eq!(before, ["i-1", "1"]);
    assert_eq!(bucket.events(), ["i-1", "1", "2", "3", "4", "5", "6"]);
}

/// The answer to the record with which the key joins is lost, or that to the event's own; then the process continues, or a
/// new one begins, with the same key or a new one.
#[tokio::test]
async fn a_record_whose_answer_was_lost_is_not_written_twice() {
    for (fates, next, expected) in [
        (vec![Fate::AnswerIsLost], None, "i-1 1 2"),
        (vec![Fate::AnswerIsLost], Some(1), "i-1 1 2"),
        (vec![Fate::AnswerIsLost], Some(2), "i-1 i-2 1 2"),
        (vec![Fate::AnswerIsLost, Fate::Works], None, "i-1 1 2"),
        (vec![Fate::AnswerIsLost, Fate::Works], Some(1), "i-1 1 2"),
        (vec![Fate::AnswerIsLost, Fate::Works], Some(2), "i-1 1 i-2 2"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let bucket = Arc::new(Memory::default());
        let mut audit = machine(directory.path(), 1, &bucket);
        bucket.fates.lock().unwrap().clone_from(&fates);
        audit.announce_durably(ended(1)).await.unwrap_err();
        if let Some(seed) = next {
            drop(audit);
            audit = machine(directory.path(), seed, &bucket);
        }

        audit.announce_durably(ended(2)).await.unwrap();

        assert_eq!(bucket.events().join(" "), expected, "{fates:?}, {next:?}");
    }
}

#[tokio::test]
async fn a_lost_answer_while_another_machine_continues_leaves_no_fork() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let bucket = Arc::new(Memory::default());
    let one = machine(first.path(), 1, &bucket);
    one.announce_durably(ended(1)).await.unwrap();
    for fate in [Fate::AnswerIsLost, Fate::Fails] {
        bucket.fates.lock().unwrap().push(fate);
        one.announce_durably(ended(2)).await.unwrap_err();
        machine(second.path(), 2, &bucket).announce_durably(ended(3)).await.unwrap();
    }

    one.announce_durably(ended(4)).await.unwrap();

    assert_eq!(bucket.events(), ["i-1", "1", "2", "i-2", "3", "3", "2", "4"]);
}

#[tokio::test]
async fn the_end_of_a_long_chain_is_found_with_few_calls() {
    for length in [0, 1, 999, 1_000, 1_001, 2_000, 30_000, 123_456] {
        let bucket = Arc::new(Memory::default());
        bucket.objects.lock().unwrap().extend((1..=length).map(|seq| (record_name(seq), seq.to_string().into_bytes())));
        let directory = tempfile::tempdir().unwrap();
        let audit = machine(directory.path(), 1, &bucket);

        audit.announce_durably(ended(1)).await.unwrap();

        let objects = bucket.objects.lock().unwrap();
        let joined = Envelope::parse(&objects[&record_name(length + 1)]).unwrap().peek::<AuditRecord>().unwrap();
        assert_eq!(joined.previous, Digest::of(objects.get(&record_name(length)).map_or(&[][..], Vec::as_slice)));
        assert!(objects.contains_key(&record_name(length + 2)) && !objects.contains_key(&record_name(length + 3)));
        let calls = bucket.calls.load(Ordering::Relaxed);
        assert!(calls < 30, "{calls} calls for {length} records");
    }
}

#[tokio::test]
async fn no_record_is_written_before_its_key() {
    let directory = tempfile::tempdir().unwrap();
    let bucket = Arc::new(Memory::default());
    bucket.contends_for_a_key.store(true, Ordering::Relaxed);

    machine(directory.path(), 1, &bucket).announce_durably(ended(1)).await.unwrap();

    assert!(!bucket.contends_for_a_key.load(Ordering::Relaxed));
    assert_eq!(bucket.events(), ["i-1", "1"]);
}

#[tokio::test]
async fn no_report_is_stored_before_the_key_that_verifies_it() {
    let directory = tempfile::tempdir().unwrap();
    let bucket = Arc::new(Memory::default());
    *bucket.messages.lock().unwrap() = Fate::Fails;

    let refused = machine(directory.path(), 1, &bucket).keep("reports/a.json", b"{}".to_vec(), BUCKET_LIMIT).await;

    let names: Vec<String> = bucket.objects.lock().unwrap().keys().cloned().collect();
    assert!(matches!(refused, Err(AuditError::Bucket { .. })), "{refused:?}");
    assert_eq!(names, [format!("{}.pub", author(1).identity.id())]);
}

#[tokio::test]
async fn a_damaged_key_is_written_again_by_the_next_process() {
    let directory = tempfile::tempdir().unwrap();
    let bucket = Arc::new(Memory::default());
    machine(directory.path(), 1, &bucket).announce_durably(ended(1)).await.unwrap();
    let name = format!("{}.pub", author(1).identity.id());
    bucket.objects.lock().unwrap().insert(name.clone(), b"damaged".to_vec());
    let damaged = bucket.verified().problems.len();

    machine(directory.path(), 1, &bucket).announce_durably(ended(2)).await.unwrap();
    bucket.objects.lock().unwrap().insert(name, vec![b'x'; MAX_OBJECT_BYTES + 1]);
    machine(directory.path(), 1, &bucket).announce_durably(ended(3)).await.unwrap();

    assert_eq!(damaged, 2);
    assert_eq!(bucket.events(), ["i-1", "1", "2", "3"]);
    assert!(bucket.verified().problems.is_empty());
}

#[tokio::test]
async fn an_object_that_is_larger_than_every_record_is_named_if_it_is_in_the_way() {
    let directory = tempfile::tempdir().unwrap();
    let bucket = Arc::new(Memory::default());
    let audit = machine(directory.path(), 1, &bucket);
    audit.announce_durably(ended(1)).await.unwrap();
    let large = || vec![b'x'; MAX_OBJECT_BYTES + 1];
    bucket.objects.lock().unwrap().insert(record_name(1), large());
    let times = [1, 2].map(|seq| (record_name(seq), Timestamp::from_millis(seq * 1000)));
    bucket.written_at.lock().unwrap().extend(times);

    let all = audit.since(Timestamp::default(), BUCKET_LIMIT, |_| true).await;
    let newer = audit.since(Timestamp::from_millis(2000), BUCKET_LIMIT, |_| true).await.unwrap().unwrap();
    bucket.objects.lock().unwrap().insert(record_name(3), large());
    let next = audit.announce_durably(ended(2)).await;

    let names = |error: &AuditError, seq: u64| error.to_string().contains(&format!("`audit/{}`", record_name(seq)));
    assert!(all.as_ref().is_err_and(|error| names(error, 1)), "{all:?}");
    assert_eq!(newer.iter().map(|record| record.seq).collect::<Vec<_>>(), [2]);
    assert!(next.as_ref().is_err_and(|error| names(error, 3)), "{next:?}");
}

#[tokio::test(start_paused = true)]
async fn a_bucket_that_does_not_answer_holds_nobody_up_for_longer_than_the_limit() {
    let directory = tempfile::tempdir().unwrap();
    let bucket = Arc::new(Memory::default());
    let audit = machine(directory.path(), 1, &bucket);
    audit.announce_durably(ended(1)).await.unwrap();
    *bucket.always.lock().unwrap() = Fate::Hangs;
    let begun = tokio::time::Instant::now();

    let error = audit.announce_durably(ended(2)).await.unwrap_err();
    let (waited, before) = (begun.elapsed(), bucket.events());
    *bucket.always.lock().unwrap() = Fate::Works;
    audit.announce_durably(ended(3)).await.unwrap();

    assert!(matches!(error, AuditError::Slow { secs: 60, waiting: 1 }), "{error}");
    assert!((BUCKET_LIMIT..BUCKET_LIMIT + Duration::from_secs(1)).contains(&waited), "{waited:?}");
    assert_eq!(before, ["i-1", "1"]);
    assert_eq!(bucket.events(), ["i-1", "1", "2", "3"]);
}

#[tokio::test]
async fn while_too_many_events_wait_only_ends_are_taken() {
    let directory = tempfile::tempdir().unwrap();
    let bucket = Arc::new(Memory::default());
    *bucket.always.lock().unwrap() = Fate::Fails;
    let audit = machine(directory.path(), 1, &bucket);
    let most = (1..100).find(|n| audit.record(long(*n)).is_err()).unwrap();

    let full = machine(directory.path(), 1, &bucket).record(ended(most)).unwrap_err();
    audit.conclude(ended(most)).unwrap();
    *bucket.always.lock().unwrap() = Fate::Works;
    audit.flush(BUCKET_LIMIT).await.unwrap();
    audit.announce_durably(ended(most + 1)).await.unwrap();

    assert!((30..40).contains(&most), "{most}");
    assert!(matches!(full, AuditError::Full { waiting, .. } if waiting == u64::from(most) - 1), "{full}");
    let events: Vec<String> = (1..=most + 1).map(|n| format!("{n:x}")).collect();
    assert_eq!(bucket.events()[1..], events);
}

/// No key can sign a record that nobody can read, so a longer event would stay the first one of the spool for ever.
#[tokio::test]
async fn an_event_that_is_too_long_for_a_record_is_not_taken_and_the_longest_one_fits() {
    let (directory, local) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let bucket = Arc::new(Memory::default());
    let audit = machine(directory.path(), 1, &bucket);
    let (longest, longer) = ("x".repeat(LONGEST - 500), "x".repeat(LONGEST));

    let refused = audit.conclude(ended_as(1, longer.clone())).unwrap_err();
    audit.announce_durably(ended_as(2, longest)).await.unwrap();
    audit.announce_durably(ended(3)).await.unwrap();
    let without_bucket = Audit::open(local.path(), author(3), None).unwrap().record(ended_as(1, longer)).unwrap_err();

    assert!(matches!(refused, AuditError::TooLong { most: LONGEST, .. }), "{refused}");
    assert!(matches!(without_bucket, AuditError::TooLong { .. }), "{without_bucket}");
    assert_eq!(bucket.events(), ["i-1", "2", "3"]);
}

#[tokio::test]
async fn a_spool_that_is_never_empty_is_written_anew_too() {
    let directory = tempfile::tempdir().unwrap();
    let bucket = Arc::new(Memory::default());
    let audit = machine(directory.path(), 1, &bucket);
    audit.record(ended(1)).unwrap();
    for n in 2..=20 {
        audit.record(long(n)).unwrap();
        // The write of the event before works, and that of this one does not.
        bucket.fates.lock().unwrap().extend([Fate::Fails, Fate::Works]);
        *bucket.always.lock().unwrap() = Fate::Fails;
        audit.flush(BUCKET_LIMIT).await.unwrap_err();
        *bucket.always.lock().unwrap() = Fate::Works;
        bucket.fates.lock().unwrap().clear();
    }
    let length = std::fs::metadata(directory.path().join("audit.spool")).unwrap().len();
    drop(audit);

    machine(directory.path(), 1, &bucket).announce_durably(ended(21)).await.unwrap();

    assert!(length < 2_000_000, "{length}");
    let events: Vec<String> = (1..=21).map(|n| format!("{n:x}")).collect();
    assert_eq!(bucket.events()[1..], events);
}

#[tokio::test(start_paused = true)]
async fn records_that_nobody_waits_for_get_into_the_bucket_by_themselves() {
    let directory = tempfile::tempdir().unwrap();
    let bucket = Arc::new(Memory::default());
    bucket.fates.lock().unwrap().extend([Fate::AnswerIsLost, Fate::Fails]);
    let audit = machine(directory.path(), 1, &bucket);
    audit.record(ended(1)).unwrap();

    let beat = Beat::default();
    let written = async {
        tokio::time::sleep(Duration::from_secs(600)).await;
        audit.record(ended(2)).unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
    };
    tokio::select! {
        error = audit.carry(&beat) => panic!("it ended: {error}"),
        () = written => {}
    }

    assert_eq!(bucket.events(), ["i-1", "1", "2"]);
}

#[tokio::test]
async fn a_machine_that_others_always_overtake_gives_up() {
    let directory = tempfile::tempdir().unwrap();
    let bucket = Arc::new(Memory::default());
    bucket.fates.lock().unwrap().extend(vec![Fate::Contended; 100]);
    let audit = machine(directory.path(), 1, &bucket);

    let error = audit.announce_durably(ended(1)).await.unwrap_err();
    audit.announce_durably(ended(2)).await.unwrap();

    assert!(matches!(error, AuditError::Contended(100)), "{error}");
    assert_eq!(bucket.events(), ["i-1", "1", "2"]);
}

#[tokio::test]
async fn a_spool_is_written_anew_when_it_is_long_and_continues() {
    let directory = tempfile::tempdir().unwrap();
    let bucket = Arc::new(Memory::default());
    let audit = machine(directory.path(), 1, &bucket);
    for n in 1..=5 {
        audit.announce_durably(long(n)).await.unwrap();
    }
    audit.announce_durably(ended(6)).await.unwrap();
    drop(audit);

    machine(directory.path(), 1, &bucket).announce_durably(ended(7)).await.unwrap();

    assert_eq!(bucket.events(), ["i-1", "1", "2", "3", "4", "5", "6", "7"]);
    assert!(std::fs::metadata(directory.path().join("audit.spool")).unwrap().len() < 1_000_000);
}

#[tokio::test]
async fn an_incomplete_line_is_dropped_and_a_foreign_one_stops_the_runner() {
    use std::io::Write as _;
    let directory = tempfile::tempdir().unwrap();
    let bucket = Arc::new(Memory::default());
    machine(directory.path(), 1, &bucket).record(ended(1)).unwrap();
    let append = |text: &[u8]| {
        let path = directory.path().join("audit.spool");
        std::fs::OpenOptions::new().append(true).open(path).unwrap().write_all(text).unwrap();
    };
    append(b"{\"entry\":{\"at\"");
    machine(directory.path(), 1, &bucket).announce_durably(ended(2)).await.unwrap();
    append(b"nonsense\n");

    let refused = Audit::open(directory.path(), author(1), Some(bucket.clone() as Arc<dyn Bucket>)).unwrap_err();

    assert_eq!(bucket.events(), ["i-1", "1", "2"]);
    assert!(refused.to_string().contains("move the file away"), "{refused}");
}

/// Checks the chain in the state directory and returns how many records it has.
fn verified_local(directory: &Path) -> u64 {
    let text = std::fs::read_to_string(directory.join("audit.jsonl")).unwrap();
    let (mut seq, mut head) = (0, Digest::of(b""));
    for line in text.lines() {
        let key = author(3).identity.public_key();
        let record: AuditRecord = Envelope::parse(line.as_bytes()).unwrap().open(&key).unwrap();
        assert_eq!((record.seq, &record.previous), (seq + 1, &head));
        (head, seq) = (Digest::of(line.as_bytes()), record.seq);
    }
    seq
}

#[test]
fn the_chain_of_a_runner_without_a_bucket_continues_after_a_restart_and_a_torn_line() {
    let directory = tempfile::tempdir().unwrap();
    let open = || Audit::open(directory.path(), author(3), None);
    let first = open().unwrap();
    first.record(ended(1)).unwrap();
    first.record(ended(2)).unwrap();
    drop(first);
    let path = directory.path().join("audit.jsonl");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.extend_from_slice(b"{\"payloadType\":\"appl");
    std::fs::write(&path, bytes).unwrap();

    open().unwrap().record(long(3)).unwrap();
    open().unwrap().record(ended(4)).unwrap();
    let count = verified_local(directory.path());
    std::fs::write(&path, "nonsense\n").unwrap();

    assert_eq!(count, 4);
    assert!(open().unwrap_err().to_string().contains("move the file away"));
}

#[tokio::test]
async fn the_latest_head_is_the_last_record_that_is_known_to_be_in_the_bucket() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let bucket = Arc::new(Memory::default());
    let audit = machine(first.path(), 1, &bucket);
    let head = audit.latest_head();
    let none = head.get();
    audit.record(ended(1)).unwrap();
    let waiting = head.get();

    audit.flush(BUCKET_LIMIT).await.unwrap();
    machine(second.path(), 2, &bucket).announce_durably(ended(2)).await.unwrap();
    let own = head.get().unwrap();
    let restarted = machine(first.path(), 1, &bucket).latest_head().get();
    audit.announce_durably(ended(3)).await.unwrap();

    let digest = |seq: u64| Digest::of(&bucket.objects.lock().unwrap()[&record_name(seq)]);
    assert_eq!((none, waiting), (None, None));
    assert_eq!((own.seq, &own.digest), (2, &digest(2)));
    assert_eq!(restarted, Some(own));
    let after = head.get().unwrap();
    assert_eq!((after.seq, after.digest), (5, digest(5)));
}

#[tokio::test]
async fn a_long_chain_is_read_many_records_at_a_time_and_only_as_far_as_needed() {
    let directory = tempfile::tempdir().unwrap();
    let bucket = Arc::new(Memory::default());
    let audit = machine(directory.path(), 1, &bucket);
    for n in 1..=39 {
        audit.record(ended(n)).unwrap();
    }
    audit.flush(BUCKET_LIMIT).await.unwrap();
    let one = audit.since(Timestamp::default(), BUCKET_LIMIT, |record| record.seq == 20).await.unwrap().unwrap();
    // A record that is older than everything that is asked for.
    bucket.objects.lock().unwrap().insert(record_name(1), b"no record".to_vec());
    let all = audit.since(Timestamp::default(), BUCKET_LIMIT, |_| true).await;

    let before = bucket.calls.load(Ordering::Relaxed);
    let newest = audit.since(Timestamp::from_millis(u64::MAX), BUCKET_LIMIT, |_| true).await.unwrap().unwrap();

    assert_eq!(one.iter().map(|record| record.seq).collect::<Vec<_>>(), [20]);
    assert!(matches!(all, Err(AuditError::Unreadable { seq: 1 })), "{all:?}");
    assert_eq!(bucket.most_reads.load(Ordering::Relaxed), 16);
    assert_eq!(newest, []);
    assert!(bucket.calls.load(Ordering::Relaxed) - before <= 18);
}

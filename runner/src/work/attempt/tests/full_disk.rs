//! A runner whose disk is full: its journal, its reports and its audit trail lose nothing that they took, and an order
//! is done at most once. The disk is a file system in memory of 256 KiB.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::AtomicU32;

use freehold_skips::have;

use super::world::Stage;
use super::*;
use crate::record::audit::memory::{Memory, author};
use crate::record::audit::{Audit, BUCKET_LIMIT};
use crate::wire::spool::{Class, Spool};
use crate::work::journal::Journal;

/// The size of the disk, in bytes.
const DISK: u64 = 256 * 1024;
/// The size in which the disk gives space to files, in bytes.
const PAGE: u64 = 4096;

#[test]
fn a_full_disk_costs_nothing_that_was_recorded_and_no_order_is_done_twice() {
    if !have(&["bwrap"]) {
        return;
    }
    let disk = tempfile::tempdir().unwrap();

    let ended = std::process::Command::new("bwrap")
        .args(["--dev-bind", "/", "/", "--size", &DISK.to_string(), "--tmpfs"])
        .arg(disk.path())
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "work::attempt::tests::full_disk::a_runner_on_a_small_disk", "--nocapture"])
        .env("FREEHOLD_TEST_SMALL_DISK", disk.path())
        .output()
        .unwrap();

    let output = [ended.stdout, ended.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    // Without a test of this name, the program succeeds too.
    assert!(ended.status.success() && output.contains("1 passed"), "{output}");
}

/// Not a test by itself, and nothing without its variable: the part of the test above that works on the small disk.
#[tokio::test(start_paused = true)]
async fn a_runner_on_a_small_disk() {
    let Ok(disk) = std::env::var("FREEHOLD_TEST_SMALL_DISK") else { return };
    let disk = Path::new(&disk);
    for left in 0..4 {
        the_journal(disk, left);
        the_reports(disk, left);
        the_audit_trail_on_the_disk(disk, left);
        the_events_for_the_bucket(disk, left).await;
    }
    for left in 0..7 {
        for is_tight in [false, true] {
            for one in [action(), order(1, 7)] {
                an_order(disk, left, is_tight, &one).await;
            }
        }
    }
}

/// Fills the disk but for this number of pages. The disk has space again when the returned file is removed.
fn fill(disk: &Path, left: u64) -> PathBuf {
    let path = disk.join("filler");
    let mut file = File::create(&path).unwrap();
    let page = [0; PAGE as usize];
    let full = loop {
        if let Err(error) = file.write_all(&page) {
            break error;
        }
    };
    assert_eq!(full.kind(), ErrorKind::StorageFull);
    let pages = file.metadata().unwrap().len() / PAGE;
    file.set_len((pages - left) * PAGE).unwrap();
    path
}

/// Returns whether the cause of an error is the full disk.
fn is_full(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == ErrorKind::StorageFull) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Calls `take` with 1, 2, 3 and so on, until it fails because the disk is full. Returns the last number that it took.
fn until_full<E: Error + 'static>(mut take: impl FnMut(u32) -> Result<(), E>) -> u32 {
    for next in 1.. {
        if let Err(error) = take(next) {
            assert!(is_full(&error), "{error:?}");
            return next - 1;
        }
    }
    unreachable!("the disk is small")
}

fn the_journal(disk: &Path, left: u64) {
    let state = tempfile::tempdir_in(disk).unwrap();
    let started = |n| Record::Started { job: job_id(n), fence: Fence { dispatch: 1, receive: 1 } };
    let mut journal = Journal::open(state.path()).unwrap();
    let filler = fill(disk, left);

    let taken = until_full(|n| journal.append(&[started(n)]));
    let full = Journal::open(state.path()).unwrap();
    assert!(taken > 0);
    assert_eq!(full.state(), journal.state(), "{left} pages");

    std::fs::remove_file(filler).unwrap();
    journal.append(&[started(taken + 1)]).unwrap();
    assert_eq!(Journal::open(state.path()).unwrap().state(), journal.state(), "{left} pages");
}

fn the_reports(disk: &Path, left: u64) {
    let state = tempfile::tempdir_in(disk).unwrap();
    // More than a page, so that a part of one can be on the disk.
    let report = |n: u32| format!("{n:05000}");
    let all = |taken: u32| (1..=taken).map(report).collect::<BTreeSet<_>>();
    let kept = || {
        let files = std::fs::read_dir(state.path().join("spool")).unwrap().map(|entry| entry.unwrap().path());
        files.map(|path| std::fs::read_to_string(path).unwrap()).collect::<BTreeSet<_>>()
    };
    let spool = Spool::open(state.path()).unwrap();
    let filler = fill(disk, left);

    let taken = until_full(|n| spool.add(&report(n), Class::Keep, true).map(drop));
    assert_eq!(kept(), all(taken), "{left} pages");

    std::fs::remove_file(filler).unwrap();
    spool.add(&report(taken + 1), Class::Keep, true).unwrap();
    let reopened = Spool::open(state.path()).unwrap();
    assert_eq!(kept(), all(taken + 1), "{left} pages");
    assert_eq!((spool.len(), reopened.len()), (taken as usize + 1, taken as usize + 1));
}

fn ended(n: u32) -> AuditEvent {
    AuditEvent::Ended {
        job: job_id(n),
        fence: Fence { dispatch: 1, receive: 1 },
        result: "succeeded".into(),
        log: None,
        order: None,
        sent_at: None,
    }
}

/// Returns the events of the trail in a state directory, whose chain must be whole.
fn recorded(state: &Path) -> Vec<AuditEvent> {
    let text = std::fs::read_to_string(state.join("audit.jsonl")).unwrap();
    let mut head = Digest::of(b"");
    let events = text.lines().zip(1..).map(|(line, seq)| {
        let record: AuditRecord = Envelope::parse(line.as_bytes()).unwrap().peek().unwrap();
        assert_eq!((record.seq, &record.previous), (seq, &head));
        head = Digest::of(line.as_bytes());
        record.event
    });
    events.collect()
}

fn the_audit_trail_on_the_disk(disk: &Path, left: u64) {
    let state = tempfile::tempdir_in(disk).unwrap();
    let audit = Audit::open(state.path(), author(3), None).unwrap();
    let filler = fill(disk, left);

    let taken = until_full(|n| audit.record(ended(n)));
    assert_eq!(recorded(state.path()), (1..=taken).map(ended).collect::<Vec<_>>(), "{left} pages");

    std::fs::remove_file(filler).unwrap();
    audit.record(ended(taken + 1)).unwrap();
    drop(audit);
    Audit::open(state.path(), author(3), None).unwrap().record(ended(taken + 2)).unwrap();
    assert_eq!(recorded(state.path()), (1..=taken + 2).map(ended).collect::<Vec<_>>(), "{left} pages");
}

async fn the_events_for_the_bucket(disk: &Path, left: u64) {
    let state = tempfile::tempdir_in(disk).unwrap();
    let bucket = Arc::new(Memory::default());
    let audit = Audit::open(state.path(), author(3), Some(bucket.clone())).unwrap();
    let filler = fill(disk, left);

    let taken = until_full(|n| audit.record(ended(n)));
    let placed = audit.flush(BUCKET_LIMIT).await;
    assert!(
        taken == 0 || placed.is_err_and(|error| is_full(&error)),
        "{left} pages: a record is stored before it is placed"
    );

    std::fs::remove_file(filler).unwrap();
    drop(audit);
    let audit = Audit::open(state.path(), author(3), Some(bucket.clone())).unwrap();
    audit.record(ended(taken + 1)).unwrap();
    audit.flush(BUCKET_LIMIT).await.unwrap();
    let jobs = (1..=taken + 1).map(|n| format!("{n:x}"));
    assert_eq!(bucket.events(), std::iter::once("i-3".to_owned()).chain(jobs).collect::<Vec<_>>(), "{left} pages");
}

/// An order comes while the disk is full, and five minutes later the disk has space again. With `is_tight`, the journal
/// needs a page for its next record.
async fn an_order(disk: &Path, left: u64, is_tight: bool, one: &Order) {
    let what = format!("{left} pages, tight: {is_tight}, {:?}", one.redelivery);
    let stage = Stage { play: Mutex::new(Play::Succeed), begun: AtomicU32::new(0), stopped: Mutex::default() };
    let state = tempfile::tempdir_in(disk).unwrap();
    let world = World::over(Arc::default(), Arc::new(stage), Arc::default(), state);
    world.agent.enrolled.set();
    if is_tight {
        fill_page(&world);
    }
    world.queue.send(sealed(one));
    let filler = fill(disk, left);
    let end = Instant::now() + Duration::from_secs(5 * 60);
    world.until("the end of five minutes", |_| Instant::now() > end).await;

    std::fs::remove_file(filler).unwrap();
    world.until_deleted().await;

    let words = world.sent();
    let ends: BTreeSet<&str> = words.iter().filter_map(|word| Some(word.split_once(' ')?.1)).collect();
    let ends: Vec<&str> = ends.into_iter().filter(|word| *word != "started").collect();
    let is_right = match world.begun() {
        0 => ends == ["failed"] || ends == ["interrupted"],
        1 => ends == ["succeeded"],
        _ => false,
    };
    assert!(is_right, "{what}: begun {} times, {words:?}", world.begun());
    let events = recorded(world.state.path());
    let has_start = events.iter().any(|event| matches!(event, AuditEvent::Started { .. }));
    assert!(has_start || world.begun() == 0, "{what}: {events:?}");
    let reopened = Journal::open(world.state.path()).unwrap();
    assert_eq!(reopened.state(), world.agent.journal().state(), "{what}");
}

/// Fills the last page of the journal.
fn fill_page(world: &World) {
    let path = world.state.path().join("journal.jsonl");
    for n in 100.. {
        world.agent.journal().append(&[Record::Cancelled { job: job_id(n), dispatch: 1, receive: None }]).unwrap();
        if PAGE - std::fs::metadata(&path).unwrap().len() % PAGE < 100 {
            return;
        }
    }
}

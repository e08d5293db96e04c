//! Writes while the kernel refuses to sync: what must survive a power failure must not count as written then. So a sync that
//! is missing in the code lets a test fail, which no crash of a process can do.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use freehold_protocol::audit::{AuditEvent, record_number};
use freehold_protocol::report::Fence;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};

use crate::files;
use crate::keys::runner_key::Identity;
use crate::record::audit::bucket::Bucket;
use crate::record::audit::memory::{Memory, author};
use crate::record::audit::{Audit, AuditError, BUCKET_LIMIT};
use crate::testing::job_id;
use crate::wire::spool::{Class, Spool};
use crate::work::journal::{Journal, Record};

const FENCE: Fence = Fence { dispatch: 1, receive: 1 };

/// The system calls that fail.
#[derive(Debug, Clone, Copy)]
enum Unsynced {
    /// Those that make the bytes of a file durable.
    Files,
    /// Those that make the entries of a directory durable.
    Directories,
}

/// Runs `work` on a thread of its own, for which these system calls fail.
fn with<T: Send>(unsynced: Unsynced, work: impl FnOnce() -> T + Send) -> T {
    let refused = match unsynced {
        Unsynced::Files => libc::SYS_fdatasync,
        Unsynced::Directories => libc::SYS_fsync,
    };
    let on_thread = || {
        let rules = BTreeMap::from([(refused, Vec::new())]);
        let architecture = TargetArch::try_from(std::env::consts::ARCH).unwrap();
        let error = SeccompAction::Errno(libc::EIO.unsigned_abs());
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, error, architecture).unwrap();
        let program: BpfProgram = filter.try_into().unwrap();
        seccompiler::apply_filter(&program).unwrap();
        work()
    };
    std::thread::scope(|scope| scope.spawn(on_thread).join().unwrap())
}

/// A directory with a directory for each writer.
struct Top(tempfile::TempDir);

impl Top {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn place(&self, name: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    }
}

fn open(directory: &Path, bucket: &Arc<Memory>) -> Result<Audit, AuditError> {
    Audit::open(directory, author(1), Some(bucket.clone() as Arc<dyn Bucket>))
}

/// Returns an event with a line of this length at least.
fn event(length: usize) -> AuditEvent {
    AuditEvent::Ended {
        job: job_id(1),
        fence: FENCE,
        result: "x".repeat(length),
        log: None,
        order: None,
        sent_at: None,
    }
}

fn flush(audit: &Audit) -> Result<(), AuditError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(audit.flush(BUCKET_LIMIT))
}

/// Returns the writes that succeeded.
fn succeeded<const N: usize>(writes: [(&'static str, bool); N]) -> Vec<&'static str> {
    writes.into_iter().filter(|(_, is_written)| *is_written).map(|(what, _)| what).collect()
}

#[test]
fn nothing_durable_is_written_before_its_file_is_synced() {
    let (top, bucket) = (Top::new(), Arc::new(Memory::default()));
    let mut journal = Journal::open(&top.place("journal")).unwrap();
    let spool = Spool::open(&top.place("spool")).unwrap();
    let (in_bucket, local) =
        (open(&top.place("bucket"), &bucket).unwrap(), Audit::open(&top.place("local"), author(1), None).unwrap());

    let written = with(Unsynced::Files, || {
        succeeded([
            ("a small file", files::write_atomic(&top.place("a").join("file"), b"x").is_ok()),
            ("a replaced file", files::replace(&top.place("a").join("file"), b"x").is_ok()),
            ("a record of the journal", journal.append(&[Record::Started { job: job_id(1), fence: FENCE }]).is_ok()),
            ("a new journal", Journal::open(&top.place("b")).is_ok()),
            ("a report", spool.add("{}", Class::Keep, true).is_ok()),
            ("an event", in_bucket.record(event(1)).is_ok()),
            ("the end of an event", in_bucket.conclude(event(1)).is_ok()),
            ("a record without a bucket", local.record(event(1)).is_ok()),
            ("a key", Identity::replace(&top.place("c")).is_ok()),
        ])
    });

    assert_eq!(written, Vec::<&str>::new());
}

#[test]
fn no_new_file_counts_as_written_before_its_directory_is_synced() {
    let (top, bucket) = (Top::new(), Arc::new(Memory::default()));
    let spool = Spool::open(&top.place("spool")).unwrap();
    let old = top.place("old");
    std::fs::write(old.join("journal.jsonl"), "{\"format\":1}\n").unwrap();

    let written = with(Unsynced::Directories, || {
        succeeded([
            ("a small file", files::write_atomic(&top.place("a").join("file"), b"x").is_ok()),
            ("a directory", files::sync_parent(&top.place("a").join("file")).is_ok()),
            ("a new journal", Journal::open(&top.place("b")).is_ok()),
            ("a journal that is written again", Journal::open(&old).is_ok()),
            ("a report", spool.add("{}", Class::Keep, true).is_ok()),
            ("a new chain", open(&top.place("c"), &bucket).is_ok()),
            ("a new chain without a bucket", Audit::open(&top.place("d"), author(1), None).is_ok()),
            ("a key", Identity::replace(&top.place("e")).is_ok()),
        ])
    });

    assert_eq!(written, Vec::<&str>::new());
}

#[test]
fn no_record_is_in_the_bucket_before_the_disk_has_it() {
    let (top, bucket) = (Top::new(), Arc::new(Memory::default()));
    let audit = open(&top.place("bucket"), &bucket).unwrap();

    let (announced, flushed) = with(Unsynced::Files, || (audit.announce(event(1)), flush(&audit)));

    assert!(announced.is_ok(), "an announced event is synced with its record: {announced:?}");
    assert!(matches!(flushed, Err(AuditError::Io { .. })), "{flushed:?}");
    assert!(!bucket.objects.lock().unwrap().keys().any(|name| record_number(name).is_some()));
}

#[test]
fn a_spool_that_is_written_again_is_not_used_before_its_directory_is_synced() {
    let (top, bucket) = (Top::new(), Arc::new(Memory::default()));
    let audit = open(&top.place("bucket"), &bucket).unwrap();
    for _ in 0..5 {
        audit.record(event(250_000)).unwrap();
    }

    let flushed = with(Unsynced::Directories, || flush(&audit));

    assert!(matches!(flushed, Err(AuditError::Io { .. })), "{flushed:?}");
    flush(&audit).unwrap();
}

#[test]
fn what_may_be_lost_is_written_without_a_sync() {
    let top = Top::new();
    let spool = Spool::open(&top.place("spool")).unwrap();
    let add = || spool.add("{}", Class::Log, false).is_ok();

    let written = [Unsynced::Files, Unsynced::Directories].map(|unsynced| with(unsynced, add));

    assert_eq!(written, [true, true]);
}

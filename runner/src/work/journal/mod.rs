//! The journal on disk: lines of JSON. A record is appended and synced before its event happens. A long file is
//! compacted.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

#[cfg(test)]
mod golden_tests;
#[cfg(test)]
mod put_back_tests;
pub mod state;

use crate::files;
pub use state::{Accepted, Decision, Record, State};

const FILE: &str = "journal.jsonl";
/// The format that this version writes, and the newest that it reads. Format 2 added [`Record::PutBack`].
const FORMAT: u32 = 2;
/// The number of lines after which the file is replaced by a shorter one with the same state.
const COMPACT_AFTER: usize = 5_000;

/// The journal of one state directory.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    /// The number of bytes in complete lines.
    length: u64,
    lines: usize,
    state: State,
    /// Whether the file may have an incomplete line after `length`.
    is_torn: bool,
}

/// The reason why the journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file cannot be read or written.
    #[error("cannot use the journal `{path}`; check permissions and free space of `state_dir`")]
    Io { path: PathBuf, source: std::io::Error },
    /// A line before the last one is not a record.
    #[error(
        "line {line} of the journal `{path}` is damaged; check that no job of this install is running, then move the \
         file away and start the runner again"
    )]
    Damaged { path: PathBuf, line: usize },
    /// A later version wrote the journal.
    #[error(
        "the journal `{path}` has format {format}, this version reads up to {FORMAT}; start the newer runner again"
    )]
    TooNew { path: PathBuf, format: u32 },
}

#[derive(Serialize, Deserialize)]
struct Header {
    format: u32,
}

impl Journal {
    /// Opens the journal in `state_dir`, or creates it. Drops an incomplete last line, which a crash left: its event
    /// has not happened. A file of an older format is written again, so that an older version does not take new records
    /// for damage.
    ///
    /// # Errors
    /// A [`JournalError`].
    pub fn open(state_dir: &Path) -> Result<Self, JournalError> {
        let path = state_dir.join(FILE);
        let io = |source| JournalError::Io { path: path.clone(), source };
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(io(error)),
        };
        let Replayed { state, format, lines, length } = replay(&path, &bytes)?;
        let mut options = OpenOptions::new();
        let file = options.create(true).append(true).mode(0o600).open(&path).map_err(io)?;
        file.set_len(length).map_err(io)?;
        let mut journal = Self { path, file, length, lines, state, is_torn: false };
        if journal.length == 0 {
            let header = line(&Header { format: FORMAT }).map_err(|source| journal.io(source))?;
            journal.write(&header)?;
            files::sync_parent(&journal.path).map_err(|source| journal.io(source))?;
        } else if format < FORMAT {
            journal.compact()?;
        }
        Ok(journal)
    }

    /// Returns the state that the records describe.
    pub const fn state(&self) -> &State {
        &self.state
    }

    /// Appends `records` and syncs the file once. On success, all are durable and applied. On failure, none is applied.
    ///
    /// # Errors
    /// [`JournalError::Io`], for example on a full disk.
    pub fn append(&mut self, records: &[Record]) -> Result<(), JournalError> {
        let mut bytes = Vec::new();
        for record in records {
            bytes.extend(line(record).map_err(|source| self.io(source))?);
        }
        self.write(&bytes)?;
        self.lines += records.len();
        for record in records {
            self.state.apply(record.clone());
        }
        Ok(())
    }

    /// Replaces a long file by a shorter one with the same state. Call it when no order waits.
    ///
    /// # Errors
    /// [`JournalError::Io`]. The old file is then unchanged.
    pub fn compact_if_long(&mut self) -> Result<(), JournalError> {
        if self.lines < COMPACT_AFTER { Ok(()) } else { self.compact() }
    }

    fn compact(&mut self) -> Result<(), JournalError> {
        let records = self.state.to_records();
        let mut bytes = line(&Header { format: FORMAT }).map_err(|source| self.io(source))?;
        let mut state = State::default();
        for record in &records {
            bytes.extend(line(record).map_err(|source| self.io(source))?);
            state.apply(record.clone());
        }
        files::write_atomic(&self.path, &bytes).map_err(|source| self.io(source))?;
        self.file = OpenOptions::new().append(true).open(&self.path).map_err(|source| self.io(source))?;
        self.length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.lines = records.len();
        self.state = state;
        self.is_torn = false;
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), JournalError> {
        if self.is_torn {
            self.file.set_len(self.length).map_err(|source| self.io(source))?;
            self.is_torn = false;
        }
        let written = self.file.write_all(bytes).and_then(|()| self.file.sync_data());
        if let Err(source) = written {
            // Cuts off an incomplete line. If this fails too, it is cut off before the next write, or by the next open.
            self.is_torn = self.file.set_len(self.length).is_err();
            return Err(self.io(source));
        }
        self.length += u64::try_from(bytes.len()).unwrap_or(0);
        Ok(())
    }

    fn io(&self, source: impl Into<std::io::Error>) -> JournalError {
        JournalError::Io { path: self.path.clone(), source: source.into() }
    }
}

/// The contents of a file.
#[derive(Default)]
struct Replayed {
    state: State,
    format: u32,
    /// The number of complete lines.
    lines: usize,
    /// The number of bytes in complete lines.
    length: u64,
}

fn replay(path: &Path, bytes: &[u8]) -> Result<Replayed, JournalError> {
    let mut replayed = Replayed::default();
    let mut pieces = bytes.split_inclusive(|byte| *byte == b'\n').peekable();
    while let Some(piece) = pieces.next() {
        if piece.last() != Some(&b'\n') {
            break;
        }
        match read_line(path, piece, &mut replayed) {
            Err(JournalError::Damaged { .. }) if pieces.peek().is_none() => break,
            other => other?,
        }
        replayed.lines += 1;
        replayed.length += u64::try_from(piece.len()).unwrap_or(0);
    }
    Ok(replayed)
}

fn read_line(path: &Path, piece: &[u8], replayed: &mut Replayed) -> Result<(), JournalError> {
    let line = replayed.lines + 1;
    let damaged = |_| JournalError::Damaged { path: path.to_owned(), line };
    if line > 1 {
        replayed.state.apply(serde_json::from_slice(piece).map_err(damaged)?);
        return Ok(());
    }
    let header: Header = serde_json::from_slice(piece).map_err(damaged)?;
    if header.format > FORMAT {
        return Err(JournalError::TooNew { path: path.to_owned(), format: header.format });
    }
    replayed.format = header.format;
    Ok(())
}

fn line<T: Serialize>(value: &T) -> std::io::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(value)?;
    bytes.push(b'\n');
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use freehold_protocol::Timestamp;
    use freehold_protocol::report::{Fence, Outcome};
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{job_id, order};

    fn records() -> impl Strategy<Value = Vec<Record>> {
        let record = (0..5_u8, 0..6_u32, 1..4_u32, 1..3_u32).prop_map(|(kind, job, dispatch, receive)| {
            let fence = Fence { dispatch, receive };
            match kind {
                0 => Record::accepted(&order(job, u64::from(job))),
                1 => Record::Started { job: job_id(job), fence },
                2 => Record::Finished { job: job_id(job), fence, outcome: Outcome::Cancelled },
                3 => Record::PutBack { job: job_id(job), fence, sent_at: Some(sent_at(job)) },
                _ => Record::Cancelled { job: job_id(job), dispatch, receive: None },
            }
        });
        prop::collection::vec(record, 0..20)
    }

    fn sent_at(job: u32) -> Timestamp {
        Timestamp::from_millis(u64::from(job))
    }

    fn state_of(records: &[Record]) -> State {
        let mut state = State::default();
        for record in records {
            state.apply(record.clone());
        }
        state
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn a_crash_at_any_byte_leaves_a_state_that_was_true_once(records in records(), cut in 0.0..1.0_f64) {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join(FILE);
            Journal::open(directory.path()).unwrap().append(&records).unwrap();
            let bytes = std::fs::read(&path).unwrap();
            let at = (bytes.len() as f64 * cut) as usize;
            std::fs::write(&path, &bytes[..at]).unwrap();

            let whole = bytes[..at].iter().filter(|byte| **byte == b'\n').count().saturating_sub(1);
            let mut journal = Journal::open(directory.path()).unwrap();

            prop_assert_eq!(journal.state(), &state_of(&records[..whole]));
            journal.append(&records[whole..]).unwrap();
            drop(journal);
            let reopened = Journal::open(directory.path()).unwrap();
            prop_assert_eq!(reopened.state(), &state_of(&records));
        }

        #[test]
        fn compaction_changes_no_decision(records in records(), job in 0..6_u32, dispatch in 1..4_u32, receive in 1..3_u32) {
            let directory = tempfile::tempdir().unwrap();
            let mut journal = Journal::open(directory.path()).unwrap();
            journal.append(&records).unwrap();
            let mut asked = order(job, u64::from(job));
            asked.dispatch = dispatch;
            let sent_at = Some(sent_at(job));
            let before = journal.state().decide(&asked, receive, sent_at);

            journal.compact().unwrap();
            drop(journal);

            let reopened = Journal::open(directory.path()).unwrap();
            prop_assert_eq!(reopened.state().decide(&asked, receive, sent_at), before);
        }
    }

    #[test]
    fn an_incomplete_line_that_could_not_be_cut_off_is_cut_off_before_the_next_record() {
        let directory = tempfile::tempdir().unwrap();
        let fence = Fence { dispatch: 1, receive: 1 };
        let records = [1, 2].map(|job| Record::Started { job: job_id(job), fence });
        let mut journal = Journal::open(directory.path()).unwrap();
        journal.append(&records[..1]).unwrap();
        // As after a write that failed in the middle, on a disk that did not shorten the file either.
        journal.file.write_all(b"{\"record\":\"sta").unwrap();
        journal.is_torn = true;

        journal.append(&records[1..]).unwrap();
        drop(journal);

        assert_eq!(Journal::open(directory.path()).unwrap().state(), &state_of(&records));
    }

    #[test]
    fn damage_before_the_last_line_is_not_passed_over() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(FILE), "{\"format\":1}\nnonsense\n{\"record\":\"x\"}\n").unwrap();

        let error = Journal::open(directory.path()).unwrap_err();

        assert!(error.to_string().starts_with("line 2 "), "{error}");
    }

    #[test]
    fn a_journal_of_format_1_is_read_and_becomes_one_that_its_version_does_not_take_for_damaged() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE);
        let started = Record::Started { job: job_id(1), fence: Fence { dispatch: 1, receive: 1 } };
        let old = [b"{\"format\":1}\n".to_vec(), line(&started).unwrap()].concat();
        std::fs::write(&path, old).unwrap();

        let mut journal = Journal::open(directory.path()).unwrap();
        let seen = journal.state().decide(&order(1, 7), 2, None);
        let fence = Fence { dispatch: 1, receive: 1 };
        journal.append(&[Record::PutBack { job: job_id(2), fence, sent_at: None }]).unwrap();
        drop(journal);

        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(seen, Decision::Resume);
        assert!(text.starts_with("{\"format\":2}\n"), "{text}");
        assert_eq!((text.lines().count(), Journal::open(directory.path()).unwrap().lines), (3, 3));
    }

    #[test]
    fn a_journal_of_a_newer_version_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(FILE), "{\"format\":3}\n").unwrap();

        let error = Journal::open(directory.path()).unwrap_err();

        assert!(error.to_string().contains("start the newer runner again"), "{error}");
    }
}

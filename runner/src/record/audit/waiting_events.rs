//! The events that are not in the customer's bucket yet, in a file of the state directory. A record gets its number and
//! its signature only just before it is written: another machine may have written to the chain meanwhile.
//!
//! Each line of the file is one [`Line`]. Replaying the lines gives the state after a crash.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use freehold_protocol::audit::{AuditEvent, AuditRecord, ChainHead, NewerEvent};
use freehold_protocol::{Digest, Envelope, EnvelopeError, KeyId, Timestamp};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::error::AuditError;
use crate::files;

const FILE: &str = "audit.spool";
/// The length, in bytes, from which the file is written again without the lines that are no longer needed, if these are
/// at least half of it.
const COMPACT: u64 = 1024 * 1024;
/// The maximum length of the lines of all events that wait, in bytes: about 25,000 events. They are in memory too.
const MOST: u64 = 8 * 1024 * 1024;

/// The events that the spool takes when it is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    /// A full spool refuses the event.
    Limited,
    /// A full spool takes the event, because it records the end of something whose start an earlier event recorded.
    Always,
}

/// The end of the chain as far as this machine knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) seq: u64,
    pub(super) digest: Digest,
}

/// An event that waits for its record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) at: Timestamp,
    #[serde(deserialize_with = "whole_event")]
    pub(super) event: AuditEvent,
}

/// Reads an event in such a way that its record has all that was written. A runner of a newer version, which was put
/// back, may have left an event with fields that this version does not know.
fn whole_event<'de, D: Deserializer<'de>>(deserializer: D) -> Result<AuditEvent, D::Error> {
    let written = Value::deserialize(deserializer)?;
    let event = AuditEvent::deserialize(&written).map_err(D::Error::custom)?;
    if serde_json::to_value(&event).is_ok_and(|known| known == written) {
        return Ok(event);
    }
    NewerEvent::deserialize(written).map(AuditEvent::Newer).map_err(D::Error::custom)
}

/// An event that waits, with the length of its line in the file.
#[derive(Debug)]
struct Waiting {
    entry: Entry,
    length: u64,
}

/// A signed record that may be in the bucket. It stays until the bucket has an object with its number: a write whose
/// response was lost may still reach the bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trying {
    pub(super) seq: u64,
    pub(super) record: String,
    runner: KeyId,
    /// Whether this is the record by which its key joins the chain. Otherwise this is the record of the first entry.
    joins: bool,
}

impl Trying {
    fn of(record: String, joins: bool) -> Result<Self, EnvelopeError> {
        let AuditRecord { seq, runner, .. } = Envelope::parse(record.as_bytes())?.peek()?;
        Ok(Self { seq, record, runner, joins })
    }

    fn head(&self) -> Head {
        Head { seq: self.seq, digest: Digest::of(self.record.as_bytes()) }
    }
}

/// One line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "one line is in memory at a time, and a box would save nothing")]
pub(super) enum Line {
    Entry(Entry),
    /// This record is about to be written into the bucket.
    Trying {
        record: String,
        joins: bool,
    },
    /// The bucket has the record that was tried.
    Placed,
    /// The chain ends with a record that this machine has not written, so a record that was tried has lost its number.
    Head(Head),
    /// The key whose records are in the chain. A file that was written again from the start begins with this line and
    /// [`Line::Head`].
    Joined(KeyId),
}

/// The state that the lines describe.
#[derive(Debug, Default)]
struct State {
    head: Option<Head>,
    joined: Option<KeyId>,
    /// Another machine wrote to the chain after this one had joined it.
    has_others: bool,
    entries: VecDeque<Waiting>,
    /// The length of the lines of all entries.
    waiting: u64,
    trying: Option<Trying>,
}

impl State {
    /// Applies a line of this length.
    fn apply(&mut self, line: Line, length: u64) -> Result<(), EnvelopeError> {
        match line {
            Line::Entry(entry) => {
                self.entries.push_back(Waiting { entry, length });
                self.waiting += length;
            }
            Line::Trying { record, joins } => {
                self.trying = Some(Trying::of(record, joins)?);
            }
            Line::Placed => {
                if let Some(trying) = self.trying.take() {
                    self.head = Some(trying.head());
                    if trying.joins {
                        self.joined = Some(trying.runner);
                    } else if let Some(first) = self.entries.pop_front() {
                        self.waiting -= first.length;
                    }
                }
            }
            Line::Head(head) => {
                // Without a known end, this is the end from which the machine begins, or the first line of a shortened file.
                self.has_others |= self.joined.is_some() && self.head.is_some();
                self.head = Some(head);
                self.trying = None;
            }
            Line::Joined(key) => self.joined = Some(key),
        }
        Ok(())
    }
}

/// The spool of one state directory.
#[derive(Debug)]
pub(super) struct Spool {
    path: PathBuf,
    file: File,
    length: u64,
    /// Whether the file may have bytes after `length`, of a line that was not written whole.
    is_torn: bool,
    state: State,
    /// The number of entries since the start, which counts those of earlier processes too.
    added: u64,
}

impl Spool {
    /// Opens the spool in `state_dir`. Drops an incomplete last line, which a crash left.
    pub(super) fn open(state_dir: &Path) -> Result<Self, AuditError> {
        let path = state_dir.join(FILE);
        let io = |source| AuditError::Io { path: path.clone(), source };
        let mut bytes = Vec::new();
        let mut file = open_file(&path).map_err(io)?;
        file.read_to_end(&mut bytes).map_err(io)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let length = length_of(bytes.get(..whole).unwrap_or_default());
        if whole < bytes.len() {
            file.set_len(length).map_err(io)?;
        }
        files::sync_parent(&path).map_err(io)?;
        let mut state = State::default();
        for line in bytes.get(..whole).unwrap_or_default().split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
        {
            let damaged = || AuditError::Damaged { path: path.clone() };
            let length = length_of(line) + 1;
            let line = serde_json::from_slice(line).map_err(|_| damaged())?;
            state.apply(line, length).map_err(|_| damaged())?;
        }
        let added = u64::try_from(state.entries.len()).unwrap_or(u64::MAX);
        Ok(Self { path, file, length, is_torn: false, state, added })
    }

    pub(super) fn head(&self) -> Option<&Head> {
        self.state.head.as_ref()
    }

    /// Returns the last record that this machine knows to be in the bucket.
    pub(super) fn last_record(&self) -> Option<ChainHead> {
        let head = self.state.head.as_ref().filter(|head| head.seq > 0)?;
        Some(ChainHead { seq: head.seq, digest: head.digest.clone() })
    }

    /// Returns the key with which this machine last joined the chain.
    pub(super) fn joined(&self) -> Option<&KeyId> {
        self.state.joined.as_ref()
    }

    /// Returns whether another machine wrote to the chain after this one had joined it.
    pub(super) const fn has_others(&self) -> bool {
        self.state.has_others
    }

    pub(super) fn first(&self) -> Option<&Entry> {
        self.state.entries.front().map(|first| &first.entry)
    }

    pub(super) fn trying(&self) -> Option<&Trying> {
        self.state.trying.as_ref()
    }

    /// Returns the number of the last entry.
    pub(super) const fn added(&self) -> u64 {
        self.added
    }

    /// Returns how many of the entries that [`Spool::added`] counts already have a record in the bucket.
    pub(super) fn placed(&self) -> u64 {
        self.added.saturating_sub(u64::try_from(self.state.entries.len()).unwrap_or(u64::MAX))
    }

    /// Adds an entry; if not `durably`, the next durable write to this file makes it durable.
    pub(super) fn add(&mut self, entry: Entry, room: Room, durably: bool) -> Result<(), AuditError> {
        if room == Room::Limited && self.state.waiting >= MOST {
            return Err(AuditError::Full { path: self.path.clone(), waiting: self.added - self.placed() });
        }
        self.write(Line::Entry(entry), durably)?;
        self.added += 1;
        Ok(())
    }

    /// Stores durably that `record` is about to be written into the bucket, and returns it.
    pub(super) fn tries(&mut self, record: String, joins: bool) -> Result<Trying, AuditError> {
        let trying = Trying::of(record.clone(), joins)?;
        self.write(Line::Trying { record, joins }, true)?;
        Ok(trying)
    }

    /// Stores that the bucket has the record that was tried. If a crash loses this line, the record is tried again.
    pub(super) fn succeeded(&mut self) -> Result<(), AuditError> {
        self.write(Line::Placed, false)?;
        self.compact_if_long()
    }

    /// Stores that the chain ends with `head`, which this machine has not written.
    pub(super) fn continues_after(&mut self, head: Head) -> Result<(), AuditError> {
        self.write(Line::Head(head), false)
    }

    fn write(&mut self, line: Line, durably: bool) -> Result<(), AuditError> {
        let mut bytes = serde_json::to_vec(&line).map_err(|error| self.io(error.into()))?;
        bytes.push(b'\n');
        self.cut_torn_line()?;
        let written = self.file.write_all(&bytes).and_then(|()| if durably { self.file.sync_data() } else { Ok(()) });
        if let Err(source) = written {
            self.is_torn = true;
            // If this fails too, the next write or the next start cuts the line off.
            let _ = self.cut_torn_line();
            return Err(self.io(source));
        }
        self.length += length_of(&bytes);
        Ok(self.state.apply(line, length_of(&bytes))?)
    }

    fn cut_torn_line(&mut self) -> Result<(), AuditError> {
        if self.is_torn {
            self.file.set_len(self.length).map_err(|source| self.io(source))?;
            self.is_torn = false;
        }
        Ok(())
    }

    /// Writes the file again from the start, with the end of the chain and the events that wait.
    fn compact_if_long(&mut self) -> Result<(), AuditError> {
        if self.length < COMPACT.max(2 * self.state.waiting) || self.state.trying.is_some() {
            return Ok(());
        }
        let head = || self.state.head.clone().map(Line::Head);
        // A second line with the end states that another machine wrote to the chain.
        let again = head().filter(|_| self.state.has_others);
        let end = [self.state.joined.clone().map(Line::Joined), head(), again];
        let waiting = self.state.entries.iter().map(|waiting| Line::Entry(waiting.entry.clone()));
        let mut bytes = Vec::new();
        for line in end.into_iter().flatten().chain(waiting) {
            bytes.extend(serde_json::to_vec(&line).map_err(|error| self.io(error.into()))?);
            bytes.push(b'\n');
        }
        self.file = files::replace(&self.path, &bytes).map_err(|source| self.io(source))?;
        self.length = length_of(&bytes);
        files::sync_parent(&self.path).map_err(|source| self.io(source))
    }

    fn io(&self, source: std::io::Error) -> AuditError {
        AuditError::Io { path: self.path.clone(), source }
    }
}

fn length_of(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

fn open_file(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).create(true).append(true).mode(0o600).open(path)
}

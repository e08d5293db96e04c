//! The audit trail of a runner without a bucket: a chain of signed records in its state directory.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use freehold_protocol::audit::{AuditEvent, AuditRecord};
use freehold_protocol::limits::MAX_ENVELOPE_BYTES;
use freehold_protocol::{Digest, Envelope};

use super::author::Author;
use super::error::AuditError;
use crate::files;
use crate::process::clock;

const FILE: &str = "audit.jsonl";
/// The maximum length of a record with its line feed, in bytes.
const LONGEST: u64 = MAX_ENVELOPE_BYTES as u64 + 1;

/// The chain in one file, with one record per line.
#[derive(Debug)]
pub(super) struct LocalChain {
    path: PathBuf,
    file: File,
    seq: u64,
    head: Digest,
}

impl LocalChain {
    /// Opens the chain in `state_dir`. Drops an incomplete last line, which a crash left.
    pub(super) fn open(state_dir: &Path) -> Result<Self, AuditError> {
        let path = state_dir.join(FILE);
        let io = |source| AuditError::Io { path: path.clone(), source };
        let mut options = OpenOptions::new();
        let mut file = options.read(true).create(true).append(true).mode(0o600).open(&path).map_err(io)?;
        files::sync_parent(&path).map_err(io)?;
        let (seq, head) = match last_line(&mut file).map_err(io)? {
            None => (0, Digest::of(b"")),
            Some(line) => {
                let record = Envelope::parse(&line).and_then(|envelope| envelope.peek::<AuditRecord>());
                (record.map_err(|_| AuditError::Damaged { path: path.clone() })?.seq, Digest::of(&line))
            }
        };
        Ok(Self { path, file, seq, head })
    }

    /// Adds a record durably.
    pub(super) fn append(&mut self, author: &Author, event: AuditEvent) -> Result<(), AuditError> {
        let seq = self.seq + 1;
        let line = author.record(seq, self.head.clone(), clock::local(), event)?.into_bytes();
        let mut bytes = line.clone();
        bytes.push(b'\n');
        let before = self.file.seek(SeekFrom::End(0)).map_err(|source| self.io(source))?;
        if let Err(source) = self.file.write_all(&bytes).and_then(|()| self.file.sync_data()) {
            // Cuts off an incomplete record. If this fails too, the next open drops it.
            let _ = self.file.set_len(before);
            return Err(self.io(source));
        }
        self.seq = seq;
        self.head = Digest::of(&line);
        Ok(())
    }

    fn io(&self, source: std::io::Error) -> AuditError {
        AuditError::Io { path: self.path.clone(), source }
    }
}

/// Returns the last complete line without its line feed. Cuts off the bytes after it.
fn last_line(file: &mut File) -> std::io::Result<Option<Vec<u8>>> {
    let length = file.seek(SeekFrom::End(0))?;
    let from = length.saturating_sub(2 * LONGEST);
    file.seek(SeekFrom::Start(from))?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail)?;
    let Some(end) = tail.iter().rposition(|byte| *byte == b'\n') else {
        file.set_len(from)?;
        return Ok(None);
    };
    file.set_len(from + u64::try_from(end).unwrap_or(0) + 1)?;
    let whole = tail.get(..end).unwrap_or_default();
    let begin = whole.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    Ok(whole.get(begin..).map(<[u8]>::to_vec))
}

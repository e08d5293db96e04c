//! Signed reports on disk, in order, until the queue has them. Each report is a file; sending one twice is harmless.
//!
//! Disk use is bounded: above the limit the oldest log reports are dropped, which shows as a gap in their sequence numbers.
//! All other reports are kept, even above the limit.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use freehold_protocol::Envelope;
use tokio::sync::Notify;
use tracing::warn;

use crate::files;

pub mod sender;

/// The most that waiting reports may take, in bytes, before log reports are dropped.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// The most reports that may wait before log reports are dropped.
const MAX_REPORTS: usize = 20_000;
/// What SQS takes in one call: 10 messages of 1 MiB together, less a margin for the request around them.
const BATCH: usize = 10;
const BATCH_BYTES: u64 = 900 * 1024;

/// How long a waiting report is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The report is kept until it is sent.
    Keep,
    /// The report is dropped when the disk gets full.
    Log,
    /// Replaced by the next `hello`.
    Hello,
    /// Replaced by the next heartbeat.
    Heartbeat,
}

/// The reports that wait in one state directory.
#[derive(Debug)]
pub struct Spool {
    directory: PathBuf,
    inner: Mutex<Inner>,
    added: Notify,
    removed: Notify,
    max_bytes: u64,
    max_reports: usize,
}

#[derive(Debug, Default)]
struct Inner {
    waiting: BTreeMap<u64, Waiting>,
    bytes: u64,
    next: u64,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    class: Class,
    bytes: u64,
}

/// Why a report could not be put into the spool.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the spool `{path}`; check permissions and free space of `state_dir`")]
pub struct SpoolError {
    path: PathBuf,
    source: std::io::Error,
}

impl Class {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Log => "log",
            Self::Hello => "hello",
            Self::Heartbeat => "heartbeat",
        }
    }

    fn of(name: &str) -> Option<Self> {
        [Self::Keep, Self::Log, Self::Hello, Self::Heartbeat].into_iter().find(|class| class.as_str() == name)
    }

    const fn only_newest(self) -> bool {
        matches!(self, Self::Hello | Self::Heartbeat)
    }
}

impl Spool {
    /// Opens the spool in `state_dir`, with the reports that an earlier process left there.
    ///
    /// # Errors
    /// When the directory cannot be used.
    pub fn open(state_dir: &Path) -> Result<Self, SpoolError> {
        Self::bounded(state_dir, MAX_BYTES, MAX_REPORTS)
    }

    fn bounded(state_dir: &Path, max_bytes: u64, max_reports: usize) -> Result<Self, SpoolError> {
        let directory = state_dir.join("spool");
        let inner = read(&directory).map_err(|source| SpoolError { path: directory.clone(), source })?;
        let (added, removed) = (Notify::new(), Notify::new());
        Ok(Self { directory, inner: Mutex::new(inner), added, removed, max_bytes, max_reports })
    }

    /// Adds a report. Survives the end of this process; with `durable`, also a power failure.
    ///
    /// # Errors
    /// When it cannot be written, such as on a full disk.
    pub fn add(&self, report: &str, class: Class, durable: bool) -> Result<(), SpoolError> {
        let bytes = u64::try_from(report.len()).unwrap_or(u64::MAX);
        let mut inner = self.lock();
        if !self.make_room(&mut inner, class, bytes) {
            warn!("Dropped a log report: the spool is full of reports that must be kept");
            return Ok(());
        }
        let at = inner.next;
        let path = self.path(at, class);
        let write = if durable { files::write_atomic } else { files::write_atomic_relaxed };
        write(&path, report.as_bytes()).map_err(|source| SpoolError { path: path.clone(), source })?;
        inner.next += 1;
        inner.bytes += bytes;
        inner.waiting.insert(at, Waiting { class, bytes });
        drop(inner);
        self.added.notify_one();
        Ok(())
    }

    /// Returns how many reports wait.
    pub fn len(&self) -> usize {
        self.lock().waiting.len()
    }

    /// Returns whether no report waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits until no report waits.
    pub async fn emptied(&self) {
        self.until(|inner| inner.waiting.is_empty()).await;
    }

    /// Waits until the queue has every report that was added before this call.
    pub async fn delivered(&self) {
        let next = self.lock().next;
        self.until(|inner| inner.waiting.keys().next().is_none_or(|oldest| *oldest >= next)).await;
    }

    async fn until(&self, reached: impl Fn(&Inner) -> bool) {
        loop {
            let removed = self.removed.notified();
            if reached(&self.lock()) {
                return;
            }
            removed.await;
        }
    }

    /// Returns the oldest reports, as many as one call takes. Drops a report that a power failure has damaged.
    fn batch(&self) -> Vec<(u64, String)> {
        let mut inner = self.lock();
        let oldest: Vec<_> = inner.waiting.iter().take(BATCH).map(|(at, waiting)| (*at, *waiting)).collect();
        let mut batch = Vec::new();
        let mut bytes = 0;
        for (at, waiting) in oldest {
            if !batch.is_empty() && bytes + waiting.bytes > BATCH_BYTES {
                break;
            }
            let text = std::fs::read_to_string(self.path(at, waiting.class)).unwrap_or_default();
            if serde_json::from_str::<Envelope>(&text).is_err() {
                warn!("Dropped a report that can no longer be read");
                self.remove(&mut inner, at);
                continue;
            }
            bytes += waiting.bytes;
            batch.push((at, text));
        }
        batch
    }

    fn remove_sent(&self, at: u64) {
        self.remove(&mut self.lock(), at);
    }

    /// Makes room for a report; returns whether it may be added.
    fn make_room(&self, inner: &mut Inner, class: Class, bytes: u64) -> bool {
        if class.only_newest() {
            let older: Vec<u64> = inner.waiting.iter().filter(|(_, w)| w.class == class).map(|(at, _)| *at).collect();
            older.into_iter().for_each(|at| self.remove(inner, at));
        }
        while inner.bytes + bytes > self.max_bytes || inner.waiting.len() >= self.max_reports {
            let oldest = inner.waiting.iter().find(|(_, waiting)| waiting.class == Class::Log).map(|(at, _)| *at);
            match oldest {
                Some(at) => self.remove(inner, at),
                None => return class != Class::Log,
            }
        }
        true
    }

    fn remove(&self, inner: &mut Inner, at: u64) {
        if let Some(waiting) = inner.waiting.remove(&at) {
            inner.bytes = inner.bytes.saturating_sub(waiting.bytes);
            // A file that stays is sent again after the next start, which is harmless.
            let _ = std::fs::remove_file(self.path(at, waiting.class));
        }
        self.removed.notify_waiters();
    }

    fn path(&self, at: u64, class: Class) -> PathBuf {
        self.directory.join(format!("{at:020}.{}.json", class.as_str()))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(directory: &Path) -> std::io::Result<Inner> {
    files::make_private_dir(directory)?;
    let mut inner = Inner::default();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let mut parts = name.to_str().unwrap_or_default().split('.');
        let at = parts.next().and_then(|digits| digits.parse::<u64>().ok());
        let class = parts.next().and_then(Class::of);
        match (at, class, parts.next(), parts.next()) {
            (Some(at), Some(class), Some("json"), None) => {
                let bytes = entry.metadata()?.len();
                inner.waiting.insert(at, Waiting { class, bytes });
                inner.bytes += bytes;
                inner.next = inner.next.max(at + 1);
            }
            // A file that a crash left half written; `add` never returned for it.
            _ => std::fs::remove_file(entry.path())?,
        }
    }
    Ok(inner)
}

#[cfg(test)]
mod tests;

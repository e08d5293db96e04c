//! Signed reports on disk, in order, until the queue has accepted them. Each report is a file. Sending one twice is
//! harmless.
//!
//! Disk use is limited: at the limit, the oldest log reports are dropped, or a new log report if no other one waits.
//! This leaves gaps in their sequence numbers. The limit drops no other reports.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use freehold_protocol::Envelope;
use tokio::sync::Notify;
use tracing::warn;

use crate::files;

pub mod sender;

/// The size of all waiting reports, in bytes, above which log reports are dropped.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// The number of waiting reports above which log reports are dropped.
const MAX_REPORTS: usize = 20_000;
/// The limits of one SQS call: 10 messages of 1 MiB together, minus a margin for the rest of the request.
const BATCH: usize = 10;
const BATCH_BYTES: u64 = 900 * 1024;

/// Decides how long a waiting report is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Kept until the report is sent.
    Keep,
    /// Dropped when the spool reaches its limit.
    Log,
    /// Replaced by the next `hello` report.
    Hello,
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
    /// The number of the last `hello` report that the queue accepted from this process.
    accepted_hello: Option<u64>,
    /// The reason why the queue refused the last call, if it refused that call.
    denied: Option<String>,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    class: Class,
    bytes: u64,
}

/// The reason why a report could not be added to the spool.
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
        }
    }

    fn of(name: &str) -> Option<Self> {
        [Self::Keep, Self::Log, Self::Hello].into_iter().find(|class| class.as_str() == name)
    }

    const fn only_newest(self) -> bool {
        matches!(self, Self::Hello)
    }
}

impl Spool {
    /// Opens the spool in `state_dir`, including reports that an earlier process left.
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

    /// Adds a report and returns its number. The report survives a crash of this process and, when `durable` is true,
    /// also a power failure. A hello replaces the one before. When the spool is full, the oldest log reports are
    /// dropped, or this report if it is a log report and no other one waits.
    ///
    /// # Errors
    /// When the report cannot be written, for example because the disk is full.
    pub fn add(&self, report: &str, class: Class, durable: bool) -> Result<u64, SpoolError> {
        let bytes = u64::try_from(report.len()).unwrap_or(u64::MAX);
        let mut inner = self.lock();
        if !self.make_room(&mut inner, class, bytes) {
            warn!("Dropped a log report: the spool is full of reports that must be kept");
            return Ok(inner.next);
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
        Ok(at)
    }

    /// Returns the number of waiting reports.
    pub fn len(&self) -> usize {
        self.lock().waiting.len()
    }

    /// Returns whether no report waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits until the spool is empty.
    pub async fn emptied(&self) {
        self.until(|inner| inner.waiting.is_empty()).await;
    }

    /// Waits until the queue has every report that was added before this call.
    pub async fn delivered(&self) {
        let next = self.lock().next;
        self.until(|inner| inner.waiting.keys().next().is_none_or(|oldest| *oldest >= next)).await;
    }

    /// Waits until the `hello` report with this number has left the spool. Returns whether the queue accepted it;
    /// otherwise it was dropped.
    pub async fn accepted_hello(&self, number: u64) -> bool {
        self.until(|inner| !inner.waiting.contains_key(&number)).await;
        self.lock().accepted_hello == Some(number)
    }

    /// Returns the reason why the queue refuses this runner, if it refused the last call.
    pub fn denied(&self) -> Option<String> {
        self.lock().denied.clone()
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

    /// Returns the oldest reports, as many as one call can send. Drops a report that a power failure has damaged.
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
        let mut inner = self.lock();
        if inner.waiting.get(&at).is_some_and(|waiting| waiting.class == Class::Hello) {
            inner.accepted_hello = Some(at);
        }
        self.remove(&mut inner, at);
    }

    fn remove_refused(&self, at: u64) {
        self.remove(&mut self.lock(), at);
    }

    fn answered(&self, denied: Option<String>) {
        self.lock().denied = denied;
    }

    /// Makes room for a report. Returns whether the report may be added.
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
            // If removing the file fails, its report is sent again after the next start, which is harmless.
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
            // A crash left this file incomplete: `add` never returned for it.
            _ => std::fs::remove_file(entry.path())?,
        }
    }
    Ok(inner)
}

#[cfg(test)]
mod tests;

//! Records each report before it leaves the customer's account: the audit trail names it by its digest, and the customer's
//! bucket gets its text.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use freehold_protocol::Digest;
use freehold_protocol::audit::{AuditEvent, REPORTS, message_name};
use tokio::sync::Notify;
use tracing::warn;

use crate::aws;
use crate::backoff::Backoff;
use crate::files;
use crate::process::watchdog::Beat;
use crate::record::audit::{Audit, AuditError, BUCKET_LIMIT};
use crate::wire::inbox::{InboxError, Outbox, Sent};

/// The directory of the texts that the bucket does not have yet.
const DIRECTORY: &str = "sent";
/// The maximum number of texts in the directory. When it is full, the audit trail names reports whose texts are lost.
const MOST: usize = 20_000;
/// The number of reports that are remembered as recorded. A call sends at most 10 reports, and a failed call is
/// repeated with the same reports.
const REMEMBERED: usize = 100;
/// The longest pause between two signs of progress ([`Beat::alive`]).
const IDLE: Duration = Duration::from_secs(60);

/// The texts of reports that are still to be uploaded to the customer's bucket. Each file is named like its object.
#[derive(Debug)]
pub struct Texts {
    directory: PathBuf,
    added: Notify,
}

impl Texts {
    /// Opens the directory in `state_dir`, with the texts that an earlier process left.
    ///
    /// # Errors
    /// When the directory cannot be made.
    pub fn open(state_dir: &Path) -> std::io::Result<Self> {
        let directory = state_dir.join(DIRECTORY);
        files::make_private_dir(&directory)?;
        // A crash may have left an incomplete file. Its report is still in the spool, and its text is stored again when
        // the report is sent.
        for entry in std::fs::read_dir(&directory)? {
            let path = entry?.path();
            if !is_whole(&path) {
                std::fs::remove_file(&path)?;
            }
        }
        Ok(Self { directory, added: Notify::new() })
    }

    fn add(&self, digest: &Digest, text: &str) -> std::io::Result<()> {
        if std::fs::read_dir(&self.directory)?.count() >= MOST {
            return Err(std::io::Error::other(format!("{MOST} texts wait for the bucket already")));
        }
        files::write_atomic_relaxed(&self.directory.join(message_name(digest)), text.as_bytes())?;
        self.added.notify_one();
        Ok(())
    }

    /// Writes the texts into the bucket. Never returns.
    pub async fn carry(&self, audit: &Audit, beat: &Beat) {
        let mut backoff = Backoff::new(Duration::from_secs(1), IDLE);
        let mut is_failing = false;
        loop {
            beat.alive();
            match self.flush(audit, beat).await {
                Ok(()) => {
                    is_failing = false;
                    backoff.succeeded();
                    let _ = tokio::time::timeout(IDLE, self.added.notified()).await;
                }
                Err(error) => {
                    if !is_failing {
                        warn!(
                            "Could not store texts of reports in the install's bucket; they stay in the state \
                             directory and are tried again: {}",
                            aws::explain(&error)
                        );
                    }
                    is_failing = true;
                    tokio::time::sleep(backoff.failed()).await;
                }
            }
        }
    }

    /// Writes the texts that the directory has into the bucket.
    ///
    /// # Errors
    /// An [`AuditError`]. The other texts stay.
    pub async fn flush(&self, audit: &Audit, beat: &Beat) -> Result<(), AuditError> {
        let io = |source| AuditError::Io { path: self.directory.clone(), source };
        for entry in std::fs::read_dir(&self.directory).map_err(io)? {
            let path = entry.map_err(io)?.path();
            // A file that is not whole is being written at this moment.
            if !is_whole(&path) {
                continue;
            }
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let text = std::fs::read(&path).map_err(io)?;
            audit.keep(&format!("{REPORTS}/{name}"), text, BUCKET_LIMIT).await?;
            std::fs::remove_file(&path).map_err(io)?;
            beat.alive();
        }
        Ok(())
    }
}

/// Returns whether this is a text under its final name.
fn is_whole(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "json")
}

/// The reports queue of a runner whose audit trail is in the customer's bucket.
#[derive(Debug)]
pub struct RecordedOutbox {
    outbox: Arc<dyn Outbox>,
    audit: Arc<Audit>,
    texts: Arc<Texts>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    recorded: VecDeque<Digest>,
    /// Reports that left without a record, because the state directory did not take it. The next record names them.
    unrecorded: Vec<Digest>,
}

impl RecordedOutbox {
    /// Returns the queue `outbox`, whose reports `audit` records.
    pub fn new(outbox: Arc<dyn Outbox>, audit: Arc<Audit>, texts: Arc<Texts>) -> Self {
        Self { outbox, audit, texts, known: Mutex::default() }
    }

    /// Records the reports that are not recorded yet. A report is sent even if the state directory takes no record:
    /// otherwise the vendor would lose the outcome of a job. The next record then names the report.
    fn record(&self, bodies: &[String]) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for body in bodies {
            let digest = Digest::of(body.as_bytes());
            if known.recorded.contains(&digest) || known.unrecorded.contains(&digest) {
                continue;
            }
            if let Err(error) = self.texts.add(&digest, body) {
                warn!("The text of report {digest} will not be in the bucket: {error}");
            }
            known.unrecorded.push(digest);
        }
        if known.unrecorded.is_empty() {
            return;
        }
        match self.audit.conclude(AuditEvent::Sent { reports: known.unrecorded.clone() }) {
            Ok(()) => {
                let recorded = std::mem::take(&mut known.unrecorded);
                known.recorded.extend(recorded);
                let surplus = known.recorded.len().saturating_sub(REMEMBERED);
                known.recorded.drain(..surplus);
            }
            Err(error) => warn!("Reports leave before their record is written: {}", aws::explain(&error)),
        }
    }
}

#[async_trait]
impl Outbox for RecordedOutbox {
    async fn send(&self, bodies: &[String]) -> Result<Vec<Sent>, InboxError> {
        self.record(bodies);
        self.outbox.send(bodies).await
    }
}

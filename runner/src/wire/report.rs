//! Signs reports and puts them into the spool.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use freehold_protocol::report::{AttemptEvent, AttemptReport, Away, Fence, Hello, Refusal, Report, ReportBody};
use freehold_protocol::{Envelope, EnvelopeError, InstallId, JobId, KeyId, TenantName};

use crate::keys::runner_key::Identity;
use crate::process::clock;
use crate::record::audit::LatestHead;
use crate::wire::spool::{Class, Spool, SpoolError};

/// The maximum length of a reason in a report or in an audit record, in bytes.
const REASON_MAX: usize = 4 * 1024;

/// Signs the reports of this runner.
#[derive(Debug)]
pub struct Reporter {
    identity: Arc<Identity>,
    tenant: TenantName,
    install: InstallId,
    spool: Arc<Spool>,
    head: LatestHead,
}

/// The reason why a report was not added to the spool.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The report cannot be signed.
    #[error("cannot sign a report: {0}")]
    Seal(#[from] EnvelopeError),
    /// The report cannot be stored.
    #[error(transparent)]
    Spool(#[from] SpoolError),
}

impl Reporter {
    /// Returns the reporter of the runner with key `identity` in `install`. Its reports name no audit record.
    pub fn new(identity: Arc<Identity>, tenant: TenantName, install: InstallId, spool: Arc<Spool>) -> Self {
        Self { identity, tenant, install, spool, head: LatestHead::default() }
    }

    /// Returns this reporter, whose reports name the newest record of `head`.
    pub fn with_head(self, head: LatestHead) -> Self {
        Self { head, ..self }
    }

    /// Returns the id of the signing key.
    pub fn runner(&self) -> &KeyId {
        self.identity.id()
    }

    /// Announces the runner, and returns the number of the report.
    ///
    /// # Errors
    /// A [`ReportError`].
    pub fn hello(&self, hello: Hello) -> Result<u64, ReportError> {
        self.send(ReportBody::Hello(hello), Class::Hello, false)
    }

    /// Reports a refused message. The report is durable when this function returns.
    ///
    /// # Errors
    /// A [`ReportError`]. The message must then stay in the queue.
    pub fn refused(&self, refusal: Refusal) -> Result<(), ReportError> {
        self.send(ReportBody::Refused(refusal), Class::Keep, true).map(drop)
    }

    /// Reports that the runner takes no orders. The report is durable when this function returns.
    ///
    /// # Errors
    /// A [`ReportError`].
    pub fn away(&self, away: Away) -> Result<(), ReportError> {
        self.send(ReportBody::Away(away), Class::Keep, true).map(drop)
    }

    /// Waits until the `hello` report with this number has left the spool. Returns whether the reports queue accepted it.
    pub async fn accepted_hello(&self, number: u64) -> bool {
        self.spool.accepted_hello(number).await
    }

    /// Returns the reason why the reports queue refuses this runner, if it refused the last call.
    pub fn denied(&self) -> Option<String> {
        self.spool.denied()
    }

    /// Returns whether the reports queue has all reports.
    pub fn is_done(&self) -> bool {
        self.spool.is_empty()
    }

    /// Waits until the reports queue has all reports that were added before this call.
    pub async fn delivered(&self) {
        self.spool.delivered().await;
    }

    fn attempt(&self, report: AttemptReport) -> Result<(), ReportError> {
        let (class, durable) = match &report.event {
            AttemptEvent::Progress { .. } => (Class::Log, false),
            // These events need not be durable: a power failure also ends the attempt, and the next attempt reports
            // them again.
            AttemptEvent::Started | AttemptEvent::GrantRequest { .. } | AttemptEvent::AttestRequest { .. } => {
                (Class::Keep, false)
            }
            AttemptEvent::Finished { .. } => (Class::Keep, true),
        };
        self.send(ReportBody::Attempt(report), class, durable).map(drop)
    }

    fn send(&self, body: ReportBody, class: Class, durable: bool) -> Result<u64, ReportError> {
        let report = Report {
            tenant: self.tenant.clone(),
            install: self.install.clone(),
            runner: self.identity.id().clone(),
            at: clock::local(),
            head: self.head.get(),
            body,
        };
        let envelope = Envelope::seal(&report, &[self.identity.key()])?.to_json()?;
        Ok(self.spool.add(&envelope, class, durable)?)
    }
}

/// Reports events of one attempt, with sequence numbers.
#[derive(Debug)]
pub struct AttemptReporter {
    reporter: Arc<Reporter>,
    job: JobId,
    fence: Fence,
    seq: AtomicU64,
    /// Whether [`Self::start`] was called.
    has_started: AtomicBool,
}

impl AttemptReporter {
    /// Returns the reporter of the attempt `fence` at `job`.
    pub fn new(reporter: Arc<Reporter>, job: JobId, fence: Fence) -> Self {
        Self { reporter, job, fence, seq: AtomicU64::new(0), has_started: AtomicBool::new(false) }
    }

    /// Reports that the job has started. Only the first call reports it.
    ///
    /// # Errors
    /// A [`ReportError`].
    pub fn start(&self) -> Result<(), ReportError> {
        if self.has_started.swap(true, Ordering::Relaxed) { Ok(()) } else { self.event(AttemptEvent::Started) }
    }

    /// Reports `event`. If the event ends the attempt, the report is durable when this function returns.
    ///
    /// # Errors
    /// A [`ReportError`].
    pub fn event(&self, event: AttemptEvent) -> Result<(), ReportError> {
        let seq = self.seq.fetch_add(1, Ordering::Relaxed) + 1;
        self.reporter.attempt(AttemptReport { job: self.job.clone(), fence: self.fence, seq, event })
    }
}

/// Returns a reason that is short enough for a report and for an audit record. It may quote a text of any length, such
/// as a name in a message that cannot be read.
pub fn shortened(mut text: String) -> String {
    if text.len() <= REASON_MAX {
        return text;
    }
    text.truncate(text.floor_char_boundary(REASON_MAX));
    text.push_str(" [cut]");
    text
}

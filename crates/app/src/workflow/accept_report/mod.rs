//! Accepts a runner's report: checks its signature, commits its changes, then dispatches the jobs that became ready and
//! resumes state machines.

mod attempt;
mod contact;
mod hello;
mod refusal;

use std::sync::Arc;

use freehold_domain::install::Install;
use freehold_protocol::envelope::PublicKey;
use freehold_protocol::report::{RefusalReason, Report, ReportBody};
use freehold_protocol::{Envelope, KeyId, TenantName};

use crate::AppError;
use crate::ports::{Callbacks, Clock, Outbox, Store};
use crate::table;

pub use attempt::resume_run;

/// The use case that accepts reports, with its ports.
#[derive(Clone)]
pub struct AcceptReport {
    pub tenant: TenantName,
    pub store: Arc<dyn Store>,
    pub outbox: Arc<dyn Outbox>,
    pub callbacks: Arc<dyn Callbacks>,
    pub clock: Arc<dyn Clock>,
}

/// The result of an authentic report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Accepted {
    /// The report was accepted, now or in an earlier delivery.
    Taken,
    /// The report is authentic but changes nothing; the reason is recorded.
    Refused(String),
}

impl AcceptReport {
    /// Accepts one message of the reports queue.
    ///
    /// # Errors
    /// Invalid for a message that is not authentic: SQS delivers it again until it moves to the dead-letter queue,
    /// which has an alarm. Transient or Internal when the report could not be handled.
    pub async fn accept(&self, body: &str) -> Result<Accepted, AppError> {
        let envelope = Envelope::parse(body.as_bytes()).map_err(unbelievable)?;
        let claimed: Report = envelope.peek().map_err(unbelievable)?;
        if claimed.tenant != self.tenant {
            return Err(AppError::invalid(format!("the report is for another tenant, `{}`", claimed.tenant)));
        }
        let install = table::install(&*self.store, &claimed.install)
            .await
            .map_err(|e| if e.kind == crate::Kind::NotFound { AppError::invalid(e.message) } else { e })?;
        if let ReportBody::Hello(hello) = &claimed.body {
            return self.hello(&envelope, &install.value, hello, body).await;
        }
        let Some(key) = speaker(&install.value, &claimed.runner) else {
            return self.refuse_speaker(&install.value, &claimed, body).await;
        };
        let report: Report = envelope.open(key).map_err(unbelievable)?;
        self.note_contact(&report.install, matches!(report.body, ReportBody::Heartbeat)).await?;
        match report.body {
            ReportBody::Hello(_) | ReportBody::Heartbeat => Ok(Accepted::Taken),
            ReportBody::Attempt(attempt) => {
                self.attempt(&install.value, &report.runner, &attempt, (&envelope, body)).await
            }
            ReportBody::Refused(refusal) => {
                let reason = format!("order refused as {}: {}", refusal.reason.as_str(), refusal.detail);
                tracing::warn!(install.id = %install.value.id, "Runner of `{}`: {reason}", install.value.id);
                let pk = match &refusal.job {
                    Some((job, _)) => table::job_pk(job),
                    None => table::install_pk(&install.value.id),
                };
                self.record(pk, body, Some(report.runner.clone()), reason).await?;
                match (refusal.reason, refusal.job) {
                    (RefusalReason::Cancelled, Some((job, fence))) => {
                        self.cancelled_unstarted(&install.value, &report.runner, &job, fence).await
                    }
                    _ => Ok(Accepted::Taken),
                }
            }
        }
    }
}

fn unbelievable(error: freehold_protocol::EnvelopeError) -> AppError {
    AppError::invalid(error.to_string())
}

fn speaker<'a>(install: &'a Install, key: &KeyId) -> Option<&'a PublicKey> {
    install.runner.as_ref().map(|runner| &runner.public_key).filter(|public| public.key_id() == *key)
}

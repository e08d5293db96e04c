//! Accepts a runner's report: checks its signature, commits its changes, then dispatches the jobs that became ready and
//! resumes state machines.

mod attempt;
mod bounds;
mod contact;
mod hello;
mod refusal;

use std::sync::Arc;

use freehold_domain::install::Install;
use freehold_protocol::envelope::PublicKey;
use freehold_protocol::report::{Report, ReportBody};
use freehold_protocol::{Envelope, KeyId, TenantName, Timestamp};

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
    /// Accepts one message of the reports queue, which the queue took at `sent_at`.
    ///
    /// # Errors
    /// Invalid for a message that can never be accepted, because it is not authentic. Conflict for a report whose key
    /// is unknown: the hello that announces the key may still be on its way. Transient or Internal when the report
    /// could not be handled.
    pub async fn accept(&self, body: &str, sent_at: Timestamp) -> Result<Accepted, AppError> {
        let envelope = Envelope::parse(body.as_bytes()).map_err(unbelievable)?;
        let claimed: Report = envelope.peek().map_err(unbelievable)?;
        if claimed.tenant != self.tenant {
            return Err(AppError::invalid(format!("the report is for another tenant, `{}`", claimed.tenant)));
        }
        let install = table::install(&*self.store, &claimed.install)
            .await
            .map_err(|e| if e.kind == crate::Kind::NotFound { AppError::invalid(e.message) } else { e })?;
        if let ReportBody::Hello(hello) = &claimed.body {
            return self.hello(&envelope, &install.value, (hello, sent_at), body).await;
        }
        let Some(key) = speaker(&install.value, &claimed.runner) else {
            return self.refuse_speaker(&install.value, &claimed.runner, (&envelope, body)).await;
        };
        let report: Report = envelope.open(key).map_err(unbelievable)?;
        self.note_contact(&report.install, matches!(report.body, ReportBody::Heartbeat)).await?;
        match report.body {
            ReportBody::Hello(_) | ReportBody::Heartbeat => Ok(Accepted::Taken),
            ReportBody::Attempt(attempt) => {
                let attempt = bounds::bounded(attempt, &envelope);
                self.attempt(&install.value, &report.runner, &attempt, (&envelope, body)).await
            }
            ReportBody::Refused(refusal) => self.order_refused(&install.value, &report.runner, &refusal, body).await,
        }
    }
}

fn unbelievable(error: freehold_protocol::EnvelopeError) -> AppError {
    AppError::invalid(error.to_string())
}

fn speaker<'a>(install: &'a Install, key: &KeyId) -> Option<&'a PublicKey> {
    install.runner.as_ref().map(|runner| &runner.public_key).filter(|public| public.key_id() == *key)
}

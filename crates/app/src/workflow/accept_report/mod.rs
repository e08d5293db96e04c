//! Accepts a runner's report: checks its signature, commits its changes, then dispatches the jobs that became ready and
//! resumes state machines.

mod absence;
mod attempt;
mod bounds;
mod changes;
mod contact;
mod dead_letter_limit;
mod decisions;
mod hello;
mod refusal;
mod report_metrics;
mod role;
mod role_switches;
mod strangers;
mod unknown_key;

use std::sync::Arc;

use freehold_domain::install::Install;
use freehold_domain::reports::head::ReportedHead;
use freehold_protocol::envelope::PublicKey;
use freehold_protocol::report::{AttemptEvent, Report, ReportBody};
use freehold_protocol::{Envelope, InstallId, KeyId, TenantName, Timestamp};

use crate::AppError;
use crate::ports::{Callbacks, CallerIdentity, Clock, Outbox, Store};
use crate::subject;
use crate::table::{self, Stored, WriterId, load};
use report_metrics::Source;

pub use attempt::resume_run;

/// The use case that accepts reports, with its ports.
#[derive(Clone)]
pub struct AcceptReport {
    pub tenant: TenantName,
    pub store: Arc<dyn Store>,
    pub outbox: Arc<dyn Outbox>,
    pub callbacks: Arc<dyn Callbacks>,
    pub callers: Arc<dyn CallerIdentity>,
    pub clock: Arc<dyn Clock>,
    /// The copy of the function that accepts the reports.
    pub writer: WriterId,
}

/// The result of a report that SQS does not have to deliver again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Accepted {
    /// The report was accepted, now or in an earlier delivery.
    Taken,
    /// The report changes nothing, for this reason.
    Refused(String),
    /// The report's key is unknown, and there are too many such reports of its sender; the text says so. The report goes
    /// to the dead-letter queue instead of waiting in the reports queue. `sweep` puts it back later, when a hello may
    /// have announced the key.
    Aside(String),
}

/// The arrival of a message and its sender, according to SQS. A sender can influence none of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// The time at which the queue took the first copy of the message. `sweep` keeps it when it puts the message back.
    pub sent_at: Timestamp,
    /// The time at which the queue took this copy.
    pub taken_at: Timestamp,
    /// The unique id of the role that sent the first copy.
    pub sender: Option<String>,
    /// The install whose runner is known to have this role; absent for a role that is not known yet.
    pub install: Option<InstallId>,
}

impl From<Timestamp> for Arrival {
    fn from(at: Timestamp) -> Self {
        Self { sent_at: at, taken_at: at, sender: None, install: None }
    }
}

impl AcceptReport {
    /// Accepts one message of the reports queue; `arrival` describes its delivery.
    ///
    /// # Errors
    /// Invalid for a message that can never be accepted, because it is not authentic. Conflict for a report whose key
    /// is unknown: the hello that announces the key may still be on its way. Transient or Internal when the report
    /// could not be handled.
    pub async fn accept(&self, body: &str, arrival: impl Into<Arrival>) -> Result<Accepted, AppError> {
        let (arrival, mut source) = (arrival.into(), Source::default());
        let accepted = self.accept_from(body, &arrival, &mut source).await?;
        match &accepted {
            Accepted::Taken => source.record_accepted(self.clock.now().since(arrival.sent_at)),
            Accepted::Refused(_) => source.count_refused(),
            Accepted::Aside(_) => {}
        }
        Ok(accepted)
    }

    /// Accepts one message, and sets `source` to the install that it names if this install exists.
    async fn accept_from(&self, body: &str, arrival: &Arrival, source: &mut Source) -> Result<Accepted, AppError> {
        let envelope = Envelope::parse(body.as_bytes()).map_err(unbelievable)?;
        let claimed: Report = envelope.peek().map_err(unbelievable)?;
        if claimed.tenant != self.tenant {
            return Err(AppError::invalid(format!("the report is for another tenant, `{}`", claimed.tenant)));
        }
        if let Some(own) = arrival.install.as_ref().filter(|own| **own != claimed.install) {
            return Ok(of_another_install(own, &claimed.install));
        }
        let install: Option<Stored<Install>> = load(&*self.store, &table::install_key(&claimed.install)).await?;
        let Some(install) = install.filter(|install| install.value.forgetting.is_none()) else {
            return Ok(unknown_install(&claimed));
        };
        *source = Source::claimed(&install.value, arrival.install.is_some());
        subject::note_install(&install.value);
        if arrival.sent_at < install.value.created_at {
            return Ok(of_a_namesake(&claimed));
        }
        if let ReportBody::Hello(hello) = &claimed.body {
            return self.hello(&envelope, &install.value, (hello, arrival), body).await;
        }
        let key = match current_key(&install.value, &claimed.runner) {
            Some(key) => key.clone(),
            None if install.value.was_replaced_after(&claimed.runner, arrival.sent_at) => {
                self.retired_key(&install.value, &claimed.runner).await?
            }
            None if !install.value.retired.contains(&claimed.runner) => {
                return self.wait_for_key(&install.value, &claimed.runner, arrival).await;
            }
            None => return self.refuse_retired_key(&install.value, &claimed.runner, (&envelope, body)).await,
        };
        let report: Report = envelope.open(&key).map_err(unbelievable)?;
        source.prove();
        let sent_at = arrival.sent_at;
        let (after_secs, head) = (contact_secs(&report), reported_head(&report, sent_at));
        if let ReportBody::Away(away) = report.body {
            return self.away(&install.value, away, sent_at, head).await;
        }
        self.note_contact_at(&report.install, sent_at, after_secs, head).await?;
        match report.body {
            ReportBody::Hello(_) | ReportBody::Heartbeat | ReportBody::Away(_) => Ok(Accepted::Taken),
            ReportBody::Attempt(attempt) => {
                let attempt = bounds::bounded(attempt, &envelope);
                self.attempt(&install.value, &report.runner, &attempt, (&envelope, body, sent_at)).await
            }
            ReportBody::Refused(refusal) => {
                self.order_refused(&install.value, &report.runner, &refusal, (body, sent_at)).await
            }
        }
    }
}

/// Refuses a report of an install that does not exist, or that is being forgotten. Nothing is stored, because nobody
/// would remove it.
fn unknown_install(report: &Report) -> Accepted {
    let install = &report.install;
    tracing::warn!(install.id = %install, "Refused a report of `{install}`, which does not exist or is being forgotten");
    Accepted::Refused(format!("install `{install}` does not exist or is being forgotten"))
}

/// Refuses a report about another install than its sender's. Nothing is stored, because the sender could otherwise fill
/// the rows of that install.
fn of_another_install(own: &InstallId, claimed: &InstallId) -> Accepted {
    tracing::warn!(install.id = %own, "Refused a report about install `{claimed}` from the runner's role of `{own}`");
    Accepted::Refused(format!("the sender's role belongs to install `{own}`, not to `{claimed}`"))
}

/// Refuses a report that the queue took before the install was made: it is from a forgotten install that had the same
/// name. Nobody will announce its key, so it must not wait, and nothing is stored about the forgotten install.
fn of_a_namesake(report: &Report) -> Accepted {
    let install = &report.install;
    tracing::warn!(
        install.id = %install,
        "Refused a report that is older than install `{install}`: it is from a forgotten install that had the same name"
    );
    Accepted::Refused(format!(
        "the report is older than install `{install}`; it is from a forgotten install that had the same name"
    ))
}

/// The age in seconds at which a recorded contact is written again. A write for each report would cost too much.
const CONTACT_SECS: u64 = 600;

/// Returns how old the recorded contact must be for this report to replace it, in seconds. A report that ends a job and
/// names an audit record replaces the contact after 2 s, so that the next order brings the receipt for the records of
/// the job. Many jobs that end together cost few writes.
const fn contact_secs(report: &Report) -> u64 {
    match &report.body {
        ReportBody::Heartbeat | ReportBody::Away(_) => 0,
        ReportBody::Attempt(attempt)
            if report.head.is_some() && matches!(attempt.event, AttemptEvent::Finished { .. }) =>
        {
            2
        }
        ReportBody::Hello(_) | ReportBody::Attempt(_) | ReportBody::Refused(_) => CONTACT_SECS,
    }
}

/// Returns the audit record that a verified report names.
fn reported_head(report: &Report, received_at: Timestamp) -> Option<ReportedHead> {
    let head = report.head.clone()?;
    Some(ReportedHead { head, runner: report.runner.clone(), received_at })
}

fn unbelievable(error: freehold_protocol::EnvelopeError) -> AppError {
    AppError::invalid(error.to_string())
}

/// Returns the public key of the install's runner, if `key` is its id.
fn current_key<'a>(install: &'a Install, key: &KeyId) -> Option<&'a PublicKey> {
    install.runner.as_ref().map(|runner| &runner.public_key).filter(|public| public.key_id() == *key)
}

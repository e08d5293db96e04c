//! Takes a runner's report: believes it or not, commits what it changes, then dispatches and resumes what follows.

use std::sync::Arc;

use freehold_domain::install::{HelloStep, Install, InstallError};
use freehold_domain::job::{Job, JobEvent, JobState, Rejected};
use freehold_domain::workflow::Workflow;
use freehold_protocol::envelope::PublicKey;
use freehold_protocol::limits::{MAX_ANSWERS, MAX_ANSWERS_BYTES};
use freehold_protocol::report::{
    AttemptEvent, AttemptReport, Fence, Hello, Outcome, RefusalReason, Report, ReportBody,
};
use freehold_protocol::{Digest, Envelope, InstallId, JobId, KeyId, TenantName, Timestamp};
use serde_json::json;

use crate::AppError;
use crate::messages::{DispatchMessage, GrantMessage, Wants};
use crate::ports::{Callbacks, Clock, Expect, Outbox, Store};
use crate::table::evidence::{self, Evidence, Signed};
use crate::table::{
    self, Contact, Decided, LOG_TTL_SECS, LogRecord, Phase, Refused, Stored, TaskToken, load, put, put_until, token_key,
};
use crate::workflow::advance::{self, Advanced};

/// How old the recorded contact of a runner may get, in seconds: a write per report would cost more than it tells.
const CONTACT_SECS: u64 = 600;
/// How often a running job's contact is recorded, in seconds.
const PROGRESS_SECS: u64 = 60;

/// What accepting reports needs.
#[derive(Clone)]
pub struct AcceptReport {
    pub tenant: TenantName,
    pub store: Arc<dyn Store>,
    pub outbox: Arc<dyn Outbox>,
    pub callbacks: Arc<dyn Callbacks>,
    pub clock: Arc<dyn Clock>,
}

/// What became of a report that was understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Accepted {
    /// It changed something, or had done so before.
    Taken,
    /// It was believed to come from whom it says, but changes nothing; the reason is on record.
    Refused(String),
}

impl AcceptReport {
    /// Takes one message of the reports queue.
    ///
    /// # Errors
    /// Invalid for a message that cannot be believed: it stays in the queue and ends in the dead-letter queue, where an
    /// alarm tells of it. Transient or Internal when it could not be taken now.
    pub async fn accept(&self, body: &str) -> Result<Accepted, AppError> {
        let envelope = Envelope::parse(body.as_bytes()).map_err(unbelievable)?;
        let claimed: Report = envelope.peek().map_err(unbelievable)?;
        if claimed.tenant != self.tenant {
            return Err(AppError::invalid(format!("report is for tenant `{}`", claimed.tenant)));
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
        self.note_contact(&report.install).await?;
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

    /// A runner did not start what the control plane had cancelled: that ends the job as its own report would.
    async fn cancelled_unstarted(
        &self,
        install: &Install,
        runner: &KeyId,
        id: &JobId,
        fence: Fence,
    ) -> Result<Accepted, AppError> {
        let Some(current) = load::<Job>(&*self.store, &table::job_key(id)).await? else {
            return Ok(Accepted::Taken);
        };
        // A cancel of one stale attempt asks for no end of the job.
        if current.value.install != install.id || current.value.cancel_requested.is_none() {
            return Ok(Accepted::Taken);
        }
        let event = JobEvent::Finished { fence, runner: runner.clone(), outcome: Outcome::Cancelled };
        if let Advanced::Now { workflow: Some(workflow), started, .. } =
            advance::job_event(&*self.store, id, &event, None, self.clock.now()).await?
        {
            self.after_end(&workflow, &started).await?;
        }
        Ok(Accepted::Taken)
    }

    async fn hello(
        &self,
        envelope: &Envelope,
        install: &Install,
        hello: &Hello,
        body: &str,
    ) -> Result<Accepted, AppError> {
        envelope.open::<Report>(&hello.public_key).map_err(unbelievable)?;
        envelope.open::<Report>(&install.enrolment_key).map_err(unbelievable)?;
        let too_much = too_much(hello);
        if let Some(reason) = &too_much {
            tracing::warn!(install.id = %install.id, "Refused what a hello tells of the install stack: {reason}");
            let runner = Some(hello.public_key.key_id());
            self.record(table::install_pk(&install.id), body, runner, reason.clone()).await?;
        }
        let announced = table::change(&*self.store, ("install", &install.id), || async {
            let current = table::install(&*self.store, &install.id).await?;
            let mut hello = hello.clone();
            if too_much.is_some() {
                hello.inputs.clone_from(&current.value.answers);
            }
            let next = match current.value.on_hello(&hello, self.clock.now()) {
                Ok(HelloStep::Changed(next)) => Some(*next),
                Ok(HelloStep::Already) => None,
                Err(error @ InstallError::Retired { .. }) => return Ok(Decided::Keep(Err(error.to_string()))),
                Err(error) => return Err(error.into()),
            };
            // Before the key speaks for the install: whatever it reports then can be proven.
            self.keep_hello(envelope, install, &hello).await?;
            match next {
                None => Ok(Decided::Keep(Ok((current.value, false)))),
                Some(next) => Ok(Decided::Commit(vec![put(&next, Expect::Rev(current.rev))?], Ok((next, true)))),
            }
        });
        match announced.await? {
            Ok((next, changed)) => {
                if changed {
                    tracing::info!(install.id = %next.id, "Runner of `{}` announced itself", next.id);
                }
                self.after_hello(&next).await
            }
            Err(reason) => {
                tracing::warn!(install.id = %install.id, "Refused a hello: {reason}");
                let runner = Some(hello.public_key.key_id());
                self.record(table::install_pk(&install.id), body, runner, reason.clone()).await?;
                Ok(Accepted::Refused(reason))
            }
        }
    }

    /// Keeps the first announcement of a runner's key, with the enrolment key that co-signed it.
    async fn keep_hello(&self, envelope: &Envelope, install: &Install, hello: &Hello) -> Result<(), AppError> {
        let evidence = Evidence::Hello {
            install: install.id.clone(),
            runner: hello.public_key.key_id(),
            enrolment_key: Box::new(install.enrolment_key.clone()),
            signed: Signed::of(envelope)?,
        };
        evidence::keep_first(&*self.store, evidence).await?;
        Ok(())
    }

    /// Wakes the workflow that waits for the runner, if there is one.
    async fn after_hello(&self, install: &Install) -> Result<Accepted, AppError> {
        self.note_contact(&install.id).await?;
        if let Some(live) = &install.live {
            let token: Option<Stored<TaskToken>> = load(&*self.store, &token_key(live, Phase::AwaitRunner)).await?;
            if let Some(token) = token {
                self.callbacks.succeed(&token.value.token, &json!({ "result": "announced" })).await?;
            }
        }
        Ok(Accepted::Taken)
    }

    async fn attempt(
        &self,
        install: &Install,
        runner: &KeyId,
        report: &AttemptReport,
        (envelope, body): (&Envelope, &str),
    ) -> Result<Accepted, AppError> {
        let current = table::job(&*self.store, &report.job).await.map_err(|e| match e.kind {
            crate::Kind::NotFound => AppError::invalid(e.message),
            _ => e,
        })?;
        if current.value.install != install.id {
            return Err(AppError::invalid(format!("job `{}` is not of install `{}`", report.job, install.id)));
        }
        let now = self.clock.now();
        self.store_log(report, now).await?;
        if is_quiet_progress(&current.value, runner, report, now) {
            return self.after_progress(&current.value, runner, report).await;
        }
        let event = job_event(report, runner);
        match advance::job_event(&*self.store, &report.job, &event, Some(envelope), now).await? {
            Advanced::Now { job, workflow, started, changed } => {
                if changed {
                    log_change(&job);
                }
                match workflow {
                    Some(workflow) => self.after_end(&workflow, &started).await?,
                    None => {
                        self.heartbeat(&job).await?;
                        return self.after_progress(&job, runner, report).await;
                    }
                }
                Ok(Accepted::Taken)
            }
            Advanced::NotYet(_) => Ok(Accepted::Taken),
            Advanced::Rejected(job, rejected) => self.reject(&job, runner, report.fence, &rejected, body).await,
        }
    }

    /// A job has ended: dispatch what became ready, or resume the workflow's machine when nothing is left.
    async fn after_end(&self, workflow: &Workflow, started: &[JobId]) -> Result<(), AppError> {
        if workflow.is_settled() {
            return resume_run(&*self.store, &*self.callbacks, workflow).await;
        }
        advance::dispatch(&*self.outbox, started).await
    }

    async fn after_progress(&self, job: &Job, runner: &KeyId, report: &AttemptReport) -> Result<Accepted, AppError> {
        advance::dispatch_cancel(&*self.outbox, job).await?;
        let (grant, artifact, wants) = match &report.event {
            AttemptEvent::GrantRequest { grant, artifact, missing, round } => {
                (grant, artifact, Wants::Blobs { missing: missing.clone(), round: *round })
            }
            AttemptEvent::AttestRequest { grant, artifact, facts } => {
                let wants = Wants::Statement { artifact: Box::new(artifact.clone()), facts: facts.clone() };
                (grant, &artifact.digest, wants)
            }
            AttemptEvent::Started | AttemptEvent::Progress { .. } | AttemptEvent::Finished { .. } => {
                return Ok(Accepted::Taken);
            }
        };
        if !holds(job, report.fence, runner) {
            return Ok(Accepted::Refused(format!("attempt {} of job `{}` does not hold it", report.fence, job.id)));
        }
        let message = GrantMessage {
            install: job.install.clone(),
            job: job.id.clone(),
            fence: report.fence,
            grant: grant.clone(),
            seq: report.seq,
            artifact: artifact.clone(),
            wants,
        };
        self.outbox.request_grant(&message).await?;
        Ok(Accepted::Taken)
    }

    /// Records a refused report and tells an attempt that lost its job to stop.
    async fn reject(
        &self,
        job: &Job,
        runner: &KeyId,
        fence: Fence,
        rejected: &Rejected,
        body: &str,
    ) -> Result<Accepted, AppError> {
        let reason = rejected.to_string();
        tracing::warn!(job.id = %job.id, "Refused a report: {reason}");
        self.record(table::job_pk(&job.id), body, Some(runner.clone()), reason.clone()).await?;
        let lost = matches!(rejected, Rejected::Stale { .. } | Rejected::Held { .. } | Rejected::Ended { .. });
        if lost {
            self.stop_attempt(&job.id, fence, runner).await?;
        }
        Ok(Accepted::Refused(reason))
    }

    /// A report signed by nobody who speaks for the install now.
    async fn refuse_speaker(&self, install: &Install, report: &Report, body: &str) -> Result<Accepted, AppError> {
        if !install.retired.contains(&report.runner) {
            return Err(AppError::invalid(format!(
                "key `{}` does not speak for install `{}`",
                report.runner, install.id
            )));
        }
        let reason = format!("runner key `{}` was replaced", report.runner);
        tracing::warn!(install.id = %install.id, "Refused a report: {reason}");
        let pk = match &report.body {
            ReportBody::Attempt(attempt) => table::job_pk(&attempt.job),
            ReportBody::Hello(_) | ReportBody::Heartbeat | ReportBody::Refused(_) => table::install_pk(&install.id),
        };
        self.record(pk, body, Some(report.runner.clone()), reason.clone()).await?;
        if let ReportBody::Attempt(attempt) = &report.body {
            self.stop_attempt(&attempt.job, attempt.fence, &report.runner).await?;
        }
        Ok(Accepted::Refused(reason))
    }

    /// Tells one attempt, and no other, to stop.
    async fn stop_attempt(&self, job: &JobId, fence: Fence, runner: &KeyId) -> Result<(), AppError> {
        let cancel = DispatchMessage::Cancel {
            job: job.clone(),
            dispatch: fence.dispatch,
            receive: Some(fence.receive),
            runner: Some(runner.clone()),
        };
        Ok(self.outbox.dispatch(&[cancel]).await?)
    }

    async fn record(&self, pk: String, body: &str, runner: Option<KeyId>, reason: String) -> Result<(), AppError> {
        let message = Digest::of(body.as_bytes());
        let refused = Refused { pk, message, at: self.clock.now(), runner, refusal: None, reason };
        table::store_refusal(&*self.store, &refused).await
    }

    async fn store_log(&self, report: &AttemptReport, now: Timestamp) -> Result<(), AppError> {
        let text = match &report.event {
            AttemptEvent::Progress { log } | AttemptEvent::Finished { log, .. } => log,
            AttemptEvent::Started | AttemptEvent::GrantRequest { .. } | AttemptEvent::AttestRequest { .. } => {
                return Ok(());
            }
        };
        if text.is_empty() {
            return Ok(());
        }
        let record = LogRecord { job: report.job.clone(), fence: report.fence, seq: report.seq, text: text.clone() };
        let write = put_until(&record, Expect::Any, now.plus_secs(LOG_TTL_SECS))?;
        let _ = self.store.commit(vec![write]).await?;
        Ok(())
    }

    async fn note_contact(&self, install: &InstallId) -> Result<(), AppError> {
        let now = self.clock.now();
        let known: Option<Stored<Contact>> = load(&*self.store, &table::contact_key(install)).await?;
        if known.is_some_and(|contact| now.since(contact.value.at) < CONTACT_SECS * 1000) {
            return Ok(());
        }
        let contact = Contact { install: install.clone(), at: now };
        let _ = self.store.commit(vec![put(&contact, Expect::Any)?]).await?;
        Ok(())
    }

    async fn heartbeat(&self, job: &Job) -> Result<(), AppError> {
        let token: Option<Stored<TaskToken>> = load(&*self.store, &token_key(&job.workflow, Phase::Run)).await?;
        if let Some(token) = token {
            self.callbacks.heartbeat(&token.value.token).await?;
        }
        Ok(())
    }
}

/// Ends the run phase of a settled workflow; without a token there is no machine that waits yet, and `sweep` looks
/// again.
///
/// # Errors
/// The store's or the machine's.
pub async fn resume_run(store: &dyn Store, callbacks: &dyn Callbacks, workflow: &Workflow) -> Result<(), AppError> {
    let token: Option<Stored<TaskToken>> = load(store, &token_key(&workflow.id, Phase::Run)).await?;
    if let Some(token) = token {
        callbacks.succeed(&token.value.token, &json!({ "result": "settled" })).await?;
    }
    Ok(())
}

/// Returns why the answers in a hello are not taken: more than a stack can have. Whether each fits its input is decided
/// where it is used, by the version that is deployed then.
fn too_much(hello: &Hello) -> Option<String> {
    let bytes: usize = hello.inputs.iter().map(|(name, value)| name.len() + value.len()).sum();
    let count = hello.inputs.len();
    (count > MAX_ANSWERS || bytes > MAX_ANSWERS_BYTES).then(|| {
        format!(
            "{count} answers of the install stack with {bytes} bytes are more than the {MAX_ANSWERS} and the \
             {MAX_ANSWERS_BYTES} bytes that are taken; the former ones stay"
        )
    })
}

fn unbelievable(error: freehold_protocol::EnvelopeError) -> AppError {
    AppError::invalid(error.to_string())
}

fn speaker<'a>(install: &'a Install, key: &KeyId) -> Option<&'a PublicKey> {
    install.runner.as_ref().map(|runner| &runner.public_key).filter(|public| public.key_id() == *key)
}

fn job_event(report: &AttemptReport, runner: &KeyId) -> JobEvent {
    let (fence, seq, runner) = (report.fence, report.seq, runner.clone());
    match &report.event {
        AttemptEvent::Started => JobEvent::Started { fence, seq, runner },
        AttemptEvent::Progress { .. } | AttemptEvent::GrantRequest { .. } | AttemptEvent::AttestRequest { .. } => {
            JobEvent::Progress { fence, seq, runner }
        }
        AttemptEvent::Finished { outcome, .. } => JobEvent::Finished { fence, runner, outcome: outcome.clone() },
    }
}

/// Progress of the attempt that is known to run, shortly after its last recorded contact, writes nothing.
fn is_quiet_progress(job: &Job, runner: &KeyId, report: &AttemptReport, now: Timestamp) -> bool {
    let progress = match report.event {
        AttemptEvent::Progress { .. } | AttemptEvent::GrantRequest { .. } | AttemptEvent::AttestRequest { .. } => true,
        AttemptEvent::Started | AttemptEvent::Finished { .. } => false,
    };
    let recent = matches!(&job.state, JobState::Running { last_contact, .. }
        if now.since(*last_contact) < PROGRESS_SECS * 1000);
    progress && recent && holds(job, report.fence, runner)
}

fn holds(job: &Job, fence: Fence, runner: &KeyId) -> bool {
    matches!(&job.state, JobState::Running { fence: current, runner: holder, .. }
        if *current == fence && holder == runner)
}

fn log_change(job: &Job) {
    let id: &JobId = &job.id;
    tracing::info!(job.id = %id, install.id = %job.install, "Job `{id}` (`{}`) is {}", job.node, job.state.word());
}

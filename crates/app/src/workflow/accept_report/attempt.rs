//! Handles the reports of an attempt: its start, its progress and its end.

use freehold_domain::install::Install;
use freehold_domain::job::{Job, JobEvent, JobState, Rejected};
use freehold_domain::workflow::Workflow;
use freehold_protocol::report::{AttemptEvent, AttemptReport, Fence, Outcome};
use freehold_protocol::{Envelope, JobId, KeyId, Timestamp};
use serde_json::json;

use super::refusal::not_its_job;
use super::{AcceptReport, Accepted};
use crate::AppError;
use crate::messages::{GrantMessage, Wants};
use crate::ports::{Callbacks, Store};
use crate::table::{LogRecord, Phase, Stored, TaskToken, load, token_key};
use crate::workflow::advance::required_checks::advance_checks;
use crate::workflow::advance::{self, Advanced, Reported};

/// The minimum time between two recorded contacts of a running job, in seconds.
const PROGRESS_SECS: u64 = 60;

impl AcceptReport {
    pub(super) async fn attempt(
        &self,
        install: &Install,
        runner: &KeyId,
        report: &AttemptReport,
        (envelope, body, sent_at): (&Envelope, &str, Timestamp),
    ) -> Result<Accepted, AppError> {
        let Some(current) = self.job_of(install, &report.job).await? else {
            return Err(not_its_job(install, &report.job));
        };
        self.note_strangers(install, &current, report, sent_at).await?;
        let (now, log) = (self.clock.now(), log_of(report));
        if is_quiet_progress(&current, runner, report, now) {
            self.store_log(log.as_ref(), now).await?;
            return self.after_progress(&current, runner, report).await;
        }
        let event = job_event(report, runner);
        let ends = matches!(report.event, AttemptEvent::Finished { .. });
        let last_log = log.as_ref().filter(|_| ends);
        let reported = Reported { message: Some(envelope), sent_at, last_log, install: Some(install) };
        let advanced = advance::job_event(&*self.store, &report.job, &event, Some(reported), now).await?;
        // When an end is accepted, its log has already been stored before the end. The log of a rejected report is stored only
        // if the report's attempt ended the job. An end may be accepted at first and rejected when its commit is tried again:
        // then its log stays stored, which does no harm.
        let keeps_log = match &advanced {
            Advanced::Rejected(job, Rejected::Ended { .. }) => is_ended_by(job, report.fence),
            Advanced::Rejected(..) => false,
            Advanced::Now { job, changed, .. } => !ends || !(*changed || is_ended_by(job, report.fence)),
            Advanced::NotYet(_) => true,
        };
        if keeps_log {
            self.store_log(log.as_ref(), now).await?;
        }
        match advanced {
            Advanced::Now { job, workflow, started, changed } => {
                if changed {
                    log_change(&job);
                }
                match workflow {
                    Some(workflow) => self.after_end(&workflow, &started, sent_at).await?,
                    None => {
                        self.heartbeat(&job).await?;
                        self.take_checks(&job, sent_at, now).await?;
                        return self.after_progress(&job, runner, report).await;
                    }
                }
                Ok(Accepted::Taken)
            }
            Advanced::NotYet(_) => Ok(Accepted::Taken),
            Advanced::Rejected(job, rejected) => self.reject(&job, runner, report.fence, &rejected, body).await,
        }
    }

    /// Applies the required checks of a job that waits for them. Results that were reported before the runner found the
    /// component healthy count at once.
    async fn take_checks(&self, job: &Job, sent_at: Timestamp, now: Timestamp) -> Result<(), AppError> {
        if let Some(Advanced::Now { job, workflow: Some(workflow), started, changed }) =
            advance_checks(&*self.store, job, now).await?
        {
            if changed {
                log_change(&job);
            }
            self.after_end(&workflow, &started, sent_at).await?;
        }
        Ok(())
    }

    /// Ends a cancelled job that the runner refused to start.
    pub(super) async fn cancelled_unstarted(
        &self,
        runner: &KeyId,
        job: &Job,
        (fence, sent_at): (Fence, Timestamp),
    ) -> Result<Accepted, AppError> {
        // A cancel of one stale attempt does not end the job.
        if job.cancel_requested.is_none() {
            return Ok(Accepted::Taken);
        }
        self.end_unstarted(job, &JobEvent::Refused { fence, runner: runner.clone() }, sent_at).await
    }

    /// Ends a job as failed after its runner refused the order because the runner does not understand the order.
    pub(super) async fn not_understood(
        &self,
        runner: &KeyId,
        job: &Job,
        (fence, sent_at): (Fence, Timestamp),
        reason: String,
    ) -> Result<Accepted, AppError> {
        let outcome = Outcome::Failed { reason, partial: false };
        self.end_unstarted(job, &JobEvent::finished(fence, runner.clone(), outcome), sent_at).await
    }

    /// Ends a job that the runner refused to start. The effects are the same as for a report of the job's end.
    async fn end_unstarted(&self, job: &Job, event: &JobEvent, sent_at: Timestamp) -> Result<Accepted, AppError> {
        let reported = Reported { message: None, sent_at, last_log: None, install: None };
        if let Advanced::Now { workflow: Some(workflow), started, .. } =
            advance::job_event(&*self.store, &job.id, event, Some(reported), self.clock.now()).await?
        {
            self.after_end(&workflow, &started, sent_at).await?;
        }
        Ok(Accepted::Taken)
    }

    /// Performs the effects of a job's end: dispatches the jobs that became ready, or resumes the state machine when
    /// all jobs have ended. `sent_at` is the time of the report.
    pub(super) async fn after_end(
        &self,
        workflow: &Workflow,
        started: &[JobId],
        sent_at: Timestamp,
    ) -> Result<(), AppError> {
        if workflow.is_settled() {
            // The contact is always recorded here: once later workflows exist, the search for the last report does not
            // read this workflow.
            self.note_contact_at(&workflow.install, sent_at, 0, None).await?;
            return resume_run(&*self.store, &*self.callbacks, workflow).await;
        }
        advance::dispatch(&*self.outbox, workflow, started).await
    }

    pub(super) async fn after_progress(
        &self,
        job: &Job,
        runner: &KeyId,
        report: &AttemptReport,
    ) -> Result<Accepted, AppError> {
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
            return Ok(Accepted::Refused(format!(
                "attempt {} is not the current attempt of job `{}`",
                report.fence, job.id
            )));
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
}

/// Ends the run phase of a settled workflow, in which no node will change. If no task token is stored, the state
/// machine is not waiting yet, and nothing happens; `sweep` tries again later. Nothing happens either if the workflow was
/// continued since it was loaded: its next execution waits for other jobs.
///
/// # Errors
/// The errors of the store or the state machine.
pub async fn resume_run(store: &dyn Store, callbacks: &dyn Callbacks, workflow: &Workflow) -> Result<(), AppError> {
    let token: Option<Stored<TaskToken>> = load(store, &token_key(&workflow.id, Phase::Run)).await?;
    if let Some(token) = token
        && token.value.attempt.is_none_or(|attempt| attempt == workflow.attempt())
    {
        callbacks.succeed(&token.value.token, &json!({ "result": "settled" })).await?;
    }
    Ok(())
}

/// Returns whether the attempt with this fence ended the job. A cancelled job has no fence, but its history does.
fn is_ended_by(job: &Job, fence: Fence) -> bool {
    job.history.iter().any(|record| record.what == "finished" && record.fence == Some(fence))
}

/// Returns the part of the log that a report contains, if there is one.
fn log_of(report: &AttemptReport) -> Option<LogRecord> {
    let text = match &report.event {
        AttemptEvent::Progress { log } | AttemptEvent::Finished { log, .. } => log,
        AttemptEvent::Started | AttemptEvent::GrantRequest { .. } | AttemptEvent::AttestRequest { .. } => return None,
    };
    let record = || LogRecord { job: report.job.clone(), fence: report.fence, seq: report.seq, text: text.clone() };
    (!text.is_empty()).then(record)
}

fn job_event(report: &AttemptReport, runner: &KeyId) -> JobEvent {
    let (fence, seq, runner) = (report.fence, report.seq, runner.clone());
    match &report.event {
        AttemptEvent::Started => JobEvent::Started { fence, seq, runner },
        AttemptEvent::Progress { .. } | AttemptEvent::GrantRequest { .. } | AttemptEvent::AttestRequest { .. } => {
            JobEvent::Progress { fence, seq, runner }
        }
        AttemptEvent::Finished { outcome, policies, .. } => {
            JobEvent::Finished { fence, runner, outcome: outcome.clone(), policies: policies.clone() }
        }
    }
}

/// Returns whether the report needs no write: it shows progress of the running attempt, and the last contact was
/// recorded less than [`PROGRESS_SECS`] ago.
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
    tracing::info!(job.id = %id, install.id = %job.install, "Job `{id}` (`{}`) is {}", job.node, job.state.as_str());
}

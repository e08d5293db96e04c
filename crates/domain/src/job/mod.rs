//! Jobs: one unit of work for one runner, its states and their transitions.

mod state;

use freehold_protocol::limits::{LOST_GRACE_SECS, MAX_JOB_SECS};
use freehold_protocol::order::Mode;
use freehold_protocol::report::{Fence, Outcome};
use freehold_protocol::time::rfc3339;
use freehold_protocol::{Group, InstallId, JobId, KeyId, RoleKey, Timestamp, WorkflowId};
use serde::{Deserialize, Serialize};

use crate::AuditRecord;

pub use state::{JobState, LastAttempt};

/// The maximum number of dispatches of one job.
pub const MAX_DISPATCHES: u32 = 11;

/// A job: one unit of work for one runner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    pub id: JobId,
    pub install: InstallId,
    pub workflow: WorkflowId,
    /// The name of the workflow's node that this job carries out.
    pub node: String,
    pub group: Group,
    pub serial: u64,
    pub mode: Mode,
    /// The named role under which the job runs instead of the role of its mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<RoleKey>,
    pub timeout_secs: u32,
    pub created_at: Timestamp,
    /// The time when the job's order expires. No attempt runs past this time.
    pub not_after: Timestamp,
    /// The time when someone asked to cancel the job. The attempt with the highest fence decides whether the request
    /// came in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_requested: Option<Timestamp>,
    /// The time when the control plane ended the job, because no report of its end had come. A report of the end that
    /// comes later still counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_at: Option<Timestamp>,
    /// The time of the last report that changed the job; absent in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_report: Option<Timestamp>,
    pub state: JobState,
    /// The audit records of all changes, oldest first. They are stored in the job's own item, so that a state and its
    /// audit record are written together.
    #[serde(default)]
    pub history: Vec<AuditRecord>,
}

/// An event that may change a job.
#[derive(Debug, Clone, PartialEq)]
pub enum JobEvent {
    /// An attempt started.
    Started { fence: Fence, seq: u64, runner: KeyId },
    /// An attempt is still working, or asked for an artifact.
    Progress { fence: Fence, seq: u64, runner: KeyId },
    /// An attempt ended.
    Finished { fence: Fence, runner: KeyId, outcome: Outcome },
    /// The runner did not start the attempt, because the job was cancelled.
    Refused { fence: Fence, runner: KeyId },
    /// Someone asked to cancel the job.
    Cancel,
    /// Time has passed: the job ends if all its orders have expired.
    Expire,
    /// The control plane dispatches the job again.
    Retry,
    /// The control plane can never send the order of this dispatch, so no attempt can start.
    Undeliverable { dispatch: u32, reason: String },
}

impl JobEvent {
    /// Returns the event's name, as audit records write it.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Started { .. } => "started",
            Self::Progress { .. } => "progress",
            Self::Finished { .. } => "finished",
            Self::Refused { .. } => "refused",
            Self::Cancel => "cancel",
            Self::Expire => "expire",
            Self::Retry => "retry",
            Self::Undeliverable { .. } => "undeliverable",
        }
    }

    const fn attempt(&self) -> Option<(Fence, &KeyId)> {
        match self {
            Self::Started { fence, runner, .. }
            | Self::Progress { fence, runner, .. }
            | Self::Finished { fence, runner, .. }
            | Self::Refused { fence, runner } => Some((*fence, runner)),
            Self::Cancel | Self::Expire | Self::Retry | Self::Undeliverable { .. } => None,
        }
    }
}

/// The effect of an event on a job.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub enum Step {
    /// The job changed. Commit the job with its audit record, then perform the effects of its new state.
    Changed { job: Box<Job>, audit: Box<AuditRecord> },
    /// The event was handled before, or does not change the job. Its effects may be performed again.
    Already,
    /// The job cannot expire yet.
    NotYet,
}

/// The reason why an event is refused. The job stays unchanged; the refused report is stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// The report is from an attempt that a newer attempt has replaced.
    #[error("attempt {found} of job `{job}` is stale: attempt {highest} has replaced it")]
    Stale { job: JobId, found: Fence, highest: Fence },
    /// Another runner holds the same fence. The runner that reported first keeps it; the other has to stop.
    #[error("attempt {fence} of job `{job}` is held by runner `{holder}`")]
    Held { job: JobId, fence: Fence, holder: KeyId },
    /// The job has ended.
    #[error("job `{job}` has ended as {state}")]
    Ended { job: JobId, state: &'static str },
    /// The report belongs to a dispatch that the control plane never made.
    #[error("dispatch {found} of job `{job}` does not exist: the last dispatch is {last}")]
    NeverDispatched { job: JobId, found: u32, last: u32 },
    /// The job was dispatched [`MAX_DISPATCHES`] times.
    #[error("job `{job}` was dispatched {MAX_DISPATCHES} times; deploy again to start a new job")]
    Exhausted { job: JobId },
    /// A job in this state cannot be retried.
    #[error("job `{job}` is {state}, but only a failed, interrupted or lost job can be retried")]
    NotRetryable { job: JobId, state: &'static str },
}

/// The values from which a new job is made.
#[derive(Debug, Clone, PartialEq)]
pub struct NewJob {
    pub install: InstallId,
    pub workflow: WorkflowId,
    pub node: String,
    pub group: Group,
    pub serial: u64,
    pub mode: Mode,
    pub role: Option<RoleKey>,
    pub timeout_secs: u32,
}

impl Job {
    /// Returns a queued job. The runner may start it within `claim_window_secs`, and it may then run for its timeout.
    pub fn new(new: NewJob, claim_window_secs: u64, now: Timestamp) -> Self {
        let timeout_secs = new.timeout_secs.min(MAX_JOB_SECS);
        Self {
            id: JobId::derive(&new.workflow, &new.node),
            install: new.install,
            workflow: new.workflow,
            node: new.node,
            group: new.group,
            serial: new.serial,
            mode: new.mode,
            role: new.role,
            timeout_secs,
            created_at: now,
            not_after: now.plus_secs(claim_window_secs + u64::from(timeout_secs)),
            cancel_requested: None,
            last_report: None,
            lost_at: None,
            state: JobState::Queued { dispatch: 1 },
            history: Vec::new(),
        }
    }

    /// Returns the effect of `event` on this job at the time `now`.
    ///
    /// # Errors
    /// [`Rejected`] when the event must not change the job.
    pub fn on(&self, event: &JobEvent, now: Timestamp) -> Result<Step, Rejected> {
        if let Some((fence, _)) = event.attempt() {
            self.check_dispatch(fence)?;
        }
        match &self.state {
            JobState::Queued { dispatch } => self.while_queued(*dispatch, event, now),
            JobState::Running { fence, runner, last_seq, .. } => {
                self.while_running(*fence, runner, *last_seq, event, now)
            }
            JobState::Lost { attempt, .. } => self.when_lost(attempt.as_ref(), event, now),
            JobState::Cancelled { unclaimed: true, .. } => self.when_lost(None, event, now),
            JobState::Succeeded { .. }
            | JobState::Failed { .. }
            | JobState::Blocked { .. }
            | JobState::Interrupted { .. }
            | JobState::Cancelled { unclaimed: false, .. } => self.when_ended(event, now),
        }
    }

    /// Returns whether the job was lost before the report of its end came.
    pub const fn is_reported_late(&self) -> bool {
        self.lost_at.is_some() && self.state.reported_at().is_some()
    }

    /// Returns why the job did not succeed, as [`JobState::reason`] does. If the outcome was reported after the job was
    /// lost, the text contains this, even for a job that succeeded.
    pub fn reason(&self) -> Option<String> {
        let reason = self.state.reason();
        let (Some(lost_at), Some(came_at)) = (self.lost_at, self.state.reported_at()) else { return reason };
        let late = format!("was lost at {}, the report of its end came at {}", utc(lost_at), utc(came_at));
        Some(reason.map_or_else(|| late.clone(), |reason| format!("{late}: {reason}")))
    }

    /// Returns whether the job ended without success and one of its attempts may have changed something. A runner may
    /// have worked on an earlier delivery of the order although none of its reports arrived, so a report that nothing
    /// changed counts only if its attempt was the first one.
    pub fn may_have_changed(&self) -> bool {
        match &self.state {
            JobState::Queued { .. } | JobState::Running { .. } | JobState::Succeeded { .. } => false,
            JobState::Blocked { fence, .. } => !is_first(*fence),
            JobState::Failed { fence, partial, .. } => *partial || !is_first(*fence),
            JobState::Interrupted { .. } | JobState::Lost { .. } => true,
            JobState::Cancelled { .. } => !self.is_refused_unstarted(),
        }
    }

    /// Returns whether the job was cancelled before its first attempt started.
    fn is_refused_unstarted(&self) -> bool {
        let is_refusal = |record: &AuditRecord| record.what == "refused" && record.fence.is_some_and(is_first);
        self.history.last().is_some_and(is_refusal) && !self.history.iter().any(|record| record.to == "running")
    }

    /// Returns whether a report says that the job has ended and changed nothing. Returns false for every job that was
    /// lost or cancelled.
    pub fn changed_nothing(&self) -> bool {
        match &self.state {
            JobState::Failed { .. } | JobState::Blocked { .. } => self.lost_at.is_none() && !self.may_have_changed(),
            JobState::Queued { .. }
            | JobState::Running { .. }
            | JobState::Succeeded { .. }
            | JobState::Interrupted { .. }
            | JobState::Cancelled { .. }
            | JobState::Lost { .. } => false,
        }
    }

    /// Records the time `sent_at`, at which the queue took a report. `before` is the job as it was before this report.
    /// The time of the last report never goes backward. The time at which the report is handled does not count: it may
    /// be much later, and the runner may have stopped meanwhile.
    #[must_use]
    pub fn heard_at(self, sent_at: Timestamp, before: &Self) -> Self {
        Self { last_report: before.last_report().max(Some(sent_at)), ..self }
    }

    /// Returns the time of the last report that changed the job. Records of earlier versions have it only in their state
    /// and in their history.
    pub fn last_report(&self) -> Option<Timestamp> {
        if self.last_report.is_some() {
            return self.last_report;
        }
        let running = match &self.state {
            JobState::Running { last_contact, .. } => Some(*last_contact),
            JobState::Queued { .. }
            | JobState::Succeeded { .. }
            | JobState::Failed { .. }
            | JobState::Blocked { .. }
            | JobState::Interrupted { .. }
            | JobState::Lost { .. }
            | JobState::Cancelled { .. } => None,
        };
        let reported = self.history.iter().filter(|record| record.runner.is_some()).map(|record| record.at);
        reported.chain(running).max()
    }

    fn while_queued(&self, dispatch: u32, event: &JobEvent, now: Timestamp) -> Result<Step, Rejected> {
        match event {
            JobEvent::Started { fence, seq, runner } | JobEvent::Progress { fence, seq, runner } => {
                Ok(self.running(event, *fence, *seq, runner, now))
            }
            JobEvent::Finished { fence, outcome, .. } => Ok(self.ended(event, *fence, outcome, now)),
            JobEvent::Refused { fence, .. } => Ok(self.ended(event, *fence, &Outcome::Cancelled, now)),
            JobEvent::Cancel => Ok(self.cancel_requested(event, now)),
            JobEvent::Expire => Ok(self.expire(dispatch, event, now)),
            JobEvent::Retry => Err(self.not_retryable()),
            JobEvent::Undeliverable { dispatch: failed, .. } if *failed != dispatch => Ok(Step::Already),
            JobEvent::Undeliverable { reason, .. } => {
                // No attempt has this fence, because receives are counted from 1.
                let fence = Fence { dispatch, receive: 0 };
                let outcome = Outcome::Failed { reason: reason.clone(), partial: false };
                Ok(self.ended(event, fence, &outcome, now))
            }
        }
    }

    fn while_running(
        &self,
        current: Fence,
        holder: &KeyId,
        last_seq: u64,
        event: &JobEvent,
        now: Timestamp,
    ) -> Result<Step, Rejected> {
        self.check_attempt(current, holder, event)?;
        match event {
            JobEvent::Started { fence, seq, runner } | JobEvent::Progress { fence, seq, runner } => {
                if *fence == current && *seq <= last_seq {
                    return Ok(Step::Already);
                }
                Ok(self.running(event, *fence, *seq, runner, now))
            }
            JobEvent::Finished { fence, outcome, .. } => Ok(self.ended(event, *fence, outcome, now)),
            JobEvent::Refused { fence, .. } => Ok(self.ended(event, *fence, &Outcome::Cancelled, now)),
            JobEvent::Cancel => Ok(self.cancel_requested(event, now)),
            JobEvent::Expire => Ok(self.expire(current.dispatch, event, now)),
            JobEvent::Retry => Err(self.not_retryable()),
            JobEvent::Undeliverable { .. } => Ok(Step::Already),
        }
    }

    fn when_ended(&self, event: &JobEvent, now: Timestamp) -> Result<Step, Rejected> {
        match event {
            JobEvent::Started { fence, .. }
            | JobEvent::Progress { fence, .. }
            | JobEvent::Finished { fence, .. }
            | JobEvent::Refused { fence, .. } => {
                if self.state.fence() == Some(*fence) {
                    return Ok(Step::Already);
                }
                Err(Rejected::Ended { job: self.id.clone(), state: self.state.as_str() })
            }
            JobEvent::Cancel | JobEvent::Expire | JobEvent::Undeliverable { .. } => Ok(Step::Already),
            JobEvent::Retry => self.retry(event, now),
        }
    }

    /// Returns the effect of an event on a job that was lost. Reports have the same effect as before the loss, so that
    /// the outcome does not depend on the time at which they arrive; but the job does not run again.
    fn when_lost(&self, last: Option<&LastAttempt>, event: &JobEvent, now: Timestamp) -> Result<Step, Rejected> {
        if let Some(LastAttempt { fence, runner }) = last {
            self.check_attempt(*fence, runner, event)?;
        }
        match event {
            JobEvent::Started { fence, runner, .. } | JobEvent::Progress { fence, runner, .. } => {
                if last.is_some_and(|last| last.fence == *fence) {
                    return Ok(Step::Already);
                }
                let ended_at = self.lost_at.unwrap_or(now);
                let attempt = Some(LastAttempt { fence: *fence, runner: runner.clone() });
                Ok(self.change(JobState::Lost { dispatch: fence.dispatch, ended_at, attempt }, event, now))
            }
            JobEvent::Finished { fence, outcome, .. } => Ok(self.ended(event, *fence, outcome, now)),
            JobEvent::Refused { fence, .. } => Ok(self.ended(event, *fence, &Outcome::Cancelled, now)),
            JobEvent::Cancel | JobEvent::Expire | JobEvent::Undeliverable { .. } => Ok(Step::Already),
            JobEvent::Retry => self.retry(event, now),
        }
    }

    /// Refuses a report of an attempt before `current`, and a report of another runner with the same fence.
    fn check_attempt(&self, current: Fence, holder: &KeyId, event: &JobEvent) -> Result<(), Rejected> {
        let Some((fence, runner)) = event.attempt() else { return Ok(()) };
        if fence < current {
            return Err(Rejected::Stale { job: self.id.clone(), found: fence, highest: current });
        }
        if fence == current && runner != holder {
            return Err(Rejected::Held { job: self.id.clone(), fence, holder: holder.clone() });
        }
        Ok(())
    }

    /// Checks that a report belongs to the current dispatch.
    fn check_dispatch(&self, fence: Fence) -> Result<(), Rejected> {
        let last = self.state.dispatch();
        if fence.dispatch > last {
            return Err(Rejected::NeverDispatched { job: self.id.clone(), found: fence.dispatch, last });
        }
        if fence.dispatch < last {
            let highest = self.state.fence().unwrap_or(Fence { dispatch: last, receive: 0 });
            return Err(Rejected::Stale { job: self.id.clone(), found: fence, highest });
        }
        Ok(())
    }

    fn running(&self, event: &JobEvent, fence: Fence, seq: u64, runner: &KeyId, now: Timestamp) -> Step {
        let started_at = match &self.state {
            JobState::Running { fence: current, started_at, .. } if *current == fence => *started_at,
            _ => now,
        };
        let state = JobState::Running { fence, runner: runner.clone(), started_at, last_seq: seq, last_contact: now };
        self.change(state, event, now)
    }

    fn ended(&self, event: &JobEvent, fence: Fence, outcome: &Outcome, now: Timestamp) -> Step {
        let ended_at = now;
        let state = match outcome.clone() {
            Outcome::Succeeded { outputs, sensitive, artifact } => {
                JobState::Succeeded { fence, ended_at, outputs, sensitive, artifact }
            }
            Outcome::Failed { reason, partial } => JobState::Failed { fence, ended_at, reason, partial },
            Outcome::Blocked { block, reason } => JobState::Blocked { fence, ended_at, block, reason },
            Outcome::Interrupted { reason } => JobState::Interrupted { fence, ended_at, reason },
            Outcome::Cancelled => JobState::Cancelled { dispatch: fence.dispatch, ended_at, unclaimed: false },
        };
        self.change(state, event, now)
    }

    fn cancel_requested(&self, event: &JobEvent, now: Timestamp) -> Step {
        if self.cancel_requested.is_some() {
            return Step::Already;
        }
        let mut asked = self.clone();
        asked.cancel_requested = Some(now);
        asked.change(self.state.clone(), event, now)
    }

    /// Ends the job once its orders have expired and the last attempt's reports had time to arrive. No attempt runs
    /// past `not_after`, so no attempt is running then, and a new dispatch cannot overlap with an old one.
    fn expire(&self, dispatch: u32, event: &JobEvent, now: Timestamp) -> Step {
        if now < self.not_after.plus_secs(LOST_GRACE_SECS) {
            return Step::NotYet;
        }
        let mut attempt = None;
        if let JobState::Running { fence, runner, .. } = &self.state {
            attempt = Some(LastAttempt { fence: *fence, runner: runner.clone() });
        }
        let mut lost = self.clone();
        lost.lost_at = Some(now);
        if attempt.is_none() && self.cancel_requested.is_some() {
            return lost.change(JobState::Cancelled { dispatch, ended_at: now, unclaimed: true }, event, now);
        }
        lost.change(JobState::Lost { dispatch, ended_at: now, attempt }, event, now)
    }

    fn retry(&self, event: &JobEvent, now: Timestamp) -> Result<Step, Rejected> {
        match &self.state {
            JobState::Failed { .. } | JobState::Interrupted { .. } | JobState::Lost { .. } => {}
            JobState::Queued { .. }
            | JobState::Running { .. }
            | JobState::Succeeded { .. }
            | JobState::Blocked { .. }
            | JobState::Cancelled { .. } => return Err(self.not_retryable()),
        }
        let dispatch = self.state.dispatch();
        if dispatch >= MAX_DISPATCHES {
            return Err(Rejected::Exhausted { job: self.id.clone() });
        }
        let mut again = self.clone();
        let window = self.not_after.since(self.created_at) / 1000;
        again.created_at = now;
        again.not_after = now.plus_secs(window);
        again.cancel_requested = None;
        again.lost_at = None;
        Ok(again.change(JobState::Queued { dispatch: dispatch + 1 }, event, now))
    }

    fn not_retryable(&self) -> Rejected {
        Rejected::NotRetryable { job: self.id.clone(), state: self.state.as_str() }
    }

    fn change(&self, state: JobState, event: &JobEvent, now: Timestamp) -> Step {
        let audit = AuditRecord {
            at: now,
            job: self.id.clone(),
            what: event.as_str().to_owned(),
            from: self.state.as_str().to_owned(),
            to: state.as_str().to_owned(),
            fence: event.attempt().map(|(fence, _)| fence),
            runner: event.attempt().map(|(_, runner)| runner.clone()),
            reason: state.reason().unwrap_or_default(),
        };
        let mut job = self.clone();
        job.last_report = self.last_report().max(event.attempt().map(|_| now));
        job.state = state;
        if !matches!(event, JobEvent::Progress { .. }) || audit.from != audit.to {
            job.history.push(audit.clone());
        }
        Step::Changed { job: Box::new(job), audit: Box::new(audit) }
    }
}

/// Returns whether no attempt came before the one with this fence. The receive count of an order that was never sent is
/// 0.
const fn is_first(fence: Fence) -> bool {
    fence.dispatch == 1 && fence.receive <= 1
}

fn utc(time: Timestamp) -> String {
    rfc3339::text(time).unwrap_or_default()
}

#[cfg(test)]
mod tests;

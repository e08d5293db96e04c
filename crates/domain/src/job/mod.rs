//! Jobs: one unit of work for one runner, its states and their transitions.

mod after_attempt;
mod approval;
mod approval_event;
mod durations;
mod effects;
mod end;
mod event;
mod history;
mod required_checks;
mod retry;
mod state;
mod waiting;
mod window;
mod window_event;

use std::collections::BTreeMap;

use freehold_protocol::approval::OrderApproval;
use freehold_protocol::limits::MAX_JOB_SECS;
use freehold_protocol::order::Mode;
use freehold_protocol::policy::PolicyResult;
use freehold_protocol::report::{Fence, Outcome};
use freehold_protocol::time::rfc3339;
use freehold_protocol::{Digest, Group, InstallId, JobId, KeyId, RoleKey, Timestamp, WorkflowId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::AuditRecord;
use crate::required_checks::AwaitedChecks;

pub use approval_event::ApprovalEvent;
pub use event::{CancelAsked, JobEvent};
pub use state::{JobState, LastAttempt};
pub use window_event::WindowEvent;

/// The maximum number of dispatches of one job, from one continuation of its workflow to the next. The orders that
/// [`Job::returned`] counts do not count here.
pub const MAX_DISPATCHES: u32 = 11;

/// The value of [`Job::returned`] from which a job is not ordered again because its runner gave the order back, or
/// because its plan was approved.
const MAX_RETURNS: u32 = 500;

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
    /// The time until which the job waits for a runner, however often its order expires; 0 in records of earlier
    /// versions.
    #[serde(default)]
    pub wait_until: Timestamp,
    /// The time until which the record is stored; absent for a job that may have changed something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_until: Option<Timestamp>,
    /// The number of orders of the job that do not count as tries: those that a runner gave back, those that never
    /// reached the queue, and those that followed an approval.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub returned: u32,
    /// The number of dispatches, without those that were given back, when the workflow was last continued. These
    /// dispatches do not count against [`MAX_DISPATCHES`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub earlier: u32,
    /// The time when someone asked to cancel the job. The attempt with the highest fence decides whether the request
    /// came in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_requested: Option<Timestamp>,
    /// Who asked to cancel the job, and why; absent without a request, and in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_asked: Option<CancelAsked>,
    /// The time when the control plane ended the job, because no report of its end had come. A report of the end that
    /// comes later still counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_at: Option<Timestamp>,
    /// The time of the last report that changed the job; absent in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_report: Option<Timestamp>,
    /// The results of the policies that the runner evaluated, from the report of the job's end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<PolicyResult>,
    /// The plan that the job's present order applies, and who approved it at the vendor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<OrderApproval>,
    /// The required checks for which the job waits after its runner found the component healthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks: Option<AwaitedChecks>,
    pub state: JobState,
    /// The audit records of the changes, oldest first. They are stored in the job's own item, so that a state and its
    /// audit record are written together. If a job changes very often, only the first records, the newest ones, and
    /// those of ends and of the first start are stored.
    #[serde(default)]
    pub history: Vec<AuditRecord>,
    /// The fields that only a later version of Freehold knows. They stay in the row.
    #[serde(flatten)]
    pub later_fields: BTreeMap<String, Value>,
}

/// The effect of an event on a job.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub enum Step {
    /// The job changed. Commit the job with its audit record, then perform the effects of its new state.
    Changed { job: Box<Job>, audit: Box<AuditRecord> },
    /// The event was handled before, or does not change the job. Its effects may be performed again.
    Already,
    /// The event is too early: more time must pass first.
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
    #[error(
        "job `{job}` was dispatched {MAX_DISPATCHES} times since its workflow began or was last continued; deploy again to start a new job"
    )]
    Exhausted { job: JobId },
    /// A job in this state cannot be retried.
    #[error("job `{job}` is {state}, but only a failed, interrupted or lost job can be retried")]
    NotRetryable { job: JobId, state: &'static str },
    /// The job does not wait for an approval.
    #[error("job `{job}` is {state}, and does not wait for an approval")]
    NotWaiting { job: JobId, state: &'static str },
    /// The job waits for the approval of another plan.
    #[error(
        "job `{job}` waits for the approval of plan `{waits}`, not of `{named}`; run `freehold job show {job}` to see \
         the present plan"
    )]
    OtherPlan { job: JobId, waits: Digest, named: Digest },
    /// The time for the approval has passed.
    #[error("plan `{plan}` of job `{job}` expired at {} and can no longer be approved; start the job again", utc(*.until))]
    ExpiredPlan { job: JobId, plan: Digest, until: Timestamp },
}

/// How long a job waits for a runner, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitLimits {
    /// How long one order may wait until it is started.
    pub order_secs: u64,
    /// How long the job waits in all. Its order is sent again when a runner gives the expired order back.
    pub job_secs: u64,
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
    /// Returns a queued job. A runner may start it within `limits.order_secs`, and it may then run for its timeout. If no
    /// runner does, the job is ordered again until `limits.job_secs` are over.
    pub fn new(new: NewJob, limits: WaitLimits, now: Timestamp) -> Self {
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
            not_after: now.plus_secs(limits.order_secs + u64::from(timeout_secs)),
            wait_until: now.plus_secs(limits.job_secs),
            kept_until: None,
            returned: 0,
            earlier: 0,
            cancel_requested: None,
            cancel_asked: None,
            last_report: None,
            policies: Vec::new(),
            approval: None,
            checks: None,
            lost_at: None,
            state: JobState::Queued { dispatch: 1 },
            history: Vec::new(),
            later_fields: BTreeMap::new(),
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
        if let (JobEvent::Approval(approval), false) =
            (event, matches!(self.state, JobState::WaitingForApproval { .. }))
        {
            return self.approval_elsewhere(approval);
        }
        if let (JobEvent::Checks(_), false) = (event, matches!(self.state, JobState::WaitingForChecks { .. })) {
            return Ok(Step::Already);
        }
        match &self.state {
            JobState::Queued { dispatch } => self.while_queued(*dispatch, event, now),
            JobState::Running { fence, runner, last_seq, .. } => {
                self.while_running(*fence, runner, *last_seq, event, now)
            }
            JobState::WaitingForRunner { dispatch, attempt, .. } => {
                self.while_waiting(*dispatch, attempt.as_ref(), event, now)
            }
            JobState::WaitingForWindow { dispatch, since, .. } => {
                self.while_waiting_for_window(*dispatch, *since, event, now)
            }
            JobState::WaitingForApproval { fence, runner, .. } => {
                self.while_waiting_for_approval((*fence, runner), event, now)
            }
            JobState::WaitingForChecks { fence, runner, .. } => {
                self.while_waiting_for_checks((*fence, runner), event, now)
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
    /// lost, the text states this, even for a job that succeeded.
    pub fn reason(&self) -> Option<String> {
        let gave_up = |at: &Timestamp| *at >= self.runner_wait_until() && self.runner_wait_until() > self.not_after;
        let reason = match (&self.state, self.lost_at.filter(gave_up)) {
            (JobState::Lost { .. }, Some(_)) => {
                let until = utc(self.runner_wait_until());
                Some(format!("the job waited for its runner until {until}, and no report of its end came"))
            }
            _ => self.state.reason(),
        };
        let (Some(lost_at), Some(came_at)) = (self.lost_at, self.state.reported_at()) else { return reason };
        let late = format!("was lost at {}, the report of its end came at {}", utc(lost_at), utc(came_at));
        Some(reason.map_or_else(|| late.clone(), |reason| format!("{late}: {reason}")))
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
            | JobState::WaitingForRunner { .. }
            | JobState::WaitingForWindow { .. }
            | JobState::WaitingForApproval { .. }
            | JobState::WaitingForChecks { .. }
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
            JobEvent::Cancel(by) => Ok(self.cancel_requested(by, event, now)),
            JobEvent::Expire => Ok(self.expire(dispatch, None, event, now)),
            JobEvent::Wait => Ok(self.wait(dispatch, None, event, now)),
            JobEvent::Returned { .. } => Ok(self.order_again(event, now)),
            JobEvent::Retry | JobEvent::Resume { .. } => Err(self.not_retryable()),
            JobEvent::Window(window) => Ok(self.on_window(window, event, now)),
            JobEvent::Approval(approval) => self.approval_elsewhere(approval),
            JobEvent::Checks(_) => Ok(Step::Already),
            JobEvent::Unsent { dispatch: unsent } => Ok(self.unsent((*unsent, dispatch), event, now)),
            JobEvent::Undeliverable { dispatch: failed, .. } if *failed != dispatch => Ok(Step::Already),
            JobEvent::Undeliverable { .. } if self.cancel_requested.is_some() => {
                Ok(self.change(JobState::Cancelled { dispatch, ended_at: now, unclaimed: true }, event, now))
            }
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
            JobEvent::Cancel(by) => Ok(self.cancel_requested(by, event, now)),
            JobEvent::Expire => Ok(self.expire(current.dispatch, self.last_attempt(), event, now)),
            JobEvent::Wait => Ok(self.wait(current.dispatch, self.last_attempt(), event, now)),
            JobEvent::Returned { fence, .. } if *fence == current => Ok(Step::Already),
            JobEvent::Returned { .. } => Ok(self.order_again(event, now)),
            JobEvent::Retry | JobEvent::Resume { .. } => Err(self.not_retryable()),
            JobEvent::Window(window) => Ok(self.on_window(window, event, now)),
            JobEvent::Approval(approval) => self.approval_elsewhere(approval),
            JobEvent::Undeliverable { .. } | JobEvent::Unsent { .. } | JobEvent::Checks(_) => Ok(Step::Already),
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

    fn cancel_requested(&self, by: &CancelAsked, event: &JobEvent, now: Timestamp) -> Step {
        if self.cancel_requested.is_some() {
            return Step::Already;
        }
        let mut asked = self.clone();
        asked.cancel_requested = Some(now);
        asked.cancel_asked = Some(by.clone());
        asked.change(self.state.clone(), event, now)
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
            reason: state.reason().unwrap_or_else(|| event.comment()),
        };
        let mut job = self.clone();
        job.last_report = self.last_report().max(event.attempt().map(|_| now));
        job.state = state;
        if !matches!(event, JobEvent::Progress { .. }) || audit.from != audit.to {
            history::add(&mut job.history, &audit);
        }
        Step::Changed { job: Box::new(job), audit: Box::new(audit) }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn utc(time: Timestamp) -> String {
    rfc3339::text(time).unwrap_or_default()
}

#[cfg(test)]
mod tests;

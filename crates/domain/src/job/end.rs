//! How a job ends: by a report, or because its order has expired. Also handles the events that come after the end.

use freehold_protocol::Timestamp;
use freehold_protocol::report::{Fence, Outcome};

use super::{Job, JobEvent, JobState, LastAttempt, Rejected, Step, WindowEvent};

impl Job {
    pub(super) fn when_ended(&self, event: &JobEvent, now: Timestamp) -> Result<Step, Rejected> {
        match event {
            JobEvent::Started { fence, .. }
            | JobEvent::Progress { fence, .. }
            | JobEvent::Finished { fence, .. }
            | JobEvent::Refused { fence, .. }
            | JobEvent::Returned { fence, .. }
            | JobEvent::Window(WindowEvent::Refused { fence, .. }) => {
                if self.state.fence() == Some(*fence) {
                    return Ok(Step::Already);
                }
                Err(Rejected::Ended { job: self.id.clone(), state: self.state.as_str() })
            }
            JobEvent::Cancel(_)
            | JobEvent::Expire
            | JobEvent::Wait
            | JobEvent::Undeliverable { .. }
            | JobEvent::Unsent { .. }
            | JobEvent::Window(WindowEvent::Closed { .. } | WindowEvent::Opened)
            | JobEvent::Checks(_) => Ok(Step::Already),
            JobEvent::Retry => self.retry(event, now),
            JobEvent::Resume { .. } => self.resume(event, now),
            JobEvent::Approval(approval) => self.approval_elsewhere(approval),
        }
    }

    /// Returns the effect of an event on a job that was lost. Reports have the same effect as before the loss, so that
    /// the outcome does not depend on the time at which they arrive; but the job does not run again.
    pub(super) fn when_lost(
        &self,
        last: Option<&LastAttempt>,
        event: &JobEvent,
        now: Timestamp,
    ) -> Result<Step, Rejected> {
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
            JobEvent::Cancel(_)
            | JobEvent::Expire
            | JobEvent::Wait
            | JobEvent::Returned { .. }
            | JobEvent::Window(_)
            | JobEvent::Undeliverable { .. }
            | JobEvent::Unsent { .. }
            | JobEvent::Checks(_) => Ok(Step::Already),
            JobEvent::Retry => self.retry(event, now),
            JobEvent::Resume { .. } => self.resume(event, now),
            JobEvent::Approval(approval) => self.approval_elsewhere(approval),
        }
    }

    pub(super) fn ended(&self, event: &JobEvent, fence: Fence, outcome: &Outcome, now: Timestamp) -> Step {
        let ended_at = now;
        let mut asked = self.clone();
        if let JobEvent::Finished { policies, .. } = event {
            asked.policies.clone_from(policies);
        }
        let state = match outcome.clone() {
            Outcome::NeedsApproval { plan } => {
                let Some(state) = self.with_plan(event, fence, *plan, now) else { return Step::Already };
                if matches!(state, JobState::WaitingForApproval { .. }) {
                    asked.approval = None;
                }
                state
            }
            Outcome::Succeeded { outputs, sensitive, artifact } => {
                let waiting = self.awaiting_checks(event, fence, &outputs, now);
                waiting.unwrap_or(JobState::Succeeded { fence, ended_at, outputs, sensitive, artifact })
            }
            Outcome::Failed { reason, partial } => JobState::Failed { fence, ended_at, reason, partial },
            Outcome::Blocked { block, reason } => JobState::Blocked { fence, ended_at, block, reason },
            Outcome::Interrupted { reason } => JobState::Interrupted { fence, ended_at, reason },
            Outcome::Cancelled => JobState::Cancelled { dispatch: fence.dispatch, ended_at, unclaimed: false },
        };
        asked.change(state, event, now)
    }

    /// Ends the job once its order has expired and the last attempt's reports had time to arrive. No attempt runs past
    /// `not_after`, so no attempt is running then, and a new dispatch cannot overlap with an old one.
    pub(super) fn expire(&self, dispatch: u32, attempt: Option<LastAttempt>, event: &JobEvent, now: Timestamp) -> Step {
        if !self.is_outlived(now) {
            return Step::NotYet;
        }
        let mut lost = self.clone();
        lost.lost_at = Some(now);
        if attempt.is_none() && self.cancel_requested.is_some() {
            return lost.change(JobState::Cancelled { dispatch, ended_at: now, unclaimed: true }, event, now);
        }
        lost.change(JobState::Lost { dispatch, ended_at: now, attempt }, event, now)
    }
}

//! How a job waits for its runner: past the expiry of its order, until a runner gives the expired order back.
//!
//! An order is valid for a short time, because whoever has a copy could send it again while it is valid. The expired
//! order stays in its queue until a runner receives it. This runner gives the order back, and the job gets a new order.

use freehold_protocol::Timestamp;
use freehold_protocol::limits::{LOST_GRACE_SECS, MAX_WAIT_SECS, MAX_WINDOW_WAIT_SECS};
use freehold_protocol::report::{Fence, Outcome};

use super::{Job, JobEvent, JobState, LastAttempt, MAX_RETURNS, Rejected, Step};

/// The age, in seconds, from which an order that nobody has started counts as waiting for its runner.
const UNCLAIMED_SECS: u64 = 60;

impl Job {
    /// Returns the time until which an attempt may start under the present order. An attempt that starts then has the
    /// whole time limit of the job.
    pub fn start_by(&self) -> Timestamp {
        let window = self.not_after.since(self.created_at) / 1000;
        self.created_at.plus_secs(window.saturating_sub(self.timeout_secs.into()))
    }

    /// Returns the time until which the job waits for a runner, for the customer's window, for an approval or for checks.
    pub fn waits_until(&self) -> Timestamp {
        match &self.state {
            JobState::WaitingForWindow { since, .. } => since.plus_secs(MAX_WINDOW_WAIT_SECS),
            JobState::WaitingForApproval { plan, .. } => plan.until,
            JobState::WaitingForChecks { until, .. } => *until,
            JobState::Queued { .. }
            | JobState::Running { .. }
            | JobState::WaitingForRunner { .. }
            | JobState::Succeeded { .. }
            | JobState::Failed { .. }
            | JobState::Blocked { .. }
            | JobState::Interrupted { .. }
            | JobState::Lost { .. }
            | JobState::Cancelled { .. } => self.runner_wait_until(),
        }
    }

    /// Returns the time until which the job waits for a runner.
    pub fn runner_wait_until(&self) -> Timestamp {
        if self.wait_until == Timestamp::default() { self.created_at.plus_secs(MAX_WAIT_SECS) } else { self.wait_until }
    }

    /// Returns whether the present order has expired, and the reports of its attempts had time to arrive.
    pub fn is_outlived(&self, now: Timestamp) -> bool {
        now >= self.not_after.plus_secs(LOST_GRACE_SECS)
    }

    /// Returns the time by which a cancelled job ends even if its runner does not answer; `None` for a job that nobody
    /// cancelled or that has ended. A job that waits without a valid order ends with the next sweep.
    pub fn ends_by(&self) -> Option<Timestamp> {
        let asked = self.cancel_requested?;
        match &self.state {
            JobState::Queued { .. } | JobState::Running { .. } => Some(self.not_after.plus_secs(LOST_GRACE_SECS)),
            JobState::WaitingForRunner { .. }
            | JobState::WaitingForWindow { .. }
            | JobState::WaitingForApproval { .. }
            | JobState::WaitingForChecks { .. } => Some(asked),
            JobState::Succeeded { .. }
            | JobState::Failed { .. }
            | JobState::Blocked { .. }
            | JobState::Interrupted { .. }
            | JobState::Lost { .. }
            | JobState::Cancelled { .. } => None,
        }
    }

    /// Returns the time since which the job waits for a runner, for the customer's window, for an approval or for checks, as
    /// far as is known at the time `now`; `None` while an attempt works, and for a job that has ended.
    pub fn waits_since(&self, now: Timestamp) -> Option<Timestamp> {
        match &self.state {
            JobState::WaitingForRunner { since, .. }
            | JobState::WaitingForWindow { since, .. }
            | JobState::WaitingForApproval { since, .. }
            | JobState::WaitingForChecks { since, .. } => Some(*since),
            JobState::Queued { .. } => (now.since(self.created_at) >= UNCLAIMED_SECS * 1000).then_some(self.created_at),
            JobState::Running { .. }
            | JobState::Succeeded { .. }
            | JobState::Failed { .. }
            | JobState::Blocked { .. }
            | JobState::Interrupted { .. }
            | JobState::Lost { .. }
            | JobState::Cancelled { .. } => None,
        }
    }

    /// Returns whether the job waits for its runner past the expiry of its order, for the customer's window, for an
    /// approval or for checks, and nobody asked to cancel it. The job then stays unchanged until somebody acts, or
    /// until it has waited long enough.
    pub fn is_left_to_wait(&self) -> bool {
        let waits = match &self.state {
            JobState::WaitingForRunner { .. }
            | JobState::WaitingForWindow { .. }
            | JobState::WaitingForChecks { .. } => true,
            JobState::WaitingForApproval { .. } => !self.is_approved(),
            JobState::Queued { .. }
            | JobState::Running { .. }
            | JobState::Succeeded { .. }
            | JobState::Failed { .. }
            | JobState::Blocked { .. }
            | JobState::Interrupted { .. }
            | JobState::Lost { .. }
            | JobState::Cancelled { .. } => false,
        };
        waits && self.cancel_requested.is_none()
    }

    pub(super) fn last_attempt(&self) -> Option<LastAttempt> {
        match &self.state {
            JobState::Running { fence, runner, .. } => Some(LastAttempt { fence: *fence, runner: runner.clone() }),
            JobState::WaitingForRunner { attempt, .. } | JobState::Lost { attempt, .. } => attempt.clone(),
            JobState::Queued { .. }
            | JobState::WaitingForWindow { .. }
            | JobState::WaitingForApproval { .. }
            | JobState::WaitingForChecks { .. }
            | JobState::Succeeded { .. }
            | JobState::Failed { .. }
            | JobState::Blocked { .. }
            | JobState::Interrupted { .. }
            | JobState::Cancelled { .. } => None,
        }
    }

    /// Lets a job whose order has expired wait for its runner, unless somebody asked to cancel it or it has waited long
    /// enough.
    pub(super) fn wait(&self, dispatch: u32, attempt: Option<LastAttempt>, event: &JobEvent, now: Timestamp) -> Step {
        if !self.is_outlived(now) {
            return Step::NotYet;
        }
        if self.cancel_requested.is_some() || now >= self.runner_wait_until() {
            return self.expire(dispatch, attempt, event, now);
        }
        let since = self.last_report().unwrap_or(self.created_at).max(self.created_at);
        self.change(JobState::WaitingForRunner { dispatch, since, attempt }, event, now)
    }

    /// Returns the effect of an event on a job that waits for its runner. Reports count as before.
    pub(super) fn while_waiting(
        &self,
        dispatch: u32,
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
                let attempt = Some(LastAttempt { fence: *fence, runner: runner.clone() });
                Ok(self.change(JobState::WaitingForRunner { dispatch, since: now, attempt }, event, now))
            }
            JobEvent::Finished { fence, outcome, .. } => Ok(self.ended(event, *fence, outcome, now)),
            JobEvent::Refused { fence, .. } => Ok(self.ended(event, *fence, &Outcome::Cancelled, now)),
            JobEvent::Returned { fence, .. } if last.is_some_and(|last| last.fence == *fence) => Ok(Step::Already),
            JobEvent::Returned { .. } => Ok(self.order_again(event, now)),
            JobEvent::Cancel(by) => Ok(self.cancel_requested(by, event, now)),
            JobEvent::Expire => Ok(self.expire(dispatch, last.cloned(), event, now)),
            JobEvent::Wait if self.cancel_requested.is_some() || now >= self.runner_wait_until() => {
                Ok(self.expire(dispatch, last.cloned(), event, now))
            }
            JobEvent::Wait => Ok(Step::NotYet),
            JobEvent::Retry | JobEvent::Resume { .. } => Err(self.not_retryable()),
            JobEvent::Window(window) => Ok(self.on_window(window, event, now)),
            JobEvent::Approval(approval) => self.approval_elsewhere(approval),
            JobEvent::Unsent { dispatch: unsent } if last.is_none() => Ok(self.unsent((*unsent, dispatch), event, now)),
            JobEvent::Undeliverable { .. } | JobEvent::Unsent { .. } | JobEvent::Checks(_) => Ok(Step::Already),
        }
    }

    /// Orders the work again after the runner gave the expired order back, or ends a job that somebody asked to cancel.
    /// An order that could still be started is not replaced, even if it has expired by the runner's clock.
    pub(super) fn order_again(&self, event: &JobEvent, now: Timestamp) -> Step {
        let Some((fence, _)) = event.attempt() else { return Step::Already };
        if now.plus_secs(LOST_GRACE_SECS) < self.start_by() {
            return Step::NotYet;
        }
        if self.cancel_requested.is_some() {
            return self.ended(event, fence, &Outcome::Cancelled, now);
        }
        if let Some(ended) = self.returned_too_often(event, fence, now) {
            return ended;
        }
        let mut again = self.with_new_order(now);
        again.returned += 1;
        again.change(JobState::Queued { dispatch: fence.dispatch + 1 }, event, now)
    }

    /// Ends a job whose orders the runner has given back too often: each new order would be given back too.
    pub(super) fn returned_too_often(&self, event: &JobEvent, fence: Fence, now: Timestamp) -> Option<Step> {
        let ended = || {
            let reason = format!(
                "the job was ordered again {MAX_RETURNS} times; read the log of its runner, and deploy again for a new job"
            );
            self.ended(event, fence, &Outcome::Failed { reason, partial: self.may_have_begun() }, now)
        };
        (self.returned >= MAX_RETURNS).then(ended)
    }

    /// Gives a job a new order if its order never reached the queue, because no runner can give such an order back.
    /// Ends a job that somebody asked to cancel or that has waited long enough.
    pub(super) fn unsent(&self, (unsent, dispatch): (u32, u32), event: &JobEvent, now: Timestamp) -> Step {
        if unsent != dispatch {
            return Step::Already;
        }
        if !self.is_outlived(now) {
            return Step::NotYet;
        }
        if self.cancel_requested.is_some() || now >= self.runner_wait_until() {
            return self.expire(dispatch, None, event, now);
        }
        let mut again = self.with_new_order(now);
        again.returned += 1;
        again.change(JobState::Queued { dispatch: dispatch + 1 }, event, now)
    }

    /// Returns the job with the times of a new order.
    pub(super) fn with_new_order(&self, now: Timestamp) -> Self {
        let window = self.not_after.since(self.created_at) / 1000;
        Self { wait_until: self.runner_wait_until(), created_at: now, not_after: now.plus_secs(window), ..self.clone() }
    }
}

#[cfg(test)]
mod tests;

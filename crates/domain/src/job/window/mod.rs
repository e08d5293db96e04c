//! How a job waits until the customer lets changes start. Meanwhile, no order is in the queue: the control plane sends no order
//! before the customer's window opens, and the runner gives back an order that came while the window was closed.

use freehold_protocol::Timestamp;
use freehold_protocol::limits::MAX_WINDOW_WAIT_SECS;
use freehold_protocol::report::{Fence, Outcome};

use super::history::shows_an_attempt;
use super::{Job, JobEvent, JobState, Rejected, Step, WindowEvent};

impl Job {
    /// Returns the effect of the customer's windows on a job that has not ended.
    pub(super) fn on_window(&self, window: &WindowEvent, event: &JobEvent, now: Timestamp) -> Step {
        match window {
            WindowEvent::Closed { dispatch, until, reason } => {
                if self.state != (JobState::Queued { dispatch: *dispatch }) {
                    return Step::Already;
                }
                self.waiting_for_window(*dispatch, (*until, reason), event, now)
            }
            WindowEvent::Refused { fence, until, reason, .. } => {
                let is_known = self.state.fence() == Some(*fence);
                if is_known || matches!(self.state, JobState::WaitingForWindow { .. }) {
                    return Step::Already;
                }
                if self.cancel_requested.is_some() {
                    return self.ended(event, *fence, &Outcome::Cancelled, now);
                }
                if let Some(ended) = self.returned_too_often(event, *fence, now) {
                    return ended;
                }
                let given_back = Self { returned: self.returned + 1, ..self.clone() };
                given_back.waiting_for_window(fence.dispatch + 1, (*until, reason), event, now)
            }
            WindowEvent::Opened => {
                let JobState::WaitingForWindow { dispatch, .. } = &self.state else { return Step::Already };
                if self.cancel_requested.is_some() {
                    return Step::Already;
                }
                let wait_secs = self.runner_wait_until().since(self.created_at) / 1000;
                let again = Self { wait_until: now.plus_secs(wait_secs), ..self.with_new_order(now) };
                again.change(JobState::Queued { dispatch: *dispatch }, event, now)
            }
        }
    }

    fn waiting_for_window(
        &self,
        dispatch: u32,
        (until, reason): (Option<Timestamp>, &str),
        event: &JobEvent,
        now: Timestamp,
    ) -> Step {
        let state = JobState::WaitingForWindow { dispatch, since: now, until, reason: reason.to_owned() };
        self.change(state, event, now)
    }

    /// Returns the effect of an event on a job that waits for a window.
    pub(super) fn while_waiting_for_window(
        &self,
        dispatch: u32,
        since: Timestamp,
        event: &JobEvent,
        now: Timestamp,
    ) -> Result<Step, Rejected> {
        match event {
            JobEvent::Expire | JobEvent::Wait => Ok(self.waited_for_window(dispatch, since, event, now)),
            // The window may have closed while the order was being sent. Then the runner's decision counts.
            JobEvent::Started { .. }
            | JobEvent::Progress { .. }
            | JobEvent::Finished { .. }
            | JobEvent::Refused { .. }
            | JobEvent::Cancel(_)
            | JobEvent::Returned { .. }
            | JobEvent::Retry
            | JobEvent::Resume { .. }
            | JobEvent::Undeliverable { .. }
            | JobEvent::Unsent { .. }
            | JobEvent::Approval(_)
            | JobEvent::Checks(_)
            | JobEvent::Window(_) => self.while_queued(dispatch, event, now),
        }
    }

    /// Ends the job if somebody asked to cancel it, or if it has waited long enough.
    fn waited_for_window(&self, dispatch: u32, since: Timestamp, event: &JobEvent, now: Timestamp) -> Step {
        let has_begun = self.may_have_begun();
        if self.cancel_requested.is_some() {
            return self.change(JobState::Cancelled { dispatch, ended_at: now, unclaimed: !has_begun }, event, now);
        }
        if now < since.plus_secs(MAX_WINDOW_WAIT_SECS) {
            return Step::NotYet;
        }
        let days = MAX_WINDOW_WAIT_SECS / (24 * 60 * 60);
        let reason =
            format!("the job waited {days} days for the customer's change window; start it again, or ask the customer");
        // No attempt has this fence, because receives are counted from 1.
        let fence = Fence { dispatch, receive: 0 };
        self.ended(event, fence, &Outcome::Failed { reason, partial: has_begun }, now)
    }

    /// Returns whether an attempt may have begun, perhaps under an earlier order: one reported it, or the runner refused a
    /// delivery that was not the first one.
    pub fn may_have_begun(&self) -> bool {
        self.history.iter().any(shows_an_attempt)
    }

    /// Returns the time from which the customer lets the job start, if it waits for that and the time is known.
    pub const fn opens_at(&self) -> Option<Timestamp> {
        if let JobState::WaitingForWindow { until, .. } = &self.state { *until } else { None }
    }
}

#[cfg(test)]
mod tests;

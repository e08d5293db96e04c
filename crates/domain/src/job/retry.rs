//! Dispatches a job again that has ended without success.

use freehold_protocol::Timestamp;

use super::{Job, JobEvent, JobState, MAX_DISPATCHES, Rejected, Step};

impl Job {
    pub(super) fn retry(&self, event: &JobEvent, now: Timestamp) -> Result<Step, Rejected> {
        match &self.state {
            JobState::Failed { .. } | JobState::Interrupted { .. } | JobState::Lost { .. } => {}
            JobState::Queued { .. }
            | JobState::Running { .. }
            | JobState::WaitingForRunner { .. }
            | JobState::WaitingForWindow { .. }
            | JobState::WaitingForApproval { .. }
            | JobState::Succeeded { .. }
            | JobState::Blocked { .. }
            | JobState::Cancelled { .. } => return Err(self.not_retryable()),
        }
        let dispatch = self.state.dispatch();
        if dispatch.saturating_sub(self.returned) >= MAX_DISPATCHES {
            return Err(Rejected::Exhausted { job: self.id.clone() });
        }
        let patience = self.wait_until().since(self.created_at) / 1000;
        let mut again = self.with_new_order(now);
        again.wait_until = now.plus_secs(patience);
        again.cancel_requested = None;
        again.lost_at = None;
        again.approval = None;
        Ok(again.change(JobState::Queued { dispatch: dispatch + 1 }, event, now))
    }

    pub(super) fn not_retryable(&self) -> Rejected {
        Rejected::NotRetryable { job: self.id.clone(), state: self.state.as_str() }
    }
}

//! Dispatches again a job that ended without success.

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
            | JobState::WaitingForChecks { .. }
            | JobState::Succeeded { .. }
            | JobState::Blocked { .. }
            | JobState::Cancelled { .. } => return Err(self.not_retryable()),
        }
        if self.own_dispatches().saturating_sub(self.earlier) >= MAX_DISPATCHES {
            return Err(Rejected::Exhausted { job: self.id.clone() });
        }
        Ok(self.queued_again(event, now))
    }

    /// Queues a job again after its workflow was continued. A job that ended without success may be dispatched again,
    /// because no attempt of its last dispatch can still run. The job gets all its automatic retries again.
    pub(super) fn resume(&self, event: &JobEvent, now: Timestamp) -> Result<Step, Rejected> {
        match &self.state {
            JobState::Failed { .. }
            | JobState::Interrupted { .. }
            | JobState::Lost { .. }
            | JobState::Blocked { .. }
            | JobState::Cancelled { .. } => {}
            JobState::Queued { .. }
            | JobState::Running { .. }
            | JobState::WaitingForRunner { .. }
            | JobState::WaitingForWindow { .. }
            | JobState::WaitingForApproval { .. }
            | JobState::WaitingForChecks { .. }
            | JobState::Succeeded { .. } => return Err(self.not_retryable()),
        }
        let continued = Self { earlier: self.own_dispatches(), ..self.clone() };
        Ok(continued.queued_again(event, now))
    }

    /// Returns the number of dispatches of the job, without those that were given back.
    fn own_dispatches(&self) -> u32 {
        self.state.dispatch().saturating_sub(self.returned)
    }

    fn queued_again(&self, event: &JobEvent, now: Timestamp) -> Step {
        let wait_secs = self.runner_wait_until().since(self.created_at) / 1000;
        let mut again = self.with_new_order(now);
        again.wait_until = now.plus_secs(wait_secs);
        again.cancel_requested = None;
        again.cancel_asked = None;
        again.lost_at = None;
        again.approval = None;
        again.change(JobState::Queued { dispatch: self.state.dispatch() + 1 }, event, now)
    }

    pub(super) fn not_retryable(&self) -> Rejected {
        Rejected::NotRetryable { job: self.id.clone(), state: self.state.as_str() }
    }
}

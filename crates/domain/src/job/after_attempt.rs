//! How a job behaves while it waits after the end of its attempt: for an approval of its plan, or for required checks.

use freehold_protocol::KeyId;
use freehold_protocol::Timestamp;
use freehold_protocol::report::{Fence, Outcome};

use super::{Job, JobEvent, Rejected, Step};

impl Job {
    /// Returns the effect of an event that has the same effect in both waits; `None` for an event that each wait
    /// handles itself.
    pub(super) fn after_attempt(
        &self,
        (current, holder): (Fence, &KeyId),
        event: &JobEvent,
        now: Timestamp,
    ) -> Result<Option<Step>, Rejected> {
        self.check_attempt(current, holder, event)?;
        if event.attempt().is_some_and(|(fence, _)| fence == current) {
            return Ok(Some(Step::Already));
        }
        match event {
            // The order was delivered again, to a machine that does not know that the first attempt has ended. This
            // machine begins a new attempt.
            JobEvent::Started { fence, seq, runner } | JobEvent::Progress { fence, seq, runner } => {
                Ok(Some(self.running(event, *fence, *seq, runner, now)))
            }
            JobEvent::Finished { fence, outcome, .. } => Ok(Some(self.ended(event, *fence, outcome, now))),
            JobEvent::Refused { fence, .. } => Ok(Some(self.ended(event, *fence, &Outcome::Cancelled, now))),
            JobEvent::Cancel(by) => Ok(Some(self.cancel_requested(by, event, now))),
            JobEvent::Retry | JobEvent::Resume { .. } => Err(self.not_retryable()),
            JobEvent::Returned { .. }
            | JobEvent::Undeliverable { .. }
            | JobEvent::Unsent { .. }
            | JobEvent::Window(_) => Ok(Some(Step::Already)),
            JobEvent::Expire | JobEvent::Wait | JobEvent::Approval(_) | JobEvent::Checks(_) => Ok(None),
        }
    }
}

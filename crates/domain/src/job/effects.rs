//! Whether a job that ended may have changed something in the customer's account.

use freehold_protocol::report::Fence;

use super::{Job, JobState};
use crate::AuditRecord;

impl Job {
    /// Returns whether the job ended without success and one of its attempts may have changed something. A runner may
    /// have worked on an earlier delivery of the order although none of its reports arrived, so a report that nothing
    /// changed counts only if its attempt was the first one.
    pub fn may_have_changed(&self) -> bool {
        match &self.state {
            JobState::Queued { .. }
            | JobState::Running { .. }
            | JobState::WaitingForRunner { .. }
            | JobState::WaitingForWindow { .. }
            | JobState::WaitingForApproval { .. }
            | JobState::WaitingForChecks { .. }
            | JobState::Succeeded { .. } => false,
            JobState::Blocked { fence, .. } => !is_first(*fence),
            JobState::Failed { fence, partial, .. } => *partial || !is_first(*fence),
            JobState::Interrupted { .. } | JobState::Lost { .. } => true,
            JobState::Cancelled { .. } => !self.is_refused_unstarted(),
        }
    }

    /// Returns whether the job was cancelled before its first attempt started.
    fn is_refused_unstarted(&self) -> bool {
        let is_refusal = |record: &AuditRecord| {
            matches!(record.what.as_str(), "refused" | "returned" | "outside_window")
                && record.fence.is_some_and(is_first)
        };
        self.history.last().is_some_and(is_refusal) && !self.history.iter().any(|record| record.to == "running")
    }

    /// Returns whether a report states that the job has ended and changed nothing. Returns false for every job that was
    /// lost or cancelled.
    pub fn changed_nothing(&self) -> bool {
        match &self.state {
            JobState::Failed { .. } | JobState::Blocked { .. } => self.lost_at.is_none() && !self.may_have_changed(),
            JobState::Queued { .. }
            | JobState::Running { .. }
            | JobState::WaitingForRunner { .. }
            | JobState::WaitingForWindow { .. }
            | JobState::WaitingForApproval { .. }
            | JobState::WaitingForChecks { .. }
            | JobState::Succeeded { .. }
            | JobState::Interrupted { .. }
            | JobState::Cancelled { .. }
            | JobState::Lost { .. } => false,
        }
    }
}

/// Returns whether no attempt came before the one with this fence. The receive count of an order that was never sent is
/// 0.
const fn is_first(fence: Fence) -> bool {
    fence.dispatch == 1 && fence.receive <= 1
}

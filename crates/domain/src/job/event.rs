//! The events that may change a job.

use freehold_protocol::KeyId;
use freehold_protocol::policy::PolicyResult;
use freehold_protocol::report::{Fence, Outcome};

use super::approval_event::ApprovalEvent;
use super::window_event::WindowEvent;

/// An event that may change a job.
#[derive(Debug, Clone, PartialEq)]
pub enum JobEvent {
    /// An attempt started.
    Started { fence: Fence, seq: u64, runner: KeyId },
    /// An attempt is still working, or asked for an artifact.
    Progress { fence: Fence, seq: u64, runner: KeyId },
    /// An attempt ended.
    Finished { fence: Fence, runner: KeyId, outcome: Outcome, policies: Vec<PolicyResult> },
    /// The runner did not start the attempt, because the job was cancelled.
    Refused { fence: Fence, runner: KeyId },
    /// Someone asked to cancel the job.
    Cancel,
    /// Time has passed, and the job's runner is there: the job ends if its order has expired.
    Expire,
    /// Time has passed, and the job's runner is away: the job waits for it if its order has expired.
    Wait,
    /// The runner gave the expired order back. No attempt works, and the work may be ordered again.
    Returned { fence: Fence, runner: KeyId },
    /// The control plane dispatches the job again.
    Retry,
    /// The control plane can never send the order of this dispatch, so no attempt can start.
    Undeliverable { dispatch: u32, reason: String },
    /// The customer's change windows keep the job from starting, or let it start.
    Window(WindowEvent),
    /// People say something about the plan for which the job waits.
    Approval(ApprovalEvent),
}

impl JobEvent {
    /// Returns the end of an attempt for which no policy was asked.
    pub const fn finished(fence: Fence, runner: KeyId, outcome: Outcome) -> Self {
        Self::Finished { fence, runner, outcome, policies: Vec::new() }
    }

    /// Returns the event's name, as audit records write it.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Started { .. } => "started",
            Self::Progress { .. } => "progress",
            Self::Finished { .. } => "finished",
            Self::Refused { .. } => "refused",
            Self::Cancel => "cancel",
            Self::Expire => "expire",
            Self::Wait => "wait",
            Self::Returned { .. } => "returned",
            Self::Retry => "retry",
            Self::Undeliverable { .. } => "undeliverable",
            Self::Window(window) => window.as_str(),
            Self::Approval(approval) => approval.as_str(),
        }
    }

    /// Returns the attempt that the event is about, and its runner.
    pub(super) const fn attempt(&self) -> Option<(Fence, &KeyId)> {
        match self {
            Self::Started { fence, runner, .. }
            | Self::Progress { fence, runner, .. }
            | Self::Finished { fence, runner, .. }
            | Self::Refused { fence, runner }
            | Self::Returned { fence, runner } => Some((*fence, runner)),
            Self::Window(window) => window.attempt(),
            Self::Cancel | Self::Expire | Self::Wait | Self::Retry | Self::Undeliverable { .. } | Self::Approval(_) => {
                None
            }
        }
    }
}

//! The events that may change a job.

use freehold_protocol::KeyId;
use freehold_protocol::order::AskedBy;
use freehold_protocol::policy::PolicyResult;
use freehold_protocol::report::{Fence, Outcome};

use serde::{Deserialize, Serialize};

use super::approval_event::ApprovalEvent;
use super::window_event::WindowEvent;
use crate::required_checks::Verdict;

/// Who asked to cancel a job, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelAsked {
    /// Who asked; absent when the control plane cancels the job itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<AskedBy>,
    /// The reason, in the words of the person; empty without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

impl CancelAsked {
    /// Returns who asked and why, as text for the job's history; empty if neither is known.
    fn text(&self) -> String {
        match (&self.by, self.reason.as_str()) {
            (None, reason) => reason.to_owned(),
            (Some(by), "") => format!("asked for by {by}"),
            (Some(by), reason) => format!("{reason}, asked for by {by}"),
        }
    }
}

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
    Cancel(CancelAsked),
    /// Time has passed, and the job's runner is connected: the job ends if its order has expired.
    Expire,
    /// Time has passed, and the job's runner is away: the job waits for the runner if its order has expired.
    Wait,
    /// The runner gave the expired order back. No attempt works, and the work may be ordered again.
    Returned { fence: Fence, runner: KeyId },
    /// The control plane dispatches the job again.
    Retry,
    /// A person continued the workflow, which the job's end had stopped, so the control plane dispatches the job again.
    /// `why` is for the job's history.
    Resume { why: String },
    /// The control plane can never send the order of this dispatch, so no attempt can start.
    Undeliverable { dispatch: u32, reason: String },
    /// The order of this dispatch expired, and none of its copies reached the queue, so no attempt can start under it.
    Unsent { dispatch: u32 },
    /// The customer's change windows keep the job from starting, or let it start.
    Window(WindowEvent),
    /// Something happened to the approval of the plan for which the job waits.
    Approval(ApprovalEvent),
    /// The results of the required checks for which the job waits were evaluated.
    Checks(Verdict),
}

impl JobEvent {
    /// Returns the end of an attempt for which no policy was evaluated.
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
            Self::Cancel(_) => "cancel",
            Self::Expire => "expire",
            Self::Wait => "wait",
            Self::Returned { .. } => "returned",
            Self::Retry => "retry",
            Self::Resume { .. } => "resume",
            Self::Undeliverable { .. } => "undeliverable",
            Self::Unsent { .. } => "unsent",
            Self::Window(window) => window.as_str(),
            Self::Approval(approval) => approval.as_str(),
            Self::Checks(_) => "check_results",
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
            Self::Cancel(_)
            | Self::Expire
            | Self::Wait
            | Self::Retry
            | Self::Resume { .. }
            | Self::Undeliverable { .. }
            | Self::Unsent { .. }
            | Self::Approval(_)
            | Self::Checks(_) => None,
        }
    }

    /// Returns the reason of the event, from people or from their checks, for the job's history; empty without one.
    pub(super) fn comment(&self) -> String {
        match self {
            Self::Cancel(asked) => asked.text(),
            Self::Resume { why } => why.clone(),
            Self::Checks(Verdict::Passed) => "all required checks have passed".to_owned(),
            Self::Checks(verdict) => verdict.problem(),
            Self::Started { .. }
            | Self::Progress { .. }
            | Self::Finished { .. }
            | Self::Refused { .. }
            | Self::Returned { .. }
            | Self::Expire
            | Self::Wait
            | Self::Retry
            | Self::Undeliverable { .. }
            | Self::Unsent { .. }
            | Self::Window(_)
            | Self::Approval(_) => String::new(),
        }
    }
}

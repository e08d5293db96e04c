//! The events of approvals that may change a job.

use freehold_protocol::Digest;
use freehold_protocol::approval::CustomerDecision;
use freehold_protocol::order::AskedBy;

/// An event of the approval of a job's plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalEvent {
    /// Somebody at the vendor approves this plan.
    Approve { plan: Digest, by: AskedBy },
    /// Somebody at the vendor rejects this plan.
    Reject { plan: Digest, by: AskedBy, reason: String },
    /// The customer approves or rejects a plan. The customer's runner announces the decision.
    Customer(CustomerDecision),
    /// The job is ordered again if both sides that have to approve its plan have done so.
    Proceed,
}

impl ApprovalEvent {
    /// Returns the event's name, as audit records write it.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Approve { .. } => "approved",
            Self::Reject { .. } => "rejected",
            Self::Customer(CustomerDecision { approved: true, .. }) => "approved_by_customer",
            Self::Customer(CustomerDecision { approved: false, .. }) => "rejected_by_customer",
            Self::Proceed => "approval_complete",
        }
    }
}

//! What people say about a plan, and who has approved it.

use crate::fence::Fence;

/// A word about a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Word {
    /// The vendor approves the plan of this attempt.
    Approve(Fence),
    /// The vendor rejects it.
    Reject(Fence),
    /// The customer approves it.
    CustomerApproves(Fence),
    /// The customer rejects it.
    CustomerRejects(Fence),
    /// The job is ordered if both have approved.
    Proceed,
}

/// Which of the two sides have approved the plan for which a job waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Approved {
    pub vendor: bool,
    pub customer: bool,
}

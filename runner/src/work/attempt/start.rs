//! The record of a job's start in the audit trail, and the reasons why a job must not start.

use crate::job::StopReason;

/// Whether the audit trail has a record of the job's start by this attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    Recorded,
    NotRecorded,
}

/// The reason why a job must not start, although its order was accepted.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotAnnounced {
    /// The attempt must stop. A start that is recorded is perhaps not in the customer's bucket yet.
    Stopped { reason: StopReason, start: Start },
    /// The customer's bucket does not have the order or the record.
    Failed { reason: String, start: Start },
}

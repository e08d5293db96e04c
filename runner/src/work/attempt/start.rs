//! The record of a job's start in the audit trail, and the reasons why a job must not start.

use crate::job::StopReason;

/// Whether the audit trail has a record of the job's start by this attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    Recorded,
    NotRecorded,
}

/// The reason why a job must not start after its start is announced.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotAnnounced {
    /// The attempt must stop. The start is recorded, and perhaps not in the customer's bucket yet.
    Stopped(StopReason),
    /// The customer's bucket does not have the record.
    Failed { reason: String, start: Start },
}

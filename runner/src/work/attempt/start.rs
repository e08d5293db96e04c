//! The record of a job's start in the audit trail, and the reasons why a job must not start.

use super::exclusion::Seen;
use crate::job::StopReason;
use crate::record::audit::AuditError;

/// Whether the audit trail has a record of the job's start by this attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    Recorded,
    NotRecorded,
}

/// The reason why a job must not start, although its order was accepted.
#[derive(Debug)]
pub(super) enum NotAnnounced {
    /// The attempt must stop. A start that is recorded is perhaps not in the customer's bucket yet.
    Stopped { reason: StopReason, start: Start },
    /// The customer's bucket does not have the order or the record.
    Failed { reason: String, start: Start },
    /// Another machine recorded something before the start of this attempt that excludes the start.
    Seen(Seen),
    /// Another machine recorded something before the start of this attempt, and this machine cannot read what it was.
    Unread(AuditError),
    /// Another machine has the key of this one, which can record nothing.
    Unrecorded(AuditError),
}

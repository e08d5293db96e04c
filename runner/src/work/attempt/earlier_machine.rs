//! Finds out whether another machine of the install has seen an order that was made for another runner's key. The
//! journal of this machine does not have the order; the audit chain in the customer's bucket does.

use std::fmt;

use freehold_protocol::Timestamp;
use freehold_protocol::audit::{AuditEvent, AuditRecord};
use freehold_protocol::order::Order;
use freehold_protocol::report::RefusalReason;

use super::Attempt;
use crate::record::audit::{AuditError, BUCKET_LIMIT};

/// The difference, in seconds, that is allowed between the clock of another machine and that of the control plane.
const CLOCK_TOLERANCE_SECS: u64 = 3600;

/// The act of another machine of the install that makes this delivery a copy of the order, or too late.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Seen {
    /// The order had this delivery, or a later one, before. SQS counts the deliveries of one message upwards.
    Delivery { receive: u32 },
    /// A later dispatch of the job was started.
    LaterDispatch(u32),
    /// An order of the same group with this higher serial was started.
    HigherSerial(u64),
    /// The job was cancelled before it started.
    Cancelled,
}

impl Seen {
    pub(super) const fn reason(&self) -> RefusalReason {
        match self {
            Self::Delivery { .. } | Self::LaterDispatch(_) | Self::HigherSerial(_) => RefusalReason::Replayed,
            Self::Cancelled => RefusalReason::Cancelled,
        }
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = "another runner of the install, according to the audit chain";
        match self {
            Self::Delivery { receive } => {
                write!(f, "the order is a copy: its delivery {receive} was handled by {by}")
            }
            Self::LaterDispatch(dispatch) => write!(f, "the later dispatch {dispatch} of the job was started by {by}"),
            Self::HigherSerial(serial) => {
                write!(f, "an order with the newer serial {serial} of the same group was started by {by}")
            }
            Self::Cancelled => write!(f, "the cancel of the job was handled by {by}"),
        }
    }
}

impl Attempt<'_> {
    /// Returns what other machines did with the order, if that excludes this delivery. Reads nothing for an order that
    /// was made for this runner's key or that this machine knows: then its journal decides. A build runner and a runner
    /// without a bucket have no chain to look at.
    pub(super) async fn seen_by_others(&self) -> Result<Option<Seen>, AuditError> {
        let (agent, order) = (self.agent, &self.held.order);
        let is_own = order.runner.as_ref() == Some(agent.reporter.runner());
        if is_own || agent.journal().state().knows(order) {
            return Ok(None);
        }
        let records = agent.audit.since(earliest(order), BUCKET_LIMIT).await?;
        Ok(records.and_then(|records| seen(&records, order, self.held.fence.receive)))
    }
}

/// Returns the time before which no machine can have recorded anything about the order.
fn earliest(order: &Order) -> Timestamp {
    Timestamp::from_millis(order.issued_at.as_millis().saturating_sub(CLOCK_TOLERANCE_SECS * 1000))
}

/// Returns what `records` show about the order, if that excludes its delivery number `receive_count`.
fn seen(records: &[AuditRecord], order: &Order, receive_count: u32) -> Option<Seen> {
    records.iter().find_map(|record| seen_in(&record.event, order, receive_count))
}

fn seen_in(event: &AuditEvent, order: &Order, receive_count: u32) -> Option<Seen> {
    let (job, fence) = match event {
        AuditEvent::Started { group, serial, .. }
            if group.as_ref() == Some(&order.group) && serial.is_some_and(|serial| serial > order.serial) =>
        {
            return serial.map(Seen::HigherSerial);
        }
        AuditEvent::Cancelled { job, dispatch, receive, .. } => {
            let is_this = *job == order.job && *dispatch == order.dispatch;
            return (is_this && receive.is_none_or(|one| one == receive_count)).then_some(Seen::Cancelled);
        }
        AuditEvent::Started { job, fence, .. } | AuditEvent::Ended { job, fence, .. } => (job, *fence),
        AuditEvent::Refused { refusal } => {
            let (job, fence) = refusal.job.as_ref()?;
            (job, *fence)
        }
        AuditEvent::Joined { .. }
        | AuditEvent::Sent { .. }
        | AuditEvent::PoliciesAsked { .. }
        | AuditEvent::Approval { .. }
        | AuditEvent::Strangers { .. }
        | AuditEvent::ConnectionRefused { .. }
        | AuditEvent::KeyReplaced { .. }
        | AuditEvent::IamChange { .. }
        | AuditEvent::IamUsed { .. } => return None,
    };
    if *job != order.job {
        return None;
    }
    if fence.dispatch > order.dispatch {
        return Some(Seen::LaterDispatch(fence.dispatch));
    }
    (fence.dispatch == order.dispatch && fence.receive >= receive_count)
        .then_some(Seen::Delivery { receive: fence.receive })
}

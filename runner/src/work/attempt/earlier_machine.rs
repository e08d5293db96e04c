//! Finds out whether another machine of the install has seen an order that was made for another runner's key. The
//! journal of this machine does not have the order; the audit chain in the customer's bucket does.

use std::cmp::Ordering;
use std::fmt;

use freehold_protocol::audit::AuditEvent;
use freehold_protocol::order::Order;
use freehold_protocol::report::{Fence, RefusalReason};
use freehold_protocol::{JobId, Timestamp};

use super::Attempt;
use crate::record::audit::{AuditError, BUCKET_LIMIT};
use crate::work::in_flight::HeldOrder;

/// The difference, in seconds, that is allowed between the clock of another machine and that of the control plane.
const CLOCK_TOLERANCE_SECS: u64 = 3600;

/// The act of another machine of the install that makes this delivery a copy of the order, or too late.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Seen {
    /// The order had this delivery, or a later one, before. SQS counts the deliveries of one message upwards.
    Delivery { receive: u32 },
    /// The order came before in another message, which the queue took at another time. If the machine that handled the
    /// other message is lost, SQS delivers that message again.
    OtherMessage,
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
            Self::Delivery { .. } | Self::OtherMessage | Self::LaterDispatch(_) | Self::HigherSerial(_) => {
                RefusalReason::Replayed
            }
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
            Self::OtherMessage => write!(f, "the order is a copy: another message with it was handled by {by}"),
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
        let (agent, held) = (self.agent, self.held);
        let order = &held.order;
        let is_own = order.runner.as_ref() == Some(agent.reporter.runner());
        if is_own || agent.journal().state().knows(order) {
            return Ok(None);
        }
        let records = agent.audit.since(earliest(order), BUCKET_LIMIT).await?;
        Ok(records.and_then(|records| records.iter().find_map(|record| seen_in(&record.event, held))))
    }
}

/// Returns the time before which no machine can have recorded anything about the order.
fn earliest(order: &Order) -> Timestamp {
    Timestamp::from_millis(order.issued_at.as_millis().saturating_sub(CLOCK_TOLERANCE_SECS * 1000))
}

/// Returns what another machine did with the order according to `event`, if that excludes the delivery `held`.
fn seen_in(event: &AuditEvent, held: &HeldOrder) -> Option<Seen> {
    let order = &held.order;
    match event {
        AuditEvent::Started { group, serial, .. }
            if group.as_ref() == Some(&order.group) && serial.is_some_and(|serial| serial > order.serial) =>
        {
            serial.map(Seen::HigherSerial)
        }
        AuditEvent::Cancelled { job, dispatch, receive, .. } => {
            let is_this = *job == order.job && *dispatch == order.dispatch;
            (is_this && receive.is_none_or(|one| one == held.fence.receive)).then_some(Seen::Cancelled)
        }
        AuditEvent::Started { job, fence, sent_at, .. } | AuditEvent::Ended { job, fence, sent_at, .. } => {
            Earlier { job, fence: *fence, sent_at: *sent_at, is_refused: false }.excludes(held)
        }
        AuditEvent::Refused { refusal, sent_at } => {
            let (job, fence) = refusal.job.as_ref()?;
            Earlier { job, fence: *fence, sent_at: *sent_at, is_refused: true }.excludes(held)
        }
        AuditEvent::Joined { .. }
        | AuditEvent::Sent { .. }
        | AuditEvent::PoliciesAsked { .. }
        | AuditEvent::Approval { .. }
        | AuditEvent::Strangers { .. }
        | AuditEvent::ConnectionRefused { .. }
        | AuditEvent::KeyReplaced { .. }
        | AuditEvent::IamChange { .. }
        | AuditEvent::IamUsed { .. } => None,
    }
}

/// An attempt of another machine at an order, or a refusal of the order.
struct Earlier<'a> {
    job: &'a JobId,
    fence: Fence,
    /// The time at which the queue took the message; absent in records of earlier versions.
    sent_at: Option<Timestamp>,
    is_refused: bool,
}

impl Earlier<'_> {
    /// Returns the reason why the delivery `held` may not start a job after this.
    fn excludes(&self, held: &HeldOrder) -> Option<Seen> {
        let order = &held.order;
        if *self.job != order.job || self.fence.dispatch < order.dispatch {
            return None;
        }
        if self.fence.dispatch > order.dispatch {
            return Some(Seen::LaterDispatch(self.fence.dispatch));
        }
        match self.sent_at.zip(held.sent_at).map(|(known, own)| own.cmp(&known)) {
            // Without a time, the number of the delivery decides.
            Some(Ordering::Equal) | None => {
                let Fence { receive, .. } = self.fence;
                (receive >= held.fence.receive).then_some(Seen::Delivery { receive })
            }
            // A copy is sent after its original, which may come back after the copy was refused.
            Some(Ordering::Less) if self.is_refused => None,
            Some(Ordering::Less | Ordering::Greater) => Some(Seen::OtherMessage),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;
    use crate::testing::{job_id, order};
    use crate::wire::inbox::Delivery;

    const DELIVERY: Option<Seen> = Some(Seen::Delivery { receive: 2 });
    const OTHER: Option<Seen> = Some(Seen::OtherMessage);
    const NONE: Option<Seen> = None;

    /// Returns what delivery 2 of a message, sent at `known`, excludes of the delivery `receive` of one sent at 50.
    fn excluded(known: Option<u64>, receive: u32, is_refused: bool) -> Option<Seen> {
        let delivery = Delivery {
            body: "x".into(),
            handle: "handle".into(),
            receive,
            sent_at: Timestamp::from_millis(50),
            leased_at: Instant::now(),
        };
        let (job, sent_at) = (job_id(1), known.map(Timestamp::from_millis));
        let earlier = Earlier { job: &job, fence: Fence { dispatch: 1, receive: 2 }, sent_at, is_refused };
        earlier.excludes(&HeldOrder::new(order(1, 7), &delivery))
    }

    #[test]
    fn an_attempt_excludes_earlier_deliveries_of_its_message_and_each_delivery_of_another_one() {
        let by = |known| [1, 2, 3].map(|receive| excluded(known, receive, false));

        assert_eq!(by(Some(50)), [DELIVERY, DELIVERY, None]);
        assert_eq!((by(Some(40)), by(Some(60))), ([OTHER; 3], [OTHER; 3]));
        assert_eq!(by(None), [DELIVERY, DELIVERY, None], "a record of an earlier version");
    }

    #[test]
    fn a_refusal_excludes_no_message_that_was_sent_before_the_refused_one() {
        let by = |known| [1, 2, 3].map(|receive| excluded(known, receive, true));

        assert_eq!(by(Some(50)), [DELIVERY, DELIVERY, None]);
        assert_eq!((by(Some(40)), by(Some(60))), ([OTHER; 3], [NONE; 3]));
    }
}

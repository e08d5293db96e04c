//! Finds out what other machines of the install did with an order. The journal of this machine does not show it; the
//! audit chain in the customer's bucket does.

use std::cmp::Ordering;
use std::fmt;

use freehold_protocol::audit::{AuditEvent, AuditRecord};
use freehold_protocol::order::Order;
use freehold_protocol::report::{Fence, RefusalReason};
use freehold_protocol::{JobId, KeyId, Timestamp};

use super::Attempt;
use super::job_audit::is_unstarted;
use crate::process::clock;
use crate::record::audit::{AuditError, BUCKET_LIMIT, Others};
use crate::work::in_flight::HeldOrder;
use crate::work::journal::Decision;

/// The difference, in seconds, that is allowed between the clock of another machine and that of the control plane.
const CLOCK_TOLERANCE_SECS: u64 = 3600;
/// How far, in seconds, the estimate of the control plane's time may be behind the clock that dates orders. The estimate
/// comes from the `Date` of a response, which has a resolution of a second.
const ESTIMATE_TOLERANCE_SECS: u64 = 5;

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
    /// Returns what other machines did with the order, if that excludes this delivery. A build runner and a runner without
    /// a bucket have no chain to look at.
    ///
    /// Other machines rarely have an order that was made for this runner's key, or that the journal has. For such an order
    /// this reads nothing if it was issued after the last time at which others were noticed: when the start is recorded,
    /// [`Self::announce`] notices what was written since then.
    pub(super) async fn seen_by_others(
        &self,
        decision: &Decision,
        others: Option<Others>,
    ) -> Result<Option<Seen>, AuditError> {
        let (agent, held) = (self.agent, self.held);
        let Some(others) = others else { return Ok(None) };
        let order = &held.order;
        let is_own = order.runner.as_ref() == Some(agent.reporter.runner());
        let is_ours = is_own || agent.journal().state().knows(order);
        if is_ours && !(self.may_be_known(others) && matches!(decision, Decision::Start | Decision::Resume)) {
            return Ok(None);
        }
        let records = agent.audit.since(earliest(order), BUCKET_LIMIT).await?.unwrap_or_default();
        Ok(first_seen(records.iter().filter(|record| !is_ours || record.runner != *agent.audit.key()), held))
    }

    /// Returns what other machines recorded before the recorded start of this attempt, if that excludes the start. The chain
    /// has one order for all machines, so of two that start an order at once, only the second one is excluded.
    pub(super) async fn seen_before_start(&self) -> Result<Option<Seen>, AuditError> {
        let (audit, held) = (&self.agent.audit, self.held);
        let is_ours = |record: &&AuditRecord| record.runner == *audit.key();
        // The record of the start has the time of this machine's clock, which may be wrong.
        let from = earliest(&held.order).min(tolerated(clock::local()));
        let records = audit.since(from, BUCKET_LIMIT).await?.unwrap_or_default();
        let start = held.announcement();
        let place = records.iter().position(|record| is_ours(&record) && record.event == start);
        let earlier = records.iter().skip(place.map_or(0, |place| place + 1));
        Ok(first_seen(earlier.filter(|record| !is_ours(record)), held))
    }

    /// Returns whether another machine may have recorded something about the order that this process has not noticed.
    fn may_be_known(&self, others: Others) -> bool {
        let until = self.agent.clock.now(others.until);
        until.is_none_or(|until| self.held.order.issued_at <= until.plus_secs(ESTIMATE_TOLERANCE_SECS))
    }
}

/// Returns the time before which no machine can have recorded anything about the order.
fn earliest(order: &Order) -> Timestamp {
    tolerated(order.issued_at)
}

/// Returns the earliest time that a clock may show at `time`.
fn tolerated(time: Timestamp) -> Timestamp {
    Timestamp::from_millis(time.as_millis().saturating_sub(CLOCK_TOLERANCE_SECS * 1000))
}

/// Returns what excludes the delivery `held` according to the first of these records, the newest first, that excludes it.
fn first_seen<'a>(records: impl Iterator<Item = &'a AuditRecord>, held: &HeldOrder) -> Option<Seen> {
    // The attempts that did not start, although a record states that they start.
    let mut unstarted: Vec<(&KeyId, &JobId, Fence)> = Vec::new();
    for AuditRecord { runner, event, .. } in records {
        if let AuditEvent::Ended { job, fence, result, .. } = event
            && is_unstarted(result)
        {
            unstarted.push((runner, job, *fence));
        }
        let is_start = if let AuditEvent::Started { job, fence, .. } | AuditEvent::Ended { job, fence, .. } = event {
            !unstarted.contains(&(runner, job, *fence))
        } else {
            true
        };
        if let Some(seen) = seen_in(event, is_start, held) {
            return Some(seen);
        }
    }
    None
}

/// Returns what another machine did with the order according to `event`, if that excludes the delivery `held`. `is_start`
/// is whether the start or the end that the event records is that of a job that started.
fn seen_in(event: &AuditEvent, is_start: bool, held: &HeldOrder) -> Option<Seen> {
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
            Earlier { job, fence: *fence, sent_at: *sent_at, is_refused: !is_start }.excludes(held)
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
    /// Whether the order was refused, or the attempt ended before the job started.
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
    use freehold_protocol::Digest;
    use tokio::time::Instant;

    use super::*;
    use crate::record::audit::memory::author;
    use crate::testing::{job_id, order};
    use crate::wire::inbox::Delivery;

    const DELIVERY: Option<Seen> = Some(Seen::Delivery { receive: 2 });
    const OTHER: Option<Seen> = Some(Seen::OtherMessage);
    const NONE: Option<Seen> = None;

    fn delivery(receive: u32, sent_at: u64) -> Delivery {
        Delivery {
            body: "x".into(),
            handle: "handle".into(),
            receive,
            sent_at: Timestamp::from_millis(sent_at),
            leased_at: Instant::now(),
        }
    }

    /// Returns what delivery 2 of a message, sent at `known`, excludes of the delivery `receive` of one sent at 50.
    fn excluded(known: Option<u64>, receive: u32, is_refused: bool) -> Option<Seen> {
        let (job, sent_at) = (job_id(1), known.map(Timestamp::from_millis));
        let earlier = Earlier { job: &job, fence: Fence { dispatch: 1, receive: 2 }, sent_at, is_refused };
        earlier.excludes(&HeldOrder::new(order(1, 7), &delivery(receive, 50)))
    }

    #[test]
    fn an_attempt_excludes_earlier_deliveries_of_its_message_and_each_delivery_of_another_one() {
        let by = |known| [1, 2, 3].map(|receive| excluded(known, receive, false));

        assert_eq!(by(Some(50)), [DELIVERY, DELIVERY, None]);
        assert_eq!((by(Some(40)), by(Some(60))), ([OTHER; 3], [OTHER; 3]));
        assert_eq!(by(None), [DELIVERY, DELIVERY, None], "a record of an earlier version");
    }

    /// Returns what the start of a copy, sent at 60, and its end with `result` exclude of a message that was sent at
    /// `sent_at`.
    fn after_end(result: &str, sent_at: u64) -> Option<Seen> {
        let at = |millis| HeldOrder::new(order(1, 7), &delivery(1, millis));
        let copy = at(60);
        let (job, fence) = (job_id(1), copy.fence);
        let ended =
            AuditEvent::Ended { job, fence, result: result.into(), log: None, order: None, sent_at: copy.sent_at };
        let records = [(2, ended), (1, copy.announcement())].map(|(seq, event)| AuditRecord {
            tenant: "acme".parse().unwrap(),
            install: "globex-prod".parse().unwrap(),
            runner: author(3).identity.id().clone(),
            seq,
            previous: Digest::of(b""),
            at: Timestamp::from_millis(60),
            event,
        });
        first_seen(records.iter(), &at(sent_at))
    }

    #[test]
    fn an_attempt_that_did_not_start_excludes_no_message_that_was_sent_before_its_own() {
        for result in ["refused before the start", "put back before the start", "cancelled before the start"] {
            assert_eq!((after_end(result, 50), after_end(result, 70)), (NONE, OTHER), "{result}");
        }
        assert_eq!((after_end("succeeded", 50), after_end("succeeded", 70)), (OTHER, OTHER));
    }

    #[test]
    fn a_refusal_excludes_no_message_that_was_sent_before_the_refused_one() {
        let by = |known| [1, 2, 3].map(|receive| excluded(known, receive, true));

        assert_eq!(by(Some(50)), [DELIVERY, DELIVERY, None]);
        assert_eq!((by(Some(40)), by(Some(60))), ([OTHER; 3], [NONE; 3]));
    }
}

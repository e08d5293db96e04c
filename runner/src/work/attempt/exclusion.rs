//! Decides what the records of other machines exclude: whether a delivery of an order is a copy, or comes too late.

use std::fmt;

use freehold_protocol::audit::exclusion::{self, Attempt, End, Exclusion, OrderDelivery};
use freehold_protocol::audit::{AuditEvent, AuditRecord};
use freehold_protocol::order::Order;
use freehold_protocol::report::RefusalReason;
use freehold_protocol::{JobId, KeyId};

use super::newer_event::may_be_about;
use super::no_start::{CANCELLED, PUT_BACK, REFUSED};
use crate::record::audit::AuditError;
use crate::work::in_flight::HeldOrder;

/// The act of another machine of the install that makes this delivery a copy of the order, or too late.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Seen {
    /// An attempt at the job, or a refusal of the order.
    Attempt(Exclusion),
    /// An order of the same group with this higher serial was started.
    HigherSerial(u64),
    /// The job was cancelled before it started.
    Cancelled,
}

impl Seen {
    /// Returns whether the order was given back, so that it must be given back again.
    pub(super) const fn is_given_back(&self) -> bool {
        matches!(self, Self::Attempt(exclusion) if exclusion.is_given_back())
    }

    pub(super) const fn reason(&self) -> RefusalReason {
        match self {
            Self::Attempt(_) | Self::HigherSerial(_) => RefusalReason::Replayed,
            Self::Cancelled => RefusalReason::Cancelled,
        }
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = "another runner of the install, according to the audit chain";
        match self {
            Self::Attempt(Exclusion::Delivery { receive }) => {
                write!(f, "the order is a copy: its delivery {receive} was handled by {by}")
            }
            Self::Attempt(Exclusion::Outcome { receive }) => {
                write!(f, "the job has ended: its delivery {receive} was handled by {by}")
            }
            Self::Attempt(Exclusion::GivenBack { receive }) => {
                write!(f, "the order was given back: its delivery {receive} was handled by {by}")
            }
            Self::Attempt(Exclusion::OtherMessage) => {
                write!(f, "the order is a copy: another message with it was handled by {by}")
            }
            Self::Attempt(Exclusion::LaterDispatch(dispatch)) => {
                write!(f, "the later dispatch {dispatch} of the job was started by {by}")
            }
            Self::HigherSerial(serial) => {
                write!(f, "an order with the newer serial {serial} of the same group was started by {by}")
            }
            Self::Cancelled => write!(f, "the cancel of the job was handled by {by}"),
        }
    }
}

/// Returns whether an event can matter for the delivery `held` ([`excluding`]).
pub(super) fn concerns(event: &AuditEvent, held: &HeldOrder) -> bool {
    let is_unread = matches!(event, AuditEvent::Newer(newer) if may_be_about(newer, &held.order));
    is_unread || attempt_in(event, &held.order.job).is_some() || seen_in(event, held).is_some()
}

/// Returns what excludes the delivery `held` according to `records`, the newest first. Only what a runner of another key
/// than `own` did excludes it.
///
/// # Errors
/// [`AuditError::NewerEvent`] when this depends on an event that only a newer version can read.
pub(super) fn excluding<'a>(
    records: impl DoubleEndedIterator<Item = &'a AuditRecord> + Clone,
    own: Option<&KeyId>,
    held: &HeldOrder,
) -> Result<Option<Seen>, AuditError> {
    let is_other = |runner: &KeyId| own != Some(runner);
    let order = &held.order;
    let recorded = records.clone().rev().filter_map(|record| {
        let (delivery, end) = attempt_in(&record.event, &order.job)?;
        Some(Attempt { machine: &record.runner, delivery, end })
    });
    let delivery = OrderDelivery { fence: held.fence, sent_at: held.sent_at };
    let seen = exclusion::excluding(&exclusion::attempts(recorded), own, delivery).map(Seen::Attempt);
    if seen.is_none() {
        // The control plane ends the job when an order is refused as cancelled. So this comes last: a copy of an order
        // that another machine works on is refused as a copy.
        let mut others = records.clone().filter(|record| is_other(&record.runner));
        if let Some(seen) = others.find_map(|record| seen_in(&record.event, held)) {
            return Ok(Some(seen));
        }
    }
    // The journal has what this runner itself did. But its event may take back what a record of another one excludes.
    let is_excluded = seen.is_some();
    let mut unread = records.filter(|record| is_excluded || is_other(&record.runner));
    unread.find_map(|record| newer_about(record, order)).map_or(Ok(seen), Err)
}

/// Returns the reason why nobody can tell what a record excludes: its event is of a newer version, and may be about the
/// order.
fn newer_about(record: &AuditRecord, order: &Order) -> Option<AuditError> {
    let AuditEvent::Newer(event) = &record.event else { return None };
    may_be_about(event, order).then(|| AuditError::NewerEvent { seq: record.seq, event: event.kind() })
}

/// Returns what another machine did that excludes an order, whichever message it is in.
fn seen_in(event: &AuditEvent, held: &HeldOrder) -> Option<Seen> {
    let order = &held.order;
    if let AuditEvent::Started { group, serial, .. } = event {
        let newer = serial.filter(|serial| group.as_ref() == Some(&order.group) && *serial > order.serial);
        return newer.map(Seen::HigherSerial);
    }
    let AuditEvent::Cancelled { job, dispatch, receive, .. } = event else { return None };
    let is_this = *job == order.job && *dispatch == order.dispatch;
    (is_this && receive.is_none_or(|one| one == held.fence.receive)).then_some(Seen::Cancelled)
}

/// Returns the delivery of an attempt at the job, and the end that `event` records.
fn attempt_in(event: &AuditEvent, of: &JobId) -> Option<(OrderDelivery, End)> {
    let (job, fence, sent_at, end) = match event {
        AuditEvent::Started { job, fence, sent_at, .. } => (job, fence, sent_at, End::None),
        AuditEvent::Ended { job, fence, sent_at, result, .. } => {
            let end = match result.as_str() {
                PUT_BACK => End::PutBack,
                REFUSED => End::Excluded,
                CANCELLED => End::Refused,
                _ => End::Outcome,
            };
            (job, fence, sent_at, end)
        }
        AuditEvent::Refused { refusal, sent_at } => {
            let (job, fence) = refusal.job.as_ref()?;
            let end = match (refusal.given_back, refusal.reason == RefusalReason::Replayed) {
                (true, _) => End::GivenBack,
                (false, true) => End::Excluded,
                (false, false) => End::Refused,
            };
            (job, fence, sent_at, end)
        }
        AuditEvent::Cancelled { .. }
        | AuditEvent::Joined { .. }
        | AuditEvent::Sent { .. }
        | AuditEvent::PoliciesAsked { .. }
        | AuditEvent::Approval { .. }
        | AuditEvent::Strangers { .. }
        | AuditEvent::ConnectionRefused { .. }
        | AuditEvent::KeyReplaced { .. }
        | AuditEvent::IamChange { .. }
        | AuditEvent::IamUsed { .. }
        | AuditEvent::Newer(_) => return None,
    };
    (job == of).then_some((OrderDelivery { fence: *fence, sent_at: *sent_at }, end))
}

#[cfg(test)]
mod tests {
    use freehold_protocol::report::Refusal;
    use freehold_protocol::{Digest, Timestamp};
    use tokio::time::Instant;

    use super::*;
    use crate::record::audit::memory::author;
    use crate::testing::{job_id, order};
    use crate::wire::inbox::Delivery;
    use crate::wire::verify::Refused;

    const OTHER: Option<Seen> = Some(Seen::Attempt(Exclusion::OtherMessage));
    const NONE: Option<Seen> = None;

    fn delivery(receive: u32, sent_at: u64) -> Delivery {
        Delivery {
            body: "x".into(),
            handle: "handle".into(),
            receive,
            sent_at: Timestamp::from_millis(sent_at),
            group: None,
            leased_at: Instant::now(),
        }
    }

    fn held(receive: u32, sent_at: u64) -> HeldOrder {
        HeldOrder::new(order(1, 7), &delivery(receive, sent_at))
    }

    /// The record of the start of a delivery, or of its end with `result`, by the runner with the key of this seed.
    fn record(seed: u8, (receive, sent_at): (u32, u64), result: Option<&str>) -> AuditRecord {
        let of = held(receive, sent_at);
        let ended = |result: &str| {
            let (job, fence, result) = (job_id(1), of.fence, result.to_owned());
            AuditEvent::Ended { job, fence, result, log: None, order: None, sent_at: of.sent_at }
        };
        AuditRecord {
            tenant: "acme".parse().unwrap(),
            install: "globex-prod".parse().unwrap(),
            runner: author(seed).identity.id().clone(),
            seq: 1,
            previous: Digest::of(b""),
            at: Timestamp::default(),
            event: result.map_or_else(|| of.announcement(), ended),
        }
    }

    /// Returns how the records, the oldest first, exclude a delivery to a runner whose key signed none of them.
    fn after(records: &[AuditRecord], receive: u32, sent_at: u64) -> Option<Seen> {
        excluding(records.iter().rev(), None, &held(receive, sent_at)).unwrap()
    }

    #[test]
    fn an_attempt_that_did_not_start_excludes_no_message_that_was_sent_before_its_own() {
        for (result, copy) in [(REFUSED, NONE), (PUT_BACK, OTHER), (CANCELLED, OTHER)] {
            let records = [record(3, (1, 60), None), record(3, (1, 60), Some(result))];
            assert_eq!((after(&records, 1, 50), after(&records, 1, 70)), (NONE, copy), "{result}");
        }
        let records = [record(3, (1, 60), None), record(3, (1, 60), Some("succeeded"))];
        assert_eq!((after(&records, 1, 50), after(&records, 1, 70)), (OTHER, OTHER));
    }

    /// The machine with the copy may have been killed after it had recorded the start, and before it could record that
    /// it refused the copy.
    #[test]
    fn a_start_that_an_earlier_record_excludes_does_not_keep_the_original_from_being_resumed() {
        let records = [record(3, (1, 50), None), record(4, (1, 60), None)];
        let own = |seed: u8| {
            let key = author(seed).identity.id().clone();
            excluding(records.iter().rev(), Some(&key), &held(2, 50)).unwrap()
        };

        assert_eq!((after(&records, 2, 50), own(3)), (NONE, NONE));
        assert_eq!(after(&records, 2, 60), OTHER, "the copy is excluded");
    }

    /// A machine that was killed finds the copy first. Then it is lost for good.
    #[test]
    fn a_job_that_its_machine_continued_under_a_copy_is_resumed_under_the_copy_alone() {
        let records = [record(3, (1, 50), None), record(3, (1, 60), None)];

        assert_eq!((after(&records, 2, 60), after(&records, 2, 50)), (NONE, OTHER));
        let put_back = record(3, (1, 60), Some(PUT_BACK));
        let records = [&records[..], &[put_back][..]].concat();
        assert_eq!((after(&records, 2, 60), after(&records, 2, 50)), (NONE, NONE), "whichever comes first");
    }

    /// The record of a refusal of a delivery as a copy.
    fn refused(seed: u8, (receive, sent_at): (u32, u64)) -> AuditRecord {
        let of = held(receive, sent_at);
        let refused = Refused { reason: RefusalReason::Replayed, detail: String::new() };
        let refusal = refused.of(of.message.clone(), Some((job_id(1), of.fence)));
        AuditRecord { event: AuditEvent::Refused { refusal, sent_at: of.sent_at }, ..record(seed, (1, 1), None) }
    }

    /// Otherwise both messages would be refused, and nobody would do the order.
    #[test]
    fn an_order_that_was_refused_because_of_its_copy_does_not_exclude_the_copy() {
        let copy = record(4, (1, 60), None);
        let put_back = |seed: u8, of: (u32, u64)| record(seed, of, Some(PUT_BACK));
        let lost = [copy.clone(), refused(3, (1, 50))];
        let waits = [copy.clone(), refused(3, (1, 50)), put_back(4, (1, 60))];
        let both_wait = [copy.clone(), put_back(3, (1, 50)), refused(3, (2, 50)), put_back(4, (1, 60))];
        let stopped = [copy, record(3, (1, 50), None), put_back(3, (1, 50))];

        for records in [&lost[..], &waits[..], &both_wait[..], &stopped[..]] {
            assert_eq!(after(records, 2, 60), NONE, "{records:?}");
        }
        assert_eq!((after(&lost, 2, 50), after(&stopped, 2, 50)), (OTHER, OTHER));
    }

    #[test]
    fn an_order_that_was_given_back_starts_by_no_other_message() {
        let of = held(1, 60);
        let refused = Refused { reason: RefusalReason::Expired, detail: String::new() };
        let refusal = refused.of(of.message.clone(), Some((job_id(1), of.fence)));
        let refusal = Refusal { given_back: true, ..refusal };
        let event = AuditEvent::Refused { refusal, sent_at: of.sent_at };
        let records = [AuditRecord { event, ..record(3, (1, 1), None) }];

        for (receive, sent_at) in [(1, 50), (2, 60), (1, 70)] {
            let seen = after(&records, receive, sent_at);
            assert!(seen.as_ref().is_some_and(Seen::is_given_back), "{receive} {sent_at}: {seen:?}");
        }
    }

    #[test]
    fn a_copy_of_an_order_that_was_started_and_cancelled_is_refused_as_a_copy() {
        let (job, message) = (job_id(1), Digest::of(b"cancel"));
        let event = AuditEvent::Cancelled { job, dispatch: 1, receive: None, asked_by: None, asked_why: None, message };
        let started = record(3, (1, 50), None);
        let records = [started.clone(), AuditRecord { event, ..started }];

        assert_eq!((after(&records, 2, 60), after(&records, 2, 50)), (OTHER, Some(Seen::Cancelled)));
    }

    #[test]
    fn only_the_records_of_the_job_and_of_newer_orders_of_its_group_matter() {
        let of = |n: u32, serial: u64| HeldOrder::new(order(n, serial), &delivery(1, 50)).announcement();
        let sent = AuditEvent::Sent { reports: Vec::new() };
        let concerned = |event: &AuditEvent| concerns(event, &held(2, 50));

        assert_eq!([of(1, 7), of(2, 8), of(2, 6), sent].each_ref().map(concerned), [true, true, false, false]);
    }

    #[test]
    fn an_outcome_after_the_start_of_a_later_delivery_does_not_count() {
        let (first, second) = (record(3, (1, 50), None), record(4, (2, 50), None));
        let outcome = record(3, (1, 50), Some("succeeded"));

        assert_eq!(after(&[first.clone(), second.clone(), outcome.clone()], 3, 50), None);
        let ended = Some(Seen::Attempt(Exclusion::Outcome { receive: 1 }));
        assert_eq!(after(&[first, outcome], 3, 50), ended);
    }

    /// What the records, the oldest first, exclude of a delivery to the runner with the key of seed 3.
    fn to_own(records: &[AuditRecord]) -> Result<Option<Seen>, AuditError> {
        excluding(records.iter().rev(), Some(author(3).identity.id()), &held(1, 50))
    }

    #[test]
    fn an_event_of_a_newer_version_about_the_order_keeps_it_from_being_started_and_from_being_refused() {
        let newer = |seed: u8| {
            let event = serde_json::json!({ "event": "resumed", "job": job_id(1) });
            AuditRecord { seq: 9, event: serde_json::from_value(event).unwrap(), ..record(seed, (1, 60), None) }
        };
        let copy = || record(4, (1, 60), None);
        let later = HeldOrder::new(order(2, 8), &delivery(1, 60)).announcement();
        let is_unknown =
            |records: &[AuditRecord]| matches!(to_own(records), Err(AuditError::NewerEvent { seq: 9, .. }));

        assert!(is_unknown(&[newer(4)]));
        assert!(is_unknown(&[copy(), newer(4)]) && is_unknown(&[newer(3), copy()]), "the copy did not start, perhaps");
        assert_eq!(to_own(&[newer(3)]).unwrap(), NONE, "the journal has what this runner did");
        assert_eq!(to_own(&[copy()]).unwrap(), OTHER);
        let serial = to_own(&[newer(4), AuditRecord { event: later, ..copy() }]);
        assert_eq!(serial.unwrap(), Some(Seen::HigherSerial(8)));
    }
}

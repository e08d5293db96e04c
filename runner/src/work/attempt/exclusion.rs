//! Decides what the records of other machines exclude: whether a delivery of an order is a copy, or comes too late.

use std::cmp::Ordering;
use std::fmt;

use freehold_protocol::audit::{AuditEvent, AuditRecord};
use freehold_protocol::order::Order;
use freehold_protocol::report::{Fence, RefusalReason};
use freehold_protocol::{JobId, KeyId, Timestamp};

use super::newer_event::may_be_about;
use super::no_start::{CANCELLED, PUT_BACK, REFUSED};
use crate::record::audit::AuditError;
use crate::work::in_flight::HeldOrder;

/// The act of another machine of the install that makes this delivery a copy of the order, or too late.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Seen {
    /// The order had this delivery, or a later one, before. SQS counts the deliveries of one message upwards.
    Delivery { receive: u32 },
    /// The job has an outcome from this earlier delivery of the message.
    Outcome { receive: u32 },
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
            Self::Delivery { .. }
            | Self::Outcome { .. }
            | Self::OtherMessage
            | Self::LaterDispatch(_)
            | Self::HigherSerial(_) => RefusalReason::Replayed,
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
            Self::Outcome { receive } => {
                write!(f, "the job has ended: its delivery {receive} was handled by {by}")
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
    let delivery = (Fence { dispatch: order.dispatch, receive: held.fence.receive }, held.sent_at);
    let attempts = attempts(records.clone().rev(), &order.job);
    let seen = excluded_by(&attempts, own, delivery);
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

/// Returns all attempts at the job that `records` have, the oldest first.
fn attempts<'a>(records: impl Iterator<Item = &'a AuditRecord>, job: &JobId) -> Vec<Earlier<'a>> {
    let mut attempts: Vec<Earlier<'a>> = Vec::new();
    for AuditRecord { runner, event, .. } in records {
        let Some((fence, sent_at, mut end)) = attempt_in(event, job) else { continue };
        let mut others = attempts.iter().filter(|earlier| earlier.runner != runner);
        match end {
            // The chain excluded this start when it was recorded, so its machine did not start the job.
            End::None if excluded_by(&attempts, Some(runner), (fence, sent_at)).is_some() => end = End::Excluded,
            // A later delivery had started before this end, so the control plane does not accept the outcome.
            End::Outcome if others.any(|later| later.is_started() && later.supersedes(fence, sent_at)) => {
                end = End::None
            }
            End::None | End::PutBack | End::Excluded | End::Refused | End::Outcome => {}
        }
        let is_replaced = |one: &Earlier<'_>| {
            let (is_own, is_message) = (one.runner == runner, one.is_of(fence, sent_at));
            let has_ended = is_own && is_message && one.fence == fence;
            // A machine that starts the order again continues its own attempt, from now on under this message: if it took
            // it from a copy, only the copy may be resumed.
            let continues = is_own && one.end == End::None && end == End::None && one.fence.dispatch == fence.dispatch;
            // A message that was put back before does not come back any more.
            let is_gone = is_message && one.end == End::PutBack && end == End::Excluded;
            has_ended || continues || is_gone
        };
        attempts.retain(|one| !is_replaced(one));
        attempts.push(Earlier { runner, fence, sent_at, end });
    }
    attempts
}

/// Returns what the attempts of other machines than `own`, the oldest first, exclude of a delivery.
fn excluded_by(attempts: &[Earlier<'_>], own: Option<&KeyId>, delivery: (Fence, Option<Timestamp>)) -> Option<Seen> {
    let (fence, sent_at) = delivery;
    // This message started the order before. Another one may have been announced and put back after that.
    let resumes = attempts.iter().any(|one| one.is_started() && one.is_of(fence, sent_at) && one.fence < fence);
    let others = attempts.iter().rev().filter(|one| own != Some(one.runner));
    let mut excluding = others.filter(|one| !(resumes && one.end == End::PutBack && !one.is_of(fence, sent_at)));
    excluding.find_map(|one| one.excludes(delivery))
}

/// Returns the delivery of an attempt at the job, the time at which its message was sent, and the end that `event` records.
fn attempt_in(event: &AuditEvent, of: &JobId) -> Option<(Fence, Option<Timestamp>, End)> {
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
            let end = if refusal.reason == RefusalReason::Replayed { End::Excluded } else { End::Refused };
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
    (job == of).then_some((*fence, *sent_at, end))
}

/// How an attempt that the chain records has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// There is no end, so its machine may be lost, and the next delivery continues.
    None,
    /// The attempt ended before the start, and its message comes back.
    PutBack,
    /// The job did not start, because something else that is recorded excluded it. Its message does not come back.
    Excluded,
    /// The order was refused for another reason or given back, and no copy of it may start.
    Refused,
    /// The reports queue has the outcome of the job.
    Outcome,
}

/// An attempt of a machine at the job, or its refusal of the order.
struct Earlier<'a> {
    runner: &'a KeyId,
    fence: Fence,
    /// The time at which the queue took the message; absent in records of earlier versions.
    sent_at: Option<Timestamp>,
    end: End,
}

impl Earlier<'_> {
    const fn is_started(&self) -> bool {
        matches!(self.end, End::None | End::Outcome)
    }

    /// Returns whether this is a delivery of the message.
    fn is_of(&self, fence: Fence, sent_at: Option<Timestamp>) -> bool {
        self.fence.dispatch == fence.dispatch && self.sent_at == sent_at
    }

    /// Returns whether this is a later delivery of the message.
    fn supersedes(&self, fence: Fence, sent_at: Option<Timestamp>) -> bool {
        self.is_of(fence, sent_at) && self.fence.receive > fence.receive
    }

    /// Returns the reason why a delivery of the order, sent at this time, may not start a job after this.
    fn excludes(&self, (delivery, sent_at): (Fence, Option<Timestamp>)) -> Option<Seen> {
        let Fence { dispatch, receive } = self.fence;
        if dispatch < delivery.dispatch {
            return None;
        }
        if dispatch > delivery.dispatch {
            return Some(Seen::LaterDispatch(dispatch));
        }
        match self.sent_at.zip(sent_at).map(|(known, own)| own.cmp(&known)) {
            // Without a time, the number of the delivery decides.
            Some(Ordering::Equal) | None if receive >= delivery.receive => Some(Seen::Delivery { receive }),
            Some(Ordering::Equal) | None => (self.end == End::Outcome).then_some(Seen::Outcome { receive }),
            // What excluded it may be this message.
            Some(Ordering::Less | Ordering::Greater) if self.end == End::Excluded => None,
            // A copy is sent after its original, which may come back after the copy was refused.
            Some(Ordering::Less) if !self.is_started() => None,
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
    use crate::wire::verify::Refused;

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

    /// Returns how an attempt at delivery 2 of a message that was sent at `known` excludes the delivery `receive` of a
    /// message that was sent at 50.
    fn excluded(known: Option<u64>, receive: u32, end: End) -> Option<Seen> {
        let (runner, sent_at) = (author(3).identity.id().clone(), known.map(Timestamp::from_millis));
        let earlier = Earlier { runner: &runner, fence: Fence { dispatch: 1, receive: 2 }, sent_at, end };
        earlier.excludes((Fence { dispatch: 1, receive }, Some(Timestamp::from_millis(50))))
    }

    #[test]
    fn an_attempt_excludes_earlier_deliveries_of_its_message_and_each_delivery_of_another_one() {
        let by = |known| [1, 2, 3].map(|receive| excluded(known, receive, End::None));

        assert_eq!(by(Some(50)), [DELIVERY, DELIVERY, None]);
        assert_eq!((by(Some(40)), by(Some(60))), ([OTHER; 3], [OTHER; 3]));
        assert_eq!(by(None), [DELIVERY, DELIVERY, None], "a record of an earlier version");
    }

    #[test]
    fn an_outcome_excludes_every_delivery() {
        let by = |known| [1, 2, 3].map(|receive| excluded(known, receive, End::Outcome));

        assert_eq!(by(Some(50)), [DELIVERY, DELIVERY, Some(Seen::Outcome { receive: 2 })]);
        assert_eq!((by(Some(40)), by(Some(60))), ([OTHER; 3], [OTHER; 3]));
    }

    #[test]
    fn a_refusal_excludes_no_message_that_was_sent_before_the_refused_one() {
        for (end, copy) in [(End::Refused, OTHER), (End::PutBack, OTHER), (End::Excluded, NONE)] {
            let by = |known| [1, 2, 3].map(|receive| excluded(known, receive, end));
            assert_eq!(by(Some(50)), [DELIVERY, DELIVERY, None], "{end:?}");
            assert_eq!((by(Some(40)), by(Some(60))), ([&copy; 3].map(Clone::clone), [NONE; 3]), "{end:?}");
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
        assert_eq!(after(&[first, outcome], 3, 50), Some(Seen::Outcome { receive: 1 }));
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

//! Decides which deliveries of an order the attempts exclude that an audit chain records: the delivery is a copy of the
//! order, or it comes too late.

use std::cmp::Ordering;

use crate::Timestamp;
use crate::report::Fence;

/// A delivery of an order, which the order's message and its fence name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderDelivery {
    pub fence: Fence,
    /// The time at which the queue took the message; absent in records of earlier versions.
    pub sent_at: Option<Timestamp>,
}

/// How an attempt that the chain records has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    /// There is no end, so its machine may be lost, and the next delivery continues.
    None,
    /// The attempt ended before the start, and its message comes back.
    PutBack,
    /// The job did not start, because something else that is recorded excluded it. Its message does not come back.
    Excluded,
    /// The order was refused for another reason, and no copy of it may start.
    Refused,
    /// The order was given back, so the control plane orders the work again, and no message with this order may start
    /// it.
    GivenBack,
    /// The reports queue has the outcome of the job.
    Outcome,
}

/// An attempt of a machine at a job, or its refusal of the order. `M` names the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt<M> {
    pub machine: M,
    pub delivery: OrderDelivery,
    pub end: End,
}

/// The reason why a delivery of an order must not start its job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exclusion {
    /// The order had this delivery, or a later one, before. SQS counts the deliveries of one message upwards.
    Delivery { receive: u32 },
    /// The job has an outcome from this earlier delivery of the message.
    Outcome { receive: u32 },
    /// The order was given back at this delivery of one of its messages. Its machine may have been lost before the
    /// control plane knew, so the order must be given back again.
    GivenBack { receive: u32 },
    /// The order came before in another message, which the queue took at another time. If the machine that handled the
    /// other message is lost, SQS delivers that message again.
    OtherMessage,
    /// A later dispatch of the job was started.
    LaterDispatch(u32),
}

impl Exclusion {
    /// Returns whether the order was given back, so that it must be given back again.
    #[must_use]
    pub const fn is_given_back(self) -> bool {
        matches!(self, Self::GivenBack { .. })
    }
}

/// Returns the attempts at a job, the oldest first. `recorded` has their starts and ends as the chain records them, the
/// oldest first too.
pub fn attempts<M: Copy + PartialEq>(recorded: impl IntoIterator<Item = Attempt<M>>) -> Vec<Attempt<M>> {
    let mut attempts: Vec<Attempt<M>> = Vec::new();
    for Attempt { machine, delivery, mut end } in recorded {
        let mut others = attempts.iter().filter(|earlier| earlier.machine != machine);
        let excluded = || excluding(&attempts, Some(machine), delivery);
        match end {
            // The chain excluded this start when it was recorded, so its machine did not start the job.
            End::None if excluded().is_some() => end = End::Excluded,
            // The same, but several machines may give an order back. Each of them may be the only one that reports it.
            End::GivenBack if excluded().is_some_and(|by| !by.is_given_back()) => end = End::Excluded,
            // A later delivery had started before this end, so the control plane does not accept the outcome.
            End::Outcome if others.any(|later| later.is_started() && later.supersedes(delivery)) => end = End::None,
            End::None | End::PutBack | End::Excluded | End::Refused | End::GivenBack | End::Outcome => {}
        }
        let newest = Attempt { machine, delivery, end };
        attempts.retain(|earlier| !newest.replaces(earlier));
        attempts.push(newest);
    }
    attempts
}

/// Returns what the attempts of other machines than `own`, the oldest first, exclude of a delivery.
pub fn excluding<M: Copy + PartialEq>(
    attempts: &[Attempt<M>],
    own: Option<M>,
    delivery: OrderDelivery,
) -> Option<Exclusion> {
    // This message started the order before. Another one may have been announced and put back after that.
    let resumes =
        attempts.iter().any(|one| one.is_started() && one.is_of(delivery) && one.delivery.fence < delivery.fence);
    let others = attempts.iter().rev().filter(|one| own != Some(one.machine));
    let mut excluding = others.filter(|one| !(resumes && one.end == End::PutBack && !one.is_of(delivery)));
    excluding.find_map(|one| one.excludes(delivery))
}

impl<M: PartialEq> Attempt<M> {
    /// Returns whether `earlier` does not count any more after this.
    fn replaces(&self, earlier: &Self) -> bool {
        let (is_own, is_message) = (earlier.machine == self.machine, earlier.is_of(self.delivery));
        let has_ended = is_own && earlier.delivery == self.delivery;
        // A machine that starts the order again continues its own attempt, from now on under this message: if it took
        // it from a copy, only the copy may be resumed.
        let is_same_dispatch = earlier.delivery.fence.dispatch == self.delivery.fence.dispatch;
        let continues = is_own && earlier.end == End::None && self.end == End::None && is_same_dispatch;
        // A message that was put back before does not come back any more.
        let is_gone = is_message && earlier.end == End::PutBack && self.end == End::Excluded;
        // A machine that was killed before it could report that it gave the order back may start it nevertheless.
        let starts_after_all = is_own && earlier.end == End::GivenBack && self.end == End::None && is_same_dispatch;
        has_ended || continues || is_gone || starts_after_all
    }
}

impl<M> Attempt<M> {
    const fn is_started(&self) -> bool {
        matches!(self.end, End::None | End::Outcome)
    }

    /// Returns whether this is a delivery of the message.
    fn is_of(&self, delivery: OrderDelivery) -> bool {
        self.delivery.fence.dispatch == delivery.fence.dispatch && self.delivery.sent_at == delivery.sent_at
    }

    /// Returns whether this is a later delivery of the message.
    fn supersedes(&self, delivery: OrderDelivery) -> bool {
        self.is_of(delivery) && self.delivery.fence.receive > delivery.fence.receive
    }

    /// Returns the reason why a delivery of the order may not start a job after this.
    fn excludes(&self, delivery: OrderDelivery) -> Option<Exclusion> {
        let Fence { dispatch, receive } = self.delivery.fence;
        if dispatch < delivery.fence.dispatch {
            return None;
        }
        if dispatch > delivery.fence.dispatch {
            return Some(Exclusion::LaterDispatch(dispatch));
        }
        if self.end == End::GivenBack {
            return Some(Exclusion::GivenBack { receive });
        }
        match self.delivery.sent_at.zip(delivery.sent_at).map(|(known, own)| own.cmp(&known)) {
            // Without a time, the number of the delivery decides.
            Some(Ordering::Equal) | None if receive >= delivery.fence.receive => Some(Exclusion::Delivery { receive }),
            Some(Ordering::Equal) | None => (self.end == End::Outcome).then_some(Exclusion::Outcome { receive }),
            // What excluded it may be this message.
            Some(Ordering::Less | Ordering::Greater) if self.end == End::Excluded => None,
            // A copy is sent after its original, which may come back after the copy was refused.
            Some(Ordering::Less) if !self.is_started() => None,
            Some(Ordering::Less | Ordering::Greater) => Some(Exclusion::OtherMessage),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELIVERY: Option<Exclusion> = Some(Exclusion::Delivery { receive: 2 });
    const OTHER: Option<Exclusion> = Some(Exclusion::OtherMessage);
    const NONE: Option<Exclusion> = None;

    fn delivery(receive: u32, sent_at: Option<u64>) -> OrderDelivery {
        OrderDelivery { fence: Fence { dispatch: 1, receive }, sent_at: sent_at.map(Timestamp::from_millis) }
    }

    /// Returns how an attempt at delivery 2 of a message that was sent at `known` excludes the delivery `receive` of a
    /// message that was sent at 50.
    fn excluded(known: Option<u64>, receive: u32, end: End) -> Option<Exclusion> {
        let earlier = Attempt { machine: 3, delivery: delivery(2, known), end };
        excluding(&[earlier], None, delivery(receive, Some(50)))
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

        assert_eq!(by(Some(50)), [DELIVERY, DELIVERY, Some(Exclusion::Outcome { receive: 2 })]);
        assert_eq!((by(Some(40)), by(Some(60))), ([OTHER; 3], [OTHER; 3]));
    }

    #[test]
    fn a_refusal_excludes_no_message_that_was_sent_before_the_refused_one() {
        for (end, copy) in [(End::Refused, OTHER), (End::PutBack, OTHER), (End::Excluded, NONE)] {
            let by = |known| [1, 2, 3].map(|receive| excluded(known, receive, end));
            assert_eq!(by(Some(50)), [DELIVERY, DELIVERY, None], "{end:?}");
            assert_eq!((by(Some(40)), by(Some(60))), ([copy; 3], [NONE; 3]), "{end:?}");
        }
    }

    #[test]
    fn an_order_that_was_given_back_excludes_every_delivery_of_each_of_its_messages() {
        let by = |known| [1, 2, 3].map(|receive| excluded(known, receive, End::GivenBack));

        for known in [Some(40), Some(50), Some(60), None] {
            assert_eq!(by(known), [Some(Exclusion::GivenBack { receive: 2 }); 3], "{known:?}");
        }
    }

    /// Whoever is first in the chain decides: the machine that gives an order back, or the one that starts it.
    #[test]
    fn of_a_start_and_an_order_that_is_given_back_the_first_one_counts() {
        let one =
            |machine, (receive, sent_at), end| Attempt { machine, delivery: delivery(receive, Some(sent_at)), end };
        let ends = |recorded: [Attempt<u8>; 2]| attempts(recorded).iter().map(|one| one.end).collect::<Vec<End>>();
        let given_back = |machine, of| one(machine, of, End::GivenBack);
        let start = |machine, of| one(machine, of, End::None);

        let (copy, lapsed) = ((1, 60), (1, 50));
        assert_eq!(ends([start(3, (1, 50)), given_back(4, copy)]), [End::None, End::Excluded]);
        assert_eq!(ends([start(3, (2, 50)), given_back(4, lapsed)]), [End::None, End::Excluded]);
        assert_eq!(ends([given_back(4, copy), start(3, (1, 50))]), [End::GivenBack, End::Excluded]);
        assert_eq!(ends([given_back(4, lapsed), start(3, (2, 50))]), [End::GivenBack, End::Excluded]);
        let begun = ends([start(3, (1, 50)), given_back(4, (2, 50))]);
        assert_eq!(begun, [End::None, End::GivenBack], "the machine that had begun may be lost");
        assert_eq!(ends([given_back(4, (1, 50)), start(4, (2, 50))]), [End::None], "it was not reported");
        let both = attempts([given_back(4, lapsed), given_back(3, copy), start(4, (2, 50))]);
        let both: Vec<End> = both.iter().map(|one| one.end).collect();
        assert_eq!(both, [End::GivenBack, End::GivenBack, End::Excluded], "the other one may have reported it");
    }

    #[test]
    fn what_a_machine_did_itself_does_not_exclude_a_delivery() {
        let own = Attempt { machine: 3, delivery: delivery(2, Some(40)), end: End::None };
        let by = |machine| excluding(&[own], Some(machine), delivery(1, Some(50)));

        assert_eq!((by(3), by(4)), (NONE, OTHER));
    }

    #[test]
    fn a_later_dispatch_excludes_an_earlier_one_and_not_the_other_way_round() {
        let earlier = delivery(1, Some(50));
        let later =
            OrderDelivery { fence: Fence { dispatch: 2, receive: 1 }, sent_at: Some(Timestamp::from_millis(90)) };
        let by = |of, delivery| excluding(&[Attempt { machine: 3, delivery: of, end: End::Refused }], None, delivery);

        assert_eq!((by(later, earlier), by(earlier, later)), (Some(Exclusion::LaterDispatch(2)), NONE));
    }

    #[test]
    fn a_start_that_an_earlier_record_of_another_machine_excludes_did_not_happen() {
        let start = |machine, sent_at| Attempt { machine, delivery: delivery(1, Some(sent_at)), end: End::None };
        let ends = |recorded: [Attempt<u8>; 2]| attempts(recorded).iter().map(|one| one.end).collect::<Vec<End>>();

        assert_eq!(ends([start(3, 50), start(4, 60)]), [End::None, End::Excluded]);
        assert_eq!(ends([start(3, 50), start(3, 60)]), [End::None], "a machine continues its own attempt");
    }
}

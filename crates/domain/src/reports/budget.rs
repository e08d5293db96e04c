//! Limits how many reports of one install, or of one unknown sender, are handled, wait or are dropped, so that a flood
//! of reports from one install does not affect the others.

use freehold_protocol::Timestamp;
use serde::{Deserialize, Serialize};

/// A token bucket for reports: the maximum number of tokens, and the number of tokens that return per hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    pub most: u32,
    pub per_hour: u32,
}

/// The rates of one sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rates {
    /// The reports that are handled when they come.
    pub handled: Rate,
    /// The reports above `handled`, which wait for a later try.
    pub waiting: Rate,
}

impl Rate {
    /// Nothing at all.
    const NONE: Self = Self { most: 0, per_hour: 0 };
}

impl Rates {
    /// The rates of an install. A runner stores at most 20,000 reports while it cannot send, and as many may wait at a
    /// time. So a runner that was cut off for days loses nothing. A report that has waited makes room for another one when
    /// it is handled. The rate per hour of `waiting` makes up for room that was lost with a copy of the function.
    pub const INSTALL: Self =
        Self { handled: Rate { most: 5_000, per_hour: 7_200 }, waiting: Rate { most: 20_000, per_hour: 60 } };
    /// The rates of a role that no runner has proved to have: enough to announce a runner. A customer can make many such
    /// roles, so none of them may have reports of its own that wait.
    pub const UNKNOWN: Self = Self { handled: Rate { most: 60, per_hour: 360 }, waiting: Rate::NONE };
    /// The rates that all unknown roles share. A runner whose role was made anew may send all that it has stored before
    /// its hello is handled.
    pub const UNKNOWN_ROLES: Self = Self { handled: Rate::NONE, waiting: Self::INSTALL.waiting };
}

/// The number of reports of a rate that are available at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    pub count: u32,
    pub at: Timestamp,
}

impl Budget {
    /// Returns a full budget: nothing of the rate is used.
    pub const fn full(rate: Rate, now: Timestamp) -> Self {
        Self { count: rate.most, at: now }
    }

    /// Takes at most `wanted` reports. Returns how many were taken, and the remaining budget.
    #[must_use]
    pub fn take(self, rate: Rate, wanted: u32, now: Timestamp) -> (u32, Self) {
        let now = now.max(self.at);
        let back = now.since(self.at).saturating_mul(u64::from(rate.per_hour)) / HOUR_MILLIS;
        let back = u32::try_from(back).unwrap_or(u32::MAX);
        let count = self.count.saturating_add(back).min(rate.most);
        let taken = wanted.min(count);
        // Time that is too short for one more report is not lost: it counts at the next call.
        let since = match u64::from(back).saturating_mul(HOUR_MILLIS).checked_div(u64::from(rate.per_hour)) {
            Some(used) if count < rate.most => Timestamp::from_millis(self.at.as_millis().saturating_add(used)),
            Some(_) | None => now,
        };
        (taken, Self { count: count - taken, at: since })
    }

    /// Returns the budget after `count` reports were given back.
    #[must_use]
    pub fn give_back(self, rate: Rate, count: u32, now: Timestamp) -> Self {
        let (_, now) = self.take(rate, 0, now);
        Self { count: now.count.saturating_add(count).min(rate.most), ..now }
    }
}

const HOUR_MILLIS: u64 = 3_600_000;

/// The budget of one sender.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportBudget {
    pub handled: Budget,
    pub waiting: Budget,
    /// The number of reports that were dropped, ever.
    #[serde(default)]
    pub dropped: u64,
    /// The time of the last drop that is counted; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped_at: Option<Timestamp>,
}

impl ReportBudget {
    /// Returns the budget of a sender that has sent nothing.
    pub const fn new(rates: Rates, now: Timestamp) -> Self {
        Self {
            handled: Budget::full(rates.handled, now),
            waiting: Budget::full(rates.waiting, now),
            dropped: 0,
            dropped_at: None,
        }
    }

    /// Claims up to `wanted` reports that are handled now. Returns their number, and the remaining budget.
    #[must_use]
    pub fn claim_handled(&self, rates: Rates, wanted: u32, now: Timestamp) -> (u32, Self) {
        let (count, handled) = self.handled.take(rates.handled, wanted, now);
        (count, Self { handled, ..self.clone() })
    }

    /// Claims up to `wanted` reports that wait. Returns their number, and the remaining budget. Since the last claim,
    /// `left` reports that had waited were handled, and `dropped` reports were dropped.
    #[must_use]
    pub fn claim_waiting(&self, rates: Rates, wanted: u32, (left, dropped): (u32, u32), now: Timestamp) -> (u32, Self) {
        let (count, waiting) = self.waiting.give_back(rates.waiting, left, now).take(rates.waiting, wanted, now);
        let mut next = Self { waiting, ..self.clone() };
        if dropped > 0 {
            next.dropped = next.dropped.saturating_add(u64::from(dropped));
            next.dropped_at = Some(now);
        }
        (count, next)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RATES: Rates = Rates { handled: Rate { most: 10, per_hour: 3_600 }, waiting: Rate { most: 4, per_hour: 60 } };

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000 + millis)
    }

    #[test]
    fn reports_are_handled_then_wait_and_room_comes_back_with_time() {
        let budget = ReportBudget::new(RATES, at(0));

        let (first, budget) = budget.claim_handled(RATES, 8, at(0));
        let (second, budget) = budget.claim_handled(RATES, 8, at(0));
        let (third, budget) = budget.claim_handled(RATES, 8, at(999));
        let (waiting, budget) = budget.claim_waiting(RATES, 8, (0, 0), at(999));
        let (none, budget) = budget.claim_waiting(RATES, 8, (0, 7), at(999));
        let (fourth, budget) = budget.claim_handled(RATES, 8, at(1000));

        assert_eq!(([first, second, third, fourth], [waiting, none]), ([8, 2, 0, 1], [4, 0]));
        assert_eq!((budget.dropped, budget.dropped_at), (7, Some(at(999))));
    }

    #[test]
    fn a_report_that_has_waited_makes_room_for_one_more_and_not_for_two() {
        let (_, used_up) = ReportBudget::new(RATES, at(0)).claim_waiting(RATES, 4, (0, 0), at(0));

        let (three, left) = used_up.claim_waiting(RATES, 9, (3, 0), at(0));
        let (most, _) = left.claim_waiting(RATES, 9, (100, 0), at(0));

        assert_eq!((three, most), (3, RATES.waiting.most));
    }

    #[test]
    fn what_a_runner_keeps_while_it_is_cut_off_is_never_dropped() {
        const SPOOL: u32 = 20_000;
        let mut budget = ReportBudget::new(Rates::INSTALL, at(0));
        let mut taken = 0;

        while taken < SPOOL {
            let (handled, next) = budget.claim_handled(Rates::INSTALL, 50, at(0));
            let (waiting, next) = match handled {
                0 => next.claim_waiting(Rates::INSTALL, 50, (0, 0), at(0)),
                _ => (0, next),
            };
            assert_ne!(handled + waiting, 0, "dropped after {taken}");
            taken += handled + waiting;
            budget = next;
        }
    }

    proptest! {
        /// However often and whenever reports are claimed, no more are taken than the rate gives in that time.
        #[test]
        fn a_rate_is_never_exceeded(steps in prop::collection::vec((0_u64..5_000, 0_u32..6), 1..200)) {
            let rate = RATES.handled;
            let (mut left, mut now, mut taken) = (Budget::full(rate, at(0)), 0, 0_u64);
            for (pause, wanted) in steps {
                now += pause;
                let (some, next) = left.take(rate, wanted, at(now));
                taken += u64::from(some);
                left = next;
            }
            prop_assert!(taken <= u64::from(rate.most) + now * u64::from(rate.per_hour) / 3_600_000);
        }

        /// Small steps give back as much as one large step.
        #[test]
        fn no_time_is_lost_between_claims(pauses in prop::collection::vec(1_u64..900, 1..9)) {
            let rate = RATES.handled;
            let empty = Budget { count: 0, at: at(0) };
            let (mut stepped, mut now) = (empty, 0);
            for pause in pauses {
                now += pause;
                stepped = stepped.take(rate, 0, at(now)).1;
            }
            prop_assert_eq!(stepped.count, empty.take(rate, 0, at(now)).1.count);
        }
    }
}

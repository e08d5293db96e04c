//! Finds out what other machines of the install did with an order. The journal of this machine does not show it; the
//! audit chain in the customer's bucket does.

use freehold_protocol::Timestamp;
use freehold_protocol::audit::{AuditEvent, AuditRecord};
use freehold_protocol::order::Order;

use super::exclusion::{Seen, concerns, excluding};
use super::{Attempt, Message};
use crate::aws;
use crate::record::audit::{AuditError, BUCKET_LIMIT, Others};
use crate::work::journal::Decision;

/// The difference, in seconds, that is allowed between the clock of the bucket and that of the control plane.
const CLOCK_TOLERANCE_SECS: u64 = 3600;
/// How far, in seconds, the estimate of the control plane's time may be behind the clock that dates orders. The estimate
/// comes from the `Date` of a response of SQS, which has a resolution of a second. A function dates orders by its own
/// clock, and two clocks of AWS may differ by a minute.
const ESTIMATE_TOLERANCE_SECS: u64 = 65;

impl Attempt<'_> {
    /// Ends this delivery if what other machines did with the order excludes it. A build runner and a runner without a
    /// bucket have no chain to look at.
    ///
    /// Other machines rarely have an order that was made for this runner's key, or that the journal has. For such an
    /// order this reads nothing if it was issued after the last time at which others were noticed: when the start is
    /// recorded, [`Self::announce`] notices what was written since then. No start follows a job that is interrupted or
    /// cancelled, so nothing would notice that another machine works on it.
    pub(super) async fn end_if_excluded(&self, decision: &Decision, others: Option<Others>) -> Option<Message> {
        let others_may_know = || others.is_some_and(|others| self.may_be_known(others));
        let is_looked_up = !self.is_ours()
            || match decision {
                Decision::Start | Decision::Resume => others_may_know(),
                Decision::Interrupted => !self.is_known(),
                Decision::Cancelled => !self.is_known() || others_may_know(),
                Decision::Again(_) | Decision::Replayed { .. } => false,
            };
        if !is_looked_up {
            return None;
        }
        match self.seen().await {
            Ok(Some(seen)) if seen.is_given_back() => Some(self.give_back_again(others).await),
            seen => self.end_if_seen(seen).await,
        }
    }

    /// Ends this delivery, which is about to be given back or refused as cancelled, if another machine has the order
    /// from another message. The control plane orders the work again when the order is given back, and ends the job
    /// when it is refused, but the other machine may still do it. If another machine has given the order back, it may
    /// be given back again.
    pub(super) async fn end_if_others_have_it(&self) -> Option<Message> {
        if self.is_known() {
            return None;
        }
        match self.seen().await {
            Ok(Some(seen)) if seen.is_given_back() => None,
            seen => self.end_if_seen(seen).await,
        }
    }

    /// Ends this delivery if what other machines did excludes it, or cannot be read.
    pub(super) async fn end_if_seen(&self, seen: Result<Option<Seen>, AuditError>) -> Option<Message> {
        match seen {
            Ok(seen) => seen.map(|seen| self.refuse(seen.reason(), &seen.to_string())),
            Err(error) => Some(self.leave_unstarted(&aws::explain(&error)).await),
        }
    }

    /// Returns what other machines did with the order, if that excludes this delivery.
    async fn seen(&self) -> Result<Option<Seen>, AuditError> {
        let own = self.is_ours().then(|| self.agent.audit.key());
        excluding(self.records().await?.iter(), own, self.held)
    }

    /// Returns whether the order was made for this runner's key, or the journal has it.
    fn is_ours(&self) -> bool {
        self.held.order.runner.as_ref() == Some(self.agent.reporter.runner()) || self.is_known()
    }

    fn is_known(&self) -> bool {
        self.agent.journal().state().knows(&self.held.order)
    }

    /// Returns whether this process has noticed more of other machines than `before`.
    pub(super) fn has_noticed_more_than(&self, before: Option<Others>) -> bool {
        let noticed = |others: Option<Others>| others.map_or(0, |others| others.noticed);
        noticed(self.agent.audit.others()) != noticed(before)
    }

    /// Returns what other machines recorded before this machine recorded `event` about the order, if that excludes the
    /// delivery. The chain has one order for all machines, so of two that start an order at once, only the second one
    /// is excluded.
    pub(super) async fn seen_before(&self, event: &AuditEvent) -> Result<Option<Seen>, AuditError> {
        let (audit, held) = (&self.agent.audit, self.held);
        let records = self.records().await?;
        let place = records.iter().position(|record| record.runner == *audit.key() && record.event == *event);
        let earlier = records.get(place.map_or(0, |place| place + 1)..).unwrap_or_default();
        excluding(earlier.iter(), Some(audit.key()), held)
    }

    /// Returns the records that can matter for this delivery, the newest first.
    async fn records(&self) -> Result<Vec<AuditRecord>, AuditError> {
        let (audit, held) = (&self.agent.audit, self.held);
        let records = audit.since(earliest(&held.order), BUCKET_LIMIT, |record| concerns(&record.event, held)).await?;
        Ok(records.unwrap_or_default())
    }

    /// Returns whether another machine may have recorded something about the order that this process has not noticed.
    fn may_be_known(&self, others: Others) -> bool {
        let Some(until) = others.until else { return false };
        self.agent.clock.now(until).is_none_or(|until| may_precede(self.held.order.issued_at, until))
    }
}

/// Returns whether an order that was issued at `issued_at`, by the clock of a function, may be older than the time `until`,
/// as this machine estimates it.
fn may_precede(issued_at: Timestamp, until: Timestamp) -> bool {
    issued_at <= until.plus_secs(ESTIMATE_TOLERANCE_SECS)
}

/// Returns the time before which no machine can have recorded anything about the order.
fn earliest(order: &Order) -> Timestamp {
    Timestamp::from_millis(order.issued_at.as_millis().saturating_sub(CLOCK_TOLERANCE_SECS * 1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_that_another_clock_dates_a_minute_later_may_precede_what_was_noticed() {
        let until = Timestamp::from_millis(2_000_000);

        assert_eq!([0, 60, 90].map(|secs| may_precede(until.plus_secs(secs), until)), [true, true, false]);
    }
}

//! Finds out what other machines of the install did with an order. The journal of this machine does not show it; the
//! audit chain in the customer's bucket does.

use freehold_protocol::Timestamp;
use freehold_protocol::audit::AuditRecord;
use freehold_protocol::order::Order;

use super::Attempt;
use super::exclusion::{Seen, concerns, excluding};
use crate::record::audit::{AuditError, BUCKET_LIMIT, Others};
use crate::work::journal::Decision;

/// The difference, in seconds, that is allowed between the clock of the bucket and that of the control plane.
const CLOCK_TOLERANCE_SECS: u64 = 3600;
/// How far, in seconds, the estimate of the control plane's time may be behind the clock that dates orders. The estimate
/// comes from the `Date` of a response, which has a resolution of a second.
const ESTIMATE_TOLERANCE_SECS: u64 = 5;

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
        let records = self.records().await?;
        excluding(records.iter(), is_ours.then(|| agent.audit.key()), held)
    }

    /// Returns what other machines recorded before the recorded start of this attempt, if that excludes the start. The chain
    /// has one order for all machines, so of two that start an order at once, only the second one is excluded.
    pub(super) async fn seen_before_start(&self) -> Result<Option<Seen>, AuditError> {
        let (audit, held) = (&self.agent.audit, self.held);
        let records = self.records().await?;
        let start = held.announcement();
        let place = records.iter().position(|record| record.runner == *audit.key() && record.event == start);
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
        let until = self.agent.clock.now(until);
        until.is_none_or(|until| self.held.order.issued_at <= until.plus_secs(ESTIMATE_TOLERANCE_SECS))
    }
}

/// Returns the time before which no machine can have recorded anything about the order.
fn earliest(order: &Order) -> Timestamp {
    Timestamp::from_millis(order.issued_at.as_millis().saturating_sub(CLOCK_TOLERANCE_SECS * 1000))
}

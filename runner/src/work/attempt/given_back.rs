//! Gives back an order that came too late to be started.

use freehold_protocol::Timestamp;
use freehold_protocol::report::{Refusal, RefusalReason};

use super::{Attempt, Message};
use crate::wire::verify;
use crate::work::in_flight::HeldOrder;
use crate::work::journal::Decision;

impl Attempt<'_> {
    /// Returns whether `time` has passed by the control plane's clock.
    pub(super) fn is_past(&self, time: Timestamp) -> bool {
        let known = self.held.order.issued_at.max(self.held.sent_at);
        self.agent.server_now(known) > time
    }

    /// Returns whether it is too late to start or resume the order, so that it is given back.
    pub(super) fn is_too_late(&self, decision: &Decision) -> bool {
        let order = &self.held.order;
        match decision {
            Decision::Start => self.is_past(order.start_by.unwrap_or(order.not_after)),
            Decision::Resume => self.is_past(order.not_after),
            Decision::Interrupted | Decision::Again(_) | Decision::Cancelled | Decision::Replayed { .. } => false,
        }
    }

    /// Gives back an order that came too late to be started, so that the control plane orders its work again. No attempt
    /// works under it: the lease of an earlier delivery has ended.
    pub(super) async fn give_back(&self) -> Message {
        let message = self.put_back(Message::Done).await;
        let HeldOrder { order, fence, .. } = &**self.held;
        let detail = "the order waited for its runner for longer than it is valid; the work may be ordered again";
        let refused = verify::Refused { reason: RefusalReason::Expired, detail: detail.to_owned() };
        let refusal = refused.of(self.held.message.clone(), Some((order.job.clone(), *fence)));
        if !self.agent.refuse(Refusal { given_back: true, ..refusal }) {
            return Message::Leave;
        }
        // The spool may be lost with the machine's disk, so the order stays until the reports queue has the report.
        tokio::select! {
            () = self.agent.reporter.delivered() => message,
            () = self.held.signal.lease_lost() => Message::Leave,
        }
    }
}

//! Gives back an order whose work does not start: it came too late, or the customer lets no change start now.

use freehold_protocol::Timestamp;
use freehold_protocol::audit::AuditEvent;
use freehold_protocol::report::{Refusal, RefusalReason};
use tokio::time::Instant;
use tracing::{info, warn};

use super::exclusion::Seen;
use super::{Attempt, Message};
use crate::aws;
use crate::process::clock;
use crate::record::audit::{AuditError, BUCKET_LIMIT, Others};
use crate::wire::verify;
use crate::work::change_rules::KeptBack;
use crate::work::in_flight::HeldOrder;
use crate::work::journal::{Decision, Record};

impl Attempt<'_> {
    /// Returns whether `time` has passed by the control plane's clock.
    pub(super) fn is_past(&self, time: Timestamp) -> bool {
        let known = self.held.order.issued_at.max(self.held.sent_at.unwrap_or_default());
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

    /// Gives back an order that came too late to be started, so that the control plane orders its work again.
    pub(super) async fn give_back_late(&self) -> Message {
        let others = self.agent.audit.others();
        if let Some(message) = self.end_if_others_have_it().await {
            return message;
        }
        let detail = "the order waited for its runner for longer than it is valid; the work may be ordered again";
        // A runner of an earlier version needs the note: it does not see in the chain that the order was given back.
        self.put_back(Message::Done).await;
        self.refuse_unstarted(self.given_back(RefusalReason::Expired, detail, None), others).await
    }

    /// Gives back an order that starts or resumes a change, if the customer does not let changes start now. Returns
    /// `None` for every other order. A change that this machine has begun continues, because a change that stops
    /// halfway helps nobody. A change that only another machine may have begun does not continue: otherwise the vendor
    /// could claim this for every order.
    pub(super) async fn outside_window(&self, decision: &Decision) -> Option<Message> {
        let (agent, order) = (self.agent, &self.held.order);
        if agent.journal().state().is_given_back(order) {
            let detail = "an earlier delivery of the order was given back; the work may be ordered again";
            return Some(self.give_back_for_good(detail, agent.clock.now(Instant::now())).await);
        }
        let begins = match decision {
            Decision::Start => true,
            Decision::Resume => !agent.journal().state().knows(order),
            Decision::Interrupted | Decision::Again(_) | Decision::Cancelled | Decision::Replayed { .. } => false,
        };
        // A build runner has no install stack.
        if !begins || agent.standing.stack_name().is_empty() {
            return None;
        }
        let rules = match agent.changes.read(&agent.standing).await {
            Ok(rules) => rules,
            Err(reason) => return Some(self.leave_unstarted(&reason).await),
        };
        if rules.say_nothing_of(order) && agent.roles.credentials(order).await.is_ok() {
            let gone = agent.standing.gone();
            return Some(self.leave_unstarted(&format!("{gone}, so it is not known when changes may start")).await);
        }
        // The time comes from the responses of AWS, and not from the order: the vendor could put any time into the
        // order.
        let now = agent.clock.now(Instant::now()).unwrap_or_else(clock::local);
        let KeptBack { reason, until } = rules.kept_back(order, now)?;
        let message = self.give_back_for_good(&reason, until).await;
        agent.changes.keeps_back();
        Some(message)
    }

    /// Leaves the order in the queue because the runner is switched off.
    pub(super) fn leave(&self, switched_off: &str) -> Message {
        let job = &self.held.order.job;
        info!(job.id = %job, "The order of job `{job}` stays in the queue: {switched_off}");
        Message::Leave
    }

    pub(super) async fn leave_unstarted(&self, reason: &str) -> Message {
        let job = &self.held.order.job;
        warn!(job.id = %job, "The order of job `{job}` goes back to the queue: {reason}");
        self.put_back(Message::Leave).await
    }

    /// Gives back an order that another machine has given back. That machine may have been lost before the control
    /// plane knew. `others` is what was noticed of other machines before the last look at the chain.
    pub(super) async fn give_back_again(&self, others: Option<Others>) -> Message {
        let detail = "another runner of the install has given the order back; the work may be ordered again";
        let now = self.agent.clock.now(Instant::now());
        self.refuse_unstarted(self.given_back(RefusalReason::OutsideWindow, detail, now), others).await
    }

    /// Gives back an order that is still valid, but of which no attempt may start any more, because the control plane
    /// orders the work again. So other machines get no note that they may start the order.
    async fn give_back_for_good(&self, detail: &str, until: Option<Timestamp>) -> Message {
        let others = self.agent.audit.others();
        if let Some(message) = self.end_if_others_have_it().await {
            return message;
        }
        self.refuse_unstarted(self.given_back(RefusalReason::OutsideWindow, detail, until), others).await
    }

    /// Returns the refusal that gives the order back.
    pub(super) fn given_back(&self, reason: RefusalReason, detail: &str, until: Option<Timestamp>) -> Refusal {
        let HeldOrder { order, fence, message, .. } = &**self.held;
        let refused = verify::Refused { reason, detail: detail.to_owned() };
        let refusal = refused.of(message.clone(), Some((order.job.clone(), *fence)));
        Refusal { given_back: true, until, ..refusal }
    }

    /// Reports that no attempt works under the order, and that none will. `others` is what was noticed of other
    /// machines before the last look at the chain.
    ///
    /// Another machine may have started the order since then, from another message, or because this machine has lost
    /// the lease and does not know it. Then the control plane would order the work a second time. So the chain decides,
    /// as for a start: this machine records first that it gives the order back, and then looks for an earlier start.
    /// Whoever starts the order after this record finds the record. The journal has it before the report is sent, so
    /// that this machine does not start the order either.
    pub(super) async fn refuse_unstarted(&self, refusal: Refusal, others: Option<Others>) -> Message {
        let event = AuditEvent::Refused { refusal: refusal.clone(), sent_at: self.held.sent_at };
        let seen = tokio::select! {
            biased;
            () = self.held.signal.lease_lost() => return Message::Leave,
            seen = self.record_given_back(&event, others) => seen,
        };
        if let Some(message) = self.end_if_seen(seen).await {
            return message;
        }
        let written = self.agent.journal().append(&[Record::given_back(&self.held.order)]);
        if let Err(error) = written {
            return self.leave_unstarted(&aws::explain(&error)).await;
        }
        if !self.agent.report_refusal(refusal) {
            return Message::Leave;
        }
        // The spool may be lost with the machine's disk, so the order stays until the reports queue has the report.
        tokio::select! {
            () = self.agent.reporter.delivered() => Message::Done,
            () = self.held.signal.lease_lost() => Message::Leave,
        }
    }

    /// Records that the order is given back. Returns what other machines recorded before this, if it excludes that. An
    /// order that another machine has given back may be given back again.
    async fn record_given_back(&self, event: &AuditEvent, others: Option<Others>) -> Result<Option<Seen>, AuditError> {
        let audit = &self.agent.audit;
        audit.record(event.clone())?;
        audit.flush(BUCKET_LIMIT).await?;
        if !self.has_noticed_more_than(others) {
            return Ok(None);
        }
        Ok(self.seen_before(event).await?.filter(|seen| !seen.is_given_back()))
    }
}

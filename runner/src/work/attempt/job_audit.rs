//! Records the start and the end of a job in the audit trail.

use freehold_protocol::Digest;
use freehold_protocol::audit::{AuditEvent, ORDERS, RECEIPTS, message_name, record_name};
use freehold_protocol::report::Outcome;
use tracing::{error, warn};

use super::no_start::{CANCELLED, PUT_BACK, REFUSED};
use super::start::{NotAnnounced, Start};
use super::{Attempt, Message};
use crate::aws;
use crate::job::StopReason;
use crate::record::audit::{AuditError, BUCKET_LIMIT, Others};
use crate::wire::report::AttemptReporter;

impl Attempt<'_> {
    /// Stores the signed order, records that the job starts, and waits until the customer's bucket has the record. The
    /// order comes first, so that nobody finds a record there whose order is missing.
    ///
    /// `others` is what was noticed of other machines before the last look at the chain. If one has written since then, this
    /// looks again: the chain decides which of two machines starts an order.
    pub(super) async fn announce(&self, others: Option<Others>) -> Result<(), NotAnnounced> {
        let audit = &self.agent.audit;
        let messages = async { tokio::join!(self.keep_order(), self.keep_receipt()).0 };
        self.unless_stopped(messages, Start::NotRecorded).await?;
        let start = self.held.announcement();
        let announced = audit.announce(start.clone());
        announced.map_err(|error| not_announced(error, Start::NotRecorded))?;
        self.unless_stopped(audit.flush(BUCKET_LIMIT), Start::Recorded).await?;
        if !self.has_noticed_more_than(others) {
            return Ok(());
        }
        let looked = tokio::select! {
            biased;
            reason = self.held.signal.stopped() => {
                return Err(NotAnnounced::Stopped { reason, start: Start::Recorded });
            }
            looked = self.seen_before(&start) => looked,
        };
        match looked {
            Ok(seen) => seen.map_or(Ok(()), |seen| Err(NotAnnounced::Seen(seen))),
            Err(error) => Err(NotAnnounced::Unread(error)),
        }
    }

    /// Waits for a write into the bucket, until the attempt must stop.
    async fn unless_stopped(
        &self,
        written: impl Future<Output = Result<(), AuditError>>,
        start: Start,
    ) -> Result<(), NotAnnounced> {
        tokio::select! {
            biased;
            reason = self.held.signal.stopped() => Err(NotAnnounced::Stopped { reason, start }),
            written = written => written.map_err(|error| not_announced(error, start)),
        }
    }

    async fn keep_order(&self) -> Result<(), AuditError> {
        let name = format!("{ORDERS}/{}", message_name(&self.held.message));
        self.agent.audit.keep(&name, self.held.text.clone().into_bytes(), BUCKET_LIMIT).await
    }

    /// Stores the control plane's receipt that came with the order. The job starts without it too: the next order brings
    /// a receipt for a later record.
    async fn keep_receipt(&self) {
        let order = &self.held.order;
        let Some(envelope) = &order.receipt else { return };
        let receipt = match self.agent.trust.receipt(envelope) {
            Ok(receipt) => receipt,
            Err(why) => {
                warn!(job.id = %order.job, "Did not store the receipt in the order of job `{}`: {why}", order.job);
                return;
            }
        };
        let name = format!("{RECEIPTS}/{}", record_name(receipt.head.seq));
        let kept = match envelope.to_json() {
            Ok(text) => self.agent.audit.keep(&name, text.into_bytes(), BUCKET_LIMIT).await,
            Err(error) => Err(error.into()),
        };
        if let Err(error) = kept {
            warn!(job.id = %order.job, "The receipt in the order of job `{}` is lost: {}", order.job, aws::explain(&error));
        }
    }

    /// Ends an attempt whose job must not start.
    pub(super) async fn end_unannounced(&self, reporter: &AttemptReporter, why: NotAnnounced) -> Message {
        match why {
            NotAnnounced::Stopped { reason, start: Start::NotRecorded } => self.end_unrecorded(reason).await,
            NotAnnounced::Stopped { reason, start: Start::Recorded } => self.stopped_after_announcement(reason).await,
            NotAnnounced::Failed { reason, start } => {
                let outcome = Outcome::Failed { reason, partial: false };
                self.accept_and_finish(reporter, outcome, start).await
            }
            NotAnnounced::Seen(seen) => {
                self.record_no_start(REFUSED);
                if seen.is_given_back() {
                    return self.give_back_again(None).await;
                }
                self.refuse(seen.reason(), &seen.to_string())
            }
            NotAnnounced::Unread(error) | NotAnnounced::Unrecorded(error) => {
                let job = &self.held.order.job;
                warn!(job.id = %job, "The order of job `{job}` goes back to the queue: {}", aws::explain(&error));
                self.record_no_start(PUT_BACK);
                self.put_back(Message::Leave).await
            }
        }
    }

    /// Ends an attempt that must stop before its job started, although an audit record states that the job starts.
    pub(super) async fn stopped_after_announcement(&self, reason: StopReason) -> Message {
        let result = match reason {
            StopReason::Cancelled => CANCELLED,
            StopReason::Draining | StopReason::LeaseLost | StopReason::TimedOut | StopReason::SwitchedOff => PUT_BACK,
        };
        self.record_no_start(result);
        self.end_early(reason).await
    }

    /// Records that the job did not start, although an earlier record states that it starts.
    fn record_no_start(&self, result: &str) {
        if let Err(error) = self.agent.audit.conclude(self.ended(result, None, None)) {
            error!(job.id = %self.held.order.job, "{}", aws::explain(&error));
        }
    }

    /// Records the end of the job. Without a record, the message stays in the queue: its next delivery reports the outcome
    /// again and records it.
    pub(super) async fn record_end(&self, result: &str, start: Start) -> Message {
        let audit = &self.agent.audit;
        let log = self.agent.logs.digest(&self.held.order.job, self.held.fence).await;
        let recorded = match start {
            Start::Recorded => audit.conclude(self.ended(result, log, None)),
            Start::NotRecorded => audit.record(self.ended(result, log, self.kept_order().await)),
        };
        if let Err(error) = recorded {
            error!(job.id = %self.held.order.job, "{}", aws::explain(&error));
            return Message::Leave;
        }
        let flushed = tokio::select! {
            flushed = audit.flush(BUCKET_LIMIT) => flushed,
            () = self.held.signal.lease_lost() => return Message::Leave,
        };
        if let Err(error) = flushed {
            error!(job.id = %self.held.order.job, "{}", aws::explain(&error));
        }
        Message::Done
    }

    /// Stores the order of a job that did not start, and returns its digest: the customer can then see who requested
    /// the job.
    async fn kept_order(&self) -> Option<Digest> {
        let kept = tokio::select! {
            kept = self.keep_order() => kept,
            () = self.held.signal.lease_lost() => return None,
        };
        match kept {
            Ok(()) => Some(self.held.message.clone()),
            Err(error) => {
                let job = &self.held.order.job;
                warn!(job.id = %job, "The order of job `{job}`, which did not start, will not be in the bucket: {}", aws::explain(&error));
                None
            }
        }
    }

    fn ended(&self, result: &str, log: Option<Digest>, order: Option<Digest>) -> AuditEvent {
        let (job, result) = (self.held.order.job.clone(), result.to_owned());
        AuditEvent::Ended { job, fence: self.held.fence, result, log, order, sent_at: self.held.sent_at }
    }
}

fn not_announced(error: AuditError, start: Start) -> NotAnnounced {
    match error {
        // The other machine with the key may carry the order out.
        AuditError::SharedKey { .. } => NotAnnounced::Unrecorded(error),
        _ => NotAnnounced::Failed { reason: aws::explain(&error), start },
    }
}

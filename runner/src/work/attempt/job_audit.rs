//! Records the start and the end of a job in the audit trail.

use freehold_protocol::Digest;
use freehold_protocol::audit::{AuditEvent, ORDERS, RECEIPTS, message_name, record_name};
use tracing::{error, warn};

use super::start::{NotAnnounced, Start};
use super::{Attempt, Message};
use crate::aws;
use crate::job::StopReason;
use crate::record::audit::{AuditError, BUCKET_LIMIT};

impl Attempt<'_> {
    /// Records that the job starts, and waits until the customer's bucket has the record and the signed order that the
    /// record names.
    pub(super) async fn announce(&self) -> Result<(), NotAnnounced> {
        let audit = &self.agent.audit;
        let failed = |start| move |error| NotAnnounced::Failed { reason: aws::explain(&error), start };
        audit.announce(self.held.announcement()).map_err(failed(Start::NotRecorded))?;
        let kept = async {
            let (flushed, order, ()) = tokio::join!(audit.flush(BUCKET_LIMIT), self.keep_order(), self.keep_receipt());
            flushed.and(order)
        };
        tokio::select! {
            biased;
            reason = self.held.signal.stopped() => Err(NotAnnounced::Stopped(reason)),
            kept = kept => kept.map_err(failed(Start::Recorded)),
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

    /// Ends an attempt that must stop before its job started, although an audit record states that the job starts. A
    /// second record then states that the job did not start.
    pub(super) async fn stopped_after_announcement(&self, reason: StopReason) -> Message {
        let result = match reason {
            StopReason::Cancelled => "cancelled before the start",
            StopReason::Draining | StopReason::LeaseLost | StopReason::TimedOut | StopReason::SwitchedOff => {
                "put back before the start"
            }
        };
        if let Err(error) = self.agent.audit.conclude(self.ended(result, None, None)) {
            error!(job.id = %self.held.order.job, "{}", aws::explain(&error));
        }
        self.end_early(reason).await
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

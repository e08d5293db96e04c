//! Records the start and the end of a job in the audit trail.

use freehold_protocol::audit::AuditEvent;
use tracing::error;

use super::start::{NotAnnounced, Start};
use super::{Attempt, Message};
use crate::aws;
use crate::record::audit;
use crate::work::job::StopReason;

impl Attempt<'_> {
    /// Records that the job starts, and waits until the customer's bucket has the record.
    pub(super) async fn announce(&self) -> Result<(), NotAnnounced> {
        let audit = &self.agent.audit;
        let failed = |start| move |error| NotAnnounced::Failed { reason: aws::explain(&error), start };
        audit.record(self.held.announcement()).map_err(failed(Start::NotRecorded))?;
        tokio::select! {
            biased;
            reason = self.held.signal.stopped() => Err(NotAnnounced::Stopped(reason)),
            flushed = audit.flush(audit::BUCKET_LIMIT) => flushed.map_err(failed(Start::Recorded)),
        }
    }

    /// Ends an attempt that must stop before its job started, although an audit record says that the job starts. A second
    /// record then says that the job did not start.
    pub(super) async fn stopped_after_announcement(&self, reason: StopReason) -> Message {
        let result = match reason {
            StopReason::Cancelled => "cancelled before the start",
            StopReason::Draining | StopReason::LeaseLost | StopReason::TimedOut | StopReason::SwitchedOff => {
                "put back before the start"
            }
        };
        if let Err(error) = self.agent.audit.conclude(self.ended(result)) {
            error!(job.id = %self.held.order.job, "{}", aws::explain(&error));
        }
        self.stopped_early(reason).await
    }

    /// Records the end of the job. Without a record, the message stays in the queue: its next delivery reports the outcome
    /// again and records it.
    pub(super) async fn record_end(&self, result: &str, start: Start) -> Message {
        let audit = &self.agent.audit;
        let recorded = match start {
            Start::Recorded => audit.conclude(self.ended(result)),
            Start::NotRecorded => audit.record(self.ended(result)),
        };
        if let Err(error) = recorded {
            error!(job.id = %self.held.order.job, "{}", aws::explain(&error));
            return Message::Leave;
        }
        let flushed = tokio::select! {
            flushed = audit.flush(audit::BUCKET_LIMIT) => flushed,
            () = self.held.signal.lease_lost() => return Message::Leave,
        };
        if let Err(error) = flushed {
            error!(job.id = %self.held.order.job, "{}", aws::explain(&error));
        }
        Message::Done
    }

    fn ended(&self, result: &str) -> AuditEvent {
        AuditEvent::Ended { job: self.held.order.job.clone(), fence: self.held.fence, result: result.to_owned() }
    }
}

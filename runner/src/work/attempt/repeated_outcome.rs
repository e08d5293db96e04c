//! Reports the outcome of a job that ended on this machine at an earlier delivery of its order, or that must not start again.

use freehold_protocol::report::Outcome;
use tracing::{error, info, warn};

use super::start::Start;
use super::{Attempt, Message};
use crate::aws;
use crate::record::log::JobLog;
use crate::work::journal::Record;

impl Attempt<'_> {
    /// Reports the outcome of the earlier attempt under the fence of this delivery. Later orders name the sensitive
    /// outputs that this runner keeps by the fence of the report. So the outputs are first copied to the new fence.
    pub(super) async fn report_again(&self, outcome: Outcome) -> Message {
        let (order, fence) = (&self.held.order, self.held.fence);
        info!(job.id = %order.job, "Job `{}` has already ended; reporting its outcome again", order.job);
        let ended_by = self.agent.journal().state().ended_by(&order.job).filter(|by| *by != fence);
        let has_kept = matches!(&outcome, Outcome::Succeeded { sensitive, .. } if !sensitive.is_empty());
        if let Some(by) = ended_by.filter(|_| has_kept)
            && let Err(error) = self.agent.sensitive_outputs.hand_on(order, by, fence).await
        {
            warn!(job.id = %order.job, "Cannot report the outcome of job `{}` again yet: {}", order.job, aws::explain(&error));
            return Message::Leave;
        }
        self.finish(&self.reporter(), &JobLog::default(), outcome, Start::NotRecorded).await
    }

    /// Ends a job of a kind that never starts twice.
    pub(super) async fn end_interrupted(&self) -> Message {
        if let Err(error) = self.agent.journal().append(&[Record::accepted(&self.held.order)]) {
            error!("{}", aws::explain(&error));
            return Message::Leave;
        }
        let reason =
            "an earlier attempt may have started, and its runner ended; a job of this kind never starts twice, so \
             start a new job if it should run again"
                .to_owned();
        self.finish(&self.reporter(), &JobLog::default(), Outcome::Interrupted { reason }, Start::NotRecorded).await
    }
}

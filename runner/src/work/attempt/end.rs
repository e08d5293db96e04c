//! Ends an attempt: the outcome becomes durable on this machine and in the reports queue.

use std::collections::BTreeSet;
use std::time::Duration;

use freehold_protocol::IamRoleName;
use freehold_protocol::order::Redelivery;
use freehold_protocol::policy::PolicyResult;
use freehold_protocol::report::{AttemptEvent, Block, Outcome};
use tracing::{error, info, warn};

use super::start::Start;
use super::{Attempt, Message};
use crate::aws;
use crate::identity::mode::Disabled;
use crate::job::StopReason;
use crate::record::log::JobLog;
use crate::wire::report::AttemptReporter;
use crate::work::journal::Record;
use crate::work::supervise::{self, Ended};

/// The pause before storing a report is retried.
const KEEP_RETRY: Duration = Duration::from_secs(2);

/// The results of the policies that an attempt evaluated, and the app's roles that trust a stranger after it, if the
/// runner checked them.
type Found = (Vec<PolicyResult>, Option<BTreeSet<IamRoleName>>);

impl Attempt<'_> {
    /// Ends an attempt whose start is recorded.
    pub(super) async fn end(&self, reporter: &AttemptReporter, log: &JobLog, ended: Ended, found: Found) -> Message {
        match ended {
            Ended::Finished(outcome) => match self.blame_switch(outcome).await {
                Ok(outcome) => self.finish_with(reporter, log, (outcome, found), Start::Recorded).await,
                Err(switched_off) => self.leave(&switched_off),
            },
            Ended::LeaseLost => {
                let job = &self.held.order.job;
                warn!(job.id = %job, "Stopped job `{job}`: its lease was lost");
                Message::Leave
            }
            Ended::LeftToNext if self.held.signal.reason() == Some(StopReason::SwitchedOff) => Message::Leave,
            Ended::LeftToNext => Message::GiveBack,
        }
    }

    /// Records an order as accepted although its job must not start, and ends it with `outcome`.
    pub(super) async fn accept_and_finish(
        &self,
        reporter: &AttemptReporter,
        outcome: Outcome,
        start: Start,
    ) -> Message {
        if let Err(error) = self.agent.journal().append(&[Record::accepted(&self.held.order)]) {
            error!("{}", aws::explain(&error));
            return Message::Leave;
        }
        self.finish(reporter, &JobLog::default(), outcome, start).await
    }

    /// Returns `outcome`, unless the job failed because the customer has switched its mode or the runner off:
    ///
    /// - For the mode, the reason also names the switch, and the outcome is `Blocked` if the job changed nothing.
    /// - For the runner, an order that may be resumed must stay in the queue: returns `Err` with the reason. Any other
    ///   order ends as interrupted.
    async fn blame_switch(&self, outcome: Outcome) -> Result<Outcome, String> {
        let Outcome::Failed { reason, partial } = outcome else {
            return Ok(outcome);
        };
        let so_far = if partial { "some changes may have been made" } else { "nothing was changed" };
        Ok(match self.agent.roles.find_disabled(&self.held.order).await {
            Some(Disabled::Mode(disabled)) => {
                let reason = format!("{disabled}; the mode was on when the job started ({so_far}): {reason}");
                // A blocked job has changed nothing.
                if partial {
                    Outcome::Failed { reason, partial }
                } else {
                    Outcome::Blocked { block: Block::ModeDisabled, reason }
                }
            }
            Some(Disabled::Runner(off)) if self.held.order.redelivery == Redelivery::Resume => return Err(off),
            Some(Disabled::Runner(off)) => Outcome::Interrupted { reason: format!("{off} ({so_far}): {reason}") },
            None => Outcome::Failed { reason, partial },
        })
    }

    /// Ends an attempt that evaluated no policies and checked no roles.
    pub(super) async fn finish(
        &self,
        reporter: &AttemptReporter,
        log: &JobLog,
        outcome: Outcome,
        start: Start,
    ) -> Message {
        self.finish_with(reporter, log, (outcome, (Vec::new(), None)), start).await
    }

    /// Makes the outcome durable on this machine and in the reports queue. Only then may the message be deleted.
    async fn finish_with(
        &self,
        reporter: &AttemptReporter,
        log: &JobLog,
        (outcome, (policies, trusting)): (Outcome, Found),
        start: Start,
    ) -> Message {
        let (job, fence) = (self.held.order.job.clone(), self.held.fence);
        let record = Record::Finished { job: job.clone(), fence, outcome: outcome.clone() };
        if let Err(error) = self.agent.journal().append(&[record]) {
            // Without this record, a redelivery starts the job again. The control plane has the report, so it ignores
            // that attempt.
            error!("{}", aws::explain(&error));
        }
        let result = supervise::outcome_name(&outcome);
        info!(job.id = %job, fence = %fence, result, "Job `{job}` ended: {result}");
        log.close();
        if self.agent.is_retired() {
            return self.hand_back().await;
        }
        let mut last = log.take_chunk();
        while log.has_pending() {
            let _ = reporter.event(AttemptEvent::Progress { log: std::mem::replace(&mut last, log.take_chunk()) });
        }
        let finished = AttemptEvent::Finished { outcome, log: last, policies, roles_trusting_strangers: trusting };
        while let Err(error) = reporter.event(finished.clone()) {
            error!("Cannot report the end of job `{job}` yet: {}", aws::explain(&error));
            if self.held.signal.reason() == Some(StopReason::LeaseLost) {
                return Message::Leave;
            }
            tokio::time::sleep(KEEP_RETRY).await;
        }
        // The spool may be lost with the machine's disk. So the order stays leased until the reports queue has the
        // outcome. If the machine is lost before that, the order is redelivered and the job is not forgotten.
        tokio::select! {
            () = self.agent.reporter.delivered() => {}
            () = self.held.signal.lease_lost() => return Message::Leave,
        }
        if self.agent.is_retired() {
            return self.hand_back().await;
        }
        self.record_end(result, start).await
    }
}

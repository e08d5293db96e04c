//! Handles the report of a runner that goes away, and the orders that a runner gives back when it has returned.

use freehold_domain::install::Install;
use freehold_domain::install::connection::Sign;
use freehold_domain::job::{Job, JobEvent, JobState, Rejected};
use freehold_domain::reports::head::ReportedHead;
use freehold_protocol::report::{Away, Fence};
use freehold_protocol::{KeyId, Timestamp};

use super::{AcceptReport, Accepted, bounds};
use crate::AppError;
use crate::messages::DispatchMessage;
use crate::text_limit::cut;
use crate::workflow::advance::{self, Advanced, Reported};

impl AcceptReport {
    /// Records that the runner of the install takes no orders until its next hello.
    pub(super) async fn away(
        &self,
        install: &Install,
        away: Away,
        sent_at: Timestamp,
        head: Option<ReportedHead>,
    ) -> Result<Accepted, AppError> {
        let detail = cut(&away.detail, bounds::MAX_REASON_BYTES).to_owned();
        tracing::warn!(install.id = %install.id, "Runner of `{}` takes no orders: {detail}", install.id);
        self.note_sign(&install.id, sent_at, &Sign::Away(Away { detail, ..away }), head).await?;
        Ok(Accepted::Taken)
    }

    /// Gives a job a new order after the runner gave back the expired one. If the report is delivered again, the new
    /// order is dispatched again, and `dispatch-job` sends it once.
    pub(super) async fn given_back(
        &self,
        runner: &KeyId,
        job: &Job,
        (fence, sent_at): (Fence, Timestamp),
    ) -> Result<Accepted, AppError> {
        let event = JobEvent::Returned { fence, runner: runner.clone() };
        let reported = Reported { message: None, sent_at, last_log: None, install: None };
        match advance::job_event(&*self.store, &job.id, &event, Some(reported), self.clock.now()).await? {
            Advanced::Now { workflow: Some(workflow), started, .. } => {
                self.after_end(&workflow, &started, sent_at).await?;
            }
            Advanced::Now { job, workflow: None, .. } | Advanced::Rejected(job, Rejected::Stale { .. }) => {
                if let JobState::Queued { dispatch } = &job.state {
                    let order = DispatchMessage::Order { job: job.id.clone(), dispatch: *dispatch };
                    self.outbox.dispatch(&[order]).await?;
                }
            }
            Advanced::NotYet(_) | Advanced::Rejected(..) => {}
        }
        Ok(Accepted::Taken)
    }
}

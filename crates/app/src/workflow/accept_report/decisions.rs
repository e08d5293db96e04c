//! Applies the customer's decisions about plans, which a hello of the customer's runner contains.

use freehold_domain::install::Install;
use freehold_domain::job::{ApprovalEvent, JobEvent, JobState};
use freehold_protocol::approval::CustomerDecision;

use super::AcceptReport;
use crate::AppError;
use crate::text_limit::cut;
use crate::workflow::advance::{self, Advanced};

/// The maximum number of decisions of one hello that count. A hello repeats the decisions about all plans that still
/// wait.
const MOST: usize = 200;
/// The maximum size of the name of the person who decided, and of the reason, in bytes.
const MAX_BYTES: usize = 1024;

impl AcceptReport {
    /// Applies the customer's decisions to the jobs that wait for them. A decision about another plan, or about a job that does
    /// not wait, changes nothing. `sweep` orders a job whose plan has all approvals that it needs.
    pub(super) async fn note_decisions(&self, install: &Install, all: &[CustomerDecision]) -> Result<(), AppError> {
        for decision in all.iter().take(MOST) {
            let Some(job) = self.job_of(install, &decision.job).await? else { continue };
            if !matches!(job.state, JobState::WaitingForApproval { .. }) {
                continue;
            }
            let (by, reason) = (cut(&decision.by, MAX_BYTES), cut(&decision.reason, MAX_BYTES));
            let event =
                JobEvent::Approval(ApprovalEvent::Customer(CustomerDecision { by, reason, ..decision.clone() }));
            let now = self.clock.now();
            if let Advanced::Now { workflow: Some(workflow), started, .. } =
                advance::job_event(&*self.store, &job.id, &event, None, now).await?
            {
                self.after_end(&workflow, &started, now).await?;
            }
        }
        Ok(())
    }
}

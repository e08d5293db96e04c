//! Records the vendor's decision about a plan that a job waits for.

pub mod approve_job;
pub mod reject_job;

use freehold_domain::Job;
use freehold_domain::job::{ApprovalEvent, JobEvent};
use freehold_protocol::JobId;

use crate::AppError;
use crate::ports::{Clock, Store};
use crate::workflow::advance::{self, Advanced};

/// Records the decision in the job. `sweep` performs the effects: the API may write to no queue and resume no state machine.
async fn record_decision(
    store: &dyn Store,
    clock: &dyn Clock,
    id: &JobId,
    decision: ApprovalEvent,
) -> Result<Job, AppError> {
    match advance::job_event(store, id, &JobEvent::Approval(decision), None, clock.now()).await? {
        Advanced::Now { job, .. } | Advanced::NotYet(job) => Ok(*job),
        Advanced::Rejected(_, rejected) => Err(AppError::conflict(rejected.to_string())),
    }
}

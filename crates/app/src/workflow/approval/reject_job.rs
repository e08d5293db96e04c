//! Rejects the plan for which a job waits. The job ends, and has changed nothing.

use std::sync::Arc;

use freehold_domain::Job;
use freehold_domain::job::ApprovalEvent;
use freehold_protocol::JobId;
use freehold_protocol::api::RejectJobRequest;
use freehold_protocol::order::AskedBy;

use super::say;
use crate::AppError;
use crate::ports::{Clock, Store};
use crate::reason::line;

/// The use case that rejects the plan of a job, with its ports.
#[derive(Clone)]
pub struct RejectJob {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
}

impl RejectJob {
    /// Rejects the plan that `request` names, as `by`.
    ///
    /// # Errors
    /// Invalid for a reason that is empty, too long or has several lines; NotFound; Conflict when the job waits for no approval, or for that of another plan; or the store's errors.
    pub async fn reject(&self, id: &JobId, request: &RejectJobRequest, by: &AskedBy) -> Result<Job, AppError> {
        let (plan, reason) = (request.plan.clone(), line(&request.reason)?);
        let job = say(&*self.store, &*self.clock, id, ApprovalEvent::Reject { plan, by: by.clone(), reason }).await?;
        tracing::info!(job.id = %id, install.id = %job.install, "Plan `{}` of job `{id}` is rejected by {by}", request.plan);
        Ok(job)
    }
}

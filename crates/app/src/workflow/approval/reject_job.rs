//! Rejects the plan that a job waits for. The job ends without having changed anything.

use std::sync::Arc;

use freehold_domain::Job;
use freehold_domain::job::ApprovalEvent;
use freehold_protocol::JobId;
use freehold_protocol::api::RejectJobRequest;
use freehold_protocol::order::AskedBy;

use super::record_decision;
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
    /// Rejects the plan that `request` names, in the name of `by`.
    ///
    /// # Errors
    /// Invalid for a reason that is empty, too long or has several lines; NotFound; Conflict when the job does not wait for an
    /// approval, or waits for the approval of another plan; or the store's errors.
    pub async fn reject(&self, id: &JobId, request: &RejectJobRequest, by: &AskedBy) -> Result<Job, AppError> {
        let (plan, reason) = (request.plan.clone(), line(&request.reason)?);
        let decision = ApprovalEvent::Reject { plan, by: by.clone(), reason };
        let job = record_decision(&*self.store, &*self.clock, id, decision).await?;
        tracing::info!(job.id = %id, install.id = %job.install, "Plan `{}` of job `{id}` is rejected by {by}", request.plan);
        Ok(job)
    }
}

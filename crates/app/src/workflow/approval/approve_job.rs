//! Approves the plan for which a job waits. When everybody who is asked has approved it, `sweep` orders the job again, and the
//! order names exactly this plan.

use std::sync::Arc;

use freehold_domain::Job;
use freehold_domain::job::ApprovalEvent;
use freehold_protocol::JobId;
use freehold_protocol::api::ApproveJobRequest;
use freehold_protocol::order::AskedBy;

use super::say;
use crate::AppError;
use crate::ports::{Clock, Store};

/// The use case that approves the plan of a job, with its ports.
#[derive(Clone)]
pub struct ApproveJob {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
}

impl ApproveJob {
    /// Approves the plan that `request` names, as `by`. A plan that is approved already stays so.
    ///
    /// # Errors
    /// NotFound; Conflict when the job waits for no approval, or for that of another plan; or the store's errors.
    pub async fn approve(&self, id: &JobId, request: &ApproveJobRequest, by: &AskedBy) -> Result<Job, AppError> {
        let word = ApprovalEvent::Approve { plan: request.plan.clone(), by: by.clone() };
        let job = say(&*self.store, &*self.clock, id, word).await?;
        tracing::info!(job.id = %id, install.id = %job.install, "Plan `{}` of job `{id}` is approved by {by}", request.plan);
        Ok(job)
    }
}

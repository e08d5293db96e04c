//! Approves the plan that a job waits for. When both sides that have to approve it have done so, `sweep` orders the job again,
//! and the order names exactly this plan.

use std::sync::Arc;

use freehold_domain::Job;
use freehold_domain::job::ApprovalEvent;
use freehold_protocol::JobId;
use freehold_protocol::api::ApproveJobRequest;
use freehold_protocol::order::AskedBy;

use super::record_decision;
use crate::AppError;
use crate::ports::{Clock, Store};

/// The use case that approves the plan of a job, with its ports.
#[derive(Clone)]
pub struct ApproveJob {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
}

impl ApproveJob {
    /// Approves the plan that `request` names, in the name of `by`. A repeated approval changes nothing.
    ///
    /// # Errors
    /// NotFound; Conflict when the job does not wait for an approval, or waits for the approval of another plan; or the store's
    /// errors.
    pub async fn approve(&self, id: &JobId, request: &ApproveJobRequest, by: &AskedBy) -> Result<Job, AppError> {
        let decision = ApprovalEvent::Approve { plan: request.plan.clone(), by: by.clone() };
        let job = record_decision(&*self.store, &*self.clock, id, decision).await?;
        tracing::info!(job.id = %id, install.id = %job.install, "Plan `{}` of job `{id}` is approved by {by}", request.plan);
        Ok(job)
    }
}

//! Retries a failed job of a workflow that has ended, and runs the nodes that were not reached because of it.

use std::sync::Arc;

use freehold_domain::workflow::{Act, Workflow};
use freehold_protocol::JobId;
use freehold_protocol::api::RetryJobRequest;

use super::Continuation;
use crate::AppError;
use crate::app_version::versions::Versions;
use crate::new_workflow::Asked;
use crate::ports::{Clock, Machines};
use crate::reason::optional;
use crate::table;

/// The use case that retries a job, with its ports.
#[derive(Clone)]
pub struct RetryJob {
    pub versions: Versions,
    pub machines: Arc<dyn Machines>,
    pub clock: Arc<dyn Clock>,
}

impl RetryJob {
    /// Runs again a job that ended without success, and the nodes that were not reached because of it. Its workflow has
    /// another execution for this. Other failed nodes stay as they are. A repeated call with the same cause returns the same
    /// workflow.
    ///
    /// # Errors
    /// As [`ResumeWorkflow::resume`](super::resume_workflow::ResumeWorkflow::resume), and Conflict for a job that did not
    /// fail.
    pub async fn retry(&self, id: &JobId, request: &RetryJobRequest, asked: Asked<'_>) -> Result<Workflow, AppError> {
        let reason = optional(request.reason.as_deref())?;
        let job = table::job(&*self.versions.store, id).await?.value;
        let (machines, clock) = (&*self.machines, &*self.clock);
        let act = Act::Retry { node: job.node };
        Continuation { versions: &self.versions, machines, clock }.run(&job.workflow, (&act, &reason), asked).await
    }
}

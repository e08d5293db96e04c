//! Resumes a workflow that has ended without success: the nodes that failed or were not reached run.

use std::sync::Arc;

use freehold_domain::workflow::{Act, Workflow};
use freehold_protocol::WorkflowId;
use freehold_protocol::api::ResumeWorkflowRequest;

use super::Continuation;
use crate::AppError;
use crate::app_version::versions::Versions;
use crate::new_workflow::Asked;
use crate::ports::{Clock, Machines};
use crate::reason::optional;

/// The use case that resumes a workflow, with its ports.
#[derive(Clone)]
pub struct ResumeWorkflow {
    pub versions: Versions,
    pub machines: Arc<dyn Machines>,
    pub clock: Arc<dyn Clock>,
}

impl ResumeWorkflow {
    /// Runs all nodes of the workflow that failed or were not reached, in another execution. A repeated call with the same
    /// cause returns the same workflow.
    ///
    /// # Errors
    /// NotFound, Invalid for a reason that is not one line, or Conflict when the workflow has not ended or succeeded,
    /// when its install is locked by another workflow or was changed since, or when the customer no longer accepts its
    /// contract.
    pub async fn resume(
        &self,
        id: &WorkflowId,
        request: &ResumeWorkflowRequest,
        asked: Asked<'_>,
    ) -> Result<Workflow, AppError> {
        let reason = optional(request.reason.as_deref())?;
        let (machines, clock) = (&*self.machines, &*self.clock);
        Continuation { versions: &self.versions, machines, clock }.run(id, (&Act::Resume, &reason), asked).await
    }
}

//! Cancels a workflow: its waiting jobs do not start, and its running jobs are cancelled.

use std::sync::Arc;

use freehold_domain::Workflow;
use freehold_domain::job::CancelAsked;
use freehold_protocol::WorkflowId;
use freehold_protocol::api::CancelWorkflowRequest;
use freehold_protocol::order::AskedBy;

use crate::AppError;
use crate::ports::{Clock, Expect, Store};
use crate::reason::optional;
use crate::table::{self, Decided};
use crate::workflow::cancel_job::CancelJob;

/// The use case that cancels a workflow, with its ports.
#[derive(Clone)]
pub struct CancelWorkflow {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
}

impl CancelWorkflow {
    /// Cancels a workflow on request of `by`. A workflow that has ended is not changed.
    ///
    /// # Errors
    /// NotFound, Invalid for a reason that is not one line, or the store's errors.
    pub async fn cancel(
        &self,
        id: &WorkflowId,
        request: &CancelWorkflowRequest,
        by: &AskedBy,
    ) -> Result<Workflow, AppError> {
        let reason = optional(request.reason.as_deref())?;
        let workflow = table::change(&*self.store, ("workflow", id), || async {
            let stored = table::workflow(&*self.store, id).await?;
            let mut advance = stored.value.cancel(by, self.clock.now());
            if !advance.changed {
                return Ok(Decided::Keep(advance.workflow));
            }
            advance.workflow.cancel_reason.clone_from(&reason);
            let writes = vec![table::put_workflow(&advance.workflow, Expect::Rev(stored.rev))?];
            Ok(Decided::Commit(writes, advance.workflow))
        });
        let workflow = workflow.await?;
        let jobs = CancelJob { store: Arc::clone(&self.store), clock: Arc::clone(&self.clock) };
        for job in workflow.active_jobs() {
            let (by, reason) = (workflow.cancelled_by.clone(), workflow.cancel_reason.clone());
            jobs.cancel_for(job, CancelAsked { by, reason }, workflow.attempt()).await?;
        }
        Ok(workflow)
    }
}

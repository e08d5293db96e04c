//! Cancels a workflow or a job: no further job starts, and running jobs are marked. `accept-report` and `sweep` tell
//! the runner, because the API may not write to any queue.

use std::sync::Arc;

use freehold_domain::job::JobEvent;
use freehold_protocol::{JobId, WorkflowId};

use crate::AppError;
use crate::ports::{Clock, Expect, Store};
use crate::table::{self, Decided, put};
use crate::workflow::advance::{self, Advanced};

/// The ports that cancelling needs.
#[derive(Clone)]
pub struct Cancel {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
}

impl Cancel {
    /// Cancels a workflow; a workflow that has ended does not change.
    ///
    /// # Errors
    /// NotFound, or the store's errors.
    pub async fn workflow(&self, id: &WorkflowId) -> Result<freehold_domain::Workflow, AppError> {
        let workflow = table::change(&*self.store, ("workflow", id), || async {
            let stored = table::workflow(&*self.store, id).await?;
            let advance = stored.value.cancel(self.clock.now());
            if !advance.changed {
                return Ok(Decided::Keep(advance.workflow));
            }
            let writes = vec![put(&advance.workflow, Expect::Rev(stored.rev))?];
            Ok(Decided::Commit(writes, advance.workflow))
        });
        let workflow = workflow.await?;
        for job in workflow.active_jobs() {
            self.job(job).await?;
        }
        Ok(workflow)
    }

    /// Cancels a job; a job that has ended does not change.
    ///
    /// # Errors
    /// NotFound, or the store's errors.
    pub async fn job(&self, id: &JobId) -> Result<freehold_domain::Job, AppError> {
        let advanced = advance::job_event(&*self.store, id, &JobEvent::Cancel, None, self.clock.now()).await?;
        match advanced {
            Advanced::Now { job, .. } | Advanced::NotYet(job) | Advanced::Rejected(job, _) => Ok(*job),
        }
    }
}

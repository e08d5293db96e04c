//! Cancels a job: stores the request in the job's row. Later, `accept-report` or `sweep` asks `dispatch-job` to send
//! the cancel to the runner, because the API may not write to any queue.

use std::sync::Arc;

use freehold_domain::Job;
use freehold_domain::job::JobEvent;
use freehold_protocol::JobId;

use crate::AppError;
use crate::ports::{Clock, Store};
use crate::workflow::advance::{self, Advanced};

/// The use case that cancels a job, with its ports.
#[derive(Clone)]
pub struct CancelJob {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
}

impl CancelJob {
    /// Cancels a job. A job that has ended is not changed.
    ///
    /// # Errors
    /// NotFound, or the store's errors.
    pub async fn cancel(&self, id: &JobId) -> Result<Job, AppError> {
        let advanced = advance::job_event(&*self.store, id, &JobEvent::Cancel, None, self.clock.now()).await?;
        match advanced {
            Advanced::Now { job, .. } | Advanced::NotYet(job) | Advanced::Rejected(job, _) => Ok(*job),
        }
    }
}

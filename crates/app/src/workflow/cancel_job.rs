//! Cancels a job: it is marked. `accept-report` and `sweep` send the message to the runner, because the API may not write
//! to any queue.

use std::sync::Arc;

use freehold_domain::Job;
use freehold_domain::job::JobEvent;
use freehold_protocol::JobId;

use crate::AppError;
use crate::ports::{Clock, Store};
use crate::workflow::advance::{self, Advanced};

/// The ports that cancelling a job needs.
#[derive(Clone)]
pub struct CancelJob {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
}

impl CancelJob {
    /// Cancels a job; a job that has ended does not change.
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

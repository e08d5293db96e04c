//! Cancels a job: stores the request in the job's row. Later, `accept-report` or `sweep` asks `dispatch-job` to send
//! the cancel to the runner, because the API may not write to any queue.

use std::sync::Arc;

use freehold_domain::Job;
use freehold_domain::job::{CancelAsked, JobEvent};
use freehold_protocol::JobId;
use freehold_protocol::api::CancelJobRequest;
use freehold_protocol::order::AskedBy;

use crate::AppError;
use crate::ports::{Clock, Store};
use crate::reason::optional;
use crate::workflow::advance::{self, Advanced};

/// The use case that cancels a job, with its ports.
#[derive(Clone)]
pub struct CancelJob {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
}

impl CancelJob {
    /// Cancels a job on request of `by`. A job that has ended is not changed.
    ///
    /// # Errors
    /// NotFound, Invalid for a reason that is not one line, or the store's errors.
    pub async fn cancel(&self, id: &JobId, request: &CancelJobRequest, by: &AskedBy) -> Result<Job, AppError> {
        let reason = optional(request.reason.as_deref())?;
        let cancel = JobEvent::Cancel(CancelAsked { by: Some(by.clone()), reason });
        Ok(job_of(advance::job_event(&*self.store, id, &cancel, None, self.clock.now()).await?))
    }

    /// Cancels a job for the execution `attempt` of its workflow, and stores the requester and the reason.
    pub(crate) async fn cancel_for(&self, id: &JobId, asked: CancelAsked, attempt: u32) -> Result<Job, AppError> {
        Ok(job_of(advance::cancel_for(&*self.store, id, asked, attempt, self.clock.now()).await?))
    }
}

fn job_of(advanced: Advanced) -> Job {
    match advanced {
        Advanced::Now { job, .. } | Advanced::NotYet(job) | Advanced::Rejected(job, _) => *job,
    }
}

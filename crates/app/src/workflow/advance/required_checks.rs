//! Applies the results of the required checks for which the job of a gate waits: when the job's runner found the
//! component healthy, and in each sweep that handles the job's workflow. A report and the job's deadline make the
//! workflow due.

use freehold_domain::job::Job;
use freehold_protocol::Timestamp;

use super::{Advanced, apply};
use crate::AppError;
use crate::ports::Store;

/// Applies the results of its required checks to a job. Returns `None` for a job that does not wait for them, and for a
/// job with a cancel request.
///
/// # Errors
/// As [`super::job_event`].
pub async fn advance_checks(store: &dyn Store, job: &Job, now: Timestamp) -> Result<Option<Advanced>, AppError> {
    if job.cancel_requested.is_some() || job.checks.is_none() || job.checks_end_at().is_none() {
        return Ok(None);
    }
    apply(store, &job.id, None, (None, None), now).await.map(Some)
}

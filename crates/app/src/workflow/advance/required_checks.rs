//! Applies the results of the required checks for which the job of a gate waits: when the job's runner found the
//! component healthy, and in each sweep that handles the job's workflow. A report and the job's deadline make the
//! workflow due.

use freehold_domain::job::{Job, JobEvent, JobState};
use freehold_domain::required_checks::verdict;
use freehold_protocol::Timestamp;

use super::{Advanced, job_event};
use crate::AppError;
use crate::ports::Store;
use crate::table::{self, DeployedRecord, Stored, load};

/// Applies the results of its required checks to a job. Returns `None` for a job that does not wait for them, and for a
/// job with a cancel request.
///
/// # Errors
/// As [`job_event`].
pub async fn advance_checks(store: &dyn Store, job: &Job, now: Timestamp) -> Result<Option<Advanced>, AppError> {
    let (JobState::WaitingForChecks { until, .. }, Some(checks), None) =
        (&job.state, &job.checks, job.cancel_requested)
    else {
        return Ok(None);
    };
    let deployed: Option<Stored<DeployedRecord>> =
        load(store, &table::deployed_key(&job.install, &checks.component)).await?;
    let serial = deployed.map_or(0, |found| found.value.deployed.serial);
    let reported = table::reported_checks(store, &job.install).await?;
    let own = reported.iter().filter(|one| one.component == checks.component);
    let event = JobEvent::Checks(verdict(&checks.required.names, own, serial, Some(*until)));
    job_event(store, &job.id, &event, None, now).await.map(Some)
}

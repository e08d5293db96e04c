//! The required checks for which the job of a gate waits: the verdict on them, and the notification when the wait begins.

use freehold_domain::job::{Job, JobState};
use freehold_domain::required_checks::{Verdict, verdict};
use freehold_protocol::Timestamp;

use crate::AppError;
use crate::notification::task::of_awaited_checks;
use crate::ports::{Store, Write};
use crate::table::{self, DeployedRecord, Stored, load};

/// Returns the verdict on the required checks for which a job waits; `None` for a job that does not wait for any.
///
/// # Errors
/// The store's errors.
pub(crate) async fn awaited_verdict(store: &dyn Store, job: &Job) -> Result<Option<Verdict>, AppError> {
    let (JobState::WaitingForChecks { until, .. }, Some(checks)) = (&job.state, &job.checks) else { return Ok(None) };
    let deployed: Option<Stored<DeployedRecord>> =
        load(store, &table::deployed_key(&job.install, &checks.component)).await?;
    let serial = deployed.map_or(0, |found| found.value.deployed.serial);
    let reported = table::reported_checks(store, &job.install).await?;
    let own = reported.iter().filter(|one| one.component == checks.component);
    Ok(Some(verdict(&checks.required.names, own, serial, Some(*until))))
}

/// Returns the write of the task that sends the notification of a job which waits for required checks since this
/// change. Returns no write if all results were reported before, because the job then ends at once.
///
/// # Errors
/// The store's errors.
pub(crate) async fn notification_write(
    store: &dyn Store,
    before: &Job,
    job: &Job,
    now: Timestamp,
) -> Result<Option<Write>, AppError> {
    if !job.begins_to_await_checks(before) {
        return Ok(None);
    }
    match awaited_verdict(store, job).await? {
        Some(Verdict::Missing(missing)) => of_awaited_checks(store, job, &missing, now).await,
        Some(Verdict::Passed | Verdict::Failed(_)) | None => Ok(None),
    }
}

//! Writes the tasks that send notifications. A task is in the commit of the change that its notification is about, so
//! that none is lost. The sweep performs the tasks.

use std::collections::BTreeSet;

use freehold_domain::health::LastHealth;
use freehold_domain::notification::{
    ChangedBy, DriftSeen, KnownHealth, of_checks, of_health, of_job, of_run, of_workflow,
};
use freehold_domain::runbook::Run;
use freehold_domain::{Install, Job, Workflow};
use freehold_protocol::notification::Notification;
use freehold_protocol::{CheckName, InstallId, Timestamp};

use crate::AppError;
use crate::ports::{Expect, Store, Write};
use crate::table::{self, Due, DueWhat, Stored, load, put};

/// Returns the write of the task that sends `notification` in the minute of `at`. `install` is the install in whose
/// name the task is stored.
///
/// # Errors
/// Internal when the task cannot be written as JSON.
pub fn notify_at(at: Timestamp, install: &InstallId, notification: Notification) -> Result<Write, AppError> {
    let what = DueWhat::Notify { notification: Box::new(notification) };
    put(&Due::at(at, install.clone(), what), Expect::Any)
}

/// Returns the write of the task that sends the notification of a job that waits for people, if it waits since this
/// change.
///
/// # Errors
/// The store's errors.
pub(crate) async fn of_changed_job(
    store: &dyn Store,
    before: &Job,
    job: &Job,
    now: Timestamp,
) -> Result<Option<Write>, AppError> {
    let known = of_job(before, None).map(|notification| notification.id);
    if of_job(job, None).is_none_or(|notification| known.as_ref() == Some(&notification.id)) {
        return Ok(None);
    }
    let install: Option<Stored<Install>> = load(store, &table::install_key(&job.install)).await?;
    let notification = of_job(job, install.as_ref().and_then(|install| install.value.app()));
    notification.map(|notification| notify_at(now, &job.install, notification)).transpose()
}

/// Returns the write of the task that sends the notification of a job that waits for required checks, of which `missing`
/// have no result.
///
/// # Errors
/// The store's errors.
pub(crate) async fn of_awaited_checks(
    store: &dyn Store,
    job: &Job,
    missing: &BTreeSet<CheckName>,
    now: Timestamp,
) -> Result<Option<Write>, AppError> {
    let install: Option<Stored<Install>> = load(store, &table::install_key(&job.install)).await?;
    let app = install.as_ref().and_then(|install| install.value.app());
    let version = table::workflow(store, &job.workflow).await?.value.version;
    let notification = of_checks(job, app, version.as_ref(), missing);
    notification.map(|notification| notify_at(now, &job.install, notification)).transpose()
}

/// Returns the write of the task that sends the notification of a component's changed health. `known` is what people know
/// of it already.
///
/// # Errors
/// The store's errors.
pub(crate) async fn of_changed_health(
    store: &dyn Store,
    install: &InstallId,
    known: KnownHealth,
    after: &LastHealth,
    by: ChangedBy,
) -> Result<Option<Write>, AppError> {
    if of_health(install, None, known, after, by).is_none() {
        return Ok(None);
    }
    let found: Option<Stored<Install>> = load(store, &table::install_key(install)).await?;
    let app = found.as_ref().and_then(|found| found.value.app());
    let notification = of_health(install, app, known, after, by);
    let at = match by {
        ChangedBy::Check | ChangedBy::Unchecked { .. } => after.at,
        ChangedBy::Report(at) => at,
    };
    notification.map(|notification| notify_at(at, install, notification)).transpose()
}

/// Returns the write of the task that sends the notification of the end of a run.
///
/// # Errors
/// Internal when the task cannot be written as JSON.
pub(crate) fn of_ended_run(run: &Run, now: Timestamp) -> Result<Option<Write>, AppError> {
    of_run(run).map(|notification| notify_at(now, &run.install, notification)).transpose()
}

/// Returns the write of the task that sends the notification about the end of a workflow which still has active jobs.
/// For every other end, the sweep sends it when it handles the workflow for the last time.
///
/// # Errors
/// Internal when the task cannot be written as JSON.
pub(crate) fn of_unsettled_workflow(
    workflow: &Workflow,
    install: &Install,
    now: Timestamp,
) -> Result<Option<Write>, AppError> {
    if workflow.active_jobs().next().is_none() {
        return Ok(None);
    }
    let notification = of_workflow(workflow, install.app(), DriftSeen::default());
    notification.map(|notification| notify_at(now, &workflow.install, notification)).transpose()
}

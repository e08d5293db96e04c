//! Records the results of drift checks, and updates the results after a deploy.

use freehold_domain::drift::{Check, Drift};
use freehold_domain::job::{Job, JobState};
use freehold_domain::workflow::Workflow;
use freehold_protocol::order::drift::{DriftFound, OUTPUT};
use freehold_protocol::{ComponentName, JobId, Timestamp};

use crate::AppError;
use crate::part::late_result::is_being_changed;
use crate::ports::{Expect, Store, Write};
use crate::table::{self, DeployedRecord, Stored, load, put};

/// Returns the write that stores what a drift check found in `part`. `of` is the job that had deployed the part when
/// the check was planned. The finding is dropped if another deploy has run since, even a failed deploy, or while a job
/// changes the part.
pub(crate) async fn checked_writes(
    store: &dyn Store,
    job: &Job,
    workflow: &Workflow,
    (part, of): (&ComponentName, &JobId),
    now: Timestamp,
) -> Result<Vec<Write>, AppError> {
    let known: Option<Stored<DeployedRecord>> = load(store, &table::deployed_key(&job.install, part)).await?;
    let Some(Stored { mut value, rev }) = known else { return Ok(Vec::new()) };
    if value.deployed.job != *of || value.deployed.partial || value.deployed.attempted {
        return Ok(Vec::new());
    }
    if is_being_changed(store, &job.install, part).await? {
        return Ok(Vec::new());
    }
    let check = Check { workflow: &workflow.id, serial: job.serial, at: now };
    let Some(next) = Drift::checked(value.deployed.drift.as_ref(), check, result_of(job)) else {
        return Ok(Vec::new());
    };
    value.deployed.drift = Some(next);
    Ok(vec![put(&value, Expect::Rev(rev))?])
}

/// Returns whether a drift check that succeeded found differences.
pub(crate) fn has_differences(job: &Job) -> bool {
    result_of(job).is_ok_and(|found| !found.resources.is_empty() || found.more > 0)
}

fn result_of(job: &Job) -> Result<DriftFound, String> {
    match &job.state {
        JobState::Succeeded { outputs, .. } => {
            let reported = outputs.get(OUTPUT).cloned().map(serde_json::from_value::<DriftFound>);
            let found = reported.and_then(Result::ok).map(DriftFound::limited);
            found.ok_or_else(|| format!("job `{}` reported no readable result", job.id))
        }
        ended => {
            let reason = job.reason().filter(|reason| !reason.is_empty());
            let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
            Err(format!("job `{}` is {}{reason}", job.id, ended.as_str()))
        }
    }
}

/// Returns the drift of `part` after the job deployed the part.
pub(crate) async fn after_deploy(
    store: &dyn Store,
    job: &Job,
    part: &ComponentName,
    now: Timestamp,
) -> Result<Option<Drift>, AppError> {
    let known: Option<Stored<DeployedRecord>> = load(store, &table::deployed_key(&job.install, part)).await?;
    let before = known.and_then(|known| known.value.deployed.drift);
    Ok(Drift::deployed(before.as_ref(), &job.workflow, job.serial, now))
}

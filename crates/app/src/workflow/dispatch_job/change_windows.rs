//! Decides whether the customer's change windows keep a job from starting, as far as the control plane knows: from the
//! times that the runner announced, and from the time that the runner named when it gave an order back.

use freehold_domain::install::change_gate::Gate;
use freehold_domain::job::{Job, JobState};
use freehold_domain::workflow::Workflow;
use freehold_protocol::order::Mode;
use freehold_protocol::report::ChangeTimes;
use freehold_protocol::{RoleKey, Timestamp};

use crate::AppError;
use crate::ports::Store;
use crate::table::{self, ChangeTimesRecord, changes_key, load};

/// The time, in seconds, after which an order is sent again if the runner reported that no change may start, without a
/// time from which changes may start. The runner then decides again.
const ASK_AGAIN_SECS: u64 = 60 * 60;
/// The time, in seconds, until a job is checked again when it is not known from when changes may start.
const LOOK_AGAIN_SECS: u64 = 15 * 60;
/// The maximum time, in seconds, until a job that waits for a window or an approval is checked again. The state machine
/// of the workflow times out when it gets no heartbeat for three days.
pub(crate) const LOOK_AT_LEAST_SECS: u64 = 24 * 60 * 60;

/// The reason why a job has to wait, and the time until which it waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Closed {
    pub(crate) until: Option<Timestamp>,
    pub(crate) reason: String,
}

/// The decision about a job that waits for a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opens {
    /// The job is ordered now.
    Now,
    /// The job is checked again at this time.
    LookAt(Timestamp),
}

/// Returns why the order of a job is not sent now; `None` if the job may start, or if the runner has to decide.
///
/// # Errors
/// The store's errors.
pub(crate) async fn closed(store: &dyn Store, job: &Job, now: Timestamp) -> Result<Option<Closed>, AppError> {
    let Some(times) = announced(store, job).await?.and_then(|record| record.times) else { return Ok(None) };
    let Gate::Closed { until, reason } = Gate::at(&times, now) else { return Ok(None) };
    // The runner may let these jobs start while the windows are closed, and only the runner can decide this.
    let workflow = table::workflow(store, &job.workflow).await?.value;
    let passes = workflow.now || is_break_glass(job);
    Ok((!passes && is_change(&workflow, job, &times)).then_some(Closed { until, reason }))
}

/// Returns whether the order of a job that waits for a window may be sent now, or else when the job is checked again.
///
/// # Errors
/// The store's errors.
pub(crate) async fn opens(store: &dyn Store, job: &Job, now: Timestamp) -> Result<Opens, AppError> {
    let JobState::WaitingForWindow { since, until, .. } = &job.state else { return Ok(Opens::Now) };
    let record = announced(store, job).await?;
    let is_newer = record.as_ref().is_some_and(|record| record.at >= *since);
    let from = match record.and_then(|record| record.times) {
        Some(times) => match Gate::at(&times, now) {
            Gate::Closed { until, .. } => {
                let workflow = table::workflow(store, &job.workflow).await?.value;
                if !is_change(&workflow, job, &times) {
                    return Ok(Opens::Now);
                }
                until.unwrap_or_else(|| now.plus_secs(LOOK_AGAIN_SECS))
            }
            Gate::Open { .. } if is_newer => now,
            Gate::Open { .. } => until.unwrap_or_else(|| since.plus_secs(ASK_AGAIN_SECS)),
        },
        None if is_newer => now,
        None => until.unwrap_or_else(|| since.plus_secs(ASK_AGAIN_SECS)),
    };
    Ok(if from <= now { Opens::Now } else { Opens::LookAt(from.min(now.plus_secs(LOOK_AT_LEAST_SECS))) })
}

async fn announced(store: &dyn Store, job: &Job) -> Result<Option<ChangeTimesRecord>, AppError> {
    Ok(load::<ChangeTimesRecord>(store, &changes_key(&job.install)).await?.map(|found| found.value))
}

fn is_change(workflow: &Workflow, job: &Job, times: &ChangeTimes) -> bool {
    let node = workflow.nodes.iter().find(|node| node.name == job.node);
    node.is_some_and(|node| node.target.is_change(&times.free_actions))
}

/// Returns whether the job runs under a break-glass role, which the customer switched on.
fn is_break_glass(job: &Job) -> bool {
    job.role.as_ref().map_or(job.mode == Mode::BreakGlass, RoleKey::is_break_glass)
}

//! Records the metrics of a job's change: its start, its end, the wait for its runner or an approval, and found drift.

use freehold_domain::Install;
use freehold_domain::job::{Job, JobState};
use freehold_domain::workflow::{Target, Workflow};

use super::results::build_app;
use crate::drift::result::has_differences;
use crate::metrics::{self, About, Metric};
use crate::ports::Store;
use crate::table::{self, Stored, load};

/// A job after the commit that changed it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Changed<'a> {
    /// The name of the job's state before the change.
    pub(super) from: &'static str,
    pub(super) job: &'a Job,
    /// The workflow of a job that has ended.
    pub(super) workflow: Option<&'a Workflow>,
    /// Whether the job was queued again in the same commit.
    pub(super) is_retried: bool,
}

/// Records the values of a change. `install` is the install of the job if the caller has it. Otherwise it is loaded, but
/// only if there are values; if it cannot be loaded, the values have no app.
pub(super) async fn record_change(store: &dyn Store, changed: Changed<'_>, install: Option<&Install>) {
    let values = values_of(changed);
    let Changed { job, workflow, .. } = changed;
    let mut app = workflow.and_then(build_app).or_else(|| install.and_then(Install::app));
    let mut loaded: Option<Stored<Install>> = None;
    if !values.is_empty() && app.is_none() && install.is_none() {
        loaded = load(store, &table::install_key(&job.install)).await.unwrap_or_default();
    }
    if let Some(loaded) = &loaded {
        app = loaded.value.app();
    }
    let (workflow, job_id) = (Some(&job.workflow), Some(&job.id));
    metrics::record(&values, About { app, install: Some(&job.install), workflow, job: job_id });
}

fn values_of(changed: Changed<'_>) -> Vec<(Metric, u64)> {
    let Changed { from, job, workflow, is_retried } = changed;
    let mut values = Vec::new();
    if job.is_reported_late() {
        values.push((Metric::ReportsLate, 1));
    }
    if from == job.state.as_str() {
        return values;
    }
    match &job.state {
        JobState::Queued { .. }
        | JobState::WaitingForRunner { .. }
        | JobState::WaitingForWindow { .. }
        | JobState::WaitingForChecks { .. } => {}
        JobState::Running { .. } => values.extend(job.waited_for_runner_ms().map(|wait| (Metric::RunnerWait, wait))),
        JobState::WaitingForApproval { .. } => values.push((Metric::ApprovalsAwaited, 1)),
        JobState::Succeeded { .. } => {
            values.push((Metric::JobsSucceeded, 1));
            values.extend(job.ran_ms().map(|ran| (Metric::JobDuration, ran)));
            if workflow.is_some_and(|workflow| checks_drift(workflow, job)) && has_differences(job) {
                values.push((Metric::DriftFound, 1));
            }
        }
        JobState::Failed { .. } | JobState::Blocked { .. } | JobState::Interrupted { .. } => {
            values.push((if is_retried { Metric::JobsRetried } else { Metric::JobsFailed }, 1));
            values.extend(job.ran_ms().map(|ran| (Metric::JobDuration, ran)));
        }
        JobState::Lost { .. } => values.push((if is_retried { Metric::JobsRetried } else { Metric::JobsLost }, 1)),
        JobState::Cancelled { .. } => values.push((Metric::JobsCancelled, 1)),
    }
    values
}

fn checks_drift(workflow: &Workflow, job: &Job) -> bool {
    let node = workflow.nodes.iter().find(|node| node.name == job.node);
    node.is_some_and(|node| matches!(node.target, Target::DetectDrift { .. }))
}

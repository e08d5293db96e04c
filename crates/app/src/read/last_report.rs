//! Finds the time when an install's runner last sent a report. The install's contact row is written at most every ten
//! minutes, because a write for each report would cost too much. The row of a running job is written about once a
//! minute, so it can hold a later time.

use freehold_domain::install::Install;
use freehold_domain::job::Job;
use freehold_domain::workflow::{NodeState, Workflow};
use freehold_protocol::{JobId, Timestamp, WorkflowId};
use futures_util::future::try_join_all;

use crate::AppError;
use crate::ports::Store;
use crate::table::{self, Contact, Stored, WorkflowEntry, contact_key, install_pk, job_key, load, parse};

/// The number of newest workflows to read, in addition to the workflow that has locked the install.
const NEWEST_WORKFLOWS: u32 = 2;
/// The maximum number of jobs to read per workflow; running jobs are read first.
const JOBS: usize = 32;

/// Returns the time of the last accepted report of the install's runner. While a job runs, the time is accurate to a
/// minute.
pub(crate) async fn heard_of(store: &dyn Store, install: &Install) -> Result<Option<Timestamp>, AppError> {
    let contact: Option<Stored<Contact>> = load(store, &contact_key(&install.id)).await?;
    let mut last = contact.map(|contact| contact.value.contact.at);
    for id in newest(store, install).await? {
        let workflow = table::find_workflow(store, &id).await?;
        let Some(Stored { value: workflow, .. }) = workflow else { continue };
        last = last.max(workflow.last_report);
        let jobs = jobs(&workflow);
        let found = try_join_all(jobs.iter().map(async |id| load::<Job>(store, &job_key(id)).await)).await?;
        last = found.into_iter().flatten().filter_map(|job| job.value.last_report()).chain(last).max();
    }
    Ok(last)
}

async fn newest(store: &dyn Store, install: &Install) -> Result<Vec<WorkflowId>, AppError> {
    let rows = store.query(&install_pk(&install.id), "workflow#", None, NEWEST_WORKFLOWS).await?;
    let mut ids: Vec<WorkflowId> = install.live.iter().cloned().collect();
    for row in &rows {
        let Stored { value: WorkflowEntry { workflow, .. }, .. } = parse(row)?;
        if !ids.contains(&workflow) {
            ids.push(workflow);
        }
    }
    Ok(ids)
}

fn jobs(workflow: &Workflow) -> Vec<JobId> {
    // The workflow has the last report of the jobs that have ended, unless an earlier version of Freehold wrote it.
    let is_old = workflow.last_report.is_none();
    let ended = workflow.nodes.iter().filter(|_| is_old).filter_map(|node| match &node.state {
        NodeState::Succeeded { job } | NodeState::Failed { job, .. } => Some(job),
        NodeState::Waiting
        | NodeState::Active { .. }
        | NodeState::Skipped { .. }
        | NodeState::SkippedByRequest { .. }
        | NodeState::Refused { .. } => None,
    });
    workflow.active_jobs().chain(ended).take(JOBS).cloned().collect()
}

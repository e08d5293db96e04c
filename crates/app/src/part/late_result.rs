//! Decides whether the result of a job may still be recorded when the report of its end comes after the job was lost or
//! after its workflow has ended. If a later workflow has changed the same part meanwhile, the result of that workflow
//! is kept.

use freehold_domain::job::Job;
use freehold_domain::workflow::{Node, NodeState, Target, Workflow, WorkflowKind};
use freehold_protocol::{ComponentName, InstallId};

use crate::AppError;
use crate::ports::{Expect, Store, Write};
use crate::table::{self, DeployedRecord, PAGE, Stored, WorkflowEntry, deployed_key, install_pk, load, parse};

/// Returns the condition under which the job's deploy of `part` is recorded. Returns `None` when a later workflow has
/// worked on the part, because even a failed workflow may have changed it. While no later workflow can have begun to
/// change something ([`is_in_turn`]), the deploy is always recorded.
pub(crate) async fn deploy_condition(
    store: &dyn Store,
    job: &Job,
    workflow: &Workflow,
    part: &ComponentName,
) -> Result<Option<Expect>, AppError> {
    if is_in_turn(job, workflow) {
        return Ok(Some(Expect::Any));
    }
    let record: Option<Stored<DeployedRecord>> = load(store, &deployed_key(&job.install, part)).await?;
    let condition = match record {
        Some(record) if record.value.deployed.serial > job.serial => None,
        _ if was_worked_on_since(store, workflow, part).await? => None,
        Some(record) => Some(Expect::Rev(record.rev)),
        None => Some(Expect::Absent),
    };
    if condition.is_none() {
        tracing::warn!(job.id = %job.id, install.id = %job.install, "A later workflow has changed `{part}`: the late result of job `{}` is not recorded", job.id);
    }
    Ok(condition)
}

/// Returns the write that removes the record of a part that the job removed; `None` when a later workflow has worked on
/// the part, or when no record of an earlier workflow exists.
pub(crate) async fn removal_write(
    store: &dyn Store,
    job: &Job,
    workflow: &Workflow,
    part: &ComponentName,
) -> Result<Option<Write>, AppError> {
    let key = deployed_key(&job.install, part);
    if is_in_turn(job, workflow) {
        return Ok(Some(Write::Delete { key }));
    }
    if was_worked_on_since(store, workflow, part).await? {
        return Ok(None);
    }
    let record: Option<Stored<DeployedRecord>> = load(store, &key).await?;
    let older = record.filter(|record| record.value.deployed.serial < job.serial);
    Ok(older.map(|record| Write::DeleteAt { key, rev: record.rev }))
}

/// Returns whether the job's result may be recorded in a place that every workflow of the install may change: no later
/// workflow exists, or none can have begun to change something ([`is_in_turn`]).
pub(crate) async fn is_latest(store: &dyn Store, job: &Job, workflow: &Workflow) -> Result<bool, AppError> {
    Ok(is_in_turn(job, workflow) || !has_later_workflow(store, workflow).await?)
}

/// Returns whether no later workflow can have begun to change something: the job was not lost, and its workflow has not ended.
/// A workflow whose state machine failed ends while its jobs still work.
const fn is_in_turn(job: &Job, workflow: &Workflow) -> bool {
    !job.is_reported_late() && !workflow.state.is_terminal()
}

async fn has_later_workflow(store: &dyn Store, workflow: &Workflow) -> Result<bool, AppError> {
    Ok(table::install(store, &workflow.install).await?.value.next_serial > workflow.serial + 1)
}

/// Returns whether a later workflow worked on `part` or tore the install down. Only the newest workflows are read. If
/// all of these are later than `workflow` and none of them did, returns true, because a later workflow that was not
/// read may have.
async fn was_worked_on_since(store: &dyn Store, workflow: &Workflow, part: &ComponentName) -> Result<bool, AppError> {
    if !has_later_workflow(store, workflow).await? {
        return Ok(false);
    }
    for row in store.query(&install_pk(&workflow.install), "workflow#", None, PAGE).await? {
        let entry: Stored<WorkflowEntry> = parse(&row)?;
        let Some(other) = table::find_workflow(store, &entry.value.workflow).await? else { continue };
        if other.value.serial <= workflow.serial {
            return Ok(false);
        }
        let is_worked_on = other.value.nodes.iter().any(|node| works_on(node, part));
        if is_worked_on || other.value.kind == WorkflowKind::TeardownInstall {
            return Ok(true);
        }
    }
    Ok(true)
}

/// Returns whether a job of the workflow that changes the install is at work on `part`.
pub(crate) async fn is_being_changed(
    store: &dyn Store,
    install: &InstallId,
    part: &ComponentName,
) -> Result<bool, AppError> {
    let Some(live) = table::install(store, install).await?.value.live else { return Ok(false) };
    let Some(live) = table::find_workflow(store, &live).await? else { return Ok(false) };
    let is_active = |node: &Node| works_on(node, part) && matches!(node.state, NodeState::Active { .. });
    Ok(live.value.nodes.iter().any(is_active))
}

fn works_on(node: &Node, part: &ComponentName) -> bool {
    let is_its = match &node.target {
        Target::Teardown { part: removed, .. } => removed == part,
        other => other.deploys().is_some_and(|deploys| deploys.part == *part),
    };
    is_its && matches!(node.state, NodeState::Active { .. } | NodeState::Succeeded { .. } | NodeState::Failed { .. })
}

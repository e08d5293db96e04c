//! Continues a workflow that has ended: makes it pending again, and queues its jobs again.

pub mod resume_workflow;
pub mod retry_job;
pub mod skip_node;

use std::collections::BTreeSet;

use freehold_domain::build::Build;
use freehold_domain::install::Install;
use freehold_domain::job::{JobEvent, JobState, Step};
use freehold_domain::plan::SkippedBy;
use freehold_domain::workflow::{Act, Advance, Again, NodeState, Request, Use, Workflow, WorkflowState};
use freehold_protocol::{Digest, JobId, Timestamp, WorkflowId};

use crate::AppError;
use crate::app_version::versions::Versions;
use crate::contract::terms;
use crate::new_workflow::{Asked, require_runner, used_before};
use crate::ports::{Clock, Expect, Machines, Store, Write};
use crate::table::{self, Decided, DeployedRecord, NextSweep, OpenWorkflow, Stored, load, put};

/// The ports that the continuation of a workflow reads and calls.
struct Continuation<'a> {
    versions: &'a Versions,
    machines: &'a dyn Machines,
    clock: &'a dyn Clock,
}

impl Continuation<'_> {
    /// Makes the workflow `id` pending again and starts its next execution. A repeated call with the same cause returns
    /// the same workflow and starts the execution, if the workflow has not ended.
    async fn run(&self, id: &WorkflowId, (act, reason): (&Act, &str), asked: Asked<'_>) -> Result<Workflow, AppError> {
        let store = &*self.versions.store;
        let key = Digest::of(asked.cause.as_bytes());
        let continued = table::change(store, ("workflow", id), || async {
            let stored = table::workflow(store, id).await?;
            if let Some(known) = stored.value.again.iter().find(|known| known.key == key) {
                if known.act != *act || known.reason != *reason {
                    return Err(used_before());
                }
                return Ok(Decided::Keep((stored.value, false)));
            }
            let now = self.clock.now();
            let ended_as = stored.value.state.as_str().to_owned();
            let ended_reason = match &stored.value.state {
                WorkflowState::Failed { reason, .. } => reason.clone(),
                WorkflowState::Pending
                | WorkflowState::Running { .. }
                | WorkflowState::Succeeded { .. }
                | WorkflowState::Cancelled { .. } => String::new(),
            };
            let (act, by, reason) = (act.clone(), asked.by.clone(), reason.to_owned());
            let again = Again { act, by, reason, at: now, key: key.clone(), ended_as, ended_reason };
            let parts = table::parts(store, &stored.value.install).await?;
            let deployed: BTreeSet<_> = table::deployed_among(&parts).into_keys().collect();
            let next = stored.value.continued(again, &deployed)?;
            let install = table::install(store, &next.install).await?;
            let held = install.value.hold_again(id, next.serial)?;
            self.check(&next, &held).await?;
            let open = OpenWorkflow {
                workflow: id.clone(),
                install: held.id.clone(),
                since: now,
                next_sweep: Some(now),
                due_by: String::new(),
            };
            let mut writes = vec![
                table::put_workflow(&next, Expect::Rev(stored.rev))?,
                put(&held, Expect::Rev(install.rev))?,
                put(&open, Expect::Any)?,
                put(&NextSweep { workflow: id.clone(), from: now }, Expect::Any)?,
            ];
            writes.extend(self.skipped_part(&next).await?);
            Ok(Decided::Commit(writes, (next, true)))
        });
        let (workflow, changed) = continued.await?;
        if !workflow.state.is_terminal() {
            let (kind, attempt) = (workflow.machine(), workflow.attempt());
            self.machines.start(kind, id, &workflow.install, attempt).await?;
        }
        if changed {
            tracing::info!(
                workflow.id = %id, install.id = %workflow.install, "Workflow `{id}` continues ({})", act.as_str()
            );
        }
        Ok(workflow)
    }

    /// Returns the write that marks the deployed part of a skipped node as skipped.
    async fn skipped_part(&self, workflow: &Workflow) -> Result<Option<Write>, AppError> {
        let Some(Again { act: Act::Skip { node }, by, reason, at, .. }) = workflow.again.last() else {
            return Ok(None);
        };
        let node = workflow.nodes.iter().find(|one| one.name == *node);
        let Some(part) = node.and_then(|node| node.target.deploys()).map(|deploys| deploys.part) else {
            return Ok(None);
        };
        let key = table::deployed_key(&workflow.install, &part);
        let Some(mut found) = load::<DeployedRecord>(&*self.versions.store, &key).await? else { return Ok(None) };
        let (workflow, by, reason) = (workflow.id.clone(), by.clone(), reason.clone());
        found.value.deployed.skipped = Some(SkippedBy { workflow, by, reason, at: *at });
        Ok(Some(put(&found.value, Expect::Rev(found.rev))?))
    }

    /// Checks that the install is as it was when the workflow was planned, and that the customer accepts its contract.
    async fn check(&self, workflow: &Workflow, install: &Install) -> Result<(), AppError> {
        require_runner(install)?;
        let Request::Deploy { .. } = &workflow.request else { return Ok(()) };
        if workflow.planned_from != planned_from(workflow, install)? {
            let (id, install) = (&workflow.id, &install.id);
            return Err(AppError::conflict(format!(
                "inputs or toggles of install `{install}` have changed since workflow `{id}` was planned; start a new \
                 deploy with `freehold deploy {install}`"
            )));
        }
        self.check_artifacts(workflow, install).await?;
        let version = self.versions.load(install.require_app()?, workflow.version.as_ref()).await?;
        terms::check_accepted(self.versions, install, &version, &terms::commands_of_gates(&workflow.nodes)).await
    }

    /// Checks that the nodes' builds have the same artifacts as when the workflow was planned. An unused artifact may have been
    /// removed, and built again.
    async fn check_artifacts(&self, workflow: &Workflow, install: &Install) -> Result<(), AppError> {
        let app = install.require_app()?;
        let waiting = workflow.nodes.iter().filter(|node| node.state == NodeState::Waiting);
        for (part, Use { build, artifact }) in waiting.flat_map(|node| node.target.uses()) {
            let found: Option<Stored<Build>> =
                table::load(&*self.versions.store, &table::build_key(app, build)).await?;
            let usable = found.as_ref().and_then(|found| found.value.usable());
            if usable.is_none_or(|usable| usable.digest != *artifact) {
                let (id, install) = (&workflow.id, &install.id);
                return Err(AppError::conflict(format!(
                    "the artifact of `{part}` was removed or built again since workflow `{id}` was planned; start a \
                     new deploy with `freehold deploy {install}`"
                )));
            }
        }
        Ok(())
    }
}

/// Returns the digest of the values from which a deploy is planned, in addition to its version: the toggles of the
/// install, and the inputs that the vendor and the customer gave. `None` for a workflow that is not a deploy.
///
/// # Errors
/// Internal when the values cannot be written as JSON.
pub(super) fn planned_from(workflow: &Workflow, install: &Install) -> Result<Option<Digest>, AppError> {
    let Request::Deploy { .. } = &workflow.request else { return Ok(None) };
    let values = serde_json::to_vec(&(&install.inputs, &install.answers, &install.toggles))?;
    Ok(Some(Digest::of(&values)))
}

/// Returns the writes of the jobs that start with `advance`, the workflow with these jobs, and their ids. A job that
/// ended before the workflow was continued is queued again. If it succeeded after all, because the report of its end came
/// late, its node has succeeded and the job does not run again.
///
/// # Errors
/// The errors of the store, or Internal for a job that cannot be queued again.
pub(super) async fn start_jobs(
    store: &dyn Store,
    advance: Advance,
    now: Timestamp,
) -> Result<(Workflow, Vec<Write>, Vec<JobId>), AppError> {
    let Advance { mut workflow, mut jobs, mut again, .. } = advance;
    let (mut writes, mut started) = (Vec::new(), Vec::new());
    while let Some(id) = again.pop() {
        let job = table::job(store, &id).await?;
        if let JobState::Succeeded { .. } = &job.value.state {
            let next = workflow.on_job(&job.value, now)?;
            workflow = next.workflow;
            jobs.extend(next.jobs);
            again.extend(next.again);
            continue;
        }
        let why = workflow.again.last().map(|again| format!("{}, by {}", again.why(), again.by)).unwrap_or_default();
        let Ok(Step::Changed { job: queued, .. }) = job.value.on(&JobEvent::Resume { why }, now) else {
            // INVARIANT: a workflow is continued only when none of its jobs is open.
            return Err(AppError::internal(format!("job `{id}` is {} and cannot run again", job.value.state.as_str())));
        };
        writes.push(put(&*queued, Expect::Rev(job.rev))?);
        started.push(id);
    }
    for job in jobs {
        writes.push(put(&job, Expect::Absent)?);
        started.push(job.id);
    }
    Ok((workflow, writes, started))
}

//! Applies one event to a job and, when the job ends, to its workflow in the same commit. The caller then performs the
//! effects.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use freehold_domain::build::{Build, BuildState};
use freehold_domain::job::{Job, JobEvent, JobState, Rejected, Step, WindowEvent};
use freehold_domain::plan::{Deployed, PartialBy};
use freehold_domain::sensitive_outputs::SensitiveOutputs;
use freehold_domain::workflow::{Deploys, Node, NodeState, Target, Use, Workflow, WorkflowKind};
use freehold_protocol::order::leftovers::{self, Leftovers};
use freehold_protocol::report::Outcome;
use freehold_protocol::{AppName, ComponentName, Digest, Envelope, JobId, Timestamp, WorkflowId};
use serde_json::Value;

use crate::AppError;
use crate::drift::result::{after_deploy, checked_writes};
use crate::health::record::record_health;
use crate::messages::DispatchMessage;
use crate::notification::task;
use crate::ports::{Expect, Outbox, Store, Write};
use crate::table::evidence::{MadeBy, ProofRecord, Signed, UsedBy};
use crate::table::{self, CopiedSecrets, Decided, DeployedRecord, LeftoversRecord, Stored, load, put};
use crate::workflow::{attempted_part, continuation, late_result};

/// The result of applying an event to a job.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub enum Advanced {
    /// The event was applied, now or in an earlier delivery. `workflow` is set when the job has ended. The caller must
    /// perform the effects, even if they were performed before: it dispatches the jobs in `started`. These are the new
    /// jobs or, after a redelivery (`changed` is false), all active jobs, whose orders may have been sent.
    Now { job: Box<Job>, workflow: Option<Box<Workflow>>, started: Vec<JobId>, changed: bool },
    /// The event is too early: more time must pass first.
    NotYet(Box<Job>),
    /// The job rejects the event and does not change.
    Rejected(Box<Job>, Rejected),
}

/// The report that contains an event.
#[derive(Debug, Clone, Copy)]
pub struct Reported<'a> {
    /// The signed report; absent for the refusal of an order.
    pub message: Option<&'a Envelope>,
    /// The time at which the queue took the first copy of the report.
    pub sent_at: Timestamp,
}

/// Applies `event` to the job `id`. `report` is the report that contains the event, if a report caused it.
///
/// # Errors
/// NotFound for an unknown job, the store's errors, or Transient when every try ended in a conflict.
pub async fn job_event(
    store: &dyn Store,
    id: &JobId,
    event: &JobEvent,
    report: Option<Reported<'_>>,
    now: Timestamp,
) -> Result<Advanced, AppError> {
    let is_kept = AtomicBool::new(false);
    let advanced = table::change(store, ("job", id), || async {
        let current = table::job(store, id).await?;
        let is_retried = is_its_retry(&current.value, event);
        let (job, changed) = match current.value.on(event, now) {
            Ok(Step::Changed { job, .. }) => match report {
                Some(Reported { sent_at, .. }) => (job.heard_at(sent_at.min(now), &current.value), true),
                None => (*job, true),
            },
            Ok(Step::Already) => (current.value.clone(), false),
            Ok(Step::NotYet) => return Ok(Decided::Keep(Advanced::NotYet(Box::new(current.value)))),
            Err(_) if is_its_cancel(&current.value, event) || is_retried => (current.value.clone(), false),
            Err(rejected) => return Ok(Decided::Keep(Advanced::Rejected(Box::new(current.value), rejected))),
        };
        let ended = job.state.is_terminal() || is_retried;
        let mut workflow = if ended { Some(table::workflow(store, &job.workflow).await?) } else { None };
        if !changed {
            let workflow = workflow.map(|stored| Box::new(stored.value));
            let started = workflow.iter().flat_map(|workflow| workflow.active_jobs().cloned()).collect();
            return Ok(Decided::Keep(Advanced::Now { job: Box::new(job), workflow, started, changed }));
        }
        let stored = Stored { value: job, rev: current.rev };
        let proof = proof(&stored.value, event, report.and_then(|report| report.message), now)?;
        if let (Some(proof), Some(before)) = (&proof, &workflow)
            && keep_use(store, &stored.value, &before.value, proof, &is_kept).await?
        {
            // Other jobs of the workflow may have ended meanwhile. The workflow is loaded again, because a commit that
            // conflicts is billed too.
            workflow = Some(table::workflow(store, &before.value.id).await?);
        }
        let (mut writes, workflow, started) = writes_for(store, &stored, workflow, proof, now).await?;
        if current.value.is_left_to_wait() && !stored.value.is_left_to_wait() {
            writes.extend(table::sweep_soon_writes(store, &stored.value.workflow, now).await?);
        }
        writes.extend(task::of_changed_job(store, &current.value, &stored.value, now).await?);
        let (job, workflow) = (Box::new(stored.value), workflow.map(Box::new));
        Ok(Decided::Commit(writes, Advanced::Now { job, workflow, started, changed }))
    });
    advanced.await
}

/// Returns whether the event is the report that ended a cancelled job. A cancelled job has no fence and would reject
/// the report, but a redelivery of the report must perform the effects again.
fn is_its_cancel(job: &Job, event: &JobEvent) -> bool {
    matches!(
        (&job.state, event),
        (
            JobState::Cancelled { dispatch, .. },
            JobEvent::Finished { fence, outcome: Outcome::Cancelled, .. }
            | JobEvent::Refused { fence, .. }
            | JobEvent::Returned { fence, .. }
            | JobEvent::Window(WindowEvent::Refused { fence, .. }),
        ) if fence.dispatch == *dispatch
    )
}

/// Returns whether the event comes from an attempt whose end was accepted, and after which the job was queued for a
/// retry. Such an event is late or repeated, but not stale: if the report of the end is redelivered, the job must be
/// dispatched again.
fn is_its_retry(job: &Job, event: &JobEvent) -> bool {
    let (JobEvent::Started { fence, .. } | JobEvent::Progress { fence, .. } | JobEvent::Finished { fence, .. }) = event
    else {
        return false;
    };
    let ended = || job.history.iter().any(|record| record.what == "finished" && record.fence == Some(*fence));
    fence.dispatch < job.state.dispatch() && ended()
}

/// Returns the proof that a job succeeded: the report that ended the job.
fn proof(
    job: &Job,
    event: &JobEvent,
    message: Option<&Envelope>,
    now: Timestamp,
) -> Result<Option<ProofRecord>, AppError> {
    match (event, message) {
        (JobEvent::Finished { fence, runner, outcome: Outcome::Succeeded { .. }, .. }, Some(message)) => {
            let report = Signed::of(message)?;
            let (install, job) = (job.install.clone(), job.id.clone());
            Ok(Some(ProofRecord { install, job, fence: *fence, runner: runner.clone(), at: now, report }))
        }
        _ => Ok(None),
    }
}

/// Stores the proof that a job deployed or ran its artifacts, once for all tries of the commit. The proof is written before the
/// commit and not in it, because DynamoDB bills a row of a transaction twice. Its key contains the fence, so it never
/// overwrites the proof of another attempt. Returns true if this call stored the proof.
async fn keep_use(
    store: &dyn Store,
    job: &Job,
    workflow: &Workflow,
    proof: &ProofRecord,
    is_kept: &AtomicBool,
) -> Result<bool, AppError> {
    let node = workflow.nodes.iter().find(|node| node.name == job.node);
    let uses = node.map(|node| node.target.uses()).unwrap_or_default();
    if uses.is_empty() || is_kept.swap(true, Ordering::Relaxed) {
        return Ok(false);
    }
    for (component, Use { build, artifact }) in uses {
        let (artifact, build, workflow) = (artifact.clone(), build.clone(), workflow.id.clone());
        let used = UsedBy { artifact, component, build, workflow, proof: proof.clone() };
        let _ = store.commit(vec![put(&used, Expect::Any)?]).await?;
    }
    Ok(true)
}

/// Returns the writes for a changed job and, when the job has ended, for its workflow and for the jobs that start next.
/// The revision in `changed` is the revision before the change.
async fn writes_for(
    store: &dyn Store,
    changed: &Stored<Job>,
    workflow: Option<Stored<Workflow>>,
    proof: Option<ProofRecord>,
    now: Timestamp,
) -> Result<(Vec<Write>, Option<Workflow>, Vec<JobId>), AppError> {
    let job = &changed.value;
    let mut writes = vec![put(job, Expect::Rev(changed.rev))?];
    let Some(stored) = workflow else { return Ok((writes, None, Vec::new())) };
    if let Some((workflow, again)) = stored.value.retry(job, now) {
        tracing::warn!(job.id = %job.id, install.id = %job.install, "Job `{}` (`{}`) is retried", job.id, job.node);
        let writes =
            vec![put(&again, Expect::Rev(changed.rev))?, table::put_workflow(&workflow, Expect::Rev(stored.rev))?];
        return Ok((writes, Some(workflow), vec![again.id]));
    }
    let advance = stored.value.on_job(job, now)?;
    let changed = advance.changed;
    let (workflow, starts, started) = continuation::start_jobs(store, advance, now).await?;
    if changed {
        writes.push(table::put_workflow(&workflow, Expect::Rev(stored.rev))?);
    }
    writes.extend(starts);
    writes.extend(result_writes(store, job, &workflow, proof, now).await?);
    Ok((writes, Some(workflow), started))
}

/// Returns the further writes at the end of a job, such as the record of a deployed component, or a build's artifact
/// with its proof.
async fn result_writes(
    store: &dyn Store,
    job: &Job,
    workflow: &Workflow,
    proof: Option<ProofRecord>,
    now: Timestamp,
) -> Result<Vec<Write>, AppError> {
    let Some(node) = workflow.nodes.iter().find(|node| node.name == job.node) else { return Ok(Vec::new()) };
    match (&node.target, &job.state) {
        (Target::Component { .. } | Target::Sandbox { .. }, JobState::Succeeded { fence, outputs, sensitive, .. }) => {
            let sensitive = SensitiveOutputs::of(*fence, sensitive);
            deployed_writes(store, job, workflow, &node.target, (outputs, sensitive), now).await
        }
        (Target::Build { build, .. }, _) => {
            let Some(app) = build_app(workflow) else { return Ok(Vec::new()) };
            let Some(stored) = load::<Build>(store, &table::build_key(app, build)).await? else {
                return Ok(Vec::new());
            };
            build_writes(stored, job, workflow, proof, now)
        }
        (Target::Secrets { fingerprint, keeps_others }, _) => {
            secrets_writes(store, job, workflow, (fingerprint, *keeps_others)).await
        }
        (Target::Teardown { part, .. }, JobState::Succeeded { .. }) => {
            Ok(late_result::removal_write(store, job, workflow, part).await?.into_iter().collect())
        }
        (Target::Component { .. } | Target::Sandbox { .. } | Target::Teardown { .. }, _) => {
            failed_writes(store, job, workflow, &node.target, now).await
        }
        (Target::DetectDrift { part, of, .. }, _) => checked_writes(store, job, workflow, (part, of), now).await,
        (Target::Leftovers, _) => leftovers_writes(store, job, workflow, now).await,
        (Target::Health { component, .. }, _) => record_health(store, job, workflow, component, now).await,
        (Target::Action { .. } | Target::Preflight | Target::Upgrade, _) => Ok(Vec::new()),
    }
}

/// Returns the write of the list of resources that still exist after a teardown, or of the reason why there is no list.
/// Returns no write for a list that cannot be read, or that is reported late when a later workflow exists.
async fn leftovers_writes(
    store: &dyn Store,
    job: &Job,
    workflow: &Workflow,
    now: Timestamp,
) -> Result<Vec<Write>, AppError> {
    let found = match &job.state {
        JobState::Succeeded { outputs, .. } => {
            let reported = outputs.get(leftovers::OUTPUT).cloned().map(serde_json::from_value::<Leftovers>);
            let Some(Ok(found)) = reported else { return Ok(Vec::new()) };
            found
        }
        ended => {
            let reason = job.reason().unwrap_or_default();
            let unknown = format!("the job that lists the leftovers is {}: {reason}", ended.as_str());
            Leftovers { unknown: Some(unknown), ..Leftovers::default() }
        }
    };
    if !late_result::is_latest(store, job, workflow).await? {
        return Ok(Vec::new());
    }
    let record = LeftoversRecord { install: job.install.clone(), job: job.id.clone(), at: now, found };
    Ok(vec![put(&record, Expect::Any)?])
}

/// Returns the write of the record of the copies of secrets, after a job that copies or removes them.
async fn secrets_writes(
    store: &dyn Store,
    job: &Job,
    workflow: &Workflow,
    (fingerprint, keeps_others): (&Digest, bool),
) -> Result<Vec<Write>, AppError> {
    let succeeded = matches!(&job.state, JobState::Succeeded { .. });
    let changed = succeeded || job.may_have_changed();
    if !changed || !late_result::is_latest(store, job, workflow).await? {
        return Ok(Vec::new());
    }
    if succeeded && workflow.kind == WorkflowKind::TeardownInstall {
        return Ok(vec![Write::Delete { key: table::copied_secrets_key(&job.install) }]);
    }
    let install = job.install.clone();
    let copied = if succeeded {
        CopiedSecrets { install, fingerprint: fingerprint.clone(), others: keeps_others }
    } else {
        // No version has this fingerprint: the next deploy copies again, and a teardown knows that there are copies.
        CopiedSecrets { install, fingerprint: Digest::of(b"partly copied"), others: true }
    };
    Ok(vec![put(&copied, Expect::Any)?])
}

/// Returns the write of the record of a deployed component or sandbox. The record has a digest of the sandbox outputs
/// that the component reads. These outputs are the same in the table as in the job's order, because a workflow does not
/// change the sandbox after its components have started.
async fn deployed_writes(
    store: &dyn Store,
    job: &Job,
    workflow: &Workflow,
    target: &Target,
    (outputs, sensitive): (&BTreeMap<String, Value>, Option<SensitiveOutputs>),
    now: Timestamp,
) -> Result<Vec<Write>, AppError> {
    let Some(Deploys { part, artifact, fingerprint, reads, .. }) = target.deploys() else { return Ok(Vec::new()) };
    let Some(expect) = late_result::deploy_condition(store, job, workflow, &part).await? else { return Ok(Vec::new()) };
    let sandbox = match reads.filter(|reads| !reads.is_empty()) {
        Some(reads) => reads.digest(&table::sandbox_outputs(store, &job.install).await?)?,
        None => None,
    };
    let drift = after_deploy(store, job, &part, now).await?;
    let deployed = Deployed {
        component: part,
        fingerprint: fingerprint.clone(),
        artifact: artifact.clone(),
        version: attempted_part::version_of(workflow)?,
        job: job.id.clone(),
        at: now,
        serial: job.serial,
        outputs: outputs.clone(),
        sensitive,
        sandbox,
        partial: false,
        partial_by: None,
        attempted: false,
        skipped: None,
        drift,
    };
    Ok(vec![put(&DeployedRecord { install: job.install.clone(), deployed }, expect)?])
}

/// Returns the write of a part's record after a job of the part that did not succeed.
///
/// A deployed part that the job may have changed is marked as partial. The next deploy runs a partial part again, even if it
/// deploys the version that the record names. A part that was never deployed with success also has a record: it names the last
/// job that may have created resources, and is removed when that job turns out to have changed nothing.
async fn failed_writes(
    store: &dyn Store,
    job: &Job,
    workflow: &Workflow,
    target: &Target,
    now: Timestamp,
) -> Result<Vec<Write>, AppError> {
    let deploys = target.deploys();
    let Some(part) = part_of(target) else { return Ok(Vec::new()) };
    let key = table::deployed_key(&job.install, &part);
    let known: Option<Stored<DeployedRecord>> = load(store, &key).await?;
    if let (None, Some(deploys)) = (&known, &deploys) {
        // There is no record: an earlier release stored none when it sent the order, or a report of an earlier job
        // removed the record. The order of a cancelled job counts as not sent if no attempt has reported.
        let was_sent = !matches!(&job.state, JobState::Cancelled { unclaimed: true, .. });
        let is_left = was_sent && job.may_have_changed() && !job.is_reported_late();
        let record = is_left.then(|| attempted_part::record(job, workflow, deploys, now)).transpose()?;
        return record.map(|record| put(&record, Expect::Absent)).into_iter().collect();
    }
    let Some(mut known) = known.filter(|known| known.value.deployed.serial <= job.serial) else {
        return Ok(Vec::new());
    };
    let record = &mut known.value.deployed;
    if record.attempted {
        return match deploys {
            Some(_) if record.job == job.id && job.changed_nothing() => {
                Ok(vec![Write::DeleteAt { key, rev: known.rev }])
            }
            Some(deploys) if record.job != job.id && job.may_have_changed() => {
                let again = attempted_part::record(job, workflow, &deploys, now)?;
                Ok(vec![put(&again, Expect::Rev(known.rev))?])
            }
            Some(_) | None => Ok(Vec::new()),
        };
    }
    // An earlier dispatch of the job may have changed the part.
    let is_unclaimed = matches!(&job.state, JobState::Cancelled { unclaimed: true, dispatch: 1, .. });
    let is_marked = record.partial && record.partial_by.as_ref().is_some_and(|by| by.job == job.id);
    if is_marked && (is_unclaimed || !job.may_have_changed()) {
        // The end of the workflow marked the part while this job was open.
        record.partial = false;
        record.partial_by = None;
        return Ok(vec![put(&known.value, Expect::Rev(known.rev))?]);
    }
    if record.partial || !job.may_have_changed() {
        return Ok(Vec::new());
    }
    Ok(vec![put_partial(known, (&job.workflow, &job.id), target, now)?])
}

/// Returns the part that a target deploys or removes, if it does either.
fn part_of(target: &Target) -> Option<ComponentName> {
    match target {
        Target::Teardown { part, .. } => Some(part.clone()),
        _ => target.deploys().map(|deploys| deploys.part.clone()),
    }
}

/// Returns the write of a part's record that marks it as partial because of a job.
fn put_partial(
    mut known: Stored<DeployedRecord>,
    (workflow, job): (&WorkflowId, &JobId),
    target: &Target,
    now: Timestamp,
) -> Result<Write, AppError> {
    let removes = matches!(target, Target::Teardown { .. });
    known.value.deployed.partial = true;
    known.value.deployed.partial_by =
        Some(PartialBy { workflow: workflow.clone(), job: job.clone(), at: now, removes });
    put(&known.value, Expect::Rev(known.rev))
}

/// Returns the write that marks the part of a node as partial while a job is open that may change it; `None` for a part without
/// a record of a whole deploy. A plan that is made before the job has ended would find the part as its record says.
pub(super) async fn open_part_write(
    store: &dyn Store,
    workflow: &Workflow,
    node: &Node,
    now: Timestamp,
) -> Result<Option<Write>, AppError> {
    let NodeState::Active { job } = &node.state else { return Ok(None) };
    let Some(part) = part_of(&node.target) else { return Ok(None) };
    let known: Option<Stored<DeployedRecord>> = load(store, &table::deployed_key(&workflow.install, &part)).await?;
    let whole = known.filter(|known| !known.value.deployed.partial && known.value.deployed.serial <= workflow.serial);
    whole.map(|known| put_partial(known, (&workflow.id, job), &node.target, now)).transpose()
}

/// Returns the writes for a build at the end of its job.
fn build_writes(
    stored: Stored<Build>,
    job: &Job,
    workflow: &Workflow,
    proof: Option<ProofRecord>,
    now: Timestamp,
) -> Result<Vec<Write>, AppError> {
    let mut record = stored.value;
    let built = matches!(&job.state, JobState::Succeeded { artifact: Some(_), .. });
    let ours = matches!(&record.state, BuildState::Building { workflow: by } if *by == workflow.id);
    if matches!(record.state, BuildState::Built { .. }) || !(built || ours) {
        // A build that has an artifact does not change, because deploys refer to that artifact by its digest. A failure
        // changes only a build that belongs to this workflow, and not the build of a later workflow.
        return Ok(Vec::new());
    }
    let mut writes = Vec::new();
    record.state = match &job.state {
        JobState::Succeeded { artifact: Some(artifact), .. } => {
            if let Some(proof) = proof {
                let (app, component, build) = (record.app.clone(), record.component.clone(), record.id.clone());
                let made = MadeBy { artifact: artifact.digest.clone(), app, component, build, proof };
                writes.push(put(&made, Expect::Any)?);
            }
            BuildState::Built { job: job.id.clone(), artifact: artifact.clone(), built_at: now }
        }
        other => BuildState::Failed {
            job: job.id.clone(),
            reason: other.reason().unwrap_or_else(|| "the build reported no artifact".into()),
        },
    };
    writes.push(put(&record, Expect::Rev(stored.rev))?);
    Ok(writes)
}

/// Returns the app whose components a build workflow builds; `None` for other workflows.
pub const fn build_app(workflow: &Workflow) -> Option<&AppName> {
    match &workflow.request {
        freehold_domain::workflow::Request::Build { app, .. } => Some(app),
        freehold_domain::workflow::Request::Deploy { .. }
        | freehold_domain::workflow::Request::Action { .. }
        | freehold_domain::workflow::Request::Teardown { .. }
        | freehold_domain::workflow::Request::Upgrade { .. }
        | freehold_domain::workflow::Request::DetectDrift { .. }
        | freehold_domain::workflow::Request::CheckHealth { .. } => None,
    }
}

/// Sends jobs of `workflow` to the dispatch queue.
///
/// # Errors
/// The queue's errors.
pub async fn dispatch(outbox: &dyn Outbox, workflow: &Workflow, jobs: &[JobId]) -> Result<(), AppError> {
    let order = |job: &JobId| DispatchMessage::Order { job: job.clone(), dispatch: workflow.dispatch_of(job) };
    let messages: Vec<_> = jobs.iter().map(order).collect();
    if !messages.is_empty() {
        outbox.dispatch(&messages).await?;
    }
    Ok(())
}

/// Asks `dispatch-job` to cancel a job at its runner. Does nothing for a job without a cancel request and for an ended
/// job.
///
/// # Errors
/// The queue's errors.
pub async fn dispatch_cancel(outbox: &dyn Outbox, job: &Job) -> Result<(), AppError> {
    if job.cancel_requested.is_none() || job.state.is_terminal() {
        return Ok(());
    }
    let dispatch = job.state.dispatch();
    let cancel = DispatchMessage::Cancel { job: job.id.clone(), dispatch, receive: None, runner: None };
    Ok(outbox.dispatch(&[cancel]).await?)
}

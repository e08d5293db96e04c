//! Takes one event into a job and, when that ends the job, into its workflow: one commit, then what follows from it.

use freehold_domain::build::{Build, BuildState};
use freehold_domain::job::{Job, JobEvent, JobState, Rejected, Step};
use freehold_domain::plan::Deployed;
use freehold_domain::workflow::{Advance, Target, Workflow};
use freehold_protocol::report::Outcome;
use freehold_protocol::{AppName, Envelope, JobId, Timestamp};

use crate::AppError;
use crate::messages::DispatchMessage;
use crate::ports::{Expect, Outbox, Store, Write};
use crate::table::evidence::{MadeBy, ProofRecord, Signed, UsedBy};
use crate::table::{self, Decided, DeployedRecord, Stored, load, put};

/// What an event came to.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub enum Advanced {
    /// The job is as told here; the workflow is loaded when the job has ended. Effects are due, again or for the
    /// first time: `started` holds the jobs to dispatch, the new ones, or all active ones when the event came before.
    Now { job: Box<Job>, workflow: Option<Box<Workflow>>, started: Vec<JobId>, changed: bool },
    /// Time has to pass first.
    NotYet(Box<Job>),
    /// The event must not change the job.
    Rejected(Box<Job>, Rejected),
}

/// Takes `event` into job `id`; `message` is the signed report that tells of it, if one does.
///
/// # Errors
/// NotFound for an unknown job, the store's, or Transient when other writers kept winning.
pub async fn job_event(
    store: &dyn Store,
    id: &JobId,
    event: &JobEvent,
    message: Option<&Envelope>,
    now: Timestamp,
) -> Result<Advanced, AppError> {
    let advanced = table::change(store, ("job", id), || async {
        let current = table::job(store, id).await?;
        let (job, changed) = match current.value.on(event, now) {
            Ok(Step::Changed { job, .. }) => (*job, true),
            Ok(Step::Already) => (current.value.clone(), false),
            Ok(Step::NotYet) => return Ok(Decided::Keep(Advanced::NotYet(Box::new(current.value)))),
            Err(_) if is_its_cancel(&current.value, event) => (current.value.clone(), false),
            Err(rejected) => return Ok(Decided::Keep(Advanced::Rejected(Box::new(current.value), rejected))),
        };
        let ended = job.state.is_terminal();
        let workflow = if ended { Some(table::workflow(store, &job.workflow).await?) } else { None };
        if !changed {
            let workflow = workflow.map(|stored| Box::new(stored.value));
            let started = workflow.iter().flat_map(|workflow| workflow.active_jobs().cloned()).collect();
            return Ok(Decided::Keep(Advanced::Now { job: Box::new(job), workflow, started, changed }));
        }
        let stored = Stored { value: job, rev: current.rev };
        let proof = proof(&stored.value, event, message, now)?;
        let (writes, workflow, started) = writes_for(store, &stored, workflow, proof, now).await?;
        let (job, workflow) = (Box::new(stored.value), workflow.map(Box::new));
        Ok(Decided::Commit(writes, Advanced::Now { job, workflow, started, changed }))
    });
    advanced.await
}

/// Returns whether the event is the report that ended a cancelled job. Such a job keeps no fence and would refuse the
/// report, but a redelivery has to perform the effects again.
fn is_its_cancel(job: &Job, event: &JobEvent) -> bool {
    matches!(
        (&job.state, event),
        (JobState::Cancelled { dispatch, .. }, JobEvent::Finished { fence, outcome: Outcome::Cancelled, .. })
            if fence.dispatch == *dispatch
    )
}

/// Returns what proves that a job succeeded: the report that ended it.
fn proof(
    job: &Job,
    event: &JobEvent,
    message: Option<&Envelope>,
    now: Timestamp,
) -> Result<Option<ProofRecord>, AppError> {
    match (event, message) {
        (JobEvent::Finished { fence, runner, outcome: Outcome::Succeeded { .. } }, Some(message)) => {
            let report = Signed::of(message)?;
            let (install, job) = (job.install.clone(), job.id.clone());
            Ok(Some(ProofRecord { install, job, fence: *fence, runner: runner.clone(), at: now, report }))
        }
        _ => Ok(None),
    }
}

/// Returns the commit of a changed job, whose revision is still the former one, and its workflow's next state when the
/// job has ended.
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
    let Advance { workflow, jobs, changed } = stored.value.on_job(job, now)?;
    if changed {
        writes.push(put(&workflow, Expect::Rev(stored.rev))?);
    }
    for new in &jobs {
        writes.push(put(new, Expect::Absent)?);
    }
    writes.extend(result_writes(store, job, &workflow, proof, now).await?);
    let started = jobs.into_iter().map(|job| job.id).collect();
    Ok((writes, Some(workflow), started))
}

/// What the end of a job leaves behind beside itself: a deployed component, or a build's artifact; and in the index of
/// the artifact, who did it and what proves that.
async fn result_writes(
    store: &dyn Store,
    job: &Job,
    workflow: &Workflow,
    proof: Option<ProofRecord>,
    now: Timestamp,
) -> Result<Vec<Write>, AppError> {
    let Some(node) = workflow.nodes.iter().find(|node| node.name == job.node) else { return Ok(Vec::new()) };
    match (&node.target, &job.state) {
        (Target::Component { component, build, artifact, fingerprint }, JobState::Succeeded { outputs, .. }) => {
            let version = workflow.version.clone().ok_or_else(|| {
                // INVARIANT: a workflow with component nodes was planned from a version.
                AppError::internal(format!("workflow `{}` has no version", workflow.id))
            })?;
            let deployed = Deployed {
                component: component.clone(),
                fingerprint: fingerprint.clone(),
                artifact: artifact.clone(),
                version,
                job: job.id.clone(),
                at: now,
                outputs: outputs.clone(),
            };
            let record = DeployedRecord { install: job.install.clone(), deployed };
            let mut writes = vec![put(&record, Expect::Any)?];
            if let Some(proof) = proof {
                let (artifact, component) = (artifact.clone(), component.clone());
                let (build, workflow) = (build.clone(), workflow.id.clone());
                writes.push(put(&UsedBy { artifact, component, build, workflow, proof }, Expect::Any)?);
            }
            Ok(writes)
        }
        (Target::Build { build, .. }, _) => {
            let Some(app) = build_app(workflow) else { return Ok(Vec::new()) };
            let Some(stored) = load::<Build>(store, &table::build_key(app, build)).await? else {
                return Ok(Vec::new());
            };
            build_writes(stored, job, workflow, proof, now)
        }
        (Target::Component { .. } | Target::Action { .. } | Target::Preflight, _) => Ok(Vec::new()),
    }
}

/// What the end of a build's job makes of the build.
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
        // Deploys refer to the first artifact by digest; a failure here is none of a later workflow's build.
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

/// Returns the app that a build workflow builds.
pub const fn build_app(workflow: &Workflow) -> Option<&AppName> {
    match &workflow.request {
        freehold_domain::workflow::Request::Build { app, .. } => Some(app),
        freehold_domain::workflow::Request::Deploy { .. } | freehold_domain::workflow::Request::Action { .. } => None,
    }
}

/// Hands jobs to the dispatch queue. Handing one over twice is harmless: its order has one deduplication id.
///
/// # Errors
/// The queue's.
pub async fn dispatch(outbox: &dyn Outbox, jobs: &[JobId]) -> Result<(), AppError> {
    let messages: Vec<_> =
        jobs.iter().map(|job| DispatchMessage::Order { job: job.clone(), dispatch: 1, resend: false }).collect();
    if !messages.is_empty() {
        outbox.dispatch(&messages).await?;
    }
    Ok(())
}

/// Tells the holder of a job that is to be cancelled to stop; nothing for a job that nobody cancelled, or that ended.
///
/// # Errors
/// The queue's.
pub async fn dispatch_cancel(outbox: &dyn Outbox, job: &Job) -> Result<(), AppError> {
    if job.cancel_requested.is_none() || job.state.is_terminal() {
        return Ok(());
    }
    let dispatch = job.state.dispatch();
    let cancel = DispatchMessage::Cancel { job: job.id.clone(), dispatch, receive: None, runner: None };
    Ok(outbox.dispatch(&[cancel]).await?)
}

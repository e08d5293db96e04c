//! Takes one event into a job and, when that ends the job, into its workflow: one commit, then what follows from it.

use freehold_domain::build::{Build, BuildState};
use freehold_domain::job::{Job, JobEvent, JobState, Rejected, Step};
use freehold_domain::plan::Deployed;
use freehold_domain::workflow::{Advance, Target, Workflow};
use freehold_protocol::report::Outcome;
use freehold_protocol::{AppName, JobId, Timestamp};

use crate::AppError;
use crate::messages::DispatchMessage;
use crate::ports::{Committed, Expect, Outbox, Store, Write};
use crate::records::{self, DeployedRecord, Stored, load, put};

/// How often a commit that met another writer is decided anew.
const TRIES: u32 = 8;

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

/// Takes `event` into job `id`.
///
/// # Errors
/// NotFound for an unknown job, the store's, or Transient when other writers kept winning.
pub async fn job_event(store: &dyn Store, id: &JobId, event: &JobEvent, now: Timestamp) -> Result<Advanced, AppError> {
    for _ in 0..TRIES {
        let current = records::job(store, id).await?;
        let (job, changed) = match current.value.on(event, now) {
            Ok(Step::Changed { job, .. }) => (*job, true),
            Ok(Step::Already) => (current.value.clone(), false),
            Ok(Step::NotYet) => return Ok(Advanced::NotYet(Box::new(current.value))),
            Err(_) if is_its_cancel(&current.value, event) => (current.value.clone(), false),
            Err(rejected) => return Ok(Advanced::Rejected(Box::new(current.value), rejected)),
        };
        let ended = job.state.is_terminal();
        let workflow = if ended { Some(records::workflow(store, &job.workflow).await?) } else { None };
        if !changed {
            let workflow = workflow.map(|stored| Box::new(stored.value));
            let started = workflow.iter().flat_map(|workflow| workflow.active_jobs().cloned()).collect();
            return Ok(Advanced::Now { job: Box::new(job), workflow, started, changed });
        }
        let (writes, workflow, started) = writes_for(store, &job, current.rev, workflow, now).await?;
        match store.commit(writes).await? {
            Committed::Done => {
                let workflow = workflow.map(Box::new);
                return Ok(Advanced::Now { job: Box::new(job), workflow, started, changed });
            }
            Committed::Conflict(_) => {}
        }
    }
    Err(AppError::new(crate::Kind::Transient, format!("job `{id}` is being changed by others; try again")))
}

/// A cancelled job keeps no fence, so it refuses even the report that ended it; that one is told by what it says, and
/// what follows from it is due again when it is delivered again.
fn is_its_cancel(job: &Job, event: &JobEvent) -> bool {
    matches!(
        (&job.state, event),
        (JobState::Cancelled { dispatch, .. }, JobEvent::Finished { fence, outcome: Outcome::Cancelled, .. })
            if fence.dispatch == *dispatch
    )
}

/// Returns the commit of a changed job, and its workflow's next state when the job has ended.
async fn writes_for(
    store: &dyn Store,
    job: &Job,
    rev: u64,
    workflow: Option<Stored<Workflow>>,
    now: Timestamp,
) -> Result<(Vec<Write>, Option<Workflow>, Vec<JobId>), AppError> {
    let mut writes = vec![put(job, Expect::Rev(rev))?];
    let Some(stored) = workflow else { return Ok((writes, None, Vec::new())) };
    let Advance { workflow, jobs, changed } = stored.value.on_job(job, now)?;
    if changed {
        writes.push(put(&workflow, Expect::Rev(stored.rev))?);
    }
    for new in &jobs {
        writes.push(put(new, Expect::Absent)?);
    }
    if let Some(result) = result_write(store, job, &workflow, now).await? {
        writes.push(result);
    }
    let started = jobs.into_iter().map(|job| job.id).collect();
    Ok((writes, Some(workflow), started))
}

/// What the end of a job leaves behind beside itself: a deployed component, or a build's artifact.
async fn result_write(
    store: &dyn Store,
    job: &Job,
    workflow: &Workflow,
    now: Timestamp,
) -> Result<Option<Write>, AppError> {
    let Some(node) = workflow.nodes.iter().find(|node| node.name == job.node) else { return Ok(None) };
    match (&node.target, &job.state) {
        (Target::Component { component, artifact, fingerprint, .. }, JobState::Succeeded { outputs, .. }) => {
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
            put(&record, Expect::Any).map(Some)
        }
        (Target::Build { build, .. }, state) => {
            let Some(app) = build_app(workflow) else { return Ok(None) };
            let Some(stored) = load::<Build>(store, &records::build_key(app, build)).await? else { return Ok(None) };
            let mut record = stored.value;
            let built = matches!(state, JobState::Succeeded { artifact: Some(_), .. });
            let ours = matches!(&record.state, BuildState::Building { workflow: by } if *by == workflow.id);
            if matches!(record.state, BuildState::Built { .. }) || !(built || ours) {
                // Deploys refer to the first artifact by digest; a failure here is none of a later workflow's build.
                return Ok(None);
            }
            record.state = match state {
                JobState::Succeeded { artifact: Some(artifact), .. } => {
                    BuildState::Built { job: job.id.clone(), artifact: artifact.clone(), built_at: now }
                }
                other => BuildState::Failed {
                    job: job.id.clone(),
                    reason: other.reason().unwrap_or_else(|| "the build reported no artifact".into()),
                },
            };
            put(&record, Expect::Rev(stored.rev)).map(Some)
        }
        (Target::Component { .. } | Target::Action { .. }, _) => Ok(None),
    }
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

//! Applies one event to a job and, when the job ends, to its workflow in the same commit. The caller then performs the
//! effects.

mod job_metrics;
pub mod required_checks;
mod results;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use freehold_domain::Install;
use freehold_domain::job::{CancelAsked, Job, JobEvent, JobState, Rejected, Step, WindowEvent};
use freehold_domain::required_checks::Verdict;
use freehold_domain::workflow::{Use, Workflow};
use freehold_protocol::report::Outcome;
use freehold_protocol::{Envelope, JobId, Timestamp};

use crate::AppError;
use crate::health::awaited_checks;
use crate::messages::DispatchMessage;
use crate::notification::task;
use crate::ports::{Expect, Outbox, Store, Write};
use crate::table::evidence::{ProofRecord, Signed, UsedBy};
use crate::table::{self, Decided, LogRecord, Stored, put};
use crate::workflow::continuation;
use job_metrics::{Changed, record_change};

pub use results::build_app;
pub(super) use results::open_part_write;

/// The result of applying an event to a job.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub enum Advanced {
    /// The event was applied, now or in an earlier delivery. `workflow` is set when the job has ended. The caller must
    /// perform the effects, even if they were performed before: it dispatches the jobs in `started`. These are the jobs
    /// that start now or, after a redelivery (`changed` is false), all active jobs, whose orders may have been sent.
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
    /// The last part of the attempt's log, when the report ends the attempt. It is stored before the end, so a reader who sees
    /// the end finds it.
    pub last_log: Option<&'a LogRecord>,
    /// The install of the report, if the caller has it at hand.
    pub install: Option<&'a Install>,
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
    apply(store, id, Some(event), (report, None), now).await
}

/// Cancels the job `id` for the execution `attempt` of its workflow. The job does not change if the workflow was
/// continued since: the job may be queued again, and this execution must not cancel its new dispatch.
///
/// # Errors
/// As [`job_event`].
pub async fn cancel_for(
    store: &dyn Store,
    id: &JobId,
    asked: CancelAsked,
    attempt: u32,
    now: Timestamp,
) -> Result<Advanced, AppError> {
    apply(store, id, Some(&JobEvent::Cancel(asked)), (None, Some(attempt)), now).await
}

/// Applies `event` to the job `id`. Without an event, applies the results of the job's required checks, which every try
/// loads again.
async fn apply(
    store: &dyn Store,
    id: &JobId,
    event: Option<&JobEvent>,
    (report, attempt): (Option<Reported<'_>>, Option<u32>),
    now: Timestamp,
) -> Result<Advanced, AppError> {
    let is_kept = AtomicBool::new(false);
    let advanced = table::change(store, ("job", id), || async {
        let current = table::job(store, id).await?;
        // The workflow is loaded after the job. If it is continued later, the job has ended and does not change, or its new
        // revision makes this commit conflict.
        if let Some(attempt) = attempt
            && table::workflow(store, &current.value.workflow).await?.value.attempt() != attempt
        {
            let (job, started) = (Box::new(current.value), Vec::new());
            return Ok(Decided::Keep((Advanced::Now { job, workflow: None, started, changed: false }, None)));
        }
        let results;
        let (event, due_soon) = if let Some(event) = event {
            (event, None)
        } else {
            // The entry of the workflow is loaded before the results. A report changes the entry too, so if a report is
            // stored after this read, the commit conflicts and the next try finds its result.
            let due_soon = table::sweep_soon_writes(store, &current.value.workflow, id.as_str(), now).await?;
            let verdict = awaited_checks::awaited_verdict(store, &current.value).await?;
            // A job that does not wait any more ignores every verdict.
            results = JobEvent::Checks(verdict.unwrap_or_else(|| Verdict::Missing(BTreeSet::new())));
            (&results, Some(due_soon))
        };
        let is_retried = is_its_retry(&current.value, event);
        let (job, changed) = match current.value.on(event, now) {
            Ok(Step::Changed { job, .. }) => match report {
                Some(Reported { sent_at, .. }) => (job.heard_at(sent_at.min(now), &current.value), true),
                None => (*job, true),
            },
            Ok(Step::Already) => (current.value.clone(), false),
            Ok(Step::NotYet) => return Ok(Decided::Keep((Advanced::NotYet(Box::new(current.value)), None))),
            Err(_) if is_its_cancel(&current.value, event) || is_retried => (current.value.clone(), false),
            Err(rejected) => return Ok(Decided::Keep((Advanced::Rejected(Box::new(current.value), rejected), None))),
        };
        let ended = job.state.is_terminal() || is_retried;
        let mut workflow = if ended { Some(table::workflow(store, &job.workflow).await?) } else { None };
        if !changed {
            let workflow = workflow.map(|stored| Box::new(stored.value));
            let started = workflow.iter().flat_map(|workflow| workflow.active_jobs().cloned()).collect();
            return Ok(Decided::Keep((Advanced::Now { job: Box::new(job), workflow, started, changed }, None)));
        }
        let stored = Stored { value: job, rev: current.rev };
        let proof = proof(&stored.value, event, report.and_then(|report| report.message), now)?;
        let last_log = report.and_then(|report| report.last_log);
        let before = workflow.as_ref().map(|before| &before.value);
        if !is_kept.swap(true, Ordering::Relaxed)
            && keep_end(store, (&stored.value, before), proof.as_ref(), last_log, now).await?
            && before.is_some()
        {
            // Other jobs of the workflow may have ended meanwhile. The workflow is loaded again, because a commit that
            // conflicts is billed too.
            workflow = Some(table::workflow(store, &stored.value.workflow).await?);
        }
        let (mut writes, workflow, started) = writes_for(store, &stored, workflow, proof, now).await?;
        // The next sweep of the workflow may be later than the deadline of the required checks.
        let begins_checks = current.value.checks_end_at().is_none() && stored.value.checks_end_at().is_some();
        if current.value.is_left_to_wait() && (begins_checks || !stored.value.is_left_to_wait()) {
            writes.extend(match due_soon {
                Some(due_soon) => due_soon,
                None => table::sweep_soon_writes(store, &stored.value.workflow, id.as_str(), now).await?,
            });
        }
        writes.extend(task::of_changed_job(store, &current.value, &stored.value, now).await?);
        writes.extend(awaited_checks::notification_write(store, &current.value, &stored.value, now).await?);
        let (job, workflow) = (Box::new(stored.value), workflow.map(Box::new));
        let from = current.value.state.as_str();
        Ok(Decided::Commit(writes, (Advanced::Now { job, workflow, started, changed }, Some(from))))
    });
    let (advanced, from) = advanced.await?;
    if let (Advanced::Now { job, workflow, started, .. }, Some(from)) = (&advanced, from) {
        let is_retried = started.contains(&job.id);
        let changed = Changed { from, job, workflow: workflow.as_deref(), is_retried };
        record_change(store, changed, report.and_then(|report| report.install)).await;
    }
    Ok(advanced)
}

/// Returns whether the event is the report that ended a cancelled job. A cancelled job has no fence and would reject
/// the report, but a redelivery of the report must perform the effects again.
fn is_its_cancel(job: &Job, event: &JobEvent) -> bool {
    let JobState::Cancelled { dispatch, .. } = &job.state else { return false };
    match event {
        JobEvent::Finished { fence, outcome: Outcome::Cancelled, .. }
        | JobEvent::Refused { fence, .. }
        | JobEvent::Returned { fence, .. }
        | JobEvent::Window(WindowEvent::Refused { fence, .. }) => fence.dispatch == *dispatch,
        // A gate with a cancel request does not begin to wait for its required checks.
        JobEvent::Finished { fence, outcome: Outcome::Succeeded { .. }, .. } => {
            fence.dispatch == *dispatch && job.checks.is_some()
        }
        _ => false,
    }
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

/// Stores the proof that a job deployed or ran its artifacts. The report in the proof contains the last part of the
/// log. For any other end of an attempt, stores only the last part of the log. Call this function once for all tries of
/// the commit. These rows are written before the commit and not in it, because DynamoDB bills a row of a transaction
/// twice. Their keys contain the fence, so they never overwrite the rows of another attempt. Returns true if something
/// was stored.
async fn keep_end(
    store: &dyn Store,
    (job, workflow): (&Job, Option<&Workflow>),
    proof: Option<&ProofRecord>,
    last_log: Option<&LogRecord>,
    now: Timestamp,
) -> Result<bool, AppError> {
    let node = workflow.and_then(|workflow| workflow.nodes.iter().find(|node| node.name == job.node));
    let uses = node.map(|node| node.target.uses()).unwrap_or_default();
    match (proof, last_log) {
        (Some(proof), _) if !uses.is_empty() => {
            for (component, Use { build, artifact }) in uses {
                let (artifact, build, workflow) = (artifact.clone(), build.clone(), job.workflow.clone());
                let used = UsedBy { artifact, component, build, workflow, proof: proof.clone() };
                let _ = store.commit(vec![put(&used, Expect::Any)?]).await?;
            }
            Ok(true)
        }
        (_, Some(log)) => {
            let _ = store.commit(vec![log.write(now)?]).await?;
            Ok(true)
        }
        (_, None) => Ok(false),
    }
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
    writes.extend(results::result_writes(store, job, &workflow, proof, now).await?);
    Ok((writes, Some(workflow), started))
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
/// job. The cancel of a running job names the runner that has it, so that another machine of the install leaves the
/// message to that runner.
///
/// # Errors
/// The queue's errors.
pub async fn dispatch_cancel(outbox: &dyn Outbox, job: &Job) -> Result<(), AppError> {
    if job.cancel_requested.is_none() || job.state.is_terminal() {
        return Ok(());
    }
    let dispatch = job.state.dispatch();
    let runner = if let JobState::Running { runner, .. } = &job.state { Some(runner.clone()) } else { None };
    let cancel = DispatchMessage::Cancel { job: job.id.clone(), dispatch, receive: None, runner };
    Ok(outbox.dispatch(&[cancel]).await?)
}

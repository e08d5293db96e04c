//! Recovers work that was lost between a commit and its effects: sends orders again, expires jobs, resumes workflows,
//! reports stuck workflows, sends notifications of the ends of workflows, and starts the machine of the build runner
//! for builds that wait.

mod build_machine;
mod counts;
pub mod handle_due_tasks;

use std::sync::Arc;

use freehold_domain::job::{ApprovalEvent, Job, JobEvent, JobState, WindowEvent};
use freehold_domain::workflow::{NodeState, Workflow, WorkflowState};
use freehold_protocol::limits::{LOST_GRACE_SECS, MAX_JOB_SECS};
use freehold_protocol::{JobId, Timestamp, WorkflowId};
use futures_util::StreamExt as _;
use serde_json::json;
use tracing::Instrument as _;

use crate::AppError;
use crate::messages::DispatchMessage;
use crate::notification::notifier::Notifier;
use crate::ports::{BuildMachine, Callbacks, Clock, Expect, Machines, Outbox, Store, Write};
use crate::subject;
use crate::table::{
    self, NextSweep, OpenWorkflow, Phase, Record as _, Stored, TaskToken, load, moved_sweep, open_key, put, token_key,
};
use crate::workflow::accept_report::resume_run;
use crate::workflow::advance::required_checks::advance_checks;
use crate::workflow::advance::{self, Advanced};
use crate::workflow::dispatch_job::change_windows::{self, LOOK_AT_LEAST_SECS, Opens};
use crate::workflow::dispatch_job::expiry::expiry;
use crate::workflow::finish_workflow::FinishWorkflow;

pub use counts::Swept;

/// The range of the age, in seconds, at which an order that no runner has started is sent again. The range ends within
/// SQS's five minutes of deduplication, so the queue drops the second copy unless the first copy was lost.
const RESEND_FROM_SECS: u64 = 90;
const RESEND_UNTIL_SECS: u64 = 270;
/// The interval in seconds at which `dispatch-job` is asked about an older order that no runner has started.
/// `dispatch-job` sends the order only if no copy can be in the queue.
const ASK_AGAIN_SECS: u64 = 600;
/// The time in seconds after which the sweep finishes a settled workflow, if the state machine has not finished it.
const SETTLED_SECS: u64 = 600;
/// The maximum time in seconds since a workflow's last job ended, while no job is open. It is a multiple of the longest job,
/// so a workflow that is pending for this long makes no progress either.
const OUTLIVED_SECS: u64 = 4 * MAX_JOB_SECS as u64;
/// The time in seconds after which a pending workflow counts as stuck, unless it waits for its runner.
const STUCK_SECS: u64 = 600;
/// The time in seconds after which a workflow that is not planned is finished. It is longer than all tries of its state machine
/// and the waits between them, which `tests/infra/test_machines.py` adds up.
const UNPLANNED_SECS: u64 = 50 * 60;
/// The time in seconds after which a build that has not changed asks for the machine of the build runner again. Before
/// that time, the request that `dispatch-job` made after it sent the order is enough.
const WAKE_FROM_SECS: u64 = 60;
/// The time in seconds after which the sweep handles again a workflow that waits for its customer: for a first runner,
/// or for the runner that its jobs wait for. An act of the customer resumes the workflow at once; the sweep is for an
/// act whose message was lost, and for jobs that have waited long enough.
const WAITING_SECS: u64 = 900;
/// The number of workflows that are handled at the same time.
const AT_ONCE: usize = 16;
/// The time in seconds after which a sweep begins with no further workflow. The next sweep continues. This time and the sweep's
/// other work fit into the function's time limit.
const HANDLING_SECS: u64 = 25;
/// The use case that recovers lost work, with its ports.
#[derive(Clone)]
pub struct Sweep {
    pub store: Arc<dyn Store>,
    pub outbox: Arc<dyn Outbox>,
    pub callbacks: Arc<dyn Callbacks>,
    pub machines: Arc<dyn Machines>,
    /// The machine of the build runner; `None` when the build runner has a machine of its own.
    pub build_machine: Option<Arc<dyn BuildMachine>>,
    /// Sends the notifications of the ends of workflows.
    pub notifier: Notifier,
    pub clock: Arc<dyn Clock>,
}

/// When a workflow is handled again.
enum Next {
    /// By the next sweep.
    Soon,
    /// At this time; the workflow waits for somebody until then.
    At(Timestamp),
    /// Nothing is left to do for the workflow.
    Never,
}

/// The state in which the sweep found an active job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    /// The job is open: a report may end it at any time.
    Open,
    /// The job waits for its runner past the expiry of its order, or for the customer's window, perhaps for days. It is handled
    /// again at this time.
    Waiting(Timestamp),
    Ended,
}

impl Found {
    fn of(job: &Job, now: Timestamp) -> Self {
        if job.state.is_terminal() {
            Self::Ended
        } else if job.is_left_to_wait() {
            Self::Waiting(now.plus_secs(WAITING_SECS))
        } else {
            Self::Open
        }
    }
}

impl Sweep {
    /// Handles every workflow that is due. A failure in one workflow does not stop the others.
    ///
    /// # Errors
    /// The store's errors when the list of due workflows cannot be read.
    pub async fn sweep(&self) -> Result<Swept, AppError> {
        let now = self.clock.now();
        if build_machine::is_rest_due(now) {
            self.adopt(now).await?;
        }
        let mut due = table::due_sweeps(&*self.store, now).await?;
        // Each sweep begins at another place, so that no workflow is left out twice in a row when a sweep has no time
        // for all.
        if !due.is_empty() {
            let first = usize::try_from(now.as_millis() / 60_000).unwrap_or(0).wrapping_mul(7919) % due.len();
            due.rotate_left(first);
        }
        let until = now.plus_secs(HANDLING_SECS);
        let handled = futures_util::stream::iter(due.iter().map(|next| self.handle_in_time(next, until)));
        let mut swept = handled
            .buffer_unordered(AT_ONCE)
            .fold(Swept::default(), |mut all, one| async move {
                all.add(one);
                all
            })
            .await;
        swept.due = u32::try_from(due.len()).unwrap_or(u32::MAX);
        if let Some(machine) = &self.build_machine
            && let Err(error) = build_machine::set_machine(&*self.store, &**machine, (swept, self.clock.now())).await
        {
            tracing::error!("Could not set the number of machines of the build runner: {error}");
        }
        Ok(swept)
    }

    /// Makes workflows due that an earlier version of Freehold started, because they have no row for their next sweep.
    async fn adopt(&self, now: Timestamp) -> Result<(), AppError> {
        let open: Vec<Stored<OpenWorkflow>> = table::load_all_stored(&*self.store, "open", "").await?;
        for entry in open.into_iter().filter(|entry| entry.value.next_sweep.is_none()) {
            let next = put(&NextSweep { workflow: entry.value.workflow.clone(), from: now }, Expect::Any)?;
            let marked = put(&OpenWorkflow { next_sweep: Some(now), ..entry.value }, Expect::Rev(entry.rev))?;
            // A conflict means that the workflow has ended meanwhile.
            let _ = self.store.commit(vec![next, marked]).await?;
        }
        Ok(())
    }

    /// Handles one workflow, unless the time is up.
    async fn handle_in_time(&self, due: &NextSweep, until: Timestamp) -> Swept {
        let mut swept = Swept::default();
        if self.clock.now() >= until {
            swept.postponed = 1;
            return swept;
        }
        let work = subject::of_workflow(&due.workflow);
        if let Err(error) = self.handle_and_move(due, &mut swept).instrument(work).await {
            let id = &due.workflow;
            tracing::warn!(workflow.id = %id, "Could not handle workflow `{id}`; the next sweep tries again: {error}");
            swept.failed = 1;
        }
        swept
    }

    /// Handles one workflow, and moves or removes the row of its next sweep.
    async fn handle_and_move(&self, due: &NextSweep, swept: &mut Swept) -> Result<(), AppError> {
        // The entry is loaded first. A call that makes the workflow due meanwhile changes the entry, so that the commit
        // below conflicts and the row of the next sweep is not moved.
        let open: Option<Stored<OpenWorkflow>> = load(&*self.store, &open_key(&due.workflow)).await?;
        let removed = Write::Delete { key: due.key() };
        let mut writes = Vec::new();
        match self.handle(&due.workflow, swept).await? {
            // The workflow is due already, so the next sweep finds it without a write.
            Next::Soon => return Ok(()),
            // If the workflow was continued meanwhile, the entry is newer than the handled workflow. Then the entry
            // stays.
            Next::Never => {
                writes.push(removed);
                writes.extend(open.map(|open| Write::DeleteAt { key: open.value.key(), rev: open.rev }));
            }
            Next::At(from) => {
                if let Some(open) = open {
                    writes.extend(moved_sweep(&due.workflow, due.from, from)?);
                    writes.push(put(&OpenWorkflow { next_sweep: Some(from), ..open.value }, Expect::Rev(open.rev))?);
                } else {
                    writes.push(removed);
                }
            }
        }
        // A conflict means that the workflow has ended or changed meanwhile; the next sweep handles it.
        let _ = self.store.commit(writes).await?;
        Ok(())
    }

    async fn handle(&self, id: &WorkflowId, swept: &mut Swept) -> Result<Next, AppError> {
        // The workflow of a forgotten install is gone.
        let Some(found) = table::find_workflow(&*self.store, id).await? else { return Ok(Next::Never) };
        let workflow = found.value;
        match &workflow.state {
            WorkflowState::Pending => self.handle_pending(&workflow, swept).await,
            WorkflowState::Running { .. } => self.handle_running(&workflow, swept).await,
            WorkflowState::Succeeded { .. } | WorkflowState::Failed { .. } | WorkflowState::Cancelled { .. } => {
                self.handle_ended(&workflow, swept).await
            }
        }
    }

    /// Handles a workflow that has ended. Its entry stays until its cancelled jobs have ended: by a report of their
    /// runner, or by expiry.
    async fn handle_ended(&self, workflow: &Workflow, swept: &mut Swept) -> Result<Next, AppError> {
        let mut waits = false;
        for id in workflow.active_jobs() {
            let job = table::job(&*self.store, id).await?.value;
            waits |= self.active_job(id, &job, self.clock.now(), swept).await? != Found::Ended;
        }
        if waits {
            return Ok(Next::Soon);
        }
        // The provisioning of a deleted install has ended while its state machine still waits for a runner. No other
        // ended workflow waits for a runner.
        let token = load::<TaskToken>(&*self.store, &token_key(&workflow.id, Phase::AwaitRunner)).await?;
        if let Some(token) = token {
            self.callbacks.succeed(&token.value.token, &json!({ "result": "deleted" })).await?;
        }
        // The notification of the end is sent before the row is removed: if this call is lost, the next sweep sends it
        // again.
        self.notifier.tell_end(workflow, self.clock.now()).await?;
        Ok(Next::Never)
    }

    async fn handle_pending(&self, workflow: &Workflow, swept: &mut Swept) -> Result<Next, AppError> {
        let now = self.clock.now();
        let age = now.since(workflow.began_at()) / 1000;
        let install = table::install(&*self.store, &workflow.install).await?.value;
        let waiting: Option<Stored<TaskToken>> =
            load(&*self.store, &token_key(&workflow.id, Phase::AwaitRunner)).await?;
        // Only the first execution waits for the runner.
        let waiting = waiting.filter(|_| workflow.attempt() == 0);
        let has_token = waiting.is_some();
        let is_ready = |token: &Stored<TaskToken>| install.runner.is_some() && !token.value.waits_for_inputs(&install);
        match waiting {
            Some(token) if is_ready(&token) || workflow.cancel_requested.is_some() => {
                self.callbacks.succeed(&token.value.token, &json!({ "result": "announced" })).await?;
            }
            Some(_) => return Ok(Next::At(now.plus_secs(WAITING_SECS))),
            // The execution may not exist, because the function may have crashed between the commit and the start.
            None if age >= 60 => {
                let (kind, attempt) = (workflow.machine(), workflow.attempt());
                self.machines.start(kind, &workflow.id, &workflow.install, attempt).await?;
            }
            None => {}
        }
        let is_cancelled = workflow.cancel_requested.is_some_and(|at| now.since(at) / 1000 > UNPLANNED_SECS);
        if is_cancelled || (!has_token && age > UNPLANNED_SECS) {
            let reason =
                "functions or the table did not answer for too long; nothing was changed, so start the workflow again";
            return self.finisher().finish(&workflow.id, workflow.attempt(), Some(reason)).await.map(|_| Next::Soon);
        }
        let Some(runner) = &install.runner else { return Ok(Next::Soon) };
        let ready = now.since(workflow.began_at().max(runner.since).max(install.sealed_at)) / 1000;
        if ready > STUCK_SECS {
            self.stuck(workflow, swept);
        }
        if ready > OUTLIVED_SECS {
            self.finisher()
                .finish(&workflow.id, workflow.attempt(), Some("the workflow did not end before its deadline"))
                .await?;
        }
        Ok(Next::Soon)
    }

    async fn handle_running(&self, workflow: &Workflow, swept: &mut Swept) -> Result<Next, AppError> {
        let now = self.clock.now();
        let (mut open, mut look_at) = (0, None);
        let mut last_end = workflow.began_at();
        for node in &workflow.nodes {
            let id = match &node.state {
                NodeState::Active { job } | NodeState::Succeeded { job } | NodeState::Failed { job, .. } => job,
                NodeState::Waiting
                | NodeState::Skipped { .. }
                | NodeState::SkippedByRequest { .. }
                | NodeState::Refused { .. } => continue,
            };
            let job = table::job(&*self.store, id).await?.value;
            if let NodeState::Active { .. } = node.state {
                match self.active_job(id, &job, now, swept).await? {
                    Found::Open => open += 1,
                    Found::Waiting(at) => look_at = Some(look_at.map_or(at, |before: Timestamp| before.min(at))),
                    Found::Ended => last_end = now,
                }
            } else if let Some(at) = job.history.last().map(|record| record.at) {
                last_end = last_end.max(at);
            }
        }
        let settled = table::workflow(&*self.store, &workflow.id).await?.value;
        if settled.is_settled() {
            resume_run(&*self.store, &*self.callbacks, &settled).await?;
            if now.since(last_end) / 1000 > SETTLED_SECS {
                self.stuck(workflow, swept);
                self.finisher().finish(&workflow.id, workflow.attempt(), None).await?;
            }
            return Ok(Next::Soon);
        }
        // A job may wait for its runner for days, and ends after that, so a workflow with an open job needs no deadline.
        if open > 0 || look_at.is_some() {
            self.heartbeat(workflow).await?;
            return Ok(look_at.filter(|_| open == 0).map_or(Next::Soon, Next::At));
        }
        if now.since(last_end) / 1000 > OUTLIVED_SECS {
            self.stuck(workflow, swept);
            self.finisher()
                .finish(&workflow.id, workflow.attempt(), Some("the workflow did not end before its deadline"))
                .await?;
        }
        Ok(Next::Soon)
    }

    /// Sends an order again, or decides about a job whose order has expired: the job is lost if its runner is
    /// connected, and waits if the runner is away.
    async fn active_job(&self, id: &JobId, job: &Job, now: Timestamp, swept: &mut Swept) -> Result<Found, AppError> {
        advance::dispatch_cancel(&*self.outbox, job).await?;
        if let (JobState::WaitingForWindow { .. }, None) = (&job.state, job.cancel_requested) {
            match change_windows::opens(&*self.store, job, now).await? {
                Opens::Now => return self.order(id, JobEvent::Window(WindowEvent::Opened), now, swept).await,
                Opens::LookAt(at) => {
                    let found = self.let_time_pass(id, job, now, swept).await?;
                    return Ok(if let Found::Waiting(_) = found { Found::Waiting(at) } else { found });
                }
            }
        }
        if let (JobState::WaitingForApproval { plan, .. }, None) = (&job.state, job.cancel_requested) {
            if job.is_approved() {
                return self.order(id, JobEvent::Approval(ApprovalEvent::Proceed), now, swept).await;
            }
            let at = plan.until.plus_secs(LOST_GRACE_SECS).min(now.plus_secs(LOOK_AT_LEAST_SECS));
            let found = self.let_time_pass(id, job, now, swept).await?;
            return Ok(if let Found::Waiting(_) = found { Found::Waiting(at) } else { found });
        }
        if let Some(end) = job.checks_end_at().filter(|_| job.cancel_requested.is_none()) {
            let found = self.look_at_checks(job, now).await?;
            return Ok(if let Found::Waiting(_) = found { Found::Waiting(end) } else { found });
        }
        let since = job.history.last().map_or(job.created_at, |record| record.at);
        let age = now.since(since) / 1000;
        if let JobState::Queued { dispatch } = &job.state
            && is_resend_due(age)
        {
            swept.resent += 1;
            self.outbox.dispatch(&[DispatchMessage::Order { job: id.clone(), dispatch: *dispatch }]).await?;
        }
        self.let_time_pass(id, job, now, swept).await
    }

    /// Applies the results of the required checks for which a job waits.
    async fn look_at_checks(&self, job: &Job, now: Timestamp) -> Result<Found, AppError> {
        match advance_checks(&*self.store, job, now).await? {
            Some(Advanced::Now { workflow: Some(workflow), started, .. }) => {
                advance::dispatch(&*self.outbox, &workflow, &started).await?;
                Ok(Found::Ended)
            }
            Some(Advanced::Now { job, .. } | Advanced::NotYet(job) | Advanced::Rejected(job, _)) => {
                Ok(Found::of(&job, now))
            }
            None => Ok(Found::Open),
        }
    }

    /// Orders a job whose window has opened, or whose plan is approved. If the dispatch is lost, a later sweep sends
    /// the order again, as for any queued job.
    async fn order(&self, id: &JobId, event: JobEvent, now: Timestamp, swept: &mut Swept) -> Result<Found, AppError> {
        let advanced = advance::job_event(&*self.store, id, &event, None, now).await?;
        let (Advanced::Now { job, .. } | Advanced::NotYet(job) | Advanced::Rejected(job, _)) = advanced;
        if let JobState::Queued { dispatch } = &job.state {
            swept.opened += 1;
            self.outbox.dispatch(&[DispatchMessage::Order { job: id.clone(), dispatch: *dispatch }]).await?;
        }
        Ok(Found::of(&job, now))
    }

    /// Applies the time that has passed to a job that has not ended: the job may end, be ordered again, or begin to
    /// wait.
    async fn let_time_pass(&self, id: &JobId, job: &Job, now: Timestamp, swept: &mut Swept) -> Result<Found, AppError> {
        let age = now.since(job.history.last().map_or(job.created_at, |record| record.at)) / 1000;
        let event = expiry(&*self.store, job, now).await?;
        match advance::job_event(&*self.store, id, &event, None, now).await? {
            Advanced::NotYet(job) => {
                // A cancelled build waits for the machine too: its order or its cancel is in the queue.
                let waits = age >= WAKE_FROM_SECS && job.install == table::reserved_install()?;
                swept.builds += u32::from(waits);
                Ok(Found::of(&job, now))
            }
            Advanced::Now { job, workflow: None, changed, .. } if !job.state.is_terminal() => {
                if let (true, JobState::Queued { dispatch }) = (changed, &job.state) {
                    swept.resent += 1;
                    self.outbox.dispatch(&[DispatchMessage::Order { job: id.clone(), dispatch: *dispatch }]).await?;
                } else {
                    swept.waiting += u32::from(changed);
                }
                Ok(Found::of(&job, now))
            }
            Advanced::Now { workflow, started, changed, .. } => {
                swept.lost += u32::from(changed);
                swept.lost_builds +=
                    u32::from(changed && started.is_empty() && job.install == table::reserved_install()?);
                if let Some(workflow) = workflow {
                    advance::dispatch(&*self.outbox, &workflow, &started).await?;
                }
                Ok(Found::Ended)
            }
            Advanced::Rejected(..) => Ok(Found::Ended),
        }
    }

    async fn heartbeat(&self, workflow: &Workflow) -> Result<(), AppError> {
        let token: Option<Stored<TaskToken>> = load(&*self.store, &token_key(&workflow.id, Phase::Run)).await?;
        if let Some(token) = token {
            self.callbacks.heartbeat(&token.value.token).await?;
        }
        Ok(())
    }

    fn stuck(&self, workflow: &Workflow, swept: &mut Swept) {
        swept.stuck += 1;
        tracing::error!(
            workflow.id = %workflow.id,
            "Workflow `{}` is stuck: it did not continue or end in time; look at its execution in Step Functions",
            workflow.id
        );
    }

    fn finisher(&self) -> FinishWorkflow {
        FinishWorkflow {
            store: Arc::clone(&self.store),
            outbox: Arc::clone(&self.outbox),
            clock: Arc::clone(&self.clock),
        }
    }
}

/// Returns whether this minute's sweep asks `dispatch-job` about an order that has waited for `age` seconds.
const fn is_resend_due(age: u64) -> bool {
    if age < RESEND_UNTIL_SECS {
        return age >= RESEND_FROM_SECS;
    }
    age % ASK_AGAIN_SECS < 60
}

//! Ends a workflow and stores its result, which comes from its nodes or from the error of its state machine.

use std::sync::Arc;

use freehold_domain::inputs::merged;
use freehold_domain::install::Install;
use freehold_domain::job::CancelAsked;
use freehold_domain::runbook::AfterDeploy;
use freehold_domain::workflow::{Request, TeardownParts, Workflow, WorkflowKind, WorkflowState};
use freehold_protocol::{RunId, WorkflowId};

use crate::AppError;
use crate::messages::DispatchMessage;
use crate::metrics::{self, About, Metric};
use crate::notification::task;
use crate::ports::{Clock, Expect, Outbox, Store, Write};
use crate::table::{self, Decided, Due, DueWhat, RanRecord, Stored, load, open_key, put};
use crate::workflow::advance;
use crate::workflow::cancel_job::CancelJob;

/// The end of a workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// The name of the workflow's final state.
    pub state: &'static str,
    /// If the workflow was a step of a runbook, the run that has to be advanced to its next step.
    pub run: Option<RunId>,
    /// Whether the workflow is a verified deploy that failed, and all its jobs have ended. Such a workflow has to be
    /// rolled back. While a job is open, the task that the end stored waits for it.
    pub rolls_back: bool,
}

/// The use case that finishes a workflow, with its ports.
#[derive(Clone)]
pub struct FinishWorkflow {
    pub store: Arc<dyn Store>,
    pub outbox: Arc<dyn Outbox>,
    pub clock: Arc<dyn Clock>,
}

impl FinishWorkflow {
    /// Ends the workflow, releases its install and returns the workflow's final state. Cancels jobs that
    /// are still active. If a deploy ended before its first job, the inputs that it changed are restored. A repeated
    /// call returns the same. The workflow of a forgotten install counts as cancelled. An execution of an earlier
    /// `attempt` changes nothing, because the workflow was continued since.
    ///
    /// # Errors
    /// The errors of the store and the queue.
    pub async fn finish(&self, id: &WorkflowId, attempt: u32, error: Option<&str>) -> Result<Finished, AppError> {
        let finished = table::change(&*self.store, ("workflow", id), || async {
            let Some(stored) = table::find_workflow(&*self.store, id).await? else { return Ok(Decided::Keep(None)) };
            if stored.value.attempt() != attempt {
                return Ok(Decided::Keep(Some((stored.value, None))));
            }
            let advance = stored.value.finish(error, self.clock.now());
            for job in advance.workflow.active_jobs() {
                let job = self.cancel_job().cancel_for(job, CancelAsked::default(), attempt).await?;
                advance::dispatch_cancel(&*self.outbox, &job).await?;
            }
            if !advance.changed {
                return Ok(Decided::Keep(Some((advance.workflow, None))));
            }
            let install = table::install(&*self.store, &advance.workflow.install).await?;
            let writes = self.writes(&advance.workflow, stored.rev, &install).await?;
            Ok(Decided::Commit(writes, Some((advance.workflow, Some(install.value)))))
        });
        let Some((workflow, released)) = finished.await? else {
            tracing::info!(workflow.id = %id, "Workflow `{id}` is gone: its install was forgotten");
            let state = WorkflowState::Cancelled { ended_at: self.clock.now() }.as_str();
            return Ok(Finished { state, run: None, rolls_back: false });
        };
        let word = workflow.state.as_str();
        // The install is only set in the call that ended the workflow.
        if let Some(install) = &released {
            count_end(&workflow, install);
            tracing::info!(workflow.id = %id, install.id = %workflow.install, "Workflow `{id}` {word}");
        }
        self.ask_for_contract(&workflow).await?;
        let rolls_back = workflow.to_roll_back().is_some() && workflow.active_jobs().next().is_none();
        Ok(Finished { state: word, run: workflow.run, rolls_back })
    }

    /// Returns the writes that end the workflow and release its install. `rev` is the revision at which the workflow
    /// was loaded.
    async fn writes(&self, workflow: &Workflow, rev: u64, install: &Stored<Install>) -> Result<Vec<Write>, AppError> {
        let deployed = match (&workflow.state, &workflow.request) {
            // A deploy of only some components does not change the version of the install, and neither does a deploy
            // that continued without a node.
            (WorkflowState::Succeeded { .. }, Request::Deploy { only, .. })
                if only.is_empty() && !workflow.has_skipped() =>
            {
                workflow.version.as_ref()
            }
            _ => None,
        };
        let mut released = install.value.release(&workflow.id, deployed);
        if let (WorkflowState::Succeeded { .. }, Request::Teardown { what: TeardownParts::All, .. }) =
            (&workflow.state, &workflow.request)
            && !workflow.has_skipped()
        {
            released = released.emptied();
        }
        // No one else can change the inputs while this workflow has locked the install.
        if let Some(former) = workflow.inputs_to_restore().filter(|_| install.value.live.as_ref() == Some(&workflow.id))
        {
            released.inputs = merged(&released.inputs, former);
        }
        let mut writes = vec![table::put_workflow(&workflow.without_former_inputs(), Expect::Rev(rev))?];
        // The entry in the list of open workflows stays while a job is active: `sweep` then finds the workflow, and
        // expires the job if no report ends it.
        if workflow.active_jobs().next().is_none() {
            writes.push(Write::Delete { key: open_key(&workflow.id) });
        }
        for node in &workflow.nodes {
            writes.extend(advance::open_part_write(&*self.store, workflow, node, self.clock.now()).await?);
        }
        writes.extend(task::of_unsettled_workflow(workflow, &install.value, self.clock.now())?);
        if let Some(run) = &workflow.run {
            let what = DueWhat::Runbook { run: run.clone() };
            writes.push(put(&Due::at(self.clock.now(), workflow.install.clone(), what), Expect::Any)?);
        }
        if workflow.to_roll_back().is_some() {
            let what = DueWhat::RollBack { workflow: workflow.id.clone() };
            writes.push(put(&Due::at(self.clock.now(), workflow.install.clone(), what), Expect::Any)?);
        }
        if deployed.is_some() {
            writes.extend(self.ran(&released, workflow.serial).await?);
            if !workflow.post_deploy_runbooks.is_empty() {
                let last_exclusive = released.last_exclusive;
                let what = DueWhat::AfterDeploy(AfterDeploy { workflow: workflow.id.clone(), at: 0, last_exclusive });
                writes.push(put(&Due::at(self.clock.now(), workflow.install.clone(), what), Expect::Any)?);
            }
        }
        if released != install.value {
            writes.push(put(&released, Expect::Rev(install.rev))?);
        }
        Ok(writes)
    }

    /// Returns the write of the inputs and toggles that run now, unless the row has them already. `serial` is that of the
    /// deploy of all components.
    async fn ran(&self, install: &Install, serial: u64) -> Result<Option<Write>, AppError> {
        let (id, inputs, toggles) = (install.id.clone(), install.inputs.clone(), install.toggles.clone());
        let ran = RanRecord { install: id, serial, inputs, toggles };
        let known: Option<Stored<RanRecord>> = load(&*self.store, &table::ran_key(&install.id)).await?;
        if known.as_ref().is_some_and(|known| known.value == ran) {
            return Ok(None);
        }
        put(&ran, Expect::Any).map(Some)
    }

    /// Asks `dispatch-job` to sign the version's contract after a build workflow succeeded.
    async fn ask_for_contract(&self, workflow: &Workflow) -> Result<(), AppError> {
        if let (WorkflowState::Succeeded { .. }, Request::Build { app, version: Some(version), .. }) =
            (&workflow.state, &workflow.request)
        {
            let message = DispatchMessage::Contract { app: app.clone(), version: version.clone() };
            self.outbox.dispatch(&[message]).await?;
        }
        Ok(())
    }

    fn cancel_job(&self) -> CancelJob {
        CancelJob { store: Arc::clone(&self.store), clock: Arc::clone(&self.clock) }
    }
}

/// Counts the end of a workflow, and measures how long a deploy that succeeded took since its request.
fn count_end(workflow: &Workflow, install: &Install) {
    let app = advance::build_app(workflow).or_else(|| install.app());
    let about = About { app, install: Some(&workflow.install), workflow: Some(&workflow.id), job: None };
    match &workflow.state {
        WorkflowState::Succeeded { ended_at } => {
            let mut values = vec![(Metric::WorkflowsSucceeded, 1)];
            if workflow.kind == WorkflowKind::DeployComponents {
                values.push((Metric::DeployDuration, ended_at.since(workflow.created_at)));
            }
            metrics::record(&values, about);
        }
        WorkflowState::Failed { .. } => metrics::count(Metric::WorkflowsFailed, about),
        WorkflowState::Cancelled { .. } => metrics::count(Metric::WorkflowsCancelled, about),
        WorkflowState::Pending | WorkflowState::Running { .. } => {}
    }
}

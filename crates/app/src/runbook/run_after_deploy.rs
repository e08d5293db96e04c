//! Starts the runbooks that an app version names for the time after a deploy, one after the other.
//!
//! The commit that ends the deploy stores a task for the first runbook, and the commit that ends a run with success
//! stores a task for the next runbook. The sweep performs the tasks. The id of a run is derived from the deploy and the
//! place of the runbook, so a repeated task starts nothing.

use freehold_domain::install::Install;
use freehold_domain::runbook::{AfterDeploy, Run};
use freehold_domain::workflow::{Workflow, WorkflowState};
use freehold_protocol::api::RunRunbookRequest;
use freehold_protocol::order::AskedBy;
use freehold_protocol::{RunId, RunbookName, Timestamp};

use crate::AppError;
use crate::new_workflow::Asked;
use crate::runbook::run_runbook::{RunRunbook, new_run};
use crate::table::{self, OpenRun, RanRecord, Stored, load, open_run_key};

/// The use case that starts the runs after a deploy.
#[derive(Clone)]
pub struct RunAfterDeploy {
    pub run_runbook: RunRunbook,
}

/// The result of a try to start a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Start {
    /// The run has begun, now or earlier, or nothing is to be run.
    Done,
    /// Another run or a workflow of the install has not ended. The deploy ended at `since`.
    Busy { since: Timestamp },
}

impl RunAfterDeploy {
    /// Starts the run of one of the runbooks that run after a deploy. Whoever asked for the deploy is the caller.
    /// Does nothing if the run began earlier, if the list has ended, or if another exclusive workflow than the deploy and
    /// the steps of its runs has begun since. A deploy that succeeded has runs of its own, and one that failed could not
    /// be resumed or rolled back after a step of the run.
    ///
    /// # Errors
    /// The errors of the ports. A step that the install does not permit is not an error: it ends the run.
    pub async fn start(&self, after: &AfterDeploy) -> Result<Start, AppError> {
        let advance = &self.run_runbook.advance;
        let (store, deploy) = (&*advance.store, &after.workflow);
        let Some(found) = table::find_workflow(store, deploy).await? else { return Ok(Start::Done) };
        let workflow = found.value;
        let runbook = usize::try_from(after.at).ok().and_then(|at| workflow.post_deploy_runbooks.get(at));
        let (WorkflowState::Succeeded { ended_at: since }, Some(runbook)) = (&workflow.state, runbook) else {
            return Ok(Start::Done);
        };
        let id = RunId::derive(&workflow.install, &after.cause());
        if table::find_run(store, &id).await?.is_some() {
            return Ok(Start::Done);
        }
        let Some(install) = self.find_install(&workflow, after.last_exclusive).await? else { return Ok(Start::Done) };
        if install.value.live.is_some() || load::<OpenRun>(store, &open_run_key(&workflow.install)).await?.is_some() {
            return Ok(Start::Busy { since: *since });
        }
        let Some(run) = self.new_run(&install.value, &workflow, (runbook, after)).await? else {
            return Ok(Start::Done);
        };
        self.run_runbook.begin(&run, &install).await?;
        tracing::info!(
            run.id = %id, install.id = %run.install,
            "Started run `{id}` of runbook `{runbook}` in `{}` after deploy `{deploy}`", run.install
        );
        advance.try_advance(&id).await?;
        Ok(Start::Done)
    }

    /// Returns the run of a runbook after `deploy`, which is not stored yet; `None` for a runbook that cannot be run. A
    /// sync refuses a list with such a runbook.
    async fn new_run(
        &self,
        install: &Install,
        deploy: &Workflow,
        (runbook, after): (&RunbookName, &AfterDeploy),
    ) -> Result<Option<Run>, AppError> {
        let advance = &self.run_runbook.advance;
        let version = advance.versions.load(install.require_app()?, deploy.version.as_ref()).await?;
        let by = deploy.asker().cloned().unwrap_or(AskedBy::Sweep);
        let cause = after.cause();
        let asked = Asked { by: &by, cause: &cause, step: None };
        // The run waits for the change windows, even if the deploy did not: it may begin hours later, and whoever resumed
        // the deploy has not asked for `now`.
        let request = RunRunbookRequest::default();
        match new_run((install, &version), runbook, &request, (asked, advance.clock.now())) {
            Ok(run) => Ok(Some(Run { after: Some(after.clone()), ..run })),
            Err(error) => {
                let (id, why) = (&deploy.id, error.refusal()?);
                tracing::error!(workflow.id = %id, "Could not run runbook `{runbook}` after deploy `{id}`: {why}");
                Ok(None)
            }
        }
    }

    /// Returns the install if `deploy` is still its last successful deploy of all components, and if the exclusive workflow
    /// with the serial `last_exclusive` is still its last one. Both are checked, because the resume of a run accepts all
    /// workflows that have ended before it.
    async fn find_install(&self, deploy: &Workflow, last_exclusive: u64) -> Result<Option<Stored<Install>>, AppError> {
        let store = &*self.run_runbook.advance.store;
        let Some(install) = load::<Install>(store, &table::install_key(&deploy.install)).await? else {
            return Ok(None);
        };
        let ran: Option<Stored<RanRecord>> = load(store, &table::ran_key(&deploy.install)).await?;
        let is_last = ran.is_some_and(|ran| ran.value.serial == deploy.serial);
        let has_version = install.value.version().is_some_and(|version| deploy.version.as_ref() == Some(version));
        let is_unchanged = is_last && has_version && install.value.last_exclusive == last_exclusive;
        let is_kept = install.value.forgetting.is_none();
        if is_kept && !is_unchanged {
            let id = &deploy.id;
            tracing::info!(workflow.id = %id, "No runbook runs after deploy `{id}` any more: the install has changed");
        }
        Ok(Some(install).filter(|_| is_kept && is_unchanged))
    }
}

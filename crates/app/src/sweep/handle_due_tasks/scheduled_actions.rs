//! Runs actions by their cron schedules: starts or skips the run that is due, and stores the task of the next run.

use std::sync::Arc;

use freehold_domain::install::Install;
use freehold_domain::workflow::RunTrigger;
use freehold_protocol::api::RunActionRequest;
use freehold_protocol::app_version::Action;
use freehold_protocol::order::AskedBy;
use freehold_protocol::{ActionName, InstallId, Timestamp, WorkflowId};

use super::{HandleDueTasks, Handled, LATE_SECS};
use crate::AppError;
use crate::new_workflow::Asked;
use crate::ports::{Expect, Write};
use crate::table::{self, Due, DueWhat, SkippedRun, Stored, load, put};
use crate::workflow::run_action::RunAction;
use crate::workflow::schedules::{next_run, schedules};

impl HandleDueTasks {
    /// Starts or skips a run, and returns the next run of the action, if there is one.
    pub(super) async fn run(
        &self,
        row: &Stored<Due>,
        install: &Install,
        name: &ActionName,
        now: Timestamp,
        counts: &mut Handled,
    ) -> Result<Option<Due>, AppError> {
        let (last, due) = (last_run(&row.value.what), row.value.time());
        let version = self.load_deployed_version(Some(install)).await?;
        let action = version.as_ref().and_then(|version| version.action(name));
        let Some((action, next)) = action.and_then(|action| Some((action, next_run(action, now)?))) else {
            self.note(&install.id, name, due, None).await?;
            return Ok(None);
        };
        let skipped = self.reason_to_skip(action, last, due, now).await?;
        let is_asked = skipped.is_none();
        let started = match skipped {
            Some(reason) => Err(reason),
            None => {
                let cause = format!("cron {name} {}", row.value.minute);
                let asked = Asked { by: &AskedBy::Schedule, cause: &cause, step: None };
                self.start_run(&install.id, name, (RunTrigger::Schedule, asked)).await?
            }
        };
        let last = match started {
            Ok(workflow) => {
                counts.started += 1;
                self.note(&install.id, name, due, None).await?;
                Some(workflow)
            }
            Err(reason) if reason.is_empty() => last.cloned(),
            Err(reason) => {
                counts.skipped += 1;
                tracing::warn!(install.id = %install.id, "Skipped a run of action `{name}` in `{}`: {reason}", install.id);
                if is_asked {
                    self.note(&install.id, name, due, Some(reason)).await?;
                }
                last.cloned()
            }
        };
        Ok(Some(Due::at(next, install.id.clone(), DueWhat::Run { action: name.clone(), last })))
    }

    /// Returns the reason to skip a run that was due at `due`. The reason is empty when the schedule has changed since
    /// the row was written.
    async fn reason_to_skip(
        &self,
        action: &Action,
        last: Option<&WorkflowId>,
        due: Timestamp,
        now: Timestamp,
    ) -> Result<Option<String>, AppError> {
        if !schedules(action).any(|schedule| schedule.is_due(due)) {
            return Ok(Some(String::new()));
        }
        if now.since(due) / 1000 > LATE_SECS {
            return Ok(Some("it was due more than an hour ago".to_owned()));
        }
        let is_open = self.is_open(last).await?;
        Ok(is_open.then(|| "the previous run has not ended".to_owned()))
    }

    /// Stores the reason why the install refused a run that was due at `due`, for `freehold install show`; after a run
    /// that was not refused, removes its reason or that of an earlier run. The reason of a later run stays, because the
    /// runs by cron and those by the switches of roles are handled in any order. Whether a reason is stored is read from
    /// the row of the reason, and is not noted in the row of the due task: an action can have several due tasks, and
    /// this call can end before the next due task is written.
    pub(super) async fn note(
        &self,
        install: &InstallId,
        action: &ActionName,
        due: Timestamp,
        refusal: Option<String>,
    ) -> Result<(), AppError> {
        let key = table::skipped_key(install, action);
        let write = match refusal {
            Some(reason) => {
                put(&SkippedRun { install: install.clone(), action: action.clone(), due, reason }, Expect::Any)?
            }
            None => {
                let stored: Option<Stored<SkippedRun>> = load(&*self.store, &key).await?;
                if stored.is_none_or(|stored| stored.value.due > due) {
                    return Ok(());
                }
                Write::Delete { key }
            }
        };
        let _ = self.store.commit(vec![write]).await?;
        Ok(())
    }

    /// Starts a run. Returns the reason if the install refuses the run.
    pub(super) async fn start_run(
        &self,
        install: &InstallId,
        action: &ActionName,
        asked: (RunTrigger, Asked<'_>),
    ) -> Result<Result<WorkflowId, String>, AppError> {
        let run = RunAction {
            store: Arc::clone(&self.store),
            versions: self.versions.clone(),
            machines: Arc::clone(&self.machines),
            clock: Arc::clone(&self.clock),
        };
        match run.run(install, action, &RunActionRequest::default(), asked).await {
            Ok(started) => Ok(Ok(started.workflow)),
            Err(error) => error.refusal().map(Err),
        }
    }

    pub(super) async fn is_open(&self, workflow: Option<&WorkflowId>) -> Result<bool, AppError> {
        let Some(workflow) = workflow else { return Ok(false) };
        let found = table::find_workflow(&*self.store, workflow).await?;
        Ok(found.is_some_and(|found| !found.value.state.is_terminal()))
    }
}

/// Returns the last run of the action whose task is due.
const fn last_run(task: &DueWhat) -> Option<&WorkflowId> {
    match task {
        DueWhat::Run { last, .. } => last.as_ref(),
        DueWhat::Schedules { .. }
        | DueWhat::Drift
        | DueWhat::Health
        | DueWhat::Runbook { .. }
        | DueWhat::AfterDeploy(_)
        | DueWhat::RollBack { .. }
        | DueWhat::Channel { .. }
        | DueWhat::Follow { .. }
        | DueWhat::Roles { .. }
        | DueWhat::RunnerAway
        | DueWhat::Notify { .. } => None,
    }
}

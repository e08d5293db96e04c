//! Resumes a run of a runbook at its first step that has not succeeded.

use freehold_domain::runbook::{Resumed, Run, RunState};
use freehold_protocol::RunId;
use freehold_protocol::api::ReasonRequest;

use crate::ports::{Committed, Expect};
use crate::runbook::advance_run::AdvanceRun;
use crate::runbook::run_runbook::busy;
use crate::table::{self, Due, DueWhat, OpenRun, open_run_key, put};
use crate::workflow::start_workflow::Asked;
use crate::{AppError, Kind};

/// The use case that resumes a run.
#[derive(Clone)]
pub struct ResumeRun {
    pub advance: AdvanceRun,
}

impl ResumeRun {
    /// Resumes a run that failed or was cancelled. Steps that succeeded do not run again. A repeated call with the same cause
    /// resumes the run once.
    ///
    /// # Errors
    /// NotFound, Conflict for a run that has not ended or has succeeded, or while the install has another run, Invalid for a
    /// faulty reason, or the store's errors.
    pub async fn resume(&self, id: &RunId, because: &ReasonRequest, asked: Asked<'_>) -> Result<Run, AppError> {
        let reason = crate::reason::reason(because)?;
        let stored = table::run(&*self.advance.store, id).await?;
        if stored.value.was_resumed_by(asked.cause) {
            return self.advance.advanced(id).await;
        }
        let now = self.advance.clock.now();
        let (by, cause) = (asked.by.clone(), asked.cause.to_owned());
        let next =
            self.noticed(&stored.value).await?.resume(Resumed { at: now, by, reason, cause, after: String::new() })?;
        let install = &next.install;
        let mut writes = vec![put(&next, Expect::Rev(stored.rev))?];
        if next.state == RunState::Running {
            writes.push(put(&OpenRun { install: install.clone(), run: id.clone() }, Expect::Absent)?);
            writes.push(put(&Due::at(now, install.clone(), DueWhat::Runbook { run: id.clone() }), Expect::Any)?);
        }
        match self.advance.store.commit(writes).await? {
            Committed::Done => {}
            Committed::Conflict(key) if key == open_run_key(install) => {
                return Err(busy(&*self.advance.store, install).await?);
            }
            Committed::Conflict(_) => {
                let message = format!("run `{id}` was changed meanwhile; try again");
                return Err(AppError::new(Kind::Transient, message));
            }
        }
        tracing::info!(run.id = %id, install.id = %install, "Resumed run `{id}`");
        self.advance.advanced(id).await
    }

    /// Returns the run with what became of the workflow that stopped it. Somebody may have continued that workflow.
    async fn noticed(&self, run: &Run) -> Result<Run, AppError> {
        let Some(workflow) = run.stopped_by() else { return Ok(run.clone()) };
        let Some(found) = table::find_workflow(&*self.advance.store, workflow).await? else { return Ok(run.clone()) };
        if !found.value.state.is_terminal() {
            let message = format!("`{workflow}`, the workflow of its step, runs again");
            return Err(AppError::conflict(format!(
                "{message}; wait for it with `freehold workflow watch {workflow}`"
            )));
        }
        Ok(run.noticing(workflow, &found.value.state))
    }
}

//! Resumes a run of a runbook at its first step that has not succeeded.

use freehold_domain::runbook::{Resumed, Run, RunState};
use freehold_protocol::RunId;
use freehold_protocol::api::ReasonRequest;

use crate::AppError;
use crate::new_workflow::Asked;
use crate::ports::Expect;
use crate::runbook::advance_run::AdvanceRun;
use crate::runbook::run_runbook::busy;
use crate::table::{self, Decided, Due, DueWhat, OpenRun, next_run_write, open_run_key, put};

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
        let store = &*self.advance.store;
        let is_resumed = table::change(store, ("run", id), || async {
            let stored = table::run(store, id).await?;
            if stored.value.was_resumed_by(asked.cause) {
                return Ok(Decided::Keep(false));
            }
            let (at, by, cause) = (self.advance.clock.now(), asked.by.clone(), asked.cause.to_owned());
            let resumed = Resumed { at, by, reason: reason.clone(), cause, after: String::new() };
            let next = self.accept_changes(self.notice_end(&stored.value).await?.resume(resumed)?).await?;
            let install = &next.install;
            let mut writes = vec![put(&next, Expect::Rev(stored.rev))?];
            writes.extend(next_run_write(&next)?);
            if next.state == RunState::Running {
                if table::load::<OpenRun>(store, &open_run_key(install)).await?.is_some() {
                    return Err(busy(store, install).await?);
                }
                writes.push(put(&OpenRun { install: install.clone(), run: id.clone() }, Expect::Absent)?);
                writes.push(put(&Due::at(at, install.clone(), DueWhat::Runbook { run: id.clone() }), Expect::Any)?);
            }
            Ok(Decided::Commit(writes, true))
        });
        if is_resumed.await? {
            tracing::info!(run.id = %id, "Resumed run `{id}`");
        }
        self.advance.try_advance(id).await
    }

    /// Returns the run that builds on the exclusive workflows that have ended in the install since it stopped: whoever
    /// resumes the run has seen their results. While such a workflow holds the install, its result is not known.
    async fn accept_changes(&self, run: Run) -> Result<Run, AppError> {
        if run.after.is_none() {
            return Ok(run);
        }
        let install = table::install(&*self.advance.store, &run.install).await?.value;
        Ok(if install.live.is_none() { run.building_on(install.last_exclusive) } else { run })
    }

    /// Reads the result of the workflow at which the run stopped, and returns the run with this result. Somebody may
    /// have continued the workflow since.
    async fn notice_end(&self, run: &Run) -> Result<Run, AppError> {
        let Some(workflow) = run.stopped_by() else { return Ok(run.clone()) };
        let Some(found) = table::find_workflow(&*self.advance.store, workflow).await? else { return Ok(run.clone()) };
        if !found.value.state.is_terminal() {
            return Err(AppError::conflict(format!(
                "run `{}` stopped at workflow `{workflow}`, which somebody has continued; wait for it with \
                 `freehold workflow watch {workflow}`",
                run.id
            )));
        }
        Ok(run.noticing(workflow, &found.value.state))
    }
}

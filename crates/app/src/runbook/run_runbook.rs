//! Starts a run of a runbook.

use std::collections::BTreeMap;

use freehold_domain::install::Install;
use freehold_domain::runbook::{MAX_RUN_BYTES, Run, RunState, RunbookError, Step, check_steps, inputs_of_run};
use freehold_domain::suggestion::Known;
use freehold_protocol::api::RunRunbookRequest;
use freehold_protocol::app_version::StepKind;
use freehold_protocol::{AppName, Digest, InstallId, RunId, RunbookName, Timestamp, WorkflowId};

use crate::AppError;
use crate::app_version::install_release::followed;
use crate::app_version::versions::Version;
use crate::new_workflow::{Asked, digest_of, require_runner, used_before};
use crate::ports::{Committed, Expect, Store};
use crate::runbook::advance_run::AdvanceRun;
use crate::table::{self, Due, DueWhat, OpenRun, Record as _, RunEntry, Stored, open_run_key, put};

/// The use case that starts a run of a runbook.
#[derive(Clone)]
pub struct RunRunbook {
    pub advance: AdvanceRun,
}

impl RunRunbook {
    /// Starts a run, and the workflow of its first step. The runbook comes from the version that was last deployed
    /// completely, or else from the latest version. A repeated call with the same cause returns the same run.
    ///
    /// # Errors
    /// NotFound for a runbook that the version lacks, Invalid for wrong inputs, Conflict while the install has no
    /// runner or has another run, or the store's errors.
    pub async fn run(
        &self,
        install: &InstallId,
        runbook: &RunbookName,
        request: &RunRunbookRequest,
        asked: Asked<'_>,
    ) -> Result<Run, AppError> {
        let id = RunId::derive(install, asked.cause);
        let digest = digest_of(&(runbook, request))?;
        if self.came_before(&id, &digest).await? {
            return self.advance.try_advance(&id).await;
        }
        let stored = table::install(&*self.advance.store, install).await?;
        let app = stored.value.require_app()?.clone();
        let version = self.version_of(&stored.value, &app).await?;
        let now = self.advance.clock.now();
        let run = new_run((&stored.value, &version), runbook, request, (asked, now))?;
        require_runner(&stored.value)?;
        if table::load::<OpenRun>(&*self.advance.store, &open_run_key(install)).await?.is_some() {
            return Err(busy(&*self.advance.store, install).await?);
        }
        let is_exclusive = !matches!(run.steps.first().map(|step| &step.step.does), Some(StepKind::Action { .. }));
        let _ = stored.value.begin(&WorkflowId::derive(install.as_str(), &run.cause(0)), is_exclusive)?;
        self.begin(&run, &stored).await?;
        tracing::info!(run.id = %id, install.id = %install, "Started run `{id}` of runbook `{runbook}` in `{install}`");
        self.advance.try_advance(&id).await
    }

    /// Loads the version whose runbooks the install runs.
    async fn version_of(&self, install: &Install, app: &AppName) -> Result<Version, AppError> {
        match install.version() {
            Some(version) => self.advance.versions.load(app, Some(version)).await,
            None => Ok(followed(&self.advance.versions, app, &install.follows).await?.version),
        }
    }

    /// Commits the rows of the run. The unchanged install is written too: the commit fails if the install was forgotten
    /// meanwhile.
    pub(super) async fn begin(&self, run: &Run, of: &Stored<Install>) -> Result<(), AppError> {
        let (id, install, created_at) = (run.id.clone(), run.install.clone(), run.created_at);
        let entry = RunEntry { run: id.clone(), install: install.clone(), created_at };
        let due = Due::at(created_at, install.clone(), DueWhat::Runbook { run: id.clone() });
        let writes = vec![
            put(run, Expect::Absent)?,
            put(&of.value, Expect::Rev(of.rev))?,
            put(&entry, Expect::Any)?,
            put(&OpenRun { install: install.clone(), run: id.clone() }, Expect::Absent)?,
            put(&due, Expect::Any)?,
        ];
        match self.advance.store.commit(writes).await? {
            Committed::Done => Ok(()),
            Committed::Conflict(key) if key == open_run_key(&install) => {
                Err(busy(&*self.advance.store, &install).await?)
            }
            Committed::Conflict(key) if key == of.value.key() => Err(changed(&install)),
            // A repeated request was faster, or another request with the same idempotency key.
            Committed::Conflict(_) => self.came_before(&id, &run.request_digest).await.map(|_| ()),
        }
    }

    /// Returns whether an earlier request has started the run.
    async fn came_before(&self, id: &RunId, digest: &Digest) -> Result<bool, AppError> {
        match table::find_run(&*self.advance.store, id).await? {
            Some(known) if known.value.request_digest != *digest => Err(used_before()),
            known => Ok(known.is_some()),
        }
    }
}

/// Returns a run of a runbook of `version`, which is not stored yet.
///
/// # Errors
/// NotFound for a runbook that the version lacks, or Invalid for a runbook that cannot be run, or for wrong inputs.
pub(super) fn new_run(
    (install, version): (&Install, &Version),
    runbook: &RunbookName,
    request: &RunRunbookRequest,
    (asked, now): (Asked<'_>, Timestamp),
) -> Result<Run, AppError> {
    let app = install.require_app()?.clone();
    let Some(found) = version.document.runbooks.iter().find(|known| known.name == *runbook) else {
        let names = version.document.runbooks.iter().map(|known| known.name.as_str());
        let known = Known::instead_of(runbook.as_str(), names);
        return Err(RunbookError::Unknown { app, runbook: runbook.clone(), number: version.number, known }.into());
    };
    check_steps(found)?;
    let inputs = inputs_of_run(found, &version.document.actions, &request.inputs)?;
    let steps = found.steps.iter().cloned().map(Step::waiting);
    let run = Run {
        id: RunId::derive(&install.id, asked.cause),
        install: install.id.clone(),
        app,
        runbook: runbook.clone(),
        version: version.version.clone(),
        number: version.number,
        inputs,
        request_digest: digest_of(&(runbook, request))?,
        asked_by: asked.by.clone(),
        after: None,
        now: request.now,
        created_at: now,
        steps: steps.collect(),
        resumed: Vec::new(),
        cancelled_by: None,
        state: RunState::Running,
        later_fields: BTreeMap::new(),
    };
    let bytes = serde_json::to_vec(&run)?.len();
    if bytes > MAX_RUN_BYTES {
        return Err(RunbookError::LargeRun { runbook: runbook.clone(), bytes }.into());
    }
    Ok(run)
}

/// Returns the error for an install that is busy with another run.
pub(super) async fn busy(store: &dyn Store, install: &InstallId) -> Result<AppError, AppError> {
    let open: Option<Stored<OpenRun>> = table::load(store, &open_run_key(install)).await?;
    let Some(OpenRun { run, .. }) = open.map(|open| open.value) else {
        return Ok(changed(install));
    };
    Ok(AppError::conflict(format!(
        "install `{install}` is busy with run `{run}`; wait for it, or cancel it with `freehold runbook cancel {run}`"
    )))
}

fn changed(install: &InstallId) -> AppError {
    AppError::new(crate::Kind::Transient, format!("install `{install}` was changed meanwhile; try again"))
}

//! Shows and lists runbooks and their runs.

use freehold_domain::install::Install;
use freehold_domain::runbook::{Run, Step, phrase};
use freehold_protocol::api::{InstallRunbooks, Page, ResumedView, RunStepView, RunView, RunbookView};
use freehold_protocol::{InstallId, RunId};

use super::{List, Rows, Space, fitting, rows};
use crate::AppError;
use crate::app_version::versions::Versions;
use crate::ports::Store;
use crate::table::{self, RunEntry, install_pk};

/// Returns the runbooks that can be run in an install.
///
/// # Errors
/// Invalid for an install without an app, the errors of [`Versions::load`], or the store's errors.
pub async fn list_runbooks(versions: &Versions, install: &Install) -> Result<InstallRunbooks, AppError> {
    let app = install.require_app()?;
    let version = versions.load(app, install.version()).await?;
    let runbooks = version.document.runbooks.iter().map(|runbook| RunbookView {
        runbook: runbook.name.clone(),
        description: runbook.description.clone(),
        labels: runbook.labels.clone(),
        inputs: runbook.inputs.clone(),
        steps: runbook.steps.iter().map(phrase).collect(),
    });
    let runbooks = runbooks.collect();
    Ok(InstallRunbooks { version: version.version, number: version.number, runbooks })
}

/// Returns one page of an install's runs, newest first, without steps.
///
/// # Errors
/// The store's errors.
pub async fn list_runs(store: &dyn Store, install: &InstallId, after: Option<&str>) -> Result<Page<RunView>, AppError> {
    let Rows { items, next } = rows::<RunEntry>(store, &install_pk(install), List::Runs, after).await?;
    let mut views = Vec::with_capacity(items.len());
    for (place, entry) in items {
        // The runs of a forgotten install are removed before its list.
        let Some(found) = table::find_run(store, &entry.run).await? else { continue };
        let mut shown = run_view(&found.value);
        shown.steps.clear();
        views.push((place, shown));
    }
    fitting(views, next, Space::default())
}

/// Returns a run with its steps.
///
/// # Errors
/// NotFound, or the store's errors.
pub async fn show_run(store: &dyn Store, id: &RunId) -> Result<RunView, AppError> {
    Ok(run_view(&table::run(store, id).await?.value))
}

/// Returns the API's view of a run.
pub fn run_view(run: &Run) -> RunView {
    let resumed = run.resumed.iter().map(|one| ResumedView {
        at: one.at,
        by: one.by.clone(),
        reason: one.reason.clone(),
        after: one.after.clone(),
    });
    RunView {
        run: run.id.clone(),
        install: run.install.clone(),
        runbook: run.runbook.clone(),
        version: run.version.clone(),
        number: run.number,
        state: run.state.as_str().to_owned(),
        reason: run.failure(),
        created_at: run.created_at,
        ended_at: run.state.ended_at(),
        asked_by: run.asked_by.clone(),
        after_deploy: run.after.as_ref().map(|after| after.workflow.clone()),
        inputs: run.inputs.clone(),
        cancelled_by: run.cancelled_by.clone(),
        resumed: resumed.collect(),
        steps: run.steps.iter().map(step_view).collect(),
    }
}

fn step_view(step: &Step) -> RunStepView {
    RunStepView {
        name: step.step.name.clone(),
        does: phrase(&step.step),
        state: step.state.as_str().to_owned(),
        workflow: step.state.workflow().cloned(),
        reason: step.state.reason().to_owned(),
        tries: step.tries,
    }
}

//! The rows of runs of runbooks.

use freehold_domain::absence::Absence;
use freehold_domain::runbook::{AfterDeploy, Run, RunState};
use freehold_protocol::{InstallId, RunId, Timestamp};
use serde::{Deserialize, Serialize};

use super::due_tasks::{Due, DueWhat};
use super::install::install_pk;
use super::record::{Record, Stored, key, load, put};
use crate::AppError;
use crate::ports::{Expect, Key, Store, Write};

/// The beginning of the sort keys of an install's runs.
pub const RUNS_PREFIX: &str = "run#";

/// The entry of a run in its install's list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEntry {
    pub run: RunId,
    pub install: InstallId,
    pub created_at: Timestamp,
}

/// The run that an install is busy with. An install has one run at a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenRun {
    pub install: InstallId,
    pub run: RunId,
}

/// Returns the key of a run's row.
pub fn run_key(run: &RunId) -> Key {
    key(format!("run#{run}"), "state")
}

/// Returns the key of the row of the run that an install is busy with.
pub fn open_run_key(install: &InstallId) -> Key {
    key(install_pk(install), "run")
}

impl Record for Run {
    fn key(&self) -> Key {
        run_key(&self.id)
    }
}

impl Record for RunEntry {
    fn key(&self) -> Key {
        // With this key, a forward query returns the newest run first.
        let newest_first = u64::MAX - self.created_at.as_millis();
        key(install_pk(&self.install), format!("{RUNS_PREFIX}{newest_first:020}#{}", self.run))
    }
}

impl Record for OpenRun {
    fn key(&self) -> Key {
        open_run_key(&self.install)
    }
}

/// Returns the writes of a changed run. The end of the run frees its install for the next one, and a success of a run after
/// a deploy stores the task for the next one.
///
/// # Errors
/// Internal when the run cannot be written as JSON.
pub fn run_writes(run: &Run, expect: Expect) -> Result<Vec<Write>, AppError> {
    let mut writes = vec![put(run, expect)?];
    if run.state != RunState::Running {
        writes.push(Write::Delete { key: open_run_key(&run.install) });
    }
    writes.extend(next_run_write(run)?);
    Ok(writes)
}

/// Returns the write of the task that starts the next runbook of the same deploy; `None` unless the run began after a
/// deploy and has succeeded. The task does nothing if the list has ended.
///
/// # Errors
/// Internal when the task cannot be written as JSON.
pub fn next_run_write(run: &Run) -> Result<Option<Write>, AppError> {
    let (RunState::Succeeded { ended_at }, Some(after)) = (&run.state, &run.after) else { return Ok(None) };
    let what = DueWhat::AfterDeploy(AfterDeploy { at: after.at.saturating_add(1), ..after.clone() });
    put(&Due::at(*ended_at, run.install.clone(), what), Expect::Any).map(Some)
}

/// Loads a run, if it exists.
///
/// # Errors
/// The store's errors.
pub async fn find_run(store: &dyn Store, id: &RunId) -> Result<Option<Stored<Run>>, AppError> {
    load(store, &run_key(id)).await
}

/// Loads a run.
///
/// # Errors
/// NotFound, or the store's errors.
pub async fn run(store: &dyn Store, id: &RunId) -> Result<Stored<Run>, AppError> {
    find_run(store, id).await?.ok_or_else(|| Absence::Run(id.clone()).into())
}

//! Removes the rows of an install, except the rows that mark it as being forgotten. The entry of a workflow is removed
//! last of all its rows, so that the next run finds the workflow after a removal that was stopped.

use freehold_domain::workflow::{Use, Workflow};
use freehold_protocol::{InstallId, JobId, WorkflowId};

use crate::AppError;
use crate::idempotency::REQUESTS_PREFIX;
use crate::ports::{Key, Row, Store, Write};
use crate::table::evidence::{artifact_pk, uses_prefix};
use crate::table::{
    self, Due, INSTALL_SENDERS_PREFIX, InstallSender, OpenWorkflow, PAGE, QueueTurn, RUNS_PREFIX, Record as _,
    RunEntry, Stored, WorkflowEntry, grants_pk, install_key, install_pk, job_pk, load, load_all, open_key, parse,
    run_key, token_pk, workflow_pk,
};

/// The maximum number of workflows that one run removes; the next run continues.
const WORKFLOWS_PER_RUN: u32 = 50;
/// The maximum number of rows that one commit removes (DynamoDB API reference, `TransactWriteItems`).
const COMMIT_ROWS: usize = 100;

/// Removes workflows of the install with everything that belongs to them. Returns whether all of them are gone.
///
/// # Errors
/// The store's errors.
pub(in crate::install) async fn remove_workflows(store: &dyn Store, install: &InstallId) -> Result<bool, AppError> {
    let entries = store.query(&install_pk(install), "workflow#", None, WORKFLOWS_PER_RUN).await?;
    for row in &entries {
        let Stored { value: WorkflowEntry { workflow, .. }, .. } = parse(row)?;
        if let Some(found) = table::find_workflow(store, &workflow).await? {
            remove_jobs(store, install, &found.value).await?;
        }
        remove_workflow(store, &workflow, &row.key).await?;
    }
    Ok(entries.len() < WORKFLOWS_PER_RUN as usize)
}

/// Removes the due tasks of the install, its queue turn, senders and runs with their idempotency keys, and then the
/// rows of its partition. The row of the install itself stays.
///
/// # Errors
/// The store's errors.
pub(in crate::install) async fn remove_remaining(store: &dyn Store, install: &InstallId) -> Result<(), AppError> {
    let due: Vec<Due> = load_all(store, "due", "").await?;
    let mut keys: Vec<Key> = due.iter().filter(|due| due.install == *install).map(Due::key).collect();
    keys.push(QueueTurn { install: install.clone() }.key());
    let senders: Vec<InstallSender> = load_all(store, &install_pk(install), INSTALL_SENDERS_PREFIX).await?;
    keys.extend(senders.iter().map(|sender| sender.0.key()));
    let runs: Vec<RunEntry> = load_all(store, &install_pk(install), RUNS_PREFIX).await?;
    for RunEntry { run, .. } in &runs {
        let key = run_key(run);
        remove_partition(store, &key.pk, REQUESTS_PREFIX, |_| true).await?;
        keys.push(key);
    }
    remove(store, keys).await?;
    let kept = install_key(install);
    remove_partition(store, &kept.pk, "", |row| row.key != kept).await
}

/// Removes the jobs of a workflow: their orders, logs, refusals and grants, and their uses of artifacts.
async fn remove_jobs(store: &dyn Store, install: &InstallId, workflow: &Workflow) -> Result<(), AppError> {
    for node in &workflow.nodes {
        for (_, Use { artifact, .. }) in node.target.uses() {
            remove_partition(store, &artifact_pk(artifact), &uses_prefix(install), |_| true).await?;
        }
        let job = JobId::derive(&workflow.id, &node.name);
        remove_partition(store, &grants_pk(&job), "", |_| true).await?;
        remove_partition(store, &job_pk(&job), "", |_| true).await?;
    }
    Ok(())
}

/// Removes the rows of a workflow: those of idempotency keys, and then the others in one commit, with its entry in the
/// list of its install.
async fn remove_workflow(store: &dyn Store, workflow: &WorkflowId, entry: &Key) -> Result<(), AppError> {
    remove_partition(store, &workflow_pk(workflow), REQUESTS_PREFIX, |_| true).await?;
    let open: Option<Stored<OpenWorkflow>> = load(store, &open_key(workflow)).await?;
    let mut keys = open.map(|open| open.value.keys()).unwrap_or_default();
    for pk in [token_pk(workflow), workflow_pk(workflow)] {
        keys.extend(store.query(&pk, "", None, PAGE).await?.into_iter().map(|row| row.key));
    }
    keys.push(entry.clone());
    remove(store, keys).await
}

async fn remove_partition(
    store: &dyn Store,
    pk: &str,
    prefix: &str,
    goes: impl Fn(&Row) -> bool + Send,
) -> Result<(), AppError> {
    let mut after: Option<String> = None;
    loop {
        let rows = store.query(pk, prefix, after.as_deref(), PAGE).await?;
        after = rows.last().map(|row| row.key.sk.clone());
        let is_last = rows.len() < PAGE as usize;
        remove(store, rows.into_iter().filter(&goes).map(|row| row.key).collect()).await?;
        if is_last {
            return Ok(());
        }
    }
}

async fn remove(store: &dyn Store, keys: Vec<Key>) -> Result<(), AppError> {
    for some in keys.chunks(COMMIT_ROWS) {
        let writes = some.iter().cloned().map(|key| Write::Delete { key }).collect();
        let _ = store.commit(writes).await?;
    }
    Ok(())
}

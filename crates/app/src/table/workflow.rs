//! The rows of workflows: their entries in lists, and the task tokens of their state machines. The rows of their state
//! are in [`super::graph`].

use std::collections::BTreeSet;

use freehold_domain::install::Install;
use freehold_domain::sealed_inputs::first_missing;
use freehold_protocol::{InstallId, Timestamp, WorkflowId};
use serde::{Deserialize, Serialize};

use super::install::install_pk;
use super::record::{PAGE, Record, Stored, key, load, parse, put};
use crate::AppError;
use crate::ports::{Expect, Key, Store, Write};

/// A workflow that has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenWorkflow {
    pub workflow: WorkflowId,
    pub install: InstallId,
    pub since: Timestamp,
    /// The time in the workflow's [`NextSweep`]; absent for workflows that an earlier version of Freehold started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_sweep: Option<Timestamp>,
    /// The cause that last made the workflow due at once, such as a job or a report; empty before the first one.
    /// Without it, two causes at the same time could write the same body, and a commit takes an equal row for its own
    /// earlier try.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub due_by: String,
}

/// The time when `sweep` handles a workflow next. The sort key begins with the time, so that one query finds the due
/// workflows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextSweep {
    pub workflow: WorkflowId,
    /// The time from which the workflow is due, until this row is moved or removed.
    pub from: Timestamp,
}

impl OpenWorkflow {
    /// Returns the keys of the entry and of the workflow's next sweep.
    pub fn keys(&self) -> Vec<Key> {
        let next_sweep = self.next_sweep.map(|from| NextSweep { workflow: self.workflow.clone(), from }.key());
        [self.key()].into_iter().chain(next_sweep).collect()
    }
}

/// The partition key of the next sweeps of all workflows.
const NEXT_SWEEPS: &str = "next-sweep";

/// Loads the workflows that the sweep must handle now.
///
/// # Errors
/// The errors of [`super::load_all`].
pub async fn due_sweeps(store: &dyn Store, now: Timestamp) -> Result<Vec<NextSweep>, AppError> {
    let mut due = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let rows = store.query(NEXT_SWEEPS, "", after.as_deref(), PAGE).await?;
        for row in &rows {
            let next: NextSweep = parse(row)?.value;
            if next.from > now {
                return Ok(due);
            }
            due.push(next);
        }
        match rows.last() {
            Some(last) if rows.len() == PAGE as usize => after = Some(last.key.sk.clone()),
            Some(_) | None => return Ok(due),
        }
    }
}

/// Returns the writes that make a workflow due at once. The writes conflict with a sweep that handles the workflow at
/// this moment. That sweep then does not move the next sweep to a later time. They also conflict with those of another
/// cause: `due_by` names the cause, and another row of the same commit must tell two events of one cause apart.
///
/// # Errors
/// The errors of [`super::load`].
pub async fn sweep_soon_writes(
    store: &dyn Store,
    workflow: &WorkflowId,
    due_by: &str,
    now: Timestamp,
) -> Result<Vec<Write>, AppError> {
    let open: Option<Stored<OpenWorkflow>> = load(store, &open_key(workflow)).await?;
    let Some(Stored { value: open, rev }) = open else { return Ok(Vec::new()) };
    // A sweep adds the missing row of a workflow that an earlier version of Freehold started.
    let Some(known) = open.next_sweep else { return Ok(Vec::new()) };
    let mut writes = Vec::new();
    let from = known.min(now);
    if from != known {
        writes.extend(moved_sweep(workflow, known, from)?);
    }
    let due_by = due_by.to_owned();
    writes.push(put(&OpenWorkflow { next_sweep: Some(from), due_by, ..open }, Expect::Rev(rev))?);
    Ok(writes)
}

/// Returns the writes that move the row of the next sweep. The key of the row has whole seconds, and one commit must not name a
/// key twice.
///
/// # Errors
/// The errors of [`put`].
pub fn moved_sweep(workflow: &WorkflowId, from: Timestamp, to: Timestamp) -> Result<Vec<Write>, AppError> {
    let row = |from| NextSweep { workflow: workflow.clone(), from };
    let (old, new) = (row(from).key(), row(to));
    let removed = (old != new.key()).then_some(Write::Delete { key: old });
    Ok(removed.into_iter().chain([put(&new, Expect::Any)?]).collect())
}

/// The entry of a workflow in its install's list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowEntry {
    pub workflow: WorkflowId,
    pub install: InstallId,
    pub created_at: Timestamp,
}

/// The phase of a state machine that waits for a task token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    AwaitRunner,
    Run,
}

impl Phase {
    /// Returns the name of the phase in state machines and messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AwaitRunner => "await_runner",
            Self::Run => "run",
        }
    }
}

/// A task token of Step Functions. Its holder can end a phase of the workflow, so the token never leaves the tenant
/// account.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskToken {
    pub workflow: WorkflowId,
    pub phase: Phase,
    pub token: String,
    /// The attempt of the workflow whose execution waits; absent in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// The sensitive inputs that the workflow still waits for after its runner has announced itself.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub needs: BTreeSet<String>,
}

impl TaskToken {
    /// Returns whether the workflow still waits for a sensitive input of its install.
    pub fn waits_for_inputs(&self, install: &Install) -> bool {
        first_missing(&self.needs, &install.inputs, install.sealing()).is_some()
    }
}

impl std::fmt::Debug for TaskToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TaskToken({} {})", self.workflow, self.phase.as_str())
    }
}

/// Returns the key of a workflow's entry in the list of workflows that have not ended.
pub fn open_key(workflow: &WorkflowId) -> Key {
    key("open", workflow.as_str())
}

/// Returns the partition key of a workflow's task tokens.
pub fn token_pk(workflow: &WorkflowId) -> String {
    format!("token#{workflow}")
}

/// Returns the key of a task token's row.
pub fn token_key(workflow: &WorkflowId, phase: Phase) -> Key {
    key(token_pk(workflow), phase.as_str())
}

impl Record for OpenWorkflow {
    fn key(&self) -> Key {
        open_key(&self.workflow)
    }
}

impl Record for NextSweep {
    fn key(&self) -> Key {
        key(NEXT_SWEEPS, format!("{:012}#{}", self.from.as_secs(), self.workflow))
    }
}

impl Record for WorkflowEntry {
    fn key(&self) -> Key {
        // With this key, a forward query returns the newest workflow first.
        let newest_first = u64::MAX - self.created_at.as_millis();
        key(install_pk(&self.install), format!("workflow#{newest_first:020}#{}", self.workflow))
    }
}

impl Record for TaskToken {
    fn key(&self) -> Key {
        token_key(&self.workflow, self.phase)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_that_moves_within_its_second_is_one_write() {
        let workflow = WorkflowId::derive("globex", "deploy");
        let at = Timestamp::from_millis;

        let (same, other) =
            (moved_sweep(&workflow, at(1_900), at(1_100)), moved_sweep(&workflow, at(2_900), at(1_100)));

        let new = NextSweep { workflow, from: at(1_100) };
        assert_eq!(same.unwrap(), [put(&new, Expect::Any).unwrap()]);
        assert_eq!(other.unwrap().len(), 2);
    }
}

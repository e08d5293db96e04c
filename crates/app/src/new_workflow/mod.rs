//! New workflows of any kind: what a request asks for, the one commit of a workflow's rows, and the start of the
//! execution that is named after the workflow.

pub(crate) mod check;

use std::collections::BTreeMap;

use freehold_domain::install::Install;
use freehold_domain::workflow::{Request, RollBack, Workflow, WorkflowKind, WorkflowState};
use freehold_protocol::order::{AskedBy, Mode};
use freehold_protocol::sealing::SealedValue;
use freehold_protocol::{Digest, InstallId, RunId, Timestamp, WorkflowId};
use serde::Serialize;
use serde_json::Value;

use crate::AppError;
use crate::metrics::{self, About, Metric};
use crate::ports::{Committed, Expect, Machines, Store, Write};
use crate::table::{self, NextSweep, OpenWorkflow, Stored, WorkflowEntry, put};

/// A request for work.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The caller who requests the work. The workflow of a repeated request keeps the first caller.
    pub by: &'a AskedBy,
    /// What the workflow's id is derived from, such as the path and the idempotency key of a request.
    pub cause: &'a str,
    /// The step of a runbook that asks for the work; `None` for work that does not belong to a runbook.
    pub step: Option<RunStep<'a>>,
}

/// The step of a runbook.
#[derive(Debug, Clone, Copy)]
pub struct RunStep<'a> {
    pub run: &'a RunId,
    /// The app version of the run.
    pub version: &'a Digest,
    /// The inputs of the run.
    pub inputs: &'a BTreeMap<String, String>,
    /// Whether the components that a deploy names are deployed without their dependents.
    pub alone: bool,
    /// The row of the run as it was when the step was found to be next. The commit of the step's workflow writes it again, so
    /// that no workflow begins whose step was refused or cancelled meanwhile.
    pub row: &'a Write,
}

impl Asked<'_> {
    /// Returns the writes that belong to the commit of a workflow.
    pub(crate) fn writes(&self) -> Vec<Write> {
        self.step.map(|step| step.row.clone()).into_iter().collect()
    }

    /// Returns the run of a runbook whose step the work is.
    pub(crate) fn run(&self) -> Option<RunId> {
        self.step.map(|step| step.run.clone())
    }
}

/// A workflow that is to be started.
#[derive(Debug, Clone, PartialEq)]
pub struct NewWorkflow {
    /// The workflow's id, which is derived from [`Asked::cause`].
    pub id: WorkflowId,
    pub kind: WorkflowKind,
    pub mode: Mode,
    pub request: Request,
    /// The digest of the request's body; `None` for work that no request with an idempotency key asked for.
    pub digest: Option<Digest>,
    pub asked_by: AskedBy,
    /// The run of a runbook whose step the workflow is.
    pub run: Option<RunId>,
    /// Whether changes may start while the customer's change windows are closed.
    pub now: bool,
    /// The part of the workflow in a roll back.
    pub roll_back: RollBack,
}

/// Returns the workflow `id` if an earlier request created it. Starts its execution if the workflow has not ended.
///
/// # Errors
/// Conflict when the idempotency key belongs to another request, or the errors of the store and Step Functions.
pub(crate) async fn came_before(
    store: &dyn Store,
    machines: &dyn Machines,
    id: &WorkflowId,
    install: &InstallId,
    kind: WorkflowKind,
    digest: &Digest,
) -> Result<Option<Workflow>, AppError> {
    let Some(known) = table::find_workflow(store, id).await? else { return Ok(None) };
    let workflow = known.value;
    if workflow.kind != kind || workflow.install != *install || is_other(&workflow, Some(digest)) {
        return Err(used_before());
    }
    if !workflow.state.is_terminal() {
        machines.start(workflow.machine(), id, install, workflow.attempt()).await?;
    }
    Ok(Some(workflow))
}

/// Commits a new workflow together with the writes `more`, locks the install if the workflow is exclusive, and starts
/// the workflow's execution.
///
/// # Errors
/// Conflict while another workflow has locked the install, or the errors of the store and Step Functions.
pub async fn start(
    store: &dyn Store,
    machines: &dyn Machines,
    now: Timestamp,
    install: &Stored<Install>,
    new: NewWorkflow,
    more: Vec<Write>,
) -> Result<(), AppError> {
    let (held, serial) = install.value.begin(&new.id, new.kind.is_exclusive())?;
    let workflow = workflow_of(&held, new, serial, now);
    let mut writes = vec![put(&held, Expect::Rev(install.rev))?];
    writes.extend(workflow_writes(&workflow)?);
    writes.extend(more);
    match store.commit(writes).await? {
        Committed::Done => count_start(&workflow, &held),
        Committed::Conflict(_) => {
            // Another writer changed a row first: a copy of this request, another workflow, or a hello.
            let known = table::find_workflow(store, &workflow.id).await?;
            if known.as_ref().is_some_and(|known| {
                let (known, digest) = (&known.value, workflow.request_digest.as_ref());
                known.kind != workflow.kind || known.install != workflow.install || is_other(known, digest)
            }) {
                return Err(used_before());
            }
            if known.is_none() {
                let again = table::install(store, &held.id).await?;
                again.value.begin(&workflow.id, workflow.kind.is_exclusive())?;
                let message = format!("install `{}` was changed meanwhile; try again", held.id);
                return Err(AppError::new(crate::Kind::Transient, message));
            }
        }
    }
    machines.start(workflow.kind, &workflow.id, &workflow.install, workflow.attempt()).await?;
    tracing::info!(
        workflow.id = %workflow.id, install.id = %workflow.install,
        "Started {} `{}` of `{}`", workflow.kind.machine(), workflow.id, workflow.install
    );
    Ok(())
}

/// Counts a workflow of `install` that was committed now.
pub(crate) fn count_start(workflow: &Workflow, install: &Install) {
    let app = if let Request::Build { app, .. } = &workflow.request { Some(app) } else { install.app() };
    let about = About { app, install: Some(&install.id), workflow: Some(&workflow.id), job: None };
    metrics::count(Metric::WorkflowsStarted, about);
}

/// Returns `new` as a pending workflow of `install`.
pub fn workflow_of(install: &Install, new: NewWorkflow, serial: u64, now: Timestamp) -> Workflow {
    Workflow {
        id: new.id,
        install: install.id.clone(),
        kind: new.kind,
        mode: new.mode,
        created_at: now,
        serial,
        request: new.request,
        request_digest: new.digest,
        asked_by: Some(new.asked_by),
        now: new.now,
        run: new.run,
        version: None,
        post_deploy_runbooks: Vec::new(),
        tool_image: None,
        cancel_requested: None,
        cancelled_by: None,
        cancel_reason: String::new(),
        last_report: None,
        again: Vec::new(),
        planned_from: None,
        roll_back: new.roll_back,
        nodes: Vec::new(),
        state: WorkflowState::Pending,
        graph_of_other_version: None,
        later_fields: BTreeMap::new(),
    }
}

/// Returns the writes of a new workflow's rows.
///
/// # Errors
/// Internal when the rows cannot be written as JSON.
pub fn workflow_writes(workflow: &Workflow) -> Result<Vec<Write>, AppError> {
    let (id, install) = (workflow.id.clone(), workflow.install.clone());
    let since = workflow.created_at;
    let open = OpenWorkflow { workflow: id.clone(), install, since, next_sweep: Some(since), due_by: String::new() };
    let next_sweep = NextSweep { workflow: id, from: since };
    let entry = WorkflowEntry {
        workflow: workflow.id.clone(),
        install: workflow.install.clone(),
        created_at: workflow.created_at,
    };
    Ok(vec![
        table::put_workflow(workflow, Expect::Absent)?,
        put(&open, Expect::Any)?,
        put(&next_sweep, Expect::Any)?,
        table::put_until(&entry, Expect::Any, workflow.kept_until())?,
    ])
}

/// Returns the digest of a request's body. A sealed value counts without its ciphertext, because each sealing of the
/// same value gives another ciphertext.
///
/// # Errors
/// Internal when the body cannot be written as JSON.
pub(crate) fn digest_of(body: &impl Serialize) -> Result<Digest, AppError> {
    let mut body = serde_json::to_value(body)?;
    hide_ciphertexts(&mut body);
    body.sort_all_objects();
    Ok(Digest::of(&serde_json::to_vec(&body)?))
}

fn hide_ciphertexts(value: &mut Value) {
    if SealedValue::of(value).is_some() {
        *value = "sealed".into();
    }
    match value {
        Value::Array(all) => all.iter_mut().for_each(hide_ciphertexts),
        Value::Object(all) => all.values_mut().for_each(hide_ciphertexts),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns whether a request with another body than `digest` started the workflow.
pub(crate) fn is_other(workflow: &Workflow, digest: Option<&Digest>) -> bool {
    workflow.request_digest.as_ref().zip(digest).is_some_and(|(before, now)| before != now)
}

/// Returns the error for an idempotency key that belongs to another request.
pub(crate) fn used_before() -> AppError {
    AppError::conflict("idempotency key was used for another request; use a new key")
}

/// Checks that the runner of `install` has announced itself.
///
/// # Errors
/// Conflict for an install whose runner has not announced itself.
pub(crate) fn require_runner(install: &Install) -> Result<(), AppError> {
    if install.runner.is_none() {
        return Err(freehold_domain::install::InstallError::NoRunner(install.id.clone()).into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use freehold_protocol::sealing::SealingKey;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_that_is_sealed_again_is_the_same_body_and_every_other_change_is_not() {
        let key = || SealingKey::try_from(STANDARD.encode([1; 32])).unwrap();
        let sealed = |byte: u8| SealedValue::new(key(), [byte; 32], vec![byte; 40]).to_string();
        let of = |value: Value| digest_of(&json!({ "all": false, "inputs": { "key": value } })).unwrap();

        assert_eq!(of(sealed(2).into()), of(sealed(3).into()));
        assert_ne!(of(sealed(2).into()), of("sealed.v1.no".into()));
        assert_ne!(of(7.into()), of(8.into()));
    }
}

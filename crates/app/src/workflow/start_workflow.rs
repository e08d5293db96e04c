//! Starts a workflow: its rows in one commit, then the state machine's execution of the same name.

use std::sync::Arc;

use freehold_domain::inputs::{known_inputs, merged, resolve_inputs};
use freehold_domain::install::Install;
use freehold_domain::plan::check_deployable;
use freehold_domain::workflow::{Request, Workflow, WorkflowKind, WorkflowState};
use freehold_protocol::api::{DeployComponentsRequest, RunActionRequest};
use freehold_protocol::order::Mode;
use freehold_protocol::{ActionName, AppName, InstallId, Timestamp, WorkflowId};

use crate::AppError;
use crate::app_version::create_release;
use crate::app_version::versions::{Version, Versions};
use crate::artifact::builds::builds_of;
use crate::contract::terms;
use crate::ports::{Clock, Committed, Expect, Machines, Store, Write};
use crate::table::{self, OpenWorkflow, Stored, WorkflowEntry, load, put, workflow_key};

/// What starting deploys and actions needs.
#[derive(Clone)]
pub struct StartWorkflow {
    pub store: Arc<dyn Store>,
    pub versions: Versions,
    pub machines: Arc<dyn Machines>,
    pub clock: Arc<dyn Clock>,
}

/// A workflow to be started.
#[derive(Debug, Clone, PartialEq)]
pub struct NewWorkflow {
    /// Derived from the request's idempotency key.
    pub id: WorkflowId,
    pub kind: WorkflowKind,
    pub mode: Mode,
    pub request: Request,
}

impl StartWorkflow {
    /// Starts a deploy, with changed inputs if the request has some. The same `cause` again answers the same workflow.
    ///
    /// # Errors
    /// NotFound, Invalid inputs, Conflict with a live workflow or without a runner, or the store's.
    pub async fn deploy(
        &self,
        install: &InstallId,
        request: &DeployComponentsRequest,
        cause: &str,
    ) -> Result<WorkflowId, AppError> {
        let id = WorkflowId::derive(install.as_str(), cause);
        if self.exists(&id).await? {
            return self.again(&id, install, WorkflowKind::DeployComponents).await;
        }
        let mut stored = table::install(&*self.store, install).await?;
        let app = stored.value.app().cloned().ok_or_else(|| no_app(install))?;
        let version = self.version(&app, request).await?;
        check_deployable(&version.document)?;
        check_scope(&version.document, request)?;
        let kept = known_inputs(&version.document, &stored.value.inputs);
        resolve_inputs(&version.document, &merged(&kept, &request.inputs), &stored.value.answers)?;
        stored.value.inputs = merged(&stored.value.inputs, &request.inputs);
        require_runner(&stored.value)?;
        terms::check_accepted(&*self.store, &stored.value, &version.document).await?;
        let new = NewWorkflow {
            id: id.clone(),
            kind: WorkflowKind::DeployComponents,
            mode: Mode::Maintenance,
            request: Request::Deploy {
                version: Some(version.version),
                only: request.components.iter().cloned().collect(),
                all: request.all,
                release: request.release.clone(),
                role: request.role.clone(),
            },
        };
        start(&*self.store, &*self.machines, self.clock.now(), &stored, new, Vec::new()).await?;
        Ok(id)
    }

    /// Returns the version that a deploy asks for; that of a release only while the builds are the release's.
    async fn version(&self, app: &AppName, request: &DeployComponentsRequest) -> Result<Version, AppError> {
        let Some(name) = &request.release else {
            return self.versions.load(app, request.version.as_ref()).await;
        };
        if request.version.is_some() {
            return Err(AppError::invalid("a deploy is of a version or of a release, not of both; leave one out"));
        }
        let release = table::release(&*self.store, app, name).await?;
        let version = self.versions.load(app, Some(&release.contents.version)).await?;
        create_release::check_builds(&release, &builds_of(&*self.store, &version.document).await?)?;
        Ok(version)
    }

    /// Starts a run of an action.
    ///
    /// # Errors
    /// NotFound, Conflict without a runner, or the store's.
    pub async fn action(
        &self,
        install: &InstallId,
        action: &ActionName,
        request: &RunActionRequest,
        cause: &str,
    ) -> Result<WorkflowId, AppError> {
        let id = WorkflowId::derive(install.as_str(), cause);
        if self.exists(&id).await? {
            return self.again(&id, install, WorkflowKind::RunAction).await;
        }
        let stored = table::install(&*self.store, install).await?;
        let app = stored.value.app().cloned().ok_or_else(|| no_app(install))?;
        let version = self.versions.load(&app, None).await?;
        freehold_domain::plan::action_nodes(&version.document, action, request.role.as_deref(), 0)
            .map_err(|e| AppError::not_found(e.to_string()))?;
        let known = known_inputs(&version.document, &stored.value.inputs);
        resolve_inputs(&version.document, &known, &stored.value.answers)?;
        require_runner(&stored.value)?;
        terms::check_accepted(&*self.store, &stored.value, &version.document).await?;
        let new = NewWorkflow {
            id: id.clone(),
            kind: WorkflowKind::RunAction,
            mode: Mode::Maintenance,
            request: Request::Action { action: action.clone(), role: request.role.clone() },
        };
        start(&*self.store, &*self.machines, self.clock.now(), &stored, new, Vec::new()).await?;
        Ok(id)
    }

    async fn exists(&self, id: &WorkflowId) -> Result<bool, AppError> {
        Ok(self.store.get(&workflow_key(id)).await?.is_some())
    }

    /// The request came before: make sure that the execution was started.
    async fn again(&self, id: &WorkflowId, install: &InstallId, kind: WorkflowKind) -> Result<WorkflowId, AppError> {
        let workflow = table::workflow(&*self.store, id).await?.value;
        if workflow.kind != kind || workflow.install != *install {
            return Err(used_before());
        }
        if !workflow.state.is_terminal() {
            self.machines.start(kind, id, install).await?;
        }
        Ok(id.clone())
    }
}

/// Commits a new workflow together with `more`, holding the install if it is exclusive, and starts its execution.
///
/// # Errors
/// Conflict with a live workflow, or the store's and Step Functions'.
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
        Committed::Done => {}
        Committed::Conflict(_) => {
            // Another writer was faster: the same request, another workflow, or a hello.
            let known: Option<Stored<Workflow>> = load(store, &workflow_key(&workflow.id)).await?;
            if known
                .as_ref()
                .is_some_and(|known| known.value.kind != workflow.kind || known.value.install != workflow.install)
            {
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
    machines.start(workflow.kind, &workflow.id, &workflow.install).await?;
    tracing::info!(
        workflow.id = %workflow.id, install.id = %workflow.install,
        "Started {} `{}` of `{}`", workflow.kind.machine(), workflow.id, workflow.install
    );
    Ok(())
}

/// Returns the pending workflow.
pub fn workflow_of(install: &Install, new: NewWorkflow, serial: u64, now: Timestamp) -> Workflow {
    Workflow {
        id: new.id,
        install: install.id.clone(),
        kind: new.kind,
        mode: new.mode,
        created_at: now,
        serial,
        request: new.request,
        version: None,
        cancel_requested: None,
        nodes: Vec::new(),
        state: WorkflowState::Pending,
    }
}

/// Returns the rows of a new workflow.
///
/// # Errors
/// When they cannot be written as JSON.
pub fn workflow_writes(workflow: &Workflow) -> Result<Vec<Write>, AppError> {
    let open =
        OpenWorkflow { workflow: workflow.id.clone(), install: workflow.install.clone(), since: workflow.created_at };
    let entry = WorkflowEntry {
        workflow: workflow.id.clone(),
        install: workflow.install.clone(),
        created_at: workflow.created_at,
    };
    Ok(vec![put(workflow, Expect::Absent)?, put(&open, Expect::Any)?, put(&entry, Expect::Any)?])
}

fn check_scope(
    version: &freehold_protocol::app_version::AppVersion,
    request: &DeployComponentsRequest,
) -> Result<(), AppError> {
    for name in &request.components {
        if version.component(name).is_none() {
            let known = version.components.iter().map(|component| component.name.as_str());
            let hint = freehold_domain::nearest::nearest(name.as_str(), known)
                .map(|near| format!("; did you mean `{near}`?"))
                .unwrap_or_default();
            return Err(AppError::invalid(format!("app `{}` has no component `{name}`{hint}", version.app)));
        }
    }
    Ok(())
}

/// The error for an idempotency key that stands for something else.
pub(crate) fn used_before() -> AppError {
    AppError::conflict("idempotency key was used for another request; use a new one")
}

fn require_runner(install: &Install) -> Result<(), AppError> {
    if install.runner.is_none() {
        return Err(freehold_domain::install::InstallError::NoRunner(install.id.clone()).into());
    }
    Ok(())
}

fn no_app(install: &InstallId) -> AppError {
    AppError::invalid(format!("install `{install}` runs no app"))
}

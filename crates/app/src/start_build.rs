//! Starts the builds that an app version has no artifact for; registers the runner that makes them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use freehold_domain::build::{Build, BuildState};
use freehold_domain::install::{BUILD_INSTALL, Install, Serves};
use freehold_domain::workflow::{Request, Workflow, WorkflowKind};
use freehold_protocol::api::{BuildStarted, BuildView, EnrolBuildRunner, StartBuild};
use freehold_protocol::{AccountId, AppName, BuildId, ComponentName, InstallId, WorkflowId};

use crate::AppError;
use crate::plan_workflow::build_ids;
use crate::ports::{Clock, Committed, Expect, Machines, Store, Write};
use crate::records::{self, Stored, build_key, install_key, load, put, workflow_key};
use crate::start_workflow::{NewWorkflow, start};

/// What starting builds needs.
#[derive(Clone)]
pub struct StartBuilds {
    pub account: AccountId,
    pub region: String,
    /// The URL of the build runner's orders queue, which the tenant stack makes.
    pub build_queue_url: String,
    pub store: Arc<dyn Store>,
    pub machines: Arc<dyn Machines>,
    pub clock: Arc<dyn Clock>,
}

/// Returns the reserved install of the build runner.
///
/// # Errors
/// Never: the reserved name is an install name.
pub fn build_install() -> Result<InstallId, AppError> {
    BUILD_INSTALL.parse().map_err(|_| AppError::internal("the build install's name is no install name"))
}

impl StartBuilds {
    /// Registers the tenant's own build runner by the public half of its enrolment key.
    ///
    /// # Errors
    /// The store's.
    pub async fn enrol(&self, request: &EnrolBuildRunner) -> Result<(), AppError> {
        let id = build_install()?;
        loop {
            let known: Option<Stored<Install>> = load(&*self.store, &install_key(&id)).await?;
            let mut install = match &known {
                Some(known) => known.value.clone(),
                None => Install {
                    id: id.clone(),
                    serves: Serves::Builds,
                    account: self.account.clone(),
                    region: self.region.clone(),
                    created_at: self.clock.now(),
                    enrolment_key: request.enrolment_key.clone(),
                    inputs: BTreeMap::new(),
                    orders_queue_url: None,
                    runner: None,
                    retired: BTreeSet::new(),
                    live: None,
                    next_serial: 1,
                },
            };
            install.enrolment_key = request.enrolment_key.clone();
            install.orders_queue_url = Some(self.build_queue_url.clone());
            if known.as_ref().is_some_and(|known| known.value == install) {
                return Ok(());
            }
            let expect = known.map_or(Expect::Absent, |known| Expect::Rev(known.rev));
            if self.store.commit(vec![put(&install, expect)?]).await? == Committed::Done {
                return Ok(());
            }
        }
    }

    /// Starts one workflow for everything that is not built and not being built.
    ///
    /// # Errors
    /// NotFound for an unknown app or version, Conflict without a build runner, or the store's.
    pub async fn start(&self, app: &AppName, request: &StartBuild, cause: &str) -> Result<BuildStarted, AppError> {
        let record = records::version(&*self.store, app, request.version.as_ref()).await?;
        let id = build_install()?;
        let install: Option<Stored<Install>> = load(&*self.store, &install_key(&id)).await?;
        let install = install.ok_or_else(|| {
            AppError::conflict("tenant has no build runner yet; register one with `freehold tenant build-runner`")
        })?;
        let workflow = WorkflowId::derive(app.as_str(), cause);
        let mut wanted: Vec<(ComponentName, BuildId)> = Vec::new();
        let mut writes: Vec<Write> = Vec::new();
        for (component, build, source_digest) in build_ids(&record.document)? {
            let known: Option<Stored<Build>> = load(&*self.store, &build_key(app, &build)).await?;
            let due = match known.as_ref().map(|known| &known.value.state) {
                None | Some(BuildState::Failed { .. }) => true,
                Some(BuildState::Built { .. }) => false,
                Some(BuildState::Building { workflow: by }) => *by != workflow && self.has_ended(by).await?,
            };
            let spec = record.document.component(&component);
            let (Some(spec), true) = (spec, due) else { continue };
            let Some(package) = spec.spec.package() else { continue };
            let fresh = Build {
                id: build.clone(),
                app: app.clone(),
                component: component.clone(),
                package,
                source: spec.source.clone(),
                source_digest,
                created_at: self.clock.now(),
                state: BuildState::Building { workflow: workflow.clone() },
            };
            writes.push(put(&fresh, known.map_or(Expect::Absent, |known| Expect::Rev(known.rev)))?);
            wanted.push((component, build));
        }
        let mut started = None;
        if !wanted.is_empty() {
            if install.value.runner.is_none() {
                return Err(AppError::conflict(
                    "build runner has not announced itself yet; start it, then build again",
                ));
            }
            let new = NewWorkflow {
                id: workflow.clone(),
                kind: WorkflowKind::BuildComponent,
                mode: freehold_protocol::order::Mode::Maintenance,
                request: Request::Build { app: app.clone(), builds: wanted },
            };
            start(&*self.store, &*self.machines, self.clock.now(), &install, new, writes).await?;
            started = Some(workflow.clone());
        }
        let builds = self.views(&record.document).await?;
        let building = builds_in_progress(&*self.store, &record.document).await?;
        if started.is_none() && building.as_ref() == Some(&workflow) {
            // The request came before: make sure that the execution was started.
            self.machines.start(WorkflowKind::BuildComponent, &workflow, &id).await?;
        }
        Ok(BuildStarted { version: record.version, workflow: started.or(building), builds })
    }

    /// Returns whether the workflow ended, so that a build which it left behind is to be made by another.
    async fn has_ended(&self, id: &WorkflowId) -> Result<bool, AppError> {
        let workflow: Option<Stored<Workflow>> = load(&*self.store, &workflow_key(id)).await?;
        Ok(workflow.is_none_or(|workflow| workflow.value.state.is_terminal()))
    }

    /// Returns the builds of an app version.
    ///
    /// # Errors
    /// The store's.
    pub async fn views(
        &self,
        version: &freehold_protocol::app_version::AppVersion,
    ) -> Result<Vec<BuildView>, AppError> {
        let builds = crate::plan_workflow::builds_of(&*self.store, version).await?;
        Ok(builds.values().map(view).collect())
    }
}

/// Returns the workflow that is building something of the version, if one is.
async fn builds_in_progress(
    store: &dyn Store,
    version: &freehold_protocol::app_version::AppVersion,
) -> Result<Option<WorkflowId>, AppError> {
    let builds = crate::plan_workflow::builds_of(store, version).await?;
    Ok(builds.into_values().find_map(|build| match build.state {
        BuildState::Building { workflow } => Some(workflow),
        BuildState::Built { .. } | BuildState::Failed { .. } => None,
    }))
}

/// Returns what the API says of a build.
pub fn view(build: &Build) -> BuildView {
    let (artifact, size, reason) = match &build.state {
        BuildState::Building { .. } => (None, None, String::new()),
        BuildState::Built { artifact, .. } => {
            (Some(artifact.digest.clone()), Some(artifact.blob_bytes()), String::new())
        }
        BuildState::Failed { reason, .. } => (None, None, reason.clone()),
    };
    BuildView {
        build: build.id.clone(),
        component: build.component.clone(),
        state: build.state.word().to_owned(),
        artifact,
        size,
        reason,
    }
}

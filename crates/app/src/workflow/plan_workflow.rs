//! The planning phases of a state machine: wait for the runner, plan the graph, start the graph.

use std::collections::BTreeSet;
use std::sync::Arc;

use freehold_domain::build::Build;
use freehold_domain::install::{Install, InstallError, Serves};
use freehold_domain::plan::{PlanError, action_nodes, build_nodes, upgrade_nodes};
use freehold_domain::required_checks::RequiredChecks;
use freehold_domain::sealed_inputs;
use freehold_domain::workflow::{
    Node, Request, RollBack, Target, ToolImageBuild, Workflow, WorkflowKind, WorkflowState,
};
use freehold_protocol::{AppName, BuildId, Digest, ReleaseName, RunbookName, WorkflowId};
use serde::Serialize;

use crate::AppError;
use crate::app_version::builds::bind_steps;
use crate::app_version::install_release::{Wanted, followed};
use crate::app_version::versions::{Version, Versions};
use crate::contract::sign_contract::is_signed;
use crate::drift::plan::plan_drift;
use crate::health::plan::plan_health_check;
use crate::messages::DispatchMessage;
use crate::ports::{Clock, Committed, Expect, Outbox, Store};
use crate::table::{self, Due, DueWhat, Phase, Stored, TaskToken, put};
use crate::workflow::plan_deploy::{DeployOf, plan_deploy};
use crate::workflow::schedules::has_schedules;
use crate::workflow::teardown_install::plan_teardown;
use crate::workflow::{advance, continuation};

/// The number of builds that are ordered at once while no build runner has announced how many it can do.
const FIRST_BUILD_SLOTS: u32 = 4;

/// The use case that plans a workflow, with its ports.
#[derive(Clone)]
pub struct PlanWorkflow {
    pub store: Arc<dyn Store>,
    pub versions: Versions,
    pub outbox: Arc<dyn Outbox>,
    pub clock: Arc<dyn Clock>,
}

/// The result that a `Choice` of the state machine reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Next {
    /// The graph has nodes to run.
    Run,
    /// The graph has no nodes to run; the workflow can finish.
    Finish,
}

impl PlanWorkflow {
    /// Stores the task token of the state that waits for the install's runner and for the sensitive inputs that the app
    /// requires, which can be given only when the runner has announced itself. `accept-report` resumes the state at the
    /// runner's hello. If something is missing then, or the runner announced itself earlier, `sweep` resumes the state.
    ///
    /// # Errors
    /// NotFound, or the store's errors.
    pub async fn await_runner(&self, id: &WorkflowId, token: String) -> Result<(), AppError> {
        let workflow = table::workflow(&*self.store, id).await?.value;
        let install = table::install(&*self.store, &workflow.install).await?.value;
        let needs = match (&workflow.request, install.app()) {
            (Request::Deploy { version, .. }, Some(app)) => {
                let wanted = self.wanted(app, &install, version.as_ref(), None).await?;
                sealed_inputs::needed(&wanted.version.document)
            }
            _ => BTreeSet::new(),
        };
        // Only the first execution waits for the runner.
        self.keep_token(id, (Phase::AwaitRunner, 0), token, needs).await
    }

    /// Plans the workflow's graph and stores it. A workflow that was continued keeps its graph. `attempt` is the number
    /// of the calling execution.
    ///
    /// # Errors
    /// Invalid or NotFound when the request cannot be planned, Conflict for an execution of an earlier attempt, or the
    /// store's errors.
    pub async fn plan(&self, id: &WorkflowId, attempt: u32) -> Result<Next, AppError> {
        let stored = table::workflow(&*self.store, id).await?;
        let workflow = &stored.value;
        check_attempt(workflow, attempt)?;
        match &workflow.state {
            WorkflowState::Pending => {}
            WorkflowState::Running { .. } => return Ok(Next::Run),
            WorkflowState::Succeeded { .. } | WorkflowState::Failed { .. } | WorkflowState::Cancelled { .. } => {
                return Ok(Next::Finish);
            }
        }
        if workflow.cancel_requested.is_some() {
            return Ok(Next::Finish);
        }
        let install = table::install(&*self.store, &workflow.install).await?.value;
        if attempt > 0 {
            self.note_schedules(workflow, &install, workflow.version.as_ref()).await?;
            return Ok(next_of(&workflow.nodes));
        }
        let (version, nodes) = self.nodes(workflow, &install).await?;
        self.note_schedules(workflow, &install, version.as_ref()).await?;
        let next = next_of(&nodes);
        let mut planned = workflow.clone();
        planned.planned_from = continuation::planned_from(workflow, &install)?;
        planned.tool_image = self.tool_image(&install, version.as_ref()).await?;
        planned.post_deploy_runbooks = self.post_deploy_runbooks(workflow, &install, version.as_ref()).await?;
        planned.version = version;
        (planned.nodes, planned.graph_of_other_version) = (nodes, None);
        if let Some(graph) = table::graph_write(&planned)? {
            let _ = self.store.commit(vec![graph]).await?;
        }
        match self.store.commit(vec![table::put_workflow(&planned, Expect::Rev(stored.rev))?]).await? {
            Committed::Done => {}
            Committed::Conflict(_) => return Err(table::contended("workflow", id)),
        }
        // Every version that is deployed gets a signed contract, even if nothing had to be built for it.
        if let (Request::Deploy { .. }, Some(version), Some(app)) = (&planned.request, &planned.version, install.app())
            && !is_signed(&self.versions, app, version).await?
        {
            let message = DispatchMessage::Contract { app: app.clone(), version: version.clone() };
            self.outbox.dispatch(&[message]).await?;
        }
        Ok(next)
    }

    /// Returns the build of the image that the version's jobs run in. A workflow uses this build until it ends, even if
    /// the image is built again meanwhile.
    async fn tool_image(
        &self,
        install: &Install,
        version: Option<&Digest>,
    ) -> Result<Option<ToolImageBuild>, AppError> {
        let (Some(app), Some(version)) = (install.app(), version) else { return Ok(None) };
        let version = self.versions.load(app, Some(version)).await?.document;
        let Some(component) = version.tool_image() else { return Ok(None) };
        let source_digest = component.source_digest()?;
        let build = BuildId::derive(&version.app, &source_digest, &component.name);
        let known: Option<Stored<Build>> = table::load(&*self.store, &table::build_key(app, &build)).await?;
        if known.is_none_or(|known| known.value.usable().is_none()) {
            let error = PlanError::NotBuilt { app: app.to_string(), component: component.name.clone() };
            return Err(error.into());
        }
        Ok(Some(ToolImageBuild { component: component.name.clone(), build }))
    }

    /// Returns the runbooks that run after the workflow if it is a deploy of all components. A step of a runbook names its
    /// components, so no runbook starts itself again.
    async fn post_deploy_runbooks(
        &self,
        workflow: &Workflow,
        install: &Install,
        version: Option<&Digest>,
    ) -> Result<Vec<RunbookName>, AppError> {
        match (&workflow.request, install.app(), version) {
            (Request::Deploy { only, .. }, Some(app), Some(version)) if only.is_empty() => {
                Ok(self.versions.load(app, Some(version)).await?.document.post_deploy_runbooks.clone())
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Stores a task to look up the schedules of the install after the deploy has ended. The task is stored before the
    /// plan, so that no plan lacks it. A repeated call writes the same row.
    async fn note_schedules(
        &self,
        workflow: &Workflow,
        install: &Install,
        version: Option<&Digest>,
    ) -> Result<(), AppError> {
        if let (Request::Deploy { .. }, Some(app), Some(version)) = (&workflow.request, install.app(), version)
            && has_schedules(&self.versions.load(app, Some(version)).await?.document)
        {
            let what = DueWhat::Schedules { workflow: workflow.id.clone() };
            let due = Due::at(workflow.began_at(), install.id.clone(), what);
            let _ = self.store.commit(vec![put(&due, Expect::Any)?]).await?;
        }
        Ok(())
    }

    /// Stores the task token of the state that waits for the graph, starts the graph and dispatches its first jobs.
    ///
    /// # Errors
    /// Conflict without a runner or for an execution of an earlier attempt, or the errors of the store and the queue.
    pub async fn run(&self, id: &WorkflowId, attempt: u32, token: String) -> Result<(), AppError> {
        check_attempt(&table::workflow(&*self.store, id).await?.value, attempt)?;
        // The token is stored first, so that it is found even if a job ends at once.
        self.keep_token(id, (Phase::Run, attempt), token, BTreeSet::new()).await?;
        let stored = table::workflow(&*self.store, id).await?;
        let workflow = match &stored.value.state {
            WorkflowState::Pending => self.start(&stored).await?,
            WorkflowState::Running { .. } => stored.value,
            WorkflowState::Succeeded { .. } | WorkflowState::Failed { .. } | WorkflowState::Cancelled { .. } => {
                return Ok(());
            }
        };
        let jobs: Vec<_> = workflow.active_jobs().cloned().collect();
        advance::dispatch(&*self.outbox, &workflow, &jobs).await
    }

    async fn start(&self, stored: &Stored<Workflow>) -> Result<Workflow, AppError> {
        let workflow = &stored.value;
        let install = table::install(&*self.store, &workflow.install).await?.value;
        let slots = match (&install.runner, &install.serves) {
            (Some(runner), _) => runner.slots,
            // The first order of a tenant starts the machine of its build runner.
            (None, Serves::Builds) => FIRST_BUILD_SLOTS,
            (None, Serves::App { .. }) => return Err(InstallError::NoRunner(install.id.clone()).into()),
        };
        let started = workflow.start(workflow.nodes.clone(), slots, self.clock.now())?;
        let (workflow, mut writes, _) = continuation::start_jobs(&*self.store, started, self.clock.now()).await?;
        writes.push(table::put_workflow(&workflow, Expect::Rev(stored.rev))?);
        match self.store.commit(writes).await? {
            Committed::Done => Ok(workflow),
            Committed::Conflict(_) => Err(table::contended("workflow", &workflow.id)),
        }
    }

    /// Stores a task token, unless the workflow was removed because its install was forgotten: nobody would remove the
    /// token.
    async fn keep_token(
        &self,
        id: &WorkflowId,
        (phase, attempt): (Phase, u32),
        token: String,
        needs: BTreeSet<String>,
    ) -> Result<(), AppError> {
        let kept_until = table::workflow(&*self.store, id).await?.value.kept_until();
        let record = TaskToken { workflow: id.clone(), phase, attempt: Some(attempt), token, needs };
        let _ = self.store.commit(vec![table::put_until(&record, Expect::Any, kept_until)?]).await?;
        Ok(())
    }

    async fn nodes(&self, workflow: &Workflow, install: &Install) -> Result<(Option<Digest>, Vec<Node>), AppError> {
        match &workflow.request {
            Request::Build { app, builds, version } => {
                let version = match version {
                    Some(version) => Some(self.versions.load(app, Some(version)).await?),
                    None => None,
                };
                let document = version.as_ref().map(|version| &*version.document);
                Ok((None, build_nodes(document, builds, workflow.serial)))
            }
            Request::Upgrade { .. } => Ok((None, upgrade_nodes(workflow.serial))),
            Request::DetectDrift { only } => {
                let record = self.version_of(install, install.version()).await?;
                let planned = plan_drift(&self.versions, install, only, workflow.serial).await?;
                Ok((Some(record.version), planned.nodes))
            }
            Request::CheckHealth { only } => {
                let record = self.version_of(install, install.version()).await?;
                let planned = plan_health_check(&self.versions, install, only, workflow.serial).await?;
                Ok((Some(record.version), planned.nodes))
            }
            Request::Action { action, version, role, trigger: _, inputs: _, run_inputs: _ } => {
                let record = self.version_of(install, version.as_ref()).await?;
                let mut nodes = action_nodes(&record.document, action, role.as_deref(), workflow.serial)?;
                bind_steps(&*self.store, &record.document, &mut nodes).await?;
                Ok((Some(record.version), nodes))
            }
            Request::Teardown { what, role, destroy_data: _ } => {
                let role = role.as_deref();
                let (version, nodes) = plan_teardown(&self.versions, install, what, role, workflow.serial).await?;
                Ok((Some(version), nodes))
            }
            Request::Deploy { version, only, all, alone, release, role, former_inputs } => {
                let app = install.require_app()?;
                let wanted = self.wanted(app, install, version.as_ref(), release.clone()).await?;
                let (record, release) = (wanted.version, wanted.release);
                let of = DeployOf {
                    only,
                    alone: *alone,
                    all: *all,
                    release: release.as_ref(),
                    role: role.as_deref(),
                    former_inputs,
                    provision: workflow.kind == WorkflowKind::ProvisionInstall,
                    serial: workflow.serial,
                };
                let mut nodes = plan_deploy(&self.versions, install, &record.document, of).await?;
                if let RollBack::Of { .. } = &workflow.roll_back {
                    leave_out_required_checks(&mut nodes);
                }
                Ok((Some(record.version), nodes))
            }
        }
    }

    /// Returns the version that a deploy names. If the deploy names none, returns the version that the install follows
    /// at this time: that of its release, that of its channel, or the latest one.
    async fn wanted(
        &self,
        app: &AppName,
        install: &Install,
        version: Option<&Digest>,
        release: Option<ReleaseName>,
    ) -> Result<Wanted, AppError> {
        match version {
            Some(version) => Ok(Wanted { version: self.versions.load(app, Some(version)).await?, release }),
            None => followed(&self.versions, app, &install.follows).await,
        }
    }

    async fn version_of(&self, install: &Install, version: Option<&Digest>) -> Result<Version, AppError> {
        let app = install.require_app()?;
        self.versions.load(app, version).await
    }
}

/// Refuses an execution whose workflow was continued in another execution.
fn check_attempt(workflow: &Workflow, attempt: u32) -> Result<(), AppError> {
    if workflow.attempt() == attempt {
        return Ok(());
    }
    let (id, latest) = (&workflow.id, workflow.attempt());
    Err(AppError::conflict(format!("execution {attempt} of workflow `{id}` was replaced by execution {latest}")))
}

/// Lets the gates of a roll back wait for no required checks: nobody who reports checks knows of the roll back, and
/// results about the earlier deploy do not count.
fn leave_out_required_checks(nodes: &mut [Node]) {
    for node in nodes {
        if let Target::Health { checks, .. } = &mut node.target {
            *checks = RequiredChecks::default();
        }
    }
}

fn next_of(nodes: &[Node]) -> Next {
    if nodes.iter().all(|node| node.state.is_terminal()) { Next::Finish } else { Next::Run }
}

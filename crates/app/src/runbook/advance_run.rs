//! Advances a run of a runbook: records how the workflow of a step ended, and starts the workflow of the next step.
//!
//! The workflow's id is stored before the workflow is started, so a repeated call starts no second one. The end of a
//! step's workflow stores a task that is due at once: if the call that should follow is lost, the next sweep advances
//! the run.

use std::collections::BTreeSet;
use std::sync::Arc;

use freehold_domain::graph::order::reachable;
use freehold_domain::install::Install;
use freehold_domain::runbook::{Next, Run, RunState, Step};
use freehold_domain::workflow::{RunTrigger, Workflow, WorkflowState};
use freehold_protocol::api::{DeployComponentsRequest, RunActionRequest, TeardownInstallRequest};
use freehold_protocol::app_version::{AppVersion, StepKind};
use freehold_protocol::{ComponentName, RunId};

use crate::AppError;
use crate::app_version::versions::Versions;
use crate::new_workflow::{Asked, RunStep};
use crate::notification::task;
use crate::ports::{Clock, Expect, Machines, Store};
use crate::table::{self, Decided, Stored, put};
use crate::workflow::deploy_components::DeployComponents;
use crate::workflow::run_action::RunAction;
use crate::workflow::teardown_install::TeardownInstall;

/// The maximum number of changes of one run in one call. A step that ends at once causes only a few changes.
const MOST: usize = 500;

/// The use case that advances a run, with its ports and the use cases of the steps.
#[derive(Clone)]
pub struct AdvanceRun {
    pub(super) store: Arc<dyn Store>,
    pub(super) versions: Versions,
    pub(super) clock: Arc<dyn Clock>,
    run_action: RunAction,
    deploy_components: DeployComponents,
    teardown_install: TeardownInstall,
}

/// The result of the start of a step.
enum Started {
    Yes,
    /// The step removes something that is not there.
    NothingToRemove,
    /// The install or the app does not permit the step, for this reason.
    Refused(String),
}

/// Whether a run could be advanced by one change.
enum Progress {
    /// The run was changed, and is stored in this state.
    Changed(Box<Run>),
    /// Nothing can be done before the workflow of a step ends, or the run has ended.
    Nothing,
}

impl AdvanceRun {
    /// Returns the use case with the ports of its steps.
    pub fn new(store: Arc<dyn Store>, versions: Versions, machines: Arc<dyn Machines>, clock: Arc<dyn Clock>) -> Self {
        let run_action = RunAction {
            store: Arc::clone(&store),
            versions: versions.clone(),
            machines: Arc::clone(&machines),
            clock: Arc::clone(&clock),
        };
        let deploy_components = DeployComponents {
            store: Arc::clone(&store),
            versions: versions.clone(),
            machines: Arc::clone(&machines),
            clock: Arc::clone(&clock),
        };
        let teardown_install = TeardownInstall {
            store: Arc::clone(&store),
            versions: versions.clone(),
            machines,
            clock: Arc::clone(&clock),
        };
        Self { store, versions, clock, run_action, deploy_components, teardown_install }
    }

    /// Advances the run, and returns it. After a failure, the next sweep advances it, since the run is stored.
    ///
    /// # Errors
    /// NotFound, or the store's errors.
    pub(super) async fn try_advance(&self, id: &RunId) -> Result<Run, AppError> {
        if let Err(error) = self.advance(id).await {
            tracing::warn!(run.id = %id, "Could not advance run `{id}`; the next sweep tries again: {error}");
        }
        Ok(table::run(&*self.store, id).await?.value)
    }

    /// Advances the run until the workflow of a step runs, or the run has ended. Does nothing if the run does not exist.
    ///
    /// # Errors
    /// The errors of the ports. A step that the install or the app does not permit is not an error: it ends the run.
    pub async fn advance(&self, id: &RunId) -> Result<(), AppError> {
        for _ in 0..MOST {
            match table::change(&*self.store, ("run", id), || self.advance_once(id)).await? {
                Progress::Nothing => return Ok(()),
                Progress::Changed(run) if run.state != RunState::Running => {
                    let state = run.state.as_str();
                    tracing::info!(run.id = %id, install.id = %run.install, "Run `{id}` {state}");
                }
                Progress::Changed(_) => {}
            }
        }
        Err(AppError::internal(format!("run `{id}` did not come to an end after {MOST} changes")))
    }

    async fn advance_once(&self, id: &RunId) -> Result<Decided<Progress>, AppError> {
        let nothing = Ok(Decided::Keep(Progress::Nothing));
        let Some(stored) = table::find_run(&*self.store, id).await? else { return nothing };
        let (run, now) = (&stored.value, self.clock.now());
        let next = match run.next() {
            Next::Nothing => return nothing,
            Next::Begin => run.begin(),
            Next::Follow { step, workflow } => {
                let found = table::find_workflow(&*self.store, &workflow).await?.map(|found| found.value);
                match &found {
                    Some(Workflow { state: WorkflowState::Running { .. }, .. }) => return nothing,
                    Some(ended) if ended.state.is_terminal() => {
                        let next = run.on_end(&workflow, &ended.state, now);
                        if ended.kind.is_exclusive() { next.building_on(ended.serial) } else { next }
                    }
                    None if run.cancelled_by.is_some() => run.on_refusal(&workflow, "cancelled before it started", now),
                    // The call that committed a pending workflow may have died before it started the execution.
                    Some(_) | None => match self.start(&stored, step, found.is_some()).await? {
                        Started::Yes => return nothing,
                        Started::NothingToRemove => run.on_nothing(&workflow, now),
                        Started::Refused(reason) => run.on_refusal(&workflow, &reason, now),
                    },
                }
            }
        };
        let mut writes = table::run_writes(&next, Expect::Rev(stored.rev))?;
        writes.extend(task::of_ended_run(&next, now)?);
        Ok(Decided::Commit(writes, Progress::Changed(Box::new(next))))
    }

    /// Starts the workflow of a step, or its execution if the workflow `exists`.
    async fn start(&self, stored: &Stored<Run>, at: usize, exists: bool) -> Result<Started, AppError> {
        let run = &stored.value;
        let Some(step) = run.steps.get(at) else {
            // INVARIANT: `Run::next` returns the index of one of its steps.
            return Err(AppError::internal(format!("run `{}` has no step {at}", run.id)));
        };
        let started = match self.is_removed(run, step).await {
            Ok(true) if !exists => return Ok(Started::NothingToRemove),
            Ok(_) => self.start_step(stored, step, (&run.cause(at), exists)).await,
            Err(error) => Err(error),
        };
        match started {
            Ok(()) => Ok(Started::Yes),
            Err(error) => error.refusal().map(Started::Refused),
        }
    }

    /// Returns whether the step removes something that is not there. A removal whose later actions failed is not repeated.
    async fn is_removed(&self, run: &Run, step: &Step) -> Result<bool, AppError> {
        let removes = match &step.step.does {
            StepKind::ComponentTearDown { component } => component.clone(),
            StepKind::SandboxDeprovision {} => ComponentName::sandbox(),
            StepKind::ComponentDeploy { .. }
            | StepKind::Action { .. }
            | StepKind::SandboxProvision {}
            | StepKind::SandboxReprovision {} => return Ok(false),
        };
        Ok(!table::parts(&*self.store, &run.install).await?.contains_key(&removes))
    }

    async fn start_step(
        &self,
        stored: &Stored<Run>,
        step: &Step,
        (cause, exists): (&str, bool),
    ) -> Result<(), AppError> {
        let run = &stored.value;
        let install = table::install(&*self.store, &run.install).await?.value;
        check_version(run, &install)?;
        // The workflow of the step, once it exists, is itself the last exclusive one.
        if !exists {
            check_last_exclusive(run, step, &install)?;
        }
        let role = Some(step.step.role.clone()).filter(|role| !role.is_empty());
        let (by, passes_windows) = run.asker();
        let row = put(run, Expect::Rev(stored.rev))?;
        let asked = |alone| {
            let step = RunStep { run: &run.id, version: &run.version, inputs: &run.inputs, alone, row: &row };
            Asked { by, cause, step: Some(step) }
        };
        match &step.step.does {
            StepKind::ComponentDeploy { component } => {
                let mut components = BTreeSet::from([component.clone()]);
                if step.step.deploy_dependencies {
                    let version = self.versions.load(&run.app, Some(&run.version)).await?;
                    components = with_dependencies(&version.document, components);
                }
                self.deploy(run, components, (role, passes_windows), asked(true)).await?;
            }
            StepKind::SandboxProvision {} | StepKind::SandboxReprovision {} => {
                let alone = step.step.skip_component_deploys;
                self.deploy(run, BTreeSet::from([ComponentName::sandbox()]), (role, passes_windows), asked(alone))
                    .await?;
            }
            StepKind::Action { action } => {
                let request = RunActionRequest { role, now: passes_windows, ..Default::default() };
                self.run_action.run(&run.install, action, &request, (RunTrigger::Runbook, asked(false))).await?;
            }
            StepKind::ComponentTearDown { component } => {
                let component = Some(component.clone());
                let request = TeardownInstallRequest { component, role, now: passes_windows, ..Default::default() };
                self.teardown_install.teardown(&run.install, &request, asked(false)).await?;
            }
            StepKind::SandboxDeprovision {} => {
                let request = TeardownInstallRequest { sandbox: true, role, now: passes_windows, ..Default::default() };
                self.teardown_install.teardown(&run.install, &request, asked(false)).await?;
            }
        }
        Ok(())
    }

    async fn deploy(
        &self,
        run: &Run,
        components: BTreeSet<ComponentName>,
        (role, passes_windows): (Option<String>, bool),
        asked: Asked<'_>,
    ) -> Result<(), AppError> {
        let request = DeployComponentsRequest {
            version: Some(run.version.clone()),
            components: components.into_iter().collect(),
            role,
            now: passes_windows,
            ..DeployComponentsRequest::default()
        };
        self.deploy_components.deploy(&run.install, &request, asked).await?;
        Ok(())
    }
}

/// Refuses a step of a version that the install does not have any more: the step would bring an older version back.
fn check_version(run: &Run, install: &Install) -> Result<(), AppError> {
    if install.version().is_none_or(|version| *version == run.version) {
        return Ok(());
    }
    Err(AppError::conflict(format!(
        "another version than {} was deployed since the run began; start a new run with `freehold runbook run {} {}`",
        run.number, run.install, run.runbook
    )))
}

/// Refuses a step of a run after a deploy that would hold the install after another workflow has held it. If this workflow
/// failed, it could not be resumed or rolled back any more.
fn check_last_exclusive(run: &Run, step: &Step, install: &Install) -> Result<(), AppError> {
    let is_last = run.after.as_ref().is_none_or(|after| after.last_exclusive == install.last_exclusive);
    if is_last || matches!(step.step.does, StepKind::Action { .. }) {
        return Ok(());
    }
    Err(AppError::conflict(format!(
        "another deploy or teardown of install `{}` has begun since the run began; if the run is to continue after it, \
         resume the run with `freehold runbook resume {} --reason WHY`",
        install.id, run.id
    )))
}

/// Returns the components and all components that they depend on, directly or indirectly.
fn with_dependencies(version: &AppVersion, components: BTreeSet<ComponentName>) -> BTreeSet<ComponentName> {
    let dependencies = |name: &ComponentName| {
        version.component(name).map(|component| component.dependencies.iter().cloned().collect()).unwrap_or_default()
    };
    reachable(components, dependencies)
}

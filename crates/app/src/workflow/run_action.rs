//! Starts a run of an action in an install.

use std::sync::Arc;

use freehold_domain::absence::Absence;
use freehold_domain::inputs::{known_inputs, resolve_inputs_for};
use freehold_domain::install::Install;
use freehold_domain::plan::action_nodes;
use freehold_domain::plan::triggers::lacks_text;
use freehold_domain::runbook::{action_inputs, inputs_of_step, with_defaults};
use freehold_domain::suggestion::nearest;
use freehold_domain::toggles;
use freehold_domain::workflow::{Request, RollBack, RunTrigger, Workflow, WorkflowKind};
use freehold_permissions::OrderedCommands;
use freehold_protocol::api::{RunActionRequest, WorkflowStarted};
use freehold_protocol::app_version::Action;
use freehold_protocol::order::Mode;
use freehold_protocol::{ActionName, AppName, InstallId, WorkflowId};

use crate::AppError;
use crate::app_version::builds::bind_steps;
use crate::app_version::versions::{Version, Versions};
use crate::contract::terms;
use crate::new_workflow::{Asked, NewWorkflow, came_before, digest_of, require_runner, start};
use crate::ports::{Clock, Machines, Store};
use crate::table;

/// The use case that runs an action, with its ports.
#[derive(Clone)]
pub struct RunAction {
    pub store: Arc<dyn Store>,
    pub versions: Versions,
    pub machines: Arc<dyn Machines>,
    pub clock: Arc<dyn Clock>,
}

impl RunAction {
    /// Starts a run of an action. Its steps come from the version that was last deployed completely. Before the first
    /// complete deploy they come from the latest version, so that an action can examine a first deploy that failed.
    ///
    /// # Errors
    /// NotFound for an action or a role that the version lacks, Invalid for wrong inputs, Conflict without a runner or a
    /// component that the action needs, or the store's errors.
    pub async fn run(
        &self,
        install: &InstallId,
        action: &ActionName,
        request: &RunActionRequest,
        (trigger, asked): (RunTrigger, Asked<'_>),
    ) -> Result<WorkflowStarted, AppError> {
        let id = WorkflowId::derive(install.as_str(), asked.cause);
        let digest = digest_of(&(action, request))?;
        let kind = WorkflowKind::RunAction;
        let before = came_before(&*self.store, &*self.machines, &id, install, kind, &digest).await?;
        let stored = table::install(&*self.store, install).await?;
        let app = stored.value.require_app()?.clone();
        if let Some(Workflow { request: Request::Action { version, .. }, .. }) = &before {
            return Ok(started(id, &self.versions.load(&app, version.as_ref()).await?));
        }
        let wanted = asked.step.map(|step| step.version).or(stored.value.version());
        let version = self.versions.load(&app, wanted).await?;
        let Some(found) = version.document.action(action) else {
            return Err(self.unknown_action(&app, &stored.value, &version, action).await?);
        };
        self.check_needs(&stored.value, &version, found).await?;
        let inputs = match (asked.step, &trigger) {
            (Some(step), _) => inputs_of_step(found, step.inputs)?,
            (None, RunTrigger::Request) => action_inputs(found, &request.inputs)?,
            (None, RunTrigger::Schedule | RunTrigger::Runbook | RunTrigger::Role(_)) => {
                with_defaults(found, &request.inputs)
            }
        };
        let mut nodes = action_nodes(&version.document, action, request.role.as_deref(), 0)?;
        bind_steps(&*self.store, &version.document, &mut nodes).await?;
        let known = known_inputs(&version.document, &stored.value.inputs);
        let (answers, sealing) = (&stored.value.answers, stored.value.sealing());
        resolve_inputs_for(&version.document, &known, answers, sealing, &found.references)?;
        require_runner(&stored.value)?;
        terms::check_accepted(&self.versions, &stored.value, &version, &[OrderedCommands::OfAction(action)]).await?;
        let new = NewWorkflow {
            id: id.clone(),
            kind,
            mode: Mode::Maintenance,
            request: Request::Action {
                action: action.clone(),
                version: Some(version.version.clone()),
                role: request.role.clone(),
                trigger: Some(trigger),
                inputs,
                run_inputs: asked.step.map(|step| step.inputs.clone()).unwrap_or_default(),
            },
            digest: Some(digest),
            asked_by: asked.by.clone(),
            run: asked.run(),
            now: request.now,
            roll_back: RollBack::None,
        };
        start(&*self.store, &*self.machines, self.clock.now(), &stored, new, asked.writes()).await?;
        Ok(started(id, &version))
    }

    /// Refuses an action that needs a component which is switched off and not deployed.
    async fn check_needs(&self, install: &Install, version: &Version, action: &Action) -> Result<(), AppError> {
        let off = toggles::off(&version.document, &install.toggles);
        let mut lacking = action.dependencies.intersection(&off).peekable();
        if lacking.peek().is_none() {
            return Ok(());
        }
        let deployed = table::deployed(&*self.store, &install.id).await?;
        let Some(component) = lacking.find(|name| !deployed.contains_key(*name)) else { return Ok(()) };
        let reason = lacks_text(action, component);
        let way_out = format!("freehold install toggles {} --on {component}", install.id);
        Err(AppError::conflict(format!("{reason}; switch it on with `{way_out}` and deploy")))
    }

    /// Returns the error for an action that `version` does not have. It suggests a deploy if the latest version has the
    /// action, and otherwise a similar name.
    async fn unknown_action(
        &self,
        app: &AppName,
        install: &Install,
        version: &Version,
        action: &ActionName,
    ) -> Result<AppError, AppError> {
        let place = match install.version() {
            Some(_) => format!("version {} of app `{app}`, the version of install `{}`", version.number, install.id),
            None => format!("version {} of app `{app}`", version.number),
        };
        let latest = self.versions.load(app, None).await?;
        let way_out = if latest.document.action(action).is_some() {
            format!(
                "version {0} has this action, so deploy version {0} with `freehold deploy {1}`",
                latest.number, install.id
            )
        } else {
            let known: Vec<&str> = version.document.actions.iter().map(|action| action.name.as_str()).collect();
            match nearest(action.as_str(), known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None if known.is_empty() => {
                    "define it in the app config, because that version has no actions".to_owned()
                }
                None => format!("choose one of its actions: `{}`", known.join("`, `")),
            }
        };
        Ok(Absence::Action { action: action.clone(), place, way_out }.into())
    }
}

fn started(workflow: WorkflowId, version: &Version) -> WorkflowStarted {
    WorkflowStarted { workflow, version: Some(version.version.clone()), number: Some(version.number) }
}

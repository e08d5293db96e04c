//! Starts a deploy of an install's components.

use std::collections::BTreeMap;
use std::sync::Arc;

use freehold_domain::inputs::{InputProblem, InputsError, known_inputs, merged, resolve_inputs, wrong_value};
use freehold_domain::install::Install;
use freehold_domain::install::follows::Named;
use freehold_domain::plan::check_deployable;
use freehold_domain::sealed_inputs::is_sealed;
use freehold_domain::workflow::{Request, RollBack, WorkflowKind};
use freehold_protocol::api::DeployComponentsRequest;
use freehold_protocol::app_version::AppVersion;
use freehold_protocol::order::Mode;
use freehold_protocol::{AppName, InstallId, WorkflowId};
use serde_json::Value;

use crate::AppError;
use crate::app_version::install_release::{Wanted, wanted};
use crate::app_version::show_inputs::version_for_values;
use crate::app_version::versions::Versions;
use crate::contract::terms;
use crate::new_workflow::{Asked, NewWorkflow, came_before, digest_of, require_runner, start};
use crate::ports::{Clock, Machines, Store};
use crate::table;
use crate::workflow::plan_deploy::{DeployOf, plan_deploy};
use crate::workflow::roll_back::what_ran;

/// The use case that starts a deploy, with its ports.
#[derive(Clone)]
pub struct DeployComponents {
    pub store: Arc<dyn Store>,
    pub versions: Versions,
    pub machines: Arc<dyn Machines>,
    pub clock: Arc<dyn Clock>,
}

impl DeployComponents {
    /// Starts a deploy, and changes the inputs that the request names. A repeated call with the same cause returns
    /// the same workflow. A deploy that cannot be planned is refused before anything is stored, so that its inputs are
    /// not stored either.
    ///
    /// # Errors
    /// NotFound, Invalid for wrong inputs, Conflict while another workflow has locked the install, without a runner or
    /// before a build, or the ports' errors.
    pub async fn deploy(
        &self,
        install: &InstallId,
        request: &DeployComponentsRequest,
        asked: Asked<'_>,
    ) -> Result<WorkflowId, AppError> {
        let id = WorkflowId::derive(install.as_str(), asked.cause);
        let digest = digest_of(request)?;
        let kind = WorkflowKind::DeployComponents;
        let before = came_before(&*self.store, &*self.machines, &id, install, kind, &digest).await?;
        if before.is_some() {
            return Ok(id);
        }
        let mut stored = table::install(&*self.store, install).await?;
        let app = stored.value.require_app()?.clone();
        let wanted = self.wanted(&stored.value, request, asked).await?;
        let (version, release) = (wanted.version, wanted.release);
        check_deployable(&version.document)?;
        self.check_sealed(&app, &stored.value, &request.inputs).await?;
        let roll_back = self.roll_back(request, &stored.value).await?;
        let former_inputs = change_inputs(&mut stored.value, &version.document, &request.inputs)?;
        require_runner(&stored.value)?;
        stored.value.begin(&id, true)?;
        let only = request.components.iter().cloned().collect();
        let alone = asked.step.is_some_and(|step| step.alone);
        let of = DeployOf {
            only: &only,
            alone,
            all: request.all,
            release: release.as_ref(),
            role: request.role.as_deref(),
            former_inputs: &former_inputs,
            provision: false,
            serial: 0,
        };
        let nodes = plan_deploy(&self.versions, &stored.value, &version.document, of).await?;
        let gates = terms::commands_of_gates(&nodes);
        terms::check_accepted(&self.versions, &stored.value, &version, &gates).await?;
        let new = NewWorkflow {
            id: id.clone(),
            kind,
            mode: Mode::Maintenance,
            request: Request::Deploy {
                version: Some(version.version),
                only,
                all: request.all,
                alone,
                release,
                role: request.role.clone(),
                former_inputs,
            },
            digest: Some(digest),
            asked_by: asked.by.clone(),
            run: asked.run(),
            now: request.now,
            roll_back,
        };
        start(&*self.store, &*self.machines, self.clock.now(), &stored, new, asked.writes()).await?;
        Ok(id)
    }

    /// Returns what follows a failure of the deploy: of a verified one, the deploy of what runs now.
    async fn roll_back(&self, request: &DeployComponentsRequest, install: &Install) -> Result<RollBack, AppError> {
        if !request.verified {
            return Ok(RollBack::None);
        }
        let before = Box::new(what_ran(&self.versions, install).await?);
        Ok(RollBack::Verified { before, followed: None })
    }

    /// Refuses new values that are not sealed, for inputs that are sensitive in the latest version or in a version that
    /// the install has. The version to deploy may be another one, in which such an input is not sensitive.
    async fn check_sealed(
        &self,
        app: &AppName,
        install: &Install,
        new: &BTreeMap<String, Value>,
    ) -> Result<(), AppError> {
        if new.is_empty() {
            return Ok(());
        }
        let version = version_for_values(&self.versions, app, install).await?;
        let sensitive = version.document.inputs.iter().filter(|input| is_sealed(input));
        let given = sensitive.filter(|input| new.get(&input.name).is_some_and(|value| !value.is_null()));
        let wrong: Vec<InputProblem> = given.filter_map(|input| wrong_value(input, new, install.sealing())).collect();
        if wrong.is_empty() { Ok(()) } else { Err(InputsError(wrong).into()) }
    }

    /// Returns the version that the request names, directly or by a release. If the request names none, returns the
    /// version that the install follows. The steps of a runbook deploy the version that the install has, also when its
    /// channel has moved on.
    async fn wanted(
        &self,
        install: &Install,
        request: &DeployComponentsRequest,
        asked: Asked<'_>,
    ) -> Result<Wanted, AppError> {
        if asked.step.is_some() {
            let version = self.versions.load(install.require_app()?, request.version.as_ref()).await?;
            return Ok(Wanted { version, release: None });
        }
        let named = Named { version: request.version.as_ref(), release: request.release.as_ref() };
        wanted(&self.versions, install, named).await
    }
}

/// Changes inputs of the install, if the version accepts the values that it then has. Returns the former values.
fn change_inputs(
    install: &mut Install,
    version: &AppVersion,
    changes: &BTreeMap<String, Value>,
) -> Result<BTreeMap<String, Value>, AppError> {
    let given = merged(&known_inputs(version, &install.inputs), changes);
    resolve_inputs(version, &given, &install.answers, install.sealing())?;
    let former = former(&install.inputs, changes);
    install.inputs = merged(&install.inputs, changes);
    Ok(former)
}

/// Returns the former values of the inputs in `changes`; null for an input that had no value.
fn former(inputs: &BTreeMap<String, Value>, changes: &BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    changes.keys().map(|name| (name.clone(), inputs.get(name).cloned().unwrap_or_default())).collect()
}

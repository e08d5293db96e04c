//! Starts a deploy of an install's components.

use std::sync::Arc;

use freehold_domain::inputs::{known_inputs, merged, resolve_inputs};
use freehold_domain::plan::check_deployable;
use freehold_domain::workflow::{Request, WorkflowKind};
use freehold_protocol::api::DeployComponentsRequest;
use freehold_protocol::order::Mode;
use freehold_protocol::{AppName, InstallId, WorkflowId};

use crate::AppError;
use crate::app_version::create_release;
use crate::app_version::versions::{Version, Versions};
use crate::artifact::builds::builds_of;
use crate::contract::terms;
use crate::ports::{Clock, Machines, Store};
use crate::table;
use crate::workflow::start_workflow::{NewWorkflow, came_before, no_app, require_runner, start};

/// The ports that starting a deploy needs.
#[derive(Clone)]
pub struct DeployComponents {
    pub store: Arc<dyn Store>,
    pub versions: Versions,
    pub machines: Arc<dyn Machines>,
    pub clock: Arc<dyn Clock>,
}

impl DeployComponents {
    /// Starts a deploy, with changed inputs if the request has some. The same `cause` returns the same workflow again.
    ///
    /// # Errors
    /// NotFound, Invalid inputs, Conflict with a live workflow or without a runner, or the store's errors.
    pub async fn deploy(
        &self,
        install: &InstallId,
        request: &DeployComponentsRequest,
        cause: &str,
    ) -> Result<WorkflowId, AppError> {
        let id = WorkflowId::derive(install.as_str(), cause);
        let before = came_before(&*self.store, &*self.machines, &id, install, WorkflowKind::DeployComponents).await?;
        if before.is_some() {
            return Ok(id);
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

    /// Returns the version that the request names. A release is only accepted while the present builds are its own.
    async fn version(&self, app: &AppName, request: &DeployComponentsRequest) -> Result<Version, AppError> {
        let Some(name) = &request.release else {
            return self.versions.load(app, request.version.as_ref()).await;
        };
        if request.version.is_some() {
            return Err(AppError::invalid("a deploy takes a version or a release, not both; leave one out"));
        }
        let release = table::release(&*self.store, app, name).await?;
        let version = self.versions.load(app, Some(&release.contents.version)).await?;
        create_release::check_builds(&release, &builds_of(&*self.store, &version.document).await?)?;
        Ok(version)
    }
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

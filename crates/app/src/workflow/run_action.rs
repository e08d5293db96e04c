//! Starts a run of an action in an install.

use std::sync::Arc;

use freehold_domain::inputs::{known_inputs, resolve_inputs};
use freehold_domain::workflow::{Request, WorkflowKind};
use freehold_protocol::api::RunActionRequest;
use freehold_protocol::order::Mode;
use freehold_protocol::{ActionName, InstallId, WorkflowId};

use crate::AppError;
use crate::app_version::versions::Versions;
use crate::contract::terms;
use crate::ports::{Clock, Machines, Store};
use crate::table;
use crate::workflow::start_workflow::{NewWorkflow, came_before, no_app, require_runner, start};

/// The ports that starting a run of an action needs.
#[derive(Clone)]
pub struct RunAction {
    pub store: Arc<dyn Store>,
    pub versions: Versions,
    pub machines: Arc<dyn Machines>,
    pub clock: Arc<dyn Clock>,
}

impl RunAction {
    /// Starts a run of an action.
    ///
    /// # Errors
    /// NotFound, Conflict without a runner, or the store's errors.
    pub async fn run(
        &self,
        install: &InstallId,
        action: &ActionName,
        request: &RunActionRequest,
        cause: &str,
    ) -> Result<WorkflowId, AppError> {
        let id = WorkflowId::derive(install.as_str(), cause);
        if came_before(&*self.store, &*self.machines, &id, install, WorkflowKind::RunAction).await? {
            return Ok(id);
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
}

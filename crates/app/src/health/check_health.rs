//! Asks whether the deployed components of an install are healthy, apart from a deploy. It changes nothing.

use std::sync::Arc;

use freehold_domain::install::{Install, InstallError};
use freehold_domain::plan::health_check::NotAsked;
use freehold_domain::workflow::{Request, RollBack, WorkflowKind};
use freehold_protocol::api::CheckHealthRequest;
use freehold_protocol::order::Mode;
use freehold_protocol::{InstallId, WorkflowId};

use super::plan::plan_health_check;
use crate::AppError;
use crate::app_version::versions::Versions;
use crate::ports::{Clock, Machines, Store};
use crate::table::{self, Stored};
use crate::workflow::start_workflow::{Asked, NewWorkflow, came_before, digest_of, require_runner, start};

/// The use case that starts a check, with its ports.
#[derive(Clone)]
pub struct CheckHealth {
    pub store: Arc<dyn Store>,
    pub versions: Versions,
    pub machines: Arc<dyn Machines>,
    pub clock: Arc<dyn Clock>,
}

impl CheckHealth {
    /// Starts a check. A repeated call with the same cause returns the same workflow.
    ///
    /// # Errors
    /// NotFound for an unknown install, Invalid for a named component that has nothing to ask, Conflict without a runner, while
    /// a workflow changes the install or another check has not ended, for a named component that is not deployed, or when no
    /// component can be asked, or the ports' errors.
    pub async fn check(
        &self,
        install: &InstallId,
        request: &CheckHealthRequest,
        asked: Asked<'_>,
    ) -> Result<WorkflowId, AppError> {
        let id = WorkflowId::derive(install.as_str(), asked.cause);
        let digest = digest_of(request)?;
        let kind = WorkflowKind::CheckHealth;
        if came_before(&*self.store, &*self.machines, &id, install, kind, &digest).await?.is_some() {
            return Ok(id);
        }
        let Stored { value, rev } = table::install(&*self.store, install).await?;
        value.require_app()?;
        require_runner(&value)?;
        self.check_free(&value).await?;
        let only = &request.components;
        let plan = plan_health_check(&self.versions, &value, only, 0).await?;
        if let Some(why) = plan.left_out.first().filter(|_| !only.is_empty()) {
            return Err(match why {
                NotAsked::Absent(_) => AppError::conflict(why.to_string()),
                NotAsked::Nothing(_) => AppError::invalid(why.to_string()),
            });
        }
        if plan.nodes.is_empty() {
            return Err(AppError::conflict(format!(
                "install `{install}` has no deployed component that can be asked: a component needs `[health]` in its config, and \
                 a type that offers something or a probe"
            )));
        }
        let new = NewWorkflow {
            id: id.clone(),
            kind,
            mode: Mode::Maintenance,
            request: Request::CheckHealth { only: only.clone() },
            digest: Some(digest),
            asked_by: asked.by.clone(),
            run: None,
            now: false,
            roll_back: RollBack::None,
        };
        let held = Stored { value: Install { health_check: Some(id.clone()), ..value }, rev };
        start(&*self.store, &*self.machines, self.clock.now(), &held, new, Vec::new()).await?;
        Ok(id)
    }

    /// Refuses a check while a workflow changes the install, since a component that is being deployed is expected to be away,
    /// and while another check has not ended.
    async fn check_free(&self, install: &Install) -> Result<(), AppError> {
        if let Some(live) = &install.live {
            return Err(InstallError::Live { install: install.id.clone(), live: live.clone() }.into());
        }
        let Some(checking) = &install.health_check else { return Ok(()) };
        match table::find_workflow(&*self.store, checking).await? {
            Some(found) if !found.value.state.is_terminal() => Err(AppError::conflict(format!(
                "the health of install `{}` is being checked by `{checking}`; wait for it or cancel it",
                install.id
            ))),
            Some(_) | None => Ok(()),
        }
    }
}

//! Checks whether the deployed components of an install are healthy, outside of a deploy. A check changes nothing.

use std::collections::BTreeSet;
use std::sync::Arc;

use freehold_domain::cron::Schedule;
use freehold_domain::plan::health_check::NotAsked;
use freehold_domain::workflow::{Request, WorkflowKind};
use freehold_protocol::api::CheckHealthRequest;
use freehold_protocol::app_version::Component;
use freehold_protocol::order::health::checked;
use freehold_protocol::{ComponentName, InstallId, WorkflowId};

use super::plan::plan_health_check;
use crate::AppError;
use crate::app_version::versions::Versions;
use crate::new_workflow::Asked;
use crate::new_workflow::check::{NewCheck, ScheduledCheck};
use crate::ports::{Clock, Machines, Store};
use crate::table::DueWhat;

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
    /// NotFound for an unknown install, Invalid for a named component that has no health check, Conflict if the install
    /// has no runner, while a workflow changes the install or another check has not ended, for a named component that
    /// is not deployed, or when no component can be checked; or the ports' errors.
    pub async fn check(
        &self,
        install: &InstallId,
        request: &CheckHealthRequest,
        asked: Asked<'_>,
    ) -> Result<WorkflowId, AppError> {
        let only = &request.components;
        let work = Request::CheckHealth { only: only.clone() };
        let new = NewCheck::of(install, WorkflowKind::CheckHealth, work, request, asked)?;
        let Some(held) = new.hold(&*self.store, &*self.machines).await? else { return Ok(new.id()) };
        let plan = plan_health_check(&self.versions, &held.value, only, 0).await?;
        if let Some(why) = plan.left_out.first().filter(|_| !only.is_empty()) {
            return Err(match why {
                NotAsked::Absent(_) => AppError::conflict(why.to_string()),
                NotAsked::Nothing(_) => AppError::invalid(why.to_string()),
            });
        }
        if plan.nodes.is_empty() {
            return Err(AppError::conflict(format!(
                "no deployed component of install `{install}` has a health check; add `[health]` to a component, with \
                 a probe unless the type of the component has a built-in check, and deploy the component"
            )));
        }
        new.start(&*self.store, &*self.machines, self.clock.now(), &held, Vec::new()).await
    }
}

impl ScheduledCheck for CheckHealth {
    const WHAT: &'static str = "health";
    const DUE: DueWhat = DueWhat::Health;

    fn schedule(part: &Component) -> Option<Schedule> {
        checked(part).and_then(|health| Schedule::parse(&health.schedule).ok())
    }

    async fn start(
        &self,
        install: &InstallId,
        only: BTreeSet<ComponentName>,
        asked: Asked<'_>,
    ) -> Result<WorkflowId, AppError> {
        self.check(install, &CheckHealthRequest { components: only }, asked).await
    }
}

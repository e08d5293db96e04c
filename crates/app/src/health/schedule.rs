//! When the health checks of an install are due, by the schedules of its deployed version, and their start.

use std::collections::BTreeSet;

use freehold_domain::cron::Schedule;
use freehold_domain::install::Install;
use freehold_domain::spread::{is_due, next_check};
use freehold_protocol::api::CheckHealthRequest;
use freehold_protocol::app_version::{AppVersion, Component};
use freehold_protocol::order::AskedBy;
use freehold_protocol::order::health::checked;
use freehold_protocol::{ComponentName, InstallId, Timestamp};

use super::check_health::CheckHealth;
use crate::AppError;
use crate::table;
use crate::workflow::scheduled_check::{Scheduled, is_away};
use crate::workflow::start_workflow::Asked;

/// Returns the schedule of a component; `None` for one without a schedule, or that has nothing to ask. A schedule that cannot
/// be parsed is left out; `freehold app sync` refuses such a schedule.
fn schedule(component: &Component) -> Option<Schedule> {
    checked(component).and_then(|health| Schedule::parse(&health.schedule).ok())
}

/// Returns the next minute at which components of the install are to be asked.
pub(crate) fn next_health_check(version: &AppVersion, install: &InstallId, now: Timestamp) -> Option<Timestamp> {
    version.components.iter().filter_map(|component| next_check(&schedule(component)?, install, now)).min()
}

/// Returns whether a version has a component that is asked by schedule.
pub(crate) fn has_health_schedules(version: &AppVersion) -> bool {
    version.components.iter().any(|component| schedule(component).is_some())
}

/// Returns the components whose check is due in the minute of `at`.
fn components_due(version: &AppVersion, install: &InstallId, at: Timestamp) -> BTreeSet<ComponentName> {
    let is_due = |one: &&Component| schedule(one).is_some_and(|schedule| is_due(&schedule, install, at));
    version.components.iter().filter(is_due).map(|component| component.name.clone()).collect()
}

impl CheckHealth {
    /// Starts the check of the components that are due in the minute of `due`, once for this minute. It is skipped when the
    /// check before it has not ended, while a workflow changes the install, and while the runner takes no orders.
    pub(crate) async fn scheduled(
        &self,
        install: &Install,
        version: &AppVersion,
        due: Timestamp,
    ) -> Result<Scheduled, AppError> {
        let deployed = table::deployed(&*self.store, &install.id).await?;
        let mut components = components_due(version, &install.id, due);
        components.retain(|name| deployed.contains_key(name));
        if components.is_empty() {
            return Ok(Scheduled::NotDue);
        }
        if let Some(reason) = is_away(&*self.store, install, self.clock.now()).await? {
            return Ok(Scheduled::Skipped(reason));
        }
        // The same minute has one cause, so that a repeated call starts nothing.
        let (cause, request) = (format!("health {}", due.as_millis()), CheckHealthRequest { components });
        let asked = Asked { by: &AskedBy::Schedule, cause: &cause, step: None };
        Scheduled::of(self.check(&install.id, &request, asked).await)
    }
}

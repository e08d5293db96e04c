//! When the drift checks of an install are due, by the schedules of its deployed version, and their start.

use std::collections::BTreeSet;

use freehold_domain::cron::Schedule;
use freehold_domain::install::Install;
use freehold_domain::plan::drift::unchecked;
use freehold_domain::spread::{is_due, next_check};
use freehold_protocol::api::DetectDriftRequest;
use freehold_protocol::app_version::{AppVersion, Component};
use freehold_protocol::order::AskedBy;
use freehold_protocol::{ComponentName, InstallId, Timestamp};

use super::detect_drift::DetectDrift;
use crate::AppError;
use crate::table;
use crate::workflow::scheduled_check::{Scheduled, is_away};
use crate::workflow::start_workflow::Asked;

/// Returns the schedule of a part; `None` for a part without one, or whose kind is not checked. A schedule that cannot be
/// parsed is left out; `freehold app sync` refuses such a schedule.
fn schedule(part: &Component) -> Option<Schedule> {
    let text = &part.settings.drift_schedule;
    unchecked(&part.spec).is_none().then(|| Schedule::parse(text).ok()).flatten()
}

/// Returns the next minute at which parts of the install are to be checked.
pub(crate) fn next_drift_check(version: &AppVersion, install: &InstallId, now: Timestamp) -> Option<Timestamp> {
    version.parts().filter_map(|part| next_check(&schedule(&part)?, install, now)).min()
}

/// Returns whether a version has a part that is checked by schedule.
pub(crate) fn has_drift_schedules(version: &AppVersion) -> bool {
    version.parts().any(|part| schedule(&part).is_some())
}

/// Returns the parts whose check is due in the minute of `at`.
fn parts_due(version: &AppVersion, install: &InstallId, at: Timestamp) -> BTreeSet<ComponentName> {
    let due = version.parts().filter(|part| schedule(part).is_some_and(|schedule| is_due(&schedule, install, at)));
    due.map(|part| part.name.clone()).collect()
}

impl DetectDrift {
    /// Starts the check of the parts that are due in the minute of `due`, once for this minute. It is skipped when the check
    /// before it has not ended, while a workflow changes the install, and while the runner takes no orders: a check that
    /// waits finds nothing that the next one does not find.
    pub(crate) async fn scheduled(
        &self,
        install: &Install,
        version: &AppVersion,
        due: Timestamp,
    ) -> Result<Scheduled, AppError> {
        let deployed = table::deployed(&*self.store, &install.id).await?;
        let mut components = parts_due(version, &install.id, due);
        components.retain(|name| deployed.contains_key(name));
        if components.is_empty() {
            return Ok(Scheduled::NotDue);
        }
        if let Some(reason) = is_away(&*self.store, install, self.clock.now()).await? {
            return Ok(Scheduled::Skipped(reason));
        }
        // The same minute has one cause, so that a repeated call starts nothing.
        let (cause, request) = (format!("drift {}", due.as_millis()), DetectDriftRequest { components });
        let asked = Asked { by: &AskedBy::Schedule, cause: &cause, step: None };
        Scheduled::of(self.detect(&install.id, &request, asked).await)
    }
}

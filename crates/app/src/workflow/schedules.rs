//! The cron schedules of an app version.

use freehold_domain::cron::Schedule;
use freehold_protocol::Timestamp;
use freehold_protocol::app_version::{Action, AppVersion, Trigger};

use crate::drift::detect_drift::DetectDrift;
use crate::health::check_health::CheckHealth;
use crate::new_workflow::check;

/// Returns whether a version has an action or a check with a schedule.
pub(crate) fn has_schedules(version: &AppVersion) -> bool {
    check::has_schedules::<DetectDrift>(version)
        || check::has_schedules::<CheckHealth>(version)
        || version.actions.iter().any(|action| schedules(action).next().is_some())
}

/// Returns the schedules of an action's triggers. A schedule that cannot be parsed is left out; `freehold app sync`
/// refuses such a schedule.
pub(crate) fn schedules(action: &Action) -> impl Iterator<Item = Schedule> {
    action.triggers.iter().filter_map(|trigger| match trigger {
        Trigger::Cron { schedule } => Schedule::parse(schedule).ok(),
        Trigger::Manual
        | Trigger::PostProvision
        | Trigger::PostDeployComponent { .. }
        | Trigger::PostDeployAllComponents
        | Trigger::Event { .. } => None,
    })
}

/// Returns the next minute at which an action is due.
pub(crate) fn next_run(action: &Action, now: Timestamp) -> Option<Timestamp> {
    schedules(action).filter_map(|schedule| schedule.next_after(now)).min()
}

//! Sets whether the build runner's machine exists, depending on the builds that wait for it.

use freehold_protocol::Timestamp;

use super::counts::Swept;
use crate::AppError;
use crate::ports::{BuildMachine, Store};
use crate::table::{self, OpenWorkflow, load_all};

/// The interval in minutes at which the number of machines is set to zero while there is no build. Without this, a
/// machine that failed to set the number itself would be replaced when it ends.
const REST_EVERY_MINUTES: u64 = 10;

/// Asks for the machine of the build runner when builds wait for it. When the last build was lost, and from time to
/// time, sets the number of machines to zero: machines that end without setting it would be replaced again and
/// again.
///
/// The number stays as it is while a build is open, because its machine may be starting, and a machine that is starting
/// is not protected from a lower number. A build that begins during these calls may have asked for the machine before
/// the number became zero, so the builds are read again afterwards.
pub(super) async fn set_machine(
    store: &dyn Store,
    machine: &dyn BuildMachine,
    (swept, now): (Swept, Timestamp),
) -> Result<(), AppError> {
    if swept.builds > 0 {
        return Ok(machine.wake().await?);
    }
    let is_due = swept.lost_builds > 0 || is_rest_due(now);
    if !is_due || is_building(store).await? {
        return Ok(());
    }
    machine.rest().await?;
    if is_building(store).await? {
        machine.wake().await?;
    }
    Ok(())
}

/// Returns whether a build may still need the build runner.
async fn is_building(store: &dyn Store) -> Result<bool, AppError> {
    let build = table::reserved_install()?;
    let open: Vec<OpenWorkflow> = load_all(store, "open", "").await?;
    for entry in open.into_iter().filter(|entry| entry.install == build) {
        let workflow = table::workflow(store, &entry.workflow).await?.value;
        let has_ended = workflow.state.is_terminal() || workflow.is_settled();
        if !has_ended || workflow.active_jobs().next().is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns whether the sweep at `now` sets the number of machines to zero if there is no build.
pub(super) const fn is_rest_due(now: Timestamp) -> bool {
    (now.as_millis() / 60_000).is_multiple_of(REST_EVERY_MINUTES)
}

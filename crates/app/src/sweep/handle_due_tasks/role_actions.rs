//! Starts the actions whose trigger is the switch of a role.

use freehold_domain::role_switches::RoleChange;
use freehold_domain::workflow::RunTrigger;
use freehold_protocol::order::AskedBy;
use freehold_protocol::{InstallId, Timestamp};

use super::{HandleDueTasks, Handled};
use crate::AppError;
use crate::new_workflow::Asked;

impl HandleDueTasks {
    /// Starts a run of each action of the deployed version that one of the changes starts, once for each change. A
    /// hello of the time `at` announced the changes. A run that the install refuses is skipped, and `freehold install
    /// show` names the reason.
    pub(super) async fn run_for_roles(
        &self,
        id: &InstallId,
        at: Timestamp,
        changes: &[RoleChange],
        counts: &mut Handled,
    ) -> Result<(), AppError> {
        let install = self.find_install(id).await?;
        let Some(version) = self.load_deployed_version(install.as_ref()).await? else { return Ok(()) };
        for change in changes {
            for action in change.actions(&version) {
                let cause = change.cause(action, at);
                let asked = Asked { by: &AskedBy::Sweep, cause: &cause, step: None };
                let trigger = RunTrigger::Role(change.clone());
                let skipped = match self.start_run(id, &action.name, (trigger, asked)).await? {
                    Ok(_) => {
                        counts.started += 1;
                        None
                    }
                    Err(reason) => {
                        counts.skipped += 1;
                        let (name, event, role) = (&action.name, change.event(), &change.role);
                        tracing::warn!(
                            install.id = %id,
                            "Skipped a run of action `{name}` in `{id}` after `{event}` of role `{role}`: {reason}"
                        );
                        Some((at, reason))
                    }
                };
                self.note(id, &action.name, skipped).await?;
            }
        }
        Ok(())
    }
}

//! Stores which roles the customer has switched on, as a hello announces it. A change is an event that starts actions.

use std::collections::BTreeMap;

use freehold_domain::install::Install;
use freehold_domain::role_switches::RoleSwitches;
use freehold_protocol::limits::MAX_ROLE_SWITCHES;
use freehold_protocol::{RoleKey, Timestamp};

use super::AcceptReport;
use crate::AppError;
use crate::ports::Expect;
use crate::table::{self, Decided, Due, DueWhat, RoleSwitchesRecord, Stored, load, put, role_switches_key};

impl AcceptReport {
    /// Stores the switches of a hello that the reports queue took at `at`. If one of them has changed, the same commit
    /// stores a task, and the sweep starts the actions of the event. The first switches of an install are not an event.
    /// A hello without switches, or one that is older than another hello, changes nothing.
    ///
    /// The customer's runner is believed: it can only start actions of its own install, which it runs itself.
    pub(super) async fn note_roles(
        &self,
        install: &Install,
        announced: Option<&BTreeMap<RoleKey, bool>>,
        at: Timestamp,
    ) -> Result<(), AppError> {
        let Some(announced) = announced.filter(|_| install.app().is_some()) else { return Ok(()) };
        let (id, count) = (&install.id, announced.len());
        if count > MAX_ROLE_SWITCHES {
            tracing::warn!(
                install.id = %id,
                "Ignored the switches of {count} roles in a hello of `{id}`, which are more than {MAX_ROLE_SWITCHES}"
            );
            return Ok(());
        }
        table::change(&*self.store, ("the record of role switches of install", id), || async {
            let known: Option<Stored<RoleSwitchesRecord>> = load(&*self.store, &role_switches_key(id)).await?;
            let (switches, changes, expect) = match known {
                None => (RoleSwitches::first(at, announced), Vec::new(), Expect::Absent),
                Some(Stored { value, rev }) => match value.switches.after(at, announced) {
                    Some((switches, changes)) => (switches, changes, Expect::Rev(rev)),
                    None => return Ok(Decided::Keep(())),
                },
            };
            if self.is_older(install, at).await? {
                return Ok(Decided::Keep(()));
            }
            let mut writes = vec![put(&RoleSwitchesRecord { install: id.clone(), switches }, expect)?];
            if !changes.is_empty() {
                // The task has the time of the hello, so that a second delivery of the hello writes the same task.
                let task = Due::at(at, id.clone(), DueWhat::Roles { at, changes });
                writes.push(put(&task, Expect::Any)?);
            }
            Ok(Decided::Commit(writes, ()))
        })
        .await
    }
}

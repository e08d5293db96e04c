//! The switches of an install's roles: which roles the customer has switched on, as the install's runner announced it.
//! A change of a switch is an event, which starts actions.

mod role_runs;

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::app_version::{Action, AppVersion, Trigger};
use freehold_protocol::order::Mode;
use freehold_protocol::{RoleKey, Timestamp};
use serde::{Deserialize, Serialize};

pub use role_runs::{MAX_ROLE_RUNS, RoleRuns};

/// The names of the events of roles in configs. They have no `pre-` and no `post-`.
pub const ROLE_EVENTS: [&str; 2] = ["role-enabled", "role-disabled"];

/// The environment variables of the steps of an action that events of roles start, as in the config format. Each has
/// the key of its value below `.nuon.action.role`.
pub const ROLE_VARIABLES: [(&str, &str); 6] = [
    ("TRIGGER_TYPE", "trigger"),
    ("CHANGE_TYPE", "change"),
    ("ROLE_NAME", "name"),
    ("ROLE_TYPE", "type"),
    ("ROLE_ARN", "arn"),
    ("ROLE_ID", "arn"),
];

/// The minimum time between two changes of an install's switches, in seconds, because a runner may announce other
/// switches in each hello. [`RoleRuns`] limits the runs that the changes start.
const PAUSE_SECS: u64 = 60;

/// The roles that the customer of an install has switched on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoleSwitches {
    /// The time at which the reports queue took the hello that announced these switches first.
    pub at: Timestamp,
    pub on: BTreeSet<RoleKey>,
}

/// A role that the customer has switched on or off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoleChange {
    pub role: RoleKey,
    /// Whether the role is on since the change.
    pub enabled: bool,
}

impl RoleSwitches {
    /// Returns the switches of the first hello that announced some.
    pub fn first(at: Timestamp, announced: &BTreeMap<RoleKey, bool>) -> Self {
        Self { at, on: switched_on(announced) }
    }

    /// Returns the switches after a hello that the reports queue took at `at`, and the changes; `None` if the hello
    /// changes nothing. A role that the install stack does not have counts as switched off. A change that comes too
    /// soon after the change before it does not count until a later hello repeats it.
    #[must_use]
    pub fn after(&self, at: Timestamp, announced: &BTreeMap<RoleKey, bool>) -> Option<(Self, Vec<RoleChange>)> {
        let on = switched_on(announced);
        if on == self.on || at < self.at.plus_secs(PAUSE_SECS) {
            return None;
        }
        let changed = on.symmetric_difference(&self.on);
        let changes = changed.map(|role| RoleChange { role: role.clone(), enabled: on.contains(role) }).collect();
        Some((Self { at, on }, changes))
    }
}

fn switched_on(announced: &BTreeMap<RoleKey, bool>) -> BTreeSet<RoleKey> {
    announced.iter().filter(|(_, is_on)| **is_on).map(|(role, _)| role.clone()).collect()
}

impl RoleChange {
    /// Returns the name of the event in configs.
    pub const fn event(&self) -> &'static str {
        let [enabled, disabled] = ROLE_EVENTS;
        if self.enabled { enabled } else { disabled }
    }

    /// Returns the type of the role, by the words of the config format.
    pub fn role_type(&self) -> &'static str {
        match self.role.as_str() {
            "provision" => "runner_provision",
            "maintenance" => "runner_maintenance",
            "deprovision" => "runner_deprovision",
            _ if self.role.is_break_glass() => "breakglass",
            _ => "custom",
        }
    }

    /// Returns the cause from which the id of the run of `action` is derived. The hello of the time `at` announced the
    /// change. The cause contains spaces, which no idempotency key contains.
    pub fn cause(&self, action: &Action, at: Timestamp) -> String {
        format!("{} {} {} {}", self.event(), self.role, at.as_millis(), action.name)
    }

    /// Returns the actions of `version` that the change starts, in the order of their indexes. Those without an index
    /// follow, by name. The switch of a role that the version does not have starts nothing.
    pub fn actions<'a>(&self, version: &'a AppVersion) -> Vec<&'a Action> {
        if !has_role(version, &self.role) {
            return Vec::new();
        }
        let is_its = |trigger: &Trigger| matches!(trigger, Trigger::Event { event, .. } if event == self.event());
        let mut actions: Vec<_> = version.actions.iter().filter(|action| action.triggers.iter().any(is_its)).collect();
        actions.sort_by_key(|action| {
            let index = action.indexes.iter().filter(|one| is_its(&one.trigger)).map(|one| one.index).min();
            (index.is_none(), index)
        });
        actions
    }
}

/// Returns whether a trigger is an event of roles.
pub fn is_role_event(trigger: &Trigger) -> bool {
    matches!(trigger, Trigger::Event { event, .. } if ROLE_EVENTS.contains(&event.as_str()))
}

/// Returns the template of the value with this key of [`ROLE_VARIABLES`]. The value is empty in other runs of the
/// action.
pub fn role_template(key: &str) -> String {
    format!("{{{{ with .nuon.action.role }}}}{{{{ .{key} }}}}{{{{ end }}}}")
}

/// Returns whether the install stack of the version has the role. Each stack has the roles of the modes.
fn has_role(version: &AppVersion, role: &RoleKey) -> bool {
    let modes = [Mode::Provision, Mode::Maintenance, Mode::Deprovision];
    let is_of_mode = modes.iter().any(|mode| mode.as_str() == role.as_str());
    is_of_mode || version.named_roles.iter().any(|named| named.key() == *role)
}

#[cfg(test)]
mod tests;

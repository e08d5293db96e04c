//! Compares the roles of two versions: their permissions, texts and flags.

use std::collections::{BTreeMap, BTreeSet};

use freehold_permissions::{Permission, Powers};
use freehold_protocol::app_version::{AppVersion, ModeRole, NamedRole};
use serde::{Deserialize, Serialize};

use super::values::{Change, change_of_text};

/// The differences of one role. [`freehold_permissions::compare`] compares the permissions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoleDiff {
    /// The name of the role; for the role of a mode, `mode` and the mode, such as `mode provision`.
    pub role: String,
    pub presence: Presence,
    pub widened: Vec<Permission>,
    pub narrowed: Vec<Permission>,
    /// The changes of the role's texts and flags.
    pub changes: Vec<Change>,
}

/// Whether a role is in both versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Presence {
    Added,
    Removed,
    Kept,
}

/// A role of a mode or a named role, in the form in which roles are compared.
struct Role<'a> {
    texts: [(&'static str, &'a str); 4],
    powers: Powers<'a>,
}

/// Returns the differences of all roles: first the roles of modes, then the named roles.
pub(super) fn roles(from: &AppVersion, to: &AppVersion) -> Vec<RoleDiff> {
    let (before, after) = (all(from), all(to));
    let names: BTreeSet<&(bool, String)> = before.keys().chain(after.keys()).collect();
    let compared = names.into_iter().map(|key| compare(&key.1, before.get(key), after.get(key)));
    compared.filter(RoleDiff::says_something).collect()
}

impl RoleDiff {
    fn says_something(&self) -> bool {
        self.presence != Presence::Kept
            || !(self.widened.is_empty() && self.narrowed.is_empty() && self.changes.is_empty())
    }
}

/// Returns all roles of `version`. The key has two parts: whether the role is a named role, and its name.
fn all(version: &AppVersion) -> BTreeMap<(bool, String), Role<'_>> {
    let modes = version.roles.iter().map(|role| ((false, format!("mode {}", role.mode.as_str())), of_mode(role)));
    let named = version.named_roles.iter().map(|role| ((true, role.name.clone()), of_name(role)));
    modes.chain(named).collect()
}

fn of_mode(role: &ModeRole) -> Role<'_> {
    Role {
        texts: [
            ("name", &role.name),
            ("description", &role.description),
            ("display_name", &role.display_name),
            ("break_glass", ""),
        ],
        powers: Powers { on: true, policies: &role.policies, boundary: role.boundary.as_deref() },
    }
}

fn of_name(role: &NamedRole) -> Role<'_> {
    let break_glass = if role.break_glass { "yes" } else { "no" };
    Role {
        texts: [
            ("name", ""),
            ("description", &role.description),
            ("display_name", &role.display_name),
            ("break_glass", break_glass),
        ],
        powers: Powers { on: role.enabled, policies: &role.policies, boundary: role.boundary.as_deref() },
    }
}

fn compare(name: &str, before: Option<&Role<'_>>, after: Option<&Role<'_>>) -> RoleDiff {
    let gap = freehold_permissions::compare(before.map(|role| role.powers), after.map(|role| role.powers));
    let presence = match (before, after) {
        (None, Some(_)) => Presence::Added,
        (Some(_), None) => Presence::Removed,
        (Some(_), Some(_)) | (None, None) => Presence::Kept,
    };
    let changes = match (before, after) {
        (Some(before), Some(after)) => {
            let texts = before.texts.iter().zip(&after.texts);
            texts.filter_map(|((key, from), (_, to))| change_of_text(key, from, to)).collect()
        }
        (None, _) | (_, None) => Vec::new(),
    };
    RoleDiff { role: name.to_owned(), presence, widened: gap.widened, narrowed: gap.narrowed, changes }
}

//! Roles that may do more or less than before.

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::app_version::{AppVersion, ModeRole, NamedRole, RolePolicy};
use serde::{Deserialize, Serialize};

use super::policy::{Effect, Group, Statements};
use super::values::{Change, change_of_text};

/// How one role differs.
///
/// Permissions are compared after normalising: what all inline policies of a role allow and deny together, pattern by
/// pattern; managed policies by name. What cannot be decided counts as widened and says so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoleDiff {
    /// Such as `mode provision`, or a named role's name.
    pub role: String,
    pub presence: Presence,
    pub widened: Vec<Permission>,
    pub narrowed: Vec<Permission>,
    /// Its texts and flags.
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

/// One thing that a role may do more, when it stands under `widened`, or less.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Permission {
    /// Widened: an allowance that came, or a denial that went; narrowed: the other way round.
    Statement {
        effect: Effect,
        actions: BTreeSet<String>,
        resources: BTreeSet<String>,
        /// JSON; empty for none.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        condition: String,
        /// Whether the boundary says it, which limits the role and grants nothing.
        boundary: bool,
    },
    /// A statement with `NotAction`, `NotResource` or the like, as JSON without its effect.
    Other { effect: Effect, statement: String, boundary: bool },
    /// An AWS managed policy.
    Managed { name: String },
    /// A predefined role of Google Cloud.
    GcpPredefined { name: String },
    /// Widened: the boundary went; narrowed: one came.
    Boundary,
    /// Widened: the install stack switches the role on by itself; narrowed: it does not any more.
    SwitchedOn,
    /// A text that is no policy document changed; only ever widened.
    Undecided { holder: String },
}

impl Permission {
    /// Returns what people read under "widened" or "narrowed".
    pub fn words(&self, widened: bool) -> String {
        match self {
            Self::Statement { effect, actions, resources, condition, boundary } => {
                let list = |all: &BTreeSet<String>| all.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
                let when = if condition.is_empty() { String::new() } else { format!(" when {condition}") };
                let verb = verb(*effect, widened, *boundary);
                format!("{verb} {} on {}{when}", list(actions), list(resources))
            }
            Self::Other { effect, statement, boundary } => {
                format!("{} {statement}", verb(*effect, widened, *boundary))
            }
            Self::Managed { name } => format!("managed policy {name}"),
            Self::GcpPredefined { name } => format!("predefined role {name}"),
            Self::Boundary if widened => "has no permission boundary any more".into(),
            Self::Boundary => "has a permission boundary".into(),
            Self::SwitchedOn if widened => "is switched on unless the customer says otherwise".into(),
            Self::SwitchedOn => "is switched off until the customer says otherwise".into(),
            Self::Undecided { holder } => {
                format!("{holder} changed and cannot be compared; read it, it may grant more")
            }
        }
    }
}

const fn verb(effect: Effect, widened: bool, boundary: bool) -> &'static str {
    match (effect, widened, boundary) {
        (Effect::Allow, true, false) => "allows",
        (Effect::Allow, false, false) => "no longer allows",
        (Effect::Deny, true, false) => "no longer denies",
        (Effect::Deny, false, false) => "denies",
        (Effect::Allow, true, true) => "its boundary lets through",
        (Effect::Allow, false, true) => "its boundary no longer lets through",
        (Effect::Deny, true, true) => "its boundary no longer denies",
        (Effect::Deny, false, true) => "its boundary denies",
    }
}

/// One role of either kind.
struct Role<'a> {
    texts: [(&'static str, &'a str); 4],
    enabled: bool,
    policies: &'a [RolePolicy],
    boundary: Option<&'a str>,
}

/// Returns how the roles differ, those of modes first.
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

/// Returns all roles by whether they are named ones and what they are called.
fn all(version: &AppVersion) -> BTreeMap<(bool, String), Role<'_>> {
    let modes = version.roles.iter().map(|role| ((false, format!("mode {}", role.mode.as_str())), of_mode(role)));
    let named = version.named_roles.iter().map(|role| ((true, role.name.clone()), of_name(role)));
    modes.chain(named).collect()
}

fn of_mode(role: &ModeRole) -> Role<'_> {
    Role {
        texts: [("name", &role.name), ("description", &role.description), ("display_name", ""), ("break_glass", "")],
        enabled: true,
        policies: &role.policies,
        boundary: role.boundary.as_deref(),
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
        enabled: role.enabled,
        policies: &role.policies,
        boundary: role.boundary.as_deref(),
    }
}

fn compare(name: &str, before: Option<&Role<'_>>, after: Option<&Role<'_>>) -> RoleDiff {
    let role = name.to_owned();
    match (before, after) {
        (Some(before), Some(after)) => kept(role, before, after),
        // A role that is not there may do nothing: what the other one denies, and its boundary, mean nothing then.
        (None, Some(after)) => {
            let is = Granted::of(after.policies);
            let mut widened = is.all_of_it();
            widened.extend(undecided(&Statements::default(), &is.statements));
            RoleDiff { role, presence: Presence::Added, widened, narrowed: Vec::new(), changes: Vec::new() }
        }
        (Some(before), None) => {
            let narrowed = Granted::of(before.policies).all_of_it();
            RoleDiff { role, presence: Presence::Removed, widened: Vec::new(), narrowed, changes: Vec::new() }
        }
        // INVARIANT: the name comes from one of the two versions.
        (None, None) => {
            let (widened, narrowed, changes) = (Vec::new(), Vec::new(), Vec::new());
            RoleDiff { role, presence: Presence::Kept, widened, narrowed, changes }
        }
    }
}

fn kept(role: String, before: &Role<'_>, after: &Role<'_>) -> RoleDiff {
    let (was, is) = (Granted::of(before.policies), Granted::of(after.policies));
    let mut widened = is.more_than(&was);
    let mut narrowed = was.more_than(&is);
    both_ways(&was.statements, &is.statements, false, &mut widened, &mut narrowed);
    match (before.boundary, after.boundary) {
        (Some(before), Some(after)) => {
            both_ways(&of_boundary(before), &of_boundary(after), true, &mut widened, &mut narrowed);
        }
        (Some(_), None) => widened.push(Permission::Boundary),
        (None, Some(_)) => narrowed.push(Permission::Boundary),
        (None, None) => {}
    }
    match (before.enabled, after.enabled) {
        (false, true) => widened.push(Permission::SwitchedOn),
        (true, false) => narrowed.push(Permission::SwitchedOn),
        (true, true) | (false, false) => {}
    }
    widened.sort();
    narrowed.sort();
    let texts = before.texts.iter().zip(&after.texts);
    let changes = texts.filter_map(|((key, from), (_, to))| change_of_text(key, from, to)).collect();
    RoleDiff { role, presence: Presence::Kept, widened, narrowed, changes }
}

/// What the policies of a role grant.
#[derive(Default)]
struct Granted {
    managed: BTreeSet<String>,
    predefined: BTreeSet<String>,
    statements: Statements,
}

impl Granted {
    fn of(policies: &[RolePolicy]) -> Self {
        let mut granted = Self::default();
        for policy in policies {
            match policy {
                RolePolicy::Managed(name) => drop(granted.managed.insert(name.clone())),
                RolePolicy::GcpPredefined(name) => drop(granted.predefined.insert(name.clone())),
                RolePolicy::Inline { name, document } => {
                    granted.statements.read(&format!("policy `{name}`"), document);
                }
            }
        }
        granted
    }

    fn all_of_it(&self) -> Vec<Permission> {
        let nothing = Self::default();
        let mut all = self.more_than(&nothing);
        all.extend(statements(&self.statements, &nothing.statements, Effect::Allow, false));
        all.sort();
        all
    }

    fn more_than(&self, other: &Self) -> Vec<Permission> {
        let managed = self.managed.difference(&other.managed).map(|name| Permission::Managed { name: name.clone() });
        let predefined = self.predefined.difference(&other.predefined);
        managed.chain(predefined.map(|name| Permission::GcpPredefined { name: name.clone() })).collect()
    }
}

fn statements(these: &Statements, those: &Statements, effect: Effect, boundary: bool) -> Vec<Permission> {
    let plain = these.beyond(those, effect).into_iter().map(|group| {
        let Group { effect, condition, actions, resources } = group;
        Permission::Statement { effect, actions, resources, condition, boundary }
    });
    let other = these.others_beyond(those, effect);
    plain.chain(other.map(|text| Permission::Other { effect, statement: text.to_owned(), boundary })).collect()
}

/// Returns the texts that cannot be compared and that only one side has, each holder once.
fn undecided(was: &Statements, is: &Statements) -> Vec<Permission> {
    let holders: BTreeSet<&String> = was.unread.symmetric_difference(&is.unread).map(|(holder, _)| holder).collect();
    holders.into_iter().map(|holder| Permission::Undecided { holder: holder.clone() }).collect()
}

fn both_ways(
    was: &Statements,
    is: &Statements,
    boundary: bool,
    widened: &mut Vec<Permission>,
    narrowed: &mut Vec<Permission>,
) {
    widened.extend(statements(is, was, Effect::Allow, boundary));
    widened.extend(statements(was, is, Effect::Deny, boundary));
    widened.extend(undecided(was, is));
    narrowed.extend(statements(was, is, Effect::Allow, boundary));
    narrowed.extend(statements(is, was, Effect::Deny, boundary));
}

fn of_boundary(text: &str) -> Statements {
    let mut statements = Statements::default();
    statements.read("its boundary", text);
    statements
}

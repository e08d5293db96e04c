//! Compares the permissions of a role before and after a change.

use std::collections::BTreeSet;

use freehold_protocol::app_version::RolePolicy;
use serde::{Deserialize, Serialize};

use crate::statements::{Effect, Group, Statements};

/// The parts of a role that decide its permissions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Powers<'a> {
    /// Whether the install stack enables the role by default; the customer can change this.
    pub on: bool,
    pub policies: &'a [RolePolicy],
    /// The JSON text of a permission boundary.
    pub boundary: Option<&'a str>,
}

/// The difference between the permissions of a role before and after a change; both lists are sorted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Gap {
    pub widened: Vec<Permission>,
    pub narrowed: Vec<Permission>,
}

/// Compares the permissions of a role before and after a change. `None` means that the role does not exist.
///
/// All inline policies of a role are compared together, pattern by pattern, and managed policies by name. A difference
/// that cannot be decided becomes [`Permission::Undecided`] and counts as widened.
pub fn compare(before: Option<Powers<'_>>, after: Option<Powers<'_>>) -> Gap {
    match (before, after) {
        (Some(before), Some(after)) => kept(before, after),
        // The denials and the boundary of a new role are not differences: the role had no permissions before.
        (None, Some(after)) => {
            let is = Granted::of(after.policies);
            let mut widened = is.all_of_it();
            widened.extend(undecided(&Statements::default(), &is.statements));
            Gap { widened, narrowed: Vec::new() }
        }
        (Some(before), None) => Gap { widened: Vec::new(), narrowed: Granted::of(before.policies).all_of_it() },
        (None, None) => Gap::default(),
    }
}

/// Returns all permissions and denials of a role, statement by statement, and then those of its boundary.
pub fn permissions(policies: &[RolePolicy], boundary: Option<&str>) -> Vec<Permission> {
    let is = Granted::of(policies);
    let nothing = Statements::default();
    let mut all = is.all_of_it();
    all.extend(statements(&is.statements, &nothing, Effect::Deny, false));
    all.extend(undecided(&nothing, &is.statements));
    if let Some(boundary) = boundary.map(Statements::of_boundary) {
        all.extend(statements(&boundary, &nothing, Effect::Allow, true));
        all.extend(statements(&boundary, &nothing, Effect::Deny, true));
        all.extend(undecided(&nothing, &boundary));
    }
    all
}

/// Returns the reason why an AWS managed policy grants unusually much; `None` for all other policies.
pub fn why_wide(managed: &str) -> Option<&'static str> {
    match managed {
        "AdministratorAccess" => Some("allows everything that the boundary does not deny"),
        "PowerUserAccess" => Some("allows everything but IAM, as far as the boundary does not deny it"),
        "IAMFullAccess" => Some("allows all of IAM, as far as the boundary does not deny it"),
        _ => None,
    }
}

/// One permission of a role. The role gains it when the list is `widened`, and loses it when the list is `narrowed`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Permission {
    /// An `Allow` or `Deny` statement. Widened: an `Allow` was added or a `Deny` was removed. Narrowed: the opposite.
    Statement {
        effect: Effect,
        actions: BTreeSet<String>,
        resources: BTreeSet<String>,
        /// The condition as JSON; empty when there is none.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        condition: String,
        /// Whether the statement is in the boundary, which limits the role and grants nothing.
        boundary: bool,
    },
    /// A statement with other elements, such as `NotAction` or `NotResource`, as JSON without its effect.
    Other { effect: Effect, statement: String, boundary: bool },
    /// An AWS managed policy.
    Managed { name: String },
    /// A predefined role of Google Cloud.
    GcpPredefined { name: String },
    /// The permission boundary. Widened: it was removed. Narrowed: it was added.
    Boundary,
    /// The role's default in the install stack. Widened: it became enabled. Narrowed: it became disabled.
    SwitchedOn,
    /// A changed text that is not a policy document. It always counts as widened.
    Undecided { holder: String },
}

impl Permission {
    /// Returns the line that describes the permission in the listing of a role.
    pub fn stated(&self) -> String {
        match self {
            Self::Undecided { holder } => {
                format!("{holder} is not a policy document until its template is rendered; read the text of the policy")
            }
            Self::Statement { effect: Effect::Deny, .. } | Self::Other { effect: Effect::Deny, .. } => {
                self.describe(false)
            }
            Self::Statement { .. }
            | Self::Other { .. }
            | Self::Managed { .. }
            | Self::GcpPredefined { .. }
            | Self::Boundary
            | Self::SwitchedOn => self.describe(true),
        }
    }

    /// Returns the line that describes the permission under "widened" or "narrowed".
    pub fn describe(&self, widened: bool) -> String {
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
            Self::Boundary if widened => "no longer has a permissions boundary".into(),
            Self::Boundary => "has a permissions boundary".into(),
            Self::SwitchedOn if widened => "is switched on unless the customer switches it off".into(),
            Self::SwitchedOn => "is switched off until the customer switches it on".into(),
            Self::Undecided { holder } => {
                format!("{holder} changed and cannot be compared; read it, because it may grant more")
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
        (Effect::Allow, true, true) => "has a boundary that allows",
        (Effect::Allow, false, true) => "has a boundary that no longer allows",
        (Effect::Deny, true, true) => "has a boundary that no longer denies",
        (Effect::Deny, false, true) => "has a boundary that denies",
    }
}

fn kept(before: Powers<'_>, after: Powers<'_>) -> Gap {
    let (was, is) = (Granted::of(before.policies), Granted::of(after.policies));
    let mut widened = is.more_than(&was);
    let mut narrowed = was.more_than(&is);
    both_ways(&was.statements, &is.statements, false, &mut widened, &mut narrowed);
    match (before.boundary, after.boundary) {
        (Some(before), Some(after)) => {
            let (before, after) = (Statements::of_boundary(before), Statements::of_boundary(after));
            both_ways(&before, &after, true, &mut widened, &mut narrowed);
        }
        (Some(_), None) => widened.push(Permission::Boundary),
        (None, Some(_)) => narrowed.push(Permission::Boundary),
        (None, None) => {}
    }
    match (before.on, after.on) {
        (false, true) => widened.push(Permission::SwitchedOn),
        (true, false) => narrowed.push(Permission::SwitchedOn),
        (true, true) | (false, false) => {}
    }
    widened.sort();
    narrowed.sort();
    Gap { widened, narrowed }
}

/// The parsed policies of a role.
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

/// Returns the policies whose texts cannot be parsed and differ between the two sides. Each policy is in the list once.
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

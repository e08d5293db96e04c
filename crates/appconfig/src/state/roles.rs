//! The roles that an app defines, and the places that define them.

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::app_version::{ModeRole, NamedRole};
use freehold_protocol::order::Mode;

use crate::kinds::Kind;
use crate::read::document::Node;
use crate::read::files::Place;
use crate::state::file::Checked;

/// The roles of an app.
#[derive(Debug, Default)]
pub(crate) struct Roles {
    /// The roles of modes, sorted by mode. Each mode has at most one role.
    pub(crate) modes: Vec<ModeRole>,
    /// The named roles, sorted by name.
    pub(crate) named: Vec<NamedRole>,
    /// The place that defines each role, by the role's name in the config.
    pub(crate) places: BTreeMap<String, Place>,
    /// The names of roles with a policy that cannot be read. This was reported.
    pub(crate) incomplete: BTreeSet<String>,
    /// Whether the list of roles is complete; false if a role was left out because its type or its name could not be
    /// read, which was reported.
    pub(crate) is_whole: bool,
}

/// The use of a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    Mode(Mode),
    Custom,
    BreakGlass,
}

/// Returns the policies of each role of a file, or the policy that the file of a policy is.
pub(crate) fn policies_in(checked: &Checked) -> impl Iterator<Item = &[Node]> {
    let policy = (checked.kind == Kind::NamedPolicy).then(|| std::slice::from_ref(&checked.root));
    roles_in(checked).into_iter().map(|(_, node)| node.tables("policies")).chain(policy)
}

/// Returns the permissions boundaries of the roles of a file.
pub(crate) fn boundaries_in(checked: &Checked) -> impl Iterator<Item = &Node> {
    roles_in(checked).into_iter().filter_map(|(_, node)| node.get("permissions_boundary"))
}

/// Returns the roles of a file, each with its use. The use is `None` for a role of an unknown type.
pub(crate) fn roles_in(checked: &Checked) -> Vec<(Option<Use>, &Node)> {
    let root = &checked.root;
    match checked.kind {
        Kind::Role => vec![(by_type(root), root)],
        Kind::Permissions => {
            let named = [
                ("provision_role", Mode::Provision),
                ("maintenance_role", Mode::Maintenance),
                ("deprovision_role", Mode::Deprovision),
            ];
            let named = named.into_iter().filter_map(|(key, mode)| Some((Some(Use::Mode(mode)), root.get(key)?)));
            let custom = root.tables("custom_roles").iter().map(|node| (Some(Use::Custom), node));
            named.chain(custom).chain(root.tables("roles").iter().map(|node| (by_type(node), node))).collect()
        }
        Kind::BreakGlass => root.tables("role").iter().map(|node| (Some(Use::BreakGlass), node)).collect(),
        _ => Vec::new(),
    }
}

fn by_type(node: &Node) -> Option<Use> {
    match node.text("type") {
        Some("provision") => Some(Use::Mode(Mode::Provision)),
        Some("maintenance") => Some(Use::Mode(Mode::Maintenance)),
        Some("deprovision") => Some(Use::Mode(Mode::Deprovision)),
        Some("custom") => Some(Use::Custom),
        Some(_) | None => None,
    }
}

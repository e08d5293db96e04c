//! The permissions that an app asks for: `permissions.toml` and `permissions/`.

use std::collections::BTreeMap;

use freehold_protocol::app_version::{ModeRole, RolePolicy};
use freehold_protocol::order::Mode;

use crate::build::App;
use crate::diagnostic::Draft;
use crate::document::Node;
use crate::files::{Files, Place};
use crate::json;
use crate::kinds::Kind;
use crate::validate::Checked;

/// Returns one role for each mode that has one, sorted by mode.
pub(crate) fn build(app: &mut App) -> Vec<ModeRole> {
    let mut roles: BTreeMap<Mode, (ModeRole, Place)> = BTreeMap::new();
    let mut reader = Reader { files: &app.files, drafts: Vec::new(), unsupported: app.purpose.unsupported() };
    for checked in &app.checked {
        for (mode, node) in roles_in(checked) {
            let Some(role) = reader.role(checked, mode, node) else {
                continue;
            };
            let place = checked.place_of(node, "name");
            if let Some((_, first)) = roles.get(&role.mode) {
                let message =
                    format!("mode `{}` has two roles, in {} and here", role.mode.as_str(), app.files.short(first));
                let draft = Draft::error(place, message).related(first.clone(), "first defined here");
                reader.drafts.push(draft.help("merge their policies into one role"));
            } else {
                roles.insert(role.mode, (role, place));
            }
        }
    }
    let drafts = reader.drafts;
    app.drafts.extend(drafts);
    roles.into_values().map(|(role, _)| role).collect()
}

/// Returns the roles of a file with their modes; a break-glass role is checked, and given to no mode here.
fn roles_in(checked: &Checked) -> Vec<(Option<Mode>, &Node)> {
    let root = &checked.root;
    match checked.kind {
        Kind::Role => vec![(mode(root), root)],
        Kind::Permissions => {
            let named = [
                ("provision_role", Mode::Provision),
                ("maintenance_role", Mode::Maintenance),
                ("deprovision_role", Mode::Deprovision),
            ];
            let named = named.into_iter().filter_map(|(key, mode)| Some((Some(mode), root.get(key)?)));
            named.chain(root.tables("roles").iter().map(|node| (mode(node), node))).collect()
        }
        Kind::BreakGlass => root.tables("role").iter().map(|node| (None, node)).collect(),
        _ => Vec::new(),
    }
}

fn mode(node: &Node) -> Option<Mode> {
    match node.text("type") {
        Some("provision") => Some(Mode::Provision),
        Some("maintenance") => Some(Mode::Maintenance),
        Some("deprovision") => Some(Mode::Deprovision),
        Some(_) | None => None,
    }
}

struct Reader<'a> {
    files: &'a Files,
    drafts: Vec<Draft>,
    unsupported: crate::Severity,
}

impl Reader<'_> {
    fn role(&mut self, checked: &Checked, mode: Option<Mode>, node: &Node) -> Option<ModeRole> {
        let policies: Vec<RolePolicy> =
            node.tables("policies").iter().filter_map(|policy| self.policy(checked, policy)).collect();
        let boundary = node.get("permissions_boundary").and_then(|value| self.document(checked, value));
        if let Some(platform @ ("gcp" | "azure")) = node.text("cloud_platform") {
            let place = checked.place_of(node, "cloud_platform");
            let draft = Draft::new(self.unsupported, place, format!("cloud platform `{platform}` cannot be used yet"));
            self.drafts.push(draft.expected("`aws`"));
        }
        if checked.kind != Kind::BreakGlass && mode.is_none() && node.text("type") == Some("custom") {
            let draft = Draft::warning(checked.place_of(node, "type"), "a custom role has no effect yet");
            self.drafts.push(draft.help("give its policies to the role of a mode"));
        }
        let description = node.text("description").unwrap_or_default().to_owned();
        Some(ModeRole {
            mode: mode?,
            name: node.text("name").unwrap_or_default().to_owned(),
            description,
            policies,
            boundary,
        })
    }

    fn policy(&mut self, checked: &Checked, node: &Node) -> Option<RolePolicy> {
        let given: Vec<&str> = ["managed_policy_name", "contents", "gcp_predefined_role"]
            .into_iter()
            .filter(|key| node.get(key).is_some())
            .collect();
        if given.len() != 1 {
            let place = checked.place(node);
            let draft = match given.as_slice() {
                [] => Draft::warning(place, "the policy grants nothing"),
                keys => Draft::error(place, format!("the policy has both `{}`", keys.join("` and `"))),
            };
            self.drafts.push(draft.expected("either `managed_policy_name` or `name` and `contents`"));
            return None;
        }
        if let Some(name) = node.text("managed_policy_name") {
            return Some(RolePolicy::Managed(name.to_owned()));
        }
        let document = self.document(checked, node.get("contents")?)?;
        let Some(name) = node.text("name") else {
            let draft = Draft::error(checked.place(node), "a policy with `contents` has no name");
            self.drafts.push(draft.help("add `name = \"...\"`"));
            return None;
        };
        Some(RolePolicy::Inline { name: name.to_owned(), document })
    }

    /// Returns the text of a JSON document; says where it is not JSON.
    fn document(&mut self, checked: &Checked, node: &Node) -> Option<String> {
        let text = checked.content(node).filter(|text| !text.is_empty())?;
        match json::check(text) {
            Ok(()) => Some(text.to_owned()),
            Err(error) => {
                let place = checked.place_in(self.files, node, error.offset);
                self.drafts.push(Draft::error(place, format!("the policy document is not JSON: {}", error.message)));
                None
            }
        }
    }
}

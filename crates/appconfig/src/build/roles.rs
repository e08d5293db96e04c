//! Reads the roles that an app defines, and the policies that they name: `permissions.toml`, `permissions/`,
//! `break_glass.toml` and `break_glass/`.

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::app_version::{ModeRole, NamedRole, RolePolicy};
use freehold_protocol::order::Mode;
use freehold_template::nearest;

use crate::check::effect::without_effect;
use crate::check::names;
use crate::check::policy_document;
use crate::kinds::Kind;
use crate::read::document::{Data, Node};
use crate::read::files::{Files, Place};
use crate::read::json;
use crate::report::diagnostic::Severity;
use crate::report::draft::Draft;
use crate::state::app::App;
use crate::state::file::Checked;
use crate::state::roles::{Roles, Use, roles_in};

/// Returns the app's roles. Reports roles and policies that are defined twice.
pub(crate) fn build(app: &mut App) -> Roles {
    let mut modes: BTreeMap<Mode, (ModeRole, Place)> = BTreeMap::new();
    let mut named: BTreeMap<String, NamedRole> = BTreeMap::new();
    let mut seen: BTreeMap<String, Place> = BTreeMap::new();
    let mut places: BTreeMap<String, Place> = BTreeMap::new();
    let (mut incomplete, mut is_whole) = (BTreeSet::new(), true);
    let mut reader = Reader::new(app);
    for checked in &app.checked {
        for (purpose, node) in roles_in(checked) {
            let (policies, boundary) = reader.content(checked, node);
            let (Some(purpose), Some(name)) = (purpose, node.text("name")) else {
                is_whole = false;
                continue;
            };
            let place = checked.place_of(node, "name");
            if let Use::Mode(mode) = purpose
                && let Some((_, first)) = modes.get(&mode)
            {
                let message = format!("mode `{}` has two roles, in {} and here", mode.as_str(), app.files.short(first));
                let draft = Draft::error(place, message).related(first.clone(), "first defined here");
                reader.drafts.push(draft.help("merge their policies into one role"));
                continue;
            }
            let plain = plain(name);
            if let Some(first) = seen.get(&plain) {
                reader.drafts.push(names::twice(&app.files, &format!("role `{name}`"), first, place));
                continue;
            }
            seen.insert(plain, place.clone());
            places.insert(name.to_owned(), place.clone());
            if policies.len() < node.tables("policies").len() + node.tables("named_policies").len() {
                incomplete.insert(name.to_owned());
            }
            let text = |key: &str| node.text(key).unwrap_or_default().to_owned();
            let (name, display_name, description) = (name.to_owned(), text("display_name"), text("description"));
            match purpose {
                Use::Mode(mode) => {
                    let role = ModeRole { mode, name, display_name, description, policies, boundary };
                    modes.insert(mode, (role, place));
                }
                Use::Custom | Use::BreakGlass => {
                    let break_glass = purpose == Use::BreakGlass;
                    let enabled = node.get("enabled_in_stack").map(|value| matches!(value.data, Data::Flag(true)));
                    let role = NamedRole {
                        name: name.clone(),
                        display_name,
                        description,
                        break_glass,
                        enabled: enabled.unwrap_or(!break_glass),
                        policies,
                        boundary,
                    };
                    named.insert(name, role);
                }
            }
        }
    }
    let drafts = reader.finish();
    app.drafts.extend(drafts);
    let modes = modes.into_values().map(|(role, _)| role).collect();
    Roles { modes, named: named.into_values().collect(), places, incomplete, is_whole }
}

/// Keys under which a policy grants permissions.
const GRANTS: [&str; 3] = ["managed_policy_name", "contents", "gcp_predefined_role"];
/// Keys under which a policy grants permissions in other clouds.
const OTHER_GRANTS: [&str; 3] = ["gcp_permissions", "azure_actions", "azure_built_in_roles"];

/// AWS managed policies whose names resemble no other policy's name.
const DISTINCT: [&str; 3] = ["AdministratorAccess", "PowerUserAccess", "AWSCloudFormationFullAccess"];

struct Reader<'a> {
    files: &'a Files,
    drafts: Vec<Draft>,
    unsupported: Severity,
    /// The policies that roles may name, by name without white space.
    named: BTreeMap<String, NamedPolicy>,
}

/// A policy in a file of its own.
struct NamedPolicy {
    name: String,
    /// `None` if the document cannot be used, which was reported.
    document: Option<String>,
    place: Place,
    /// Whether a role names the policy.
    is_used: bool,
}

impl<'a> Reader<'a> {
    fn new(app: &'a App) -> Self {
        let unsupported = app.purpose.unsupported();
        let mut reader = Self { files: &app.files, drafts: Vec::new(), unsupported, named: BTreeMap::new() };
        for checked in app.of(Kind::NamedPolicy) {
            reader.named_policy(checked);
        }
        reader
    }

    fn named_policy(&mut self, checked: &Checked) {
        let Some(name) = checked.root.text("name") else { return };
        let place = checked.place_of(&checked.root, "name");
        if let Some(first) = self.named.get(&plain(name)) {
            self.drafts.push(names::twice(self.files, &format!("policy `{name}`"), &first.place, place));
            return;
        }
        let document = checked.root.get("contents").and_then(|node| self.document(checked, node));
        self.named.insert(plain(name), NamedPolicy { name: name.to_owned(), document, place, is_used: false });
    }

    /// Returns what was reported, with the policies that no role names.
    fn finish(self) -> Vec<Draft> {
        let unused = self.named.into_values().filter(|policy| !policy.is_used).map(|policy| {
            Draft::warning(policy.place, format!("policy `{}` has no effect: no role names it", policy.name))
                .help("add `[[named_policies]]` with this `name` to a role, or remove the file")
        });
        self.drafts.into_iter().chain(unused).collect()
    }
}

/// Returns a name without white space, because a template in a name can be written with or without spaces.
fn plain(name: &str) -> String {
    name.split_whitespace().collect()
}

impl Reader<'_> {
    /// Returns the policies and the boundary of a role.
    fn content(&mut self, checked: &Checked, node: &Node) -> (Vec<RolePolicy>, Option<String>) {
        let mut policies: Vec<RolePolicy> =
            node.tables("policies").iter().filter_map(|policy| self.policy(checked, policy)).collect();
        for one in node.tables("named_policies") {
            let policy = self.attached(checked, one, &policies);
            policies.extend(policy);
        }
        (policies, self.boundary(checked, node))
    }

    /// Returns the policy that a role names. Reports a name that no policy has, and one that the role has already.
    fn attached(&mut self, checked: &Checked, node: &Node, others: &[RolePolicy]) -> Option<RolePolicy> {
        let (name, place) = (node.text("name")?, checked.place_of(node, "name"));
        let is_same =
            |other: &RolePolicy| matches!(other, RolePolicy::Inline { name: own, .. } if plain(own) == plain(name));
        if others.iter().any(is_same) {
            let draft = Draft::error(place, format!("the role has two policies `{name}`"));
            self.drafts.push(draft.help("remove one of them"));
            return None;
        }
        let Some(policy) = self.named.get_mut(&plain(name)) else {
            let known: Vec<&str> = self.named.values().map(|policy| policy.name.as_str()).collect();
            self.drafts.push(names::unknown(place, "policy", "permissions/policies/", name, known));
            return None;
        };
        policy.is_used = true;
        Some(RolePolicy::Inline { name: policy.name.clone(), document: policy.document.clone()? })
    }

    fn boundary(&mut self, checked: &Checked, node: &Node) -> Option<String> {
        let value = node.get("permissions_boundary")?;
        let text = checked.content(value)?;
        if policy_document::is_empty(text) || policy_document::allows_everything(text) {
            return None;
        }
        if text.starts_with("arn:") {
            let message = "a permissions boundary cannot be named by its ARN: nobody could read it in the contract";
            let draft = Draft::new(self.unsupported, checked.place(value), message);
            self.drafts.push(draft.help("write the boundary's policy document, or `./path` of a file that holds it"));
            return None;
        }
        self.document(checked, value)
    }

    fn policy(&mut self, checked: &Checked, node: &Node) -> Option<RolePolicy> {
        let text = |key: &str| node.text(key).filter(|text| !text.is_empty());
        let given: Vec<&str> = GRANTS.into_iter().filter(|key| text(key).is_some()).collect();
        if given.len() != 1 {
            self.unclear(checked, node, &given);
            return None;
        }
        if given != ["gcp_predefined_role"] {
            let others = OTHER_GRANTS.iter().filter_map(|key| node.entry(key));
            let instead = "the roles of an install are in AWS; remove it";
            self.drafts.extend(
                others.map(|entry| without_effect(checked.key_place(entry), &format!("`{}`", entry.key), instead)),
            );
        }
        if let Some(name) = text("managed_policy_name") {
            // The ARN of an AWS managed policy consists of a partition, a fixed text, and the name of the policy.
            let name = name.split_once(":iam::aws:policy/").map_or(name, |(_, name)| name);
            if let Some(near) = nearest(name, DISTINCT).filter(|near| *near != name) {
                let place = checked.place_of(node, "managed_policy_name");
                let draft = Draft::warning(place, format!("AWS has no managed policy `{name}`"));
                self.drafts.push(draft.meant(Some(near)));
            }
            return Some(RolePolicy::Managed(name.to_owned()));
        }
        if let Some(name) = text("gcp_predefined_role") {
            return Some(RolePolicy::GcpPredefined(name.to_owned()));
        }
        let document = self.document(checked, node.get("contents")?)?;
        let Some(name) = text("name") else {
            let draft = Draft::error(checked.place(node), "a policy with `contents` has no name");
            self.drafts.push(draft.help("add `name = \"...\"`"));
            return None;
        };
        Some(RolePolicy::Inline { name: name.to_owned(), document })
    }

    /// Reports a policy that grants nothing, or that grants permissions under two keys.
    fn unclear(&mut self, checked: &Checked, node: &Node, given: &[&str]) {
        let place = checked.place(node);
        let other = OTHER_GRANTS.into_iter().find_map(|key| node.entry(key));
        let draft = match (given, other) {
            ([], Some(entry)) => {
                let message = format!("the policy grants nothing: only AWS is supported so far, not `{}`", entry.key);
                Draft::warning(checked.key_place(entry), message)
            }
            ([], None) => Draft::warning(place, "the policy grants nothing"),
            (keys, _) => Draft::error(place, format!("the policy has both `{}`", keys.join("` and `"))),
        };
        self.drafts.push(draft.expected("either `managed_policy_name`, or `name` and `contents`"));
    }

    /// Returns the text of a policy document. Reports a text that is not JSON, and mistakes in the document.
    fn document(&mut self, checked: &Checked, node: &Node) -> Option<String> {
        let text = checked.content(node).filter(|text| !text.is_empty())?;
        if let Err(error) = json::check(text) {
            let place = checked.place_in(self.files, node, error.offset);
            self.drafts.push(Draft::error(place, format!("the policy document is not JSON: {}", error.message)));
            return None;
        }
        for flaw in policy_document::flaws(text) {
            let mut place = checked.place_in(self.files, node, flaw.range.start);
            place.span.end = checked.place_in(self.files, node, flaw.range.end).span.start;
            self.drafts.push(Draft::new(flaw.severity, place, flaw.message).help(flaw.help));
        }
        Some(text.to_owned())
    }
}

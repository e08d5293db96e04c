//! Reads which role each operation runs under: the matrix in `operation_roles.toml`, and the roles that a component or
//! the sandbox sets itself.

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::app_version::OperationRole;
use freehold_template::nearest;

use crate::check::index::Thing;
use crate::check::links::Index;
use crate::check::names;
use crate::kinds::Kind;
use crate::read::document::{Data, Node};
use crate::read::files::Place;
use crate::report::draft::Draft;
use crate::state::app::App;
use crate::state::file::Checked;
use crate::state::roles::Roles;

/// Operations of a sandbox.
pub(crate) const SANDBOX: &[&str] = &["provision", "reprovision", "deprovision"];
/// Operations of a component.
pub(crate) const COMPONENT: &[&str] = &["deploy", "teardown"];
/// Operations of an action.
const ACTION: &[&str] = &["trigger"];

/// Returns the rules of the matrix in the order of the config.
pub(crate) fn build(app: &mut App, index: &Index, roles: &Roles) -> Vec<OperationRole> {
    let known: BTreeSet<String> = roles
        .modes
        .iter()
        .map(|role| &role.name)
        .chain(roles.named.iter().map(|role| &role.name))
        .map(|name| name.split_whitespace().collect())
        .collect();
    let mut drafts = Vec::new();
    let mut rules: Vec<OperationRole> = Vec::new();
    let mut seen: BTreeMap<(String, String), Place> = BTreeMap::new();
    for checked in app.of(Kind::OperationRoles) {
        for node in checked.root.tables("rules") {
            let mut reader = Reader { app, checked, index, drafts: &mut drafts };
            let Some(rule) = reader.rule(node, &known) else { continue };
            let place = checked.place_of(node, "principal");
            let key = (rule.principal.clone(), rule.operation.clone());
            if let Some(first) = seen.get(&key) {
                let message = format!("the rule for `{}` of `{}` is never used", rule.operation, rule.principal);
                let draft = Draft::warning(place, message).related(first.clone(), "this rule comes first");
                drafts.push(draft.help("remove one of them"));
                continue;
            }
            seen.insert(key, place);
            rules.push(rule);
        }
    }
    app.drafts.extend(drafts);
    rules
}

struct Reader<'a> {
    app: &'a App,
    checked: &'a Checked,
    index: &'a Index,
    drafts: &'a mut Vec<Draft>,
}

impl Reader<'_> {
    fn rule(&mut self, node: &Node, known: &BTreeSet<String>) -> Option<OperationRole> {
        let principal = self.principal(node);
        let role = node.text("role")?;
        let plain: String = role.split_whitespace().collect();
        let unsure =
            [Kind::Permissions, Kind::Role, Kind::BreakGlass].iter().any(|kind| self.app.broken.contains(kind));
        if !role.contains("{{") && !known.contains(&plain) && !unsure {
            let place = self.checked.place_of(node, "role");
            self.drafts.push(names::unknown(place, "role", "permissions/", role, known.iter().map(String::as_str)));
        }
        let (principal, valid) = principal?;
        let operation = node.text("operation")?;
        if !valid.contains(&operation) {
            let place = self.checked.place_of(node, "operation");
            self.drafts.push(no_operation(place, operation, &format!("`{principal}`"), valid));
            return None;
        }
        Some(OperationRole { principal, operation: operation.to_owned(), role: role.to_owned() })
    }

    /// Returns the principal of a rule, in the form that an app version has, and the operations
    /// that such a rule can name.
    fn principal(&mut self, node: &Node) -> Option<(String, &'static [&'static str])> {
        let word = node.text("principal")?;
        let place = self.checked.place_of(node, "principal");
        let path = word.strip_prefix("nuon::").or_else(|| word.strip_prefix("freehold::"));
        let ((kind, name), valid) = match path.map(|path| path.split_once(':').unwrap_or((path, ""))) {
            Some(("sandbox", "")) => return Some(("sandbox".to_owned(), SANDBOX)),
            Some(("component", name)) if !name.is_empty() => (("component", name), COMPONENT),
            Some(("action", name)) if !name.is_empty() => (("action", name), ACTION),
            Some(_) | None => {
                let draft = Draft::error(place, format!("`{word}` is not a principal"));
                let expected = "`nuon::component:<name>`, `nuon::action:<name>` (`*` for any) or `nuon::sandbox`";
                self.drafts.push(draft.expected(expected));
                return None;
            }
        };
        let (thing, known) = match kind {
            "component" => (Thing::Component, self.index.component(name)),
            _ => (Thing::Action, self.index.actions.get_key_value(name).map(|(name, _)| name.as_str())),
        };
        match known.or((name == "*").then_some(name)) {
            Some(name) => Some((format!("{kind}:{name}"), valid)),
            None => {
                self.drafts.extend(self.index.unknown(place, thing, name));
                None
            }
        }
    }
}

fn no_operation(place: Place, operation: &str, owner: &str, valid: &[&str]) -> Draft {
    let draft = Draft::error(place, format!("`{operation}` is not an operation of {owner}"));
    let words: Vec<String> = valid.iter().map(|word| format!("`{word}`")).collect();
    draft.expected(format!("one of {}", words.join(", "))).meant(nearest(operation, valid.iter().copied()))
}

/// Returns the roles that an entity, such as the sandbox, sets under `operation_roles`: either a table with an
/// operation as key, or a list of tables with `operation` and `role`. `owner` names the entity in messages, such as "a
/// sandbox".
pub(crate) fn of_entity(
    checked: &Checked,
    node: &Node,
    owner: &str,
    valid: &[&str],
    drafts: &mut Vec<Draft>,
) -> BTreeMap<String, String> {
    let Some(value) = node.get("operation_roles") else { return BTreeMap::new() };
    let mut given: Vec<(&str, Place, &Node)> = Vec::new();
    match &value.data {
        Data::Table(entries) => {
            given.extend(entries.iter().map(|entry| (entry.key.as_str(), checked.key_place(entry), &entry.value)));
        }
        Data::List(items) => {
            for item in items {
                if let (Some(operation), Some(role)) = (item.text("operation"), item.get("role")) {
                    given.push((operation, checked.place_of(item, "operation"), role));
                } else {
                    let draft = Draft::error(
                        checked.place(item),
                        "an entry of `operation_roles` has no `operation` or no `role`",
                    );
                    drafts.push(draft.expected("`operation = \"...\"` and `role = \"...\"`"));
                }
            }
        }
        Data::Text(_) | Data::Whole(_) | Data::Fraction(_) | Data::Flag(_) | Data::Date(_) => {
            let draft = Draft::error(checked.place(value), format!("`operation_roles` is {}", value.kind()));
            drafts.push(draft.expected("a table of roles by operation"));
        }
    }
    let mut found = BTreeMap::new();
    for (operation, place, role) in given {
        if !valid.contains(&operation) {
            drafts.push(no_operation(place, operation, owner, valid));
        } else if let Some(role) = role.as_text() {
            found.insert(operation.to_owned(), role.to_owned());
        } else {
            let message = format!("the role of `{operation}` is {}", role.kind());
            drafts.push(Draft::error(checked.place(role), message).expected("a string"));
        }
    }
    found
}

//! Recognizes a file by its keys when it has the form of another kind: a file of `inputs/` may have the form of
//! `inputs.toml`, and the reverse. Reads other names of keys as the names that the tables have.

use crate::kinds::Kind;
use crate::read::document::{Data, Entry, Node};

/// Returns the kind and the content of a file, as its keys show them. A file in a directory such as `secrets/` is
/// treated as a `secrets.toml` if it has the form of this file. A single role, cluster or policy is treated as a
/// list with one element.
pub(crate) fn of(kind: Kind, root: Node) -> (Kind, Node) {
    let has = |key: &str| root.get(key).is_some();
    let tables = |key: &str| root.get(key).is_some_and(|node| matches!(node.data, Data::List(_)));
    let kind = match kind {
        Kind::Input | Kind::InputGroup if has("input") || has("sources") || tables("group") => Kind::Inputs,
        Kind::Inputs if has("name") && !has("input") && !tables("group") => Kind::Input,
        Kind::Secret if has("secret") => Kind::Secrets,
        Kind::Role if ROLES.into_iter().any(has) => Kind::Permissions,
        Kind::Role if has("contents") && !has("type") && !has("policies") => Kind::NamedPolicy,
        other => other,
    };
    let root = match kind {
        Kind::BreakGlass if !has("role") && has("name") => list_of_one("role", root),
        Kind::KubernetesContexts if !has("kubernetes_context") && has("name") => {
            list_of_one("kubernetes_context", root)
        }
        Kind::Policies if !has("policy") && has("contents") => list_of_one("policy", root),
        Kind::Runbook => with_inputs(root),
        _ => root,
    };
    (kind, root)
}

const ROLES: [&str; 5] = ["provision_role", "maintenance_role", "deprovision_role", "custom_roles", "roles"];

/// Returns a runbook whose list `input`, as other tools name it, is part of the list `inputs`.
fn with_inputs(root: Node) -> Node {
    let Node { span, data } = root;
    let mut entries = match data {
        Data::Table(entries) => entries,
        data => return Node { span, data },
    };
    let is_list = |entry: &Entry, key: &str| entry.key == key && matches!(entry.value.data, Data::List(_));
    if let Some(at) = entries.iter().position(|entry| is_list(entry, "input")) {
        let mut other = entries.remove(at);
        match entries.iter_mut().find(|entry| is_list(entry, "inputs")) {
            Some(Entry { value: Node { data: Data::List(items), .. }, .. }) => items.extend(other.value.into_items()),
            _ => {
                "inputs".clone_into(&mut other.key);
                entries.push(other);
            }
        }
    }
    Node { span, data: Data::Table(entries) }
}

fn list_of_one(key: &str, root: Node) -> Node {
    let span = root.span.clone();
    let list = Node { span: span.clone(), data: Data::List(vec![root]) };
    let entry = Entry { key: key.to_owned(), key_span: span.clone(), value: list };
    Node { span, data: Data::Table(vec![entry]) }
}

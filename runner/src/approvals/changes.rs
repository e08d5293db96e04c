//! The changes of a plan as people approve them: addresses, types and kinds of change, without values.

use freehold_protocol::approval::{ChangeKind, PlannedChange};
use serde_json::Value;

use crate::kubernetes::{Change, Plan};

/// Returns the changes of a document in the form of Terraform's plans (Terraform "JSON output format", "Change
/// representation"). A change whose actions are not known counts as one that nobody knows.
pub fn of_plan(document: &Value) -> Vec<PlannedChange> {
    let resources = document.get("resource_changes").and_then(Value::as_array).into_iter().flatten();
    let outputs = document.get("output_changes").and_then(Value::as_object).into_iter().flatten();
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let resources = resources.filter_map(|one| {
        let change = one.get("change")?;
        let moved = one.get("previous_address").is_some() || change.get("importing").is_some();
        let kind = match kind(change) {
            Some(kind) => kind,
            None if moved => ChangeKind::Update,
            None => return None,
        };
        Some(PlannedChange { address: text(one, "address"), kind: text(one, "type"), change: kind })
    });
    let outputs = outputs.filter_map(|(name, change)| {
        // An output is a value of the state: its removal deletes nothing.
        kind(change)?;
        Some(PlannedChange { address: format!("output.{name}"), kind: String::new(), change: ChangeKind::Update })
    });
    resources.chain(outputs).collect()
}

fn kind(change: &Value) -> Option<ChangeKind> {
    let actions = change.get("actions").and_then(Value::as_array);
    let actions: Vec<&str> = actions.into_iter().flatten().filter_map(Value::as_str).collect();
    match actions.as_slice() {
        ["no-op"] | ["read"] => None,
        ["create"] => Some(ChangeKind::Create),
        ["update"] => Some(ChangeKind::Update),
        ["delete"] | ["forget"] => Some(ChangeKind::Delete),
        ["delete", "create"] | ["create", "delete"] => Some(ChangeKind::Replace),
        _ => Some(ChangeKind::Run),
    }
}

/// Returns the changes of a plan for a cluster.
pub(crate) fn of_cluster(plan: &Plan) -> Vec<PlannedChange> {
    let changes = plan.changes.iter().filter_map(|(change, id)| {
        let change = match change {
            Change::Create => ChangeKind::Create,
            Change::Update => ChangeKind::Update,
            Change::Delete => ChangeKind::Delete,
            Change::Keep | Change::Stay => return None,
        };
        Some(PlannedChange { address: id.to_string(), kind: String::new(), change })
    });
    changes.collect()
}

/// Returns what hooks of a chart execute: nobody knows what they do.
pub(crate) fn of_hooks(hooks: &[Value]) -> Vec<PlannedChange> {
    let text = |hook: &Value, path: &str| hook.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    let address = |hook: &Value| format!("hook {} {}", text(hook, "/kind"), text(hook, "/metadata/name"));
    let change = |hook| PlannedChange { address: address(hook), kind: String::new(), change: ChangeKind::Run };
    hooks.iter().map(change).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_changes_of_a_plan_have_addresses_and_no_values() {
        let one = |address: &str, actions: Value| json!({ "address": address, "type": "aws_vpc", "change": { "actions": actions, "after": { "secret": 1 } } });
        let document = json!({
            "resource_changes": [
                one("a", json!(["create"])), one("b", json!(["no-op"])), one("c", json!(["delete", "create"])),
                one("d", json!(["delete"])), one("e", json!(["read"])), one("f", json!(["later"])),
                { "address": "g", "type": "aws_vpc", "previous_address": "h", "change": { "actions": ["no-op"] } },
            ],
            "output_changes": { "url": { "actions": ["delete"] }, "same": { "actions": ["no-op"] } },
        });

        let changes = of_plan(&document);

        let found: Vec<String> = changes.iter().map(|one| format!("{} {}", one.change.as_str(), one.address)).collect();
        assert_eq!(found, ["create a", "replace c", "delete d", "run f", "update g", "update output.url"]);
        assert!(!serde_json::to_string(&changes).unwrap().contains("secret"));
    }
}

//! The changes of a plan as people approve them: addresses, types and kinds of change, without values.

use std::collections::BTreeSet;

use freehold_protocol::approval::{ChangeKind, PlannedChange};
use serde_json::Value;

use crate::kubernetes::{Change, Plan};

/// Returns the changes of a document in the form of Terraform's plans (Terraform "JSON output format", "Change
/// representation"). Unknown actions count as [`ChangeKind::Run`].
pub fn of_plan(document: &Value) -> Vec<PlannedChange> {
    let executing = executing(document);
    let resources = document.get("resource_changes").and_then(Value::as_array).into_iter().flatten();
    let outputs = document.get("output_changes").and_then(Value::as_object).into_iter().flatten();
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let resources = resources.filter_map(|one| {
        let change = one.get("change")?;
        let resource = without_keys(&text(one, "address"));
        let runs =
            executing.contains(&resource) || KINDS_THAT_EXECUTE.iter().any(|kind| text(one, "type").starts_with(kind));
        let moved = one.get("previous_address").is_some() || change.get("importing").is_some();
        let kind = match kind(change) {
            Some(ChangeKind::Create | ChangeKind::Update) if runs => ChangeKind::Run,
            Some(kind) => kind,
            None if runs && is_read(change) => ChangeKind::Run,
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

/// The prefixes of the types of resources that execute something: data sources of Terraform's provider `external`,
/// custom resources of CloudFormation, resources that run a function, a job or a document, and nested stacks, charts
/// and manifests, whose changes are not known.
const KINDS_THAT_EXECUTE: [&str; 13] = [
    "Custom::",
    "AWS::CloudFormation::CustomResource",
    "AWS::CloudFormation::Stack",
    "aws_cloudformation_stack",
    "aws_lambda_invocation",
    "aws_ssm_association",
    "aws_ssm_maintenance_window_task",
    "external",
    "helm_release",
    "kubernetes_cron_job",
    "kubernetes_job",
    "kubernetes_manifest",
    "kubernetes_pod",
];

/// Returns the addresses of the resources with provisioners, in the modules of the plan's configuration. The addresses have no
/// keys of `count` or `for_each`, because the configuration names each resource and each module once.
fn executing(document: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    if let Some(root) = document.pointer("/configuration/root_module") {
        of_module(root, "", &mut found);
    }
    found
}

fn of_module(module: &Value, prefix: &str, found: &mut BTreeSet<String>) {
    let resources = module.get("resources").and_then(Value::as_array).into_iter().flatten();
    let executes = |resource: &&Value| {
        resource.get("provisioners").and_then(Value::as_array).is_some_and(|provisioners| !provisioners.is_empty())
    };
    let address = |resource: &Value| resource.get("address").and_then(Value::as_str).map(str::to_owned);
    found.extend(resources.filter(executes).filter_map(address).map(|address| format!("{prefix}{address}")));
    let calls = module.get("module_calls").and_then(Value::as_object).into_iter().flatten();
    for (name, call) in calls {
        if let Some(inner) = call.get("module") {
            of_module(inner, &format!("{prefix}module.{name}."), found);
        }
    }
}

/// Returns the address of a resource without the keys of its instances and modules, such as `module.a.b.c` for
/// `module.a["x"].b.c[0]`.
fn without_keys(address: &str) -> String {
    let (mut plain, mut depth, mut quoted) = (String::new(), 0_u32, false);
    for c in address.chars() {
        match c {
            '"' if depth > 0 => quoted = !quoted,
            '[' if !quoted => depth += 1,
            ']' if !quoted => depth = depth.saturating_sub(1),
            c if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    plain
}

fn is_read(change: &Value) -> bool {
    change.pointer("/actions/0").and_then(Value::as_str) == Some("read")
}

/// Returns the kind of a change in the form of Terraform's plans; `None` when nothing changes.
pub(crate) fn kind(change: &Value) -> Option<ChangeKind> {
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
        let executes = ["Job", "CronJob", "Pod"].contains(&id.kind.as_str());
        let change = match change {
            Change::Create | Change::Update if executes => ChangeKind::Run,
            Change::Create => ChangeKind::Create,
            Change::Update => ChangeKind::Update,
            Change::Delete => ChangeKind::Delete,
            Change::Keep | Change::Stay => return None,
        };
        Some(PlannedChange { address: id.to_string(), kind: String::new(), change })
    });
    changes.collect()
}

/// Returns the hooks of a chart as changes. Each executes something whose effects are not known.
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
                one("module.m[\"x[\"].aws_vpc.p[0]", json!(["create"])),
                { "address": "s", "type": "AWS::CloudFormation::Stack", "change": { "actions": ["update"] } },
                { "address": "x", "type": "external", "change": { "actions": ["read"] } },
                { "address": "i", "type": "aws_lambda_invocation", "change": { "actions": ["create"] } },
                { "address": "g", "type": "aws_vpc", "previous_address": "h", "change": { "actions": ["no-op"] } },
            ],
            "configuration": { "root_module": { "module_calls": { "m": { "module": { "resources": [
                { "address": "aws_vpc.p", "provisioners": [{ "type": "local-exec" }] }, { "address": "aws_vpc.q" },
            ] } } } } },
            "output_changes": { "url": { "actions": ["delete"] }, "same": { "actions": ["no-op"] } },
        });

        let changes = of_plan(&document);

        let found: Vec<String> = changes.iter().map(|one| format!("{} {}", one.change.as_str(), one.address)).collect();
        assert_eq!(
            found,
            [
                "create a",
                "replace c",
                "delete d",
                "run f",
                "run module.m[\"x[\"].aws_vpc.p[0]",
                "run s",
                "run x",
                "run i",
                "update g",
                "update output.url"
            ]
        );
        assert!(!serde_json::to_string(&changes).unwrap().contains("secret"));
    }
}

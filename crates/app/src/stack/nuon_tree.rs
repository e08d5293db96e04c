//! The `.nuon` tree: the values that templates of an app config can read, without secrets.

use std::collections::BTreeMap;

use freehold_domain::install::Install;
use freehold_domain::plan::Deployed;
use freehold_domain::role_switches::RoleChange;
use freehold_permissions::RolePlace;
use freehold_protocol::app_version::AppVersion;
use freehold_protocol::{AppName, ComponentName, Partition, TenantName, names};
use serde_json::{Map, Value, json};

/// Returns the tree for a job of `install`.
pub fn tree(
    tenant: &TenantName,
    install: &Install,
    version: &AppVersion,
    inputs: &BTreeMap<String, Value>,
    deployed: &BTreeMap<ComponentName, Deployed>,
) -> Value {
    let sandbox = ComponentName::sandbox();
    let place = role_place(tenant, install, &version.app);
    // In an app with a sandbox, the record with the sandbox's name describes the sandbox. In other apps, a component
    // may have that name.
    let of_sandbox = version.sandbox.as_ref().and_then(|_| deployed.get(&sandbox));
    let outputs = of_sandbox.map(|deployed| json!(deployed.outputs)).unwrap_or_else(|| json!({}));
    let components: Map<String, Value> = deployed
        .iter()
        .filter(|(name, _)| of_sandbox.is_none() || **name != sandbox)
        .flat_map(|(name, deployed)| {
            // Templates refer to a component by its name or by its `var_name`.
            let alias = version.component(name).map(|component| component.var_name.clone());
            let names = std::iter::once(name.to_string()).chain(alias.filter(|alias| !alias.is_empty()));
            names.map(|name| (name, json!({ "outputs": deployed.outputs }))).collect::<Vec<_>>()
        })
        .collect();
    json!({
        "nuon": {
            "org": { "id": tenant, "name": tenant },
            "app": { "id": version.app, "name": version.app },
            "install": {
                "id": install.id, "name": install.id, "inputs": inputs, "sandbox": { "outputs": outputs },
            },
            "inputs": { "inputs": inputs },
            "sandbox": { "outputs": outputs },
            "install_stack": { "outputs": place.stack_outputs() },
            "cloud_account": place.cloud_account(),
            "components": components,
            "actions": { "workflows": {} },
        }
    })
}

/// Returns the values about the install in a tree; `None` for a context without them, such as that of an upgrade.
pub fn install_values(tree: &mut Value) -> Option<&mut Map<String, Value>> {
    tree.pointer_mut("/nuon/install").and_then(Value::as_object_mut)
}

/// Adds the value of an input that the tree does not have.
pub fn add_input(tree: &mut Value, name: &str, value: &Value) {
    for place in ["/nuon/inputs/inputs", "/nuon/install/inputs"] {
        if let Some(inputs) = tree.pointer_mut(place).and_then(Value::as_object_mut) {
            inputs.insert(name.to_owned(), value.clone());
        }
    }
}

/// Adds the inputs of a run of a runbook to the tree.
pub fn add_run_inputs(tree: &mut Value, inputs: &BTreeMap<String, String>) {
    if let Some(nuon) = tree.get_mut("nuon").and_then(Value::as_object_mut).filter(|_| !inputs.is_empty()) {
        nuon.insert("runbook".to_owned(), json!({ "inputs": inputs }));
    }
}

/// Adds the inputs of the action that runs to the tree.
pub fn add_action_inputs(tree: &mut Value, inputs: &BTreeMap<String, String>) {
    if let Some(nuon) = tree.get_mut("nuon").and_then(Value::as_object_mut).filter(|_| !inputs.is_empty()) {
        nuon.insert("action".to_owned(), json!({ "inputs": inputs }));
    }
}

/// Adds the role whose switch started the run of an action to the tree.
pub fn add_action_role(tree: &mut Value, change: &RoleChange, tenant: &TenantName, install: &Install) {
    let name = names::install_part(tenant, &install.id, change.role.as_str());
    let partition = Partition::of_region(&install.region).name;
    let role = json!({
        "trigger": change.event(),
        "change": if change.enabled { "enabled" } else { "disabled" },
        "type": change.role_type(),
        "arn": format!("arn:{partition}:iam::{}:role/{name}", install.account),
        "name": name,
    });
    if let Some(nuon) = tree.get_mut("nuon").and_then(Value::as_object_mut)
        && let Some(action) = nuon.entry("action").or_insert_with(|| json!({})).as_object_mut()
    {
        action.insert("role".to_owned(), role);
    }
}

/// Returns the tenant and the app, and the install whose stack contains the policies, with its account and region.
pub(crate) fn role_place<'a>(tenant: &'a TenantName, install: &'a Install, app: &'a AppName) -> RolePlace<'a> {
    RolePlace { tenant, app, install: &install.id, account: &install.account, region: &install.region }
}

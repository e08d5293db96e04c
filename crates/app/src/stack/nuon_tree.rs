//! The `.nuon` tree: the values that templates of an app config can read, without secrets.

use std::collections::BTreeMap;

use freehold_domain::install::Install;
use freehold_domain::plan::Deployed;
use freehold_protocol::app_version::AppVersion;
use freehold_protocol::{ComponentName, TenantName, names};
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
    // In an app with a sandbox, the record of this name is the sandbox's. In other apps, a component may have this
    // name.
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
            "install_stack": { "outputs": stack_outputs(tenant, install) },
            "cloud_account": cloud_account(install),
            "components": components,
            "actions": { "workflows": {} },
        }
    })
}

/// Returns the outputs of the install stack that are known before the stack is launched.
pub(crate) fn stack_outputs(tenant: &TenantName, install: &Install) -> Value {
    let boundary = names::install_part(tenant, &install.id, "boundary");
    json!({
        "account_id": install.account,
        "region": install.region,
        "boundary_arn": format!("arn:aws:iam::{}:policy/{boundary}", install.account),
        "prefix": names::app_prefix(tenant, &install.id),
        "role_path": names::app_path(tenant, &install.id),
    })
}

/// Returns the AWS account and the region of an install.
pub(crate) fn cloud_account(install: &Install) -> Value {
    json!({ "aws": { "account_id": install.account, "region": install.region } })
}

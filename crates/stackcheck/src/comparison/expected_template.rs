//! Renders the template that Freehold would render, from the names, roles and inputs in a given template. Each value
//! that the app fills in is left as a hole.

use freehold_protocol::app_version::network_zones;
use freehold_protocol::shape::{is_printable_in_yaml, yaml_escape};
use freehold_protocol::{Partition, names};
use freehold_template::{Limits, Template};
use serde_json::{Value, json};

use super::hole::Hole;
use super::identity::Names;
use super::inputs::Inputs;
use super::roles::{Granted, NamedRole, Roles};
use crate::node::Node;
use crate::read::read;

/// The install stack in the language of Go's `text/template`. The control plane renders the same file.
const TEMPLATE: &str = include_str!("../../../../infra/install.yaml");
/// The limits of a rendering. The largest install stack does not reach them.
const LIMITS: Limits = Limits { max_steps: 10_000_000, max_output_bytes: 16 * 1024 * 1024 };

/// Returns the template that Freehold renders for this install.
///
/// # Errors
/// The reason why the template cannot be rendered.
pub(super) fn expected(names: &Names, roles: &Roles, inputs: &Inputs, has_network: bool) -> Result<Node, String> {
    let template = Template::parse(TEMPLATE).map_err(|error| error.to_string())?;
    let text =
        template.render(&stack(names, roles, inputs, has_network), &LIMITS).map_err(|error| error.to_string())?;
    read(&text).map_err(|error| error.to_string())
}

/// Returns the values with which the control plane would render the template.
fn stack(names: &Names, roles: &Roles, inputs: &Inputs, has_network: bool) -> Value {
    let Names { tenant, tenant_account, tenant_region, install, .. } = names;
    let partition = Partition::of_region(tenant_region).name;
    let arn = |name: String| format!("\"arn:{partition}:sqs:{tenant_region}:{tenant_account}:{name}\"");
    let named: Vec<Value> = roles.named.iter().map(named).collect();
    let break_glass = roles.named.iter().filter(|role| role.key.is_break_glass()).map(|role| role.key.camel());
    json!({
        "tenant": tenant,
        "tenant_account": tenant_account,
        "tenant_key": quoted(&names.tenant_key),
        "tenant_second_key": quoted(&names.tenant_second_key),
        "install": install,
        "app": names.app,
        "account": names.account,
        "region": names.region,
        "orders_queue_arn": arn(names::orders_queue(tenant, install)),
        "orders_queue_url": quoted(&names.orders_queue_url),
        "reports_queue_arn": arn(names::queue_of(&names.reports_queue_url).to_owned()),
        "reports_queue_url": quoted(&names.reports_queue_url),
        "private_endpoints": names.region == *tenant_region,
        "runner_url": quoted(&names.runner_url),
        "runner_digest": quoted(&names.runner_sha256),
        "machine_type": Hole::MachineType.quoted(),
        "network": if has_network { network_zones(&names.region) } else { &[] },
        "contract": names.contract,
        "version": names.version,
        "provision": granted(&roles.provision),
        "maintenance": granted(&roles.maintenance),
        "deprovision": granted(&roles.deprovision),
        "roles": named,
        "break_glass": break_glass.collect::<Vec<_>>(),
        "groups": inputs.groups,
        "inputs": inputs.parameters,
        "secrets": inputs.secrets,
        "app_secrets": inputs.app_secrets,
        "app_secret_names": inputs.app_secrets.iter().filter_map(|secret| secret.get("name")).collect::<Vec<_>>(),
    })
}

fn named(role: &NamedRole) -> Value {
    json!({
        "name": role.key.camel(),
        "key": role.key,
        "switch": role.key.switch(),
        "on": role.is_on,
        "break_glass": role.key.is_break_glass(),
        "about": "",
        "label": Hole::Label.quoted(),
        "description": Hole::Line.quoted(),
        "granted": granted(&role.granted),
    })
}

fn granted(granted: &Granted) -> Value {
    let managed: Vec<String> = granted.managed.iter().map(|arn| quoted(arn)).collect();
    let inline = granted.inline.as_ref().map_or_else(|| Hole::Policies.quoted(), |inline| yaml(&json!(inline)));
    json!({ "inline": inline, "managed": managed })
}

/// Returns JSON as YAML reads it: characters that end a line in YAML, or that YAML does not take, are escaped.
fn yaml(value: &Value) -> String {
    let text = value.to_string();
    text.chars().map(|c| if is_printable_in_yaml(c) { c.to_string() } else { yaml_escape(c) }).collect()
}

/// Puts quotes around a text. Earlier checks ensure that the text has no quotes, backslashes or line breaks.
fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

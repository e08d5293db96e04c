//! The overview of a template that a check shows to the customer: the app's roles, and the parameters that the customer
//! answers.

use std::collections::BTreeSet;

use freehold_protocol::app_version::is_graviton_type;
use serde::Serialize;

use super::identity::Names;
use super::inputs::Inputs;
use super::policies::variables;
use super::roles::Roles;
use crate::node::Node;

/// The app's roles in a template, and the parameters that the customer answers. The vendor chooses both, so the
/// customer must read them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Overview {
    /// The roles of the app.
    pub roles: Vec<RoleOverview>,
    /// The type of the runner's machine, unless the customer chooses another; empty when the template names none that is possible.
    pub machine_type: String,
    /// The parameters whose answers are part of the policies of roles.
    pub policy_inputs: BTreeSet<String>,
    /// The parameters whose answers the vendor sees.
    pub sent_inputs: Vec<String>,
    /// The parameters whose answers stay in the account as secrets.
    pub secret_inputs: Vec<String>,
    /// Parts of the template that a real install does not have.
    pub warnings: Vec<String>,
}

/// One role of the app.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RoleOverview {
    /// The name of the role, as a contract has it.
    pub role: String,
    /// The parameter that switches the role on and off.
    pub switch: String,
    /// Whether the role is on from the start.
    pub on: bool,
    /// The ARNs of the managed policies of AWS.
    pub managed: Vec<String>,
    /// The number of statements in the role's inline policies.
    pub statements: usize,
}

/// Returns the overview of a template.
pub(super) fn of(root: &Node, names: &Names, roles: &mut Roles, inputs: &Inputs) -> Overview {
    let mut policy_inputs = BTreeSet::new();
    let each = roles.all().map(|(role, logical, granted)| {
        let policies = root.at(&["Resources", &logical, "Properties", "Policies"]);
        if let Some(policies) = policies {
            policies.walk(&mut |node| {
                let sub = node.get("Fn::Sub").and_then(Node::text).unwrap_or_default();
                policy_inputs.extend(variables(sub).filter(|name| inputs.is_plain(name)).map(str::to_owned));
            });
        }
        let switch = logical.strip_suffix("Role").map(|camel| format!("Enable{camel}")).unwrap_or_default();
        let default = root.at(&["Parameters", &switch, "Default"]).and_then(Node::text);
        RoleOverview {
            role,
            on: default == Some("true"),
            switch,
            managed: granted.managed.clone(),
            statements: policies.map_or(0, statements),
        }
    });
    let roles = each.collect();
    let queues = [&names.orders_queue_url, &names.reports_queue_url];
    let local = queues.iter().find(|url| url.starts_with("http://")).map(|url| {
        format!("queue `{url}` is on the machine of the runner, as in a trial with a local cloud; a real install has queues in AWS")
    });
    let machine = root.at(&["Parameters", "InstanceType", "Default"]).and_then(Node::text);
    Overview {
        roles,
        machine_type: machine.filter(|text| is_graviton_type(text)).unwrap_or_default().to_owned(),
        policy_inputs,
        sent_inputs: inputs.plain().to_vec(),
        secret_inputs: inputs.secret_ids(),
        warnings: local.into_iter().collect(),
    }
}

/// Returns the number of statements in inline policies.
fn statements(policies: &Node) -> usize {
    let documents = policies.items().iter().filter_map(|policy| policy.at(&["PolicyDocument", "Statement"]));
    documents.map(|statements| statements.items().len().max(1)).sum()
}

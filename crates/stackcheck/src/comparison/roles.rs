//! Reads the parts of a template's roles that the app decides: the roles that it names, their switches, and the managed
//! policies of AWS that roles list.

use freehold_protocol::{Arn, Partition, RoleKey};
use serde_json::Value;

use super::difference::finding;
use crate::finding::Finding;
use crate::node::Node;

/// The switches that every install stack has.
const SWITCHES: [&str; 5] =
    ["EnableAppRoles", "EnableDeprovision", "EnableMaintenance", "EnableProvision", "EnableRunner"];

/// The parts of a template's roles that its app decides.
#[derive(Debug, Default)]
pub(super) struct Roles {
    pub(super) provision: Granted,
    pub(super) maintenance: Granted,
    pub(super) deprovision: Granted,
    /// The app's own roles, which are not the roles of the modes.
    pub(super) named: Vec<NamedRole>,
}

#[derive(Debug)]
pub(super) struct NamedRole {
    pub(super) key: RoleKey,
    pub(super) is_on: bool,
    pub(super) granted: Granted,
}

/// The policies of a role.
#[derive(Debug, Default)]
pub(super) struct Granted {
    /// The ARNs of the managed policies of AWS that the role lists.
    pub(super) managed: Vec<String>,
    /// The inline policies; `None` if all inline policies are accepted.
    pub(super) inline: Option<Vec<Value>>,
}

impl Roles {
    /// Returns each role's name in terms, its logical id, and its policies.
    pub(super) fn all(&mut self) -> impl Iterator<Item = (String, String, &mut Granted)> {
        let modes = [
            ("provision", &mut self.provision),
            ("maintenance", &mut self.maintenance),
            ("deprovision", &mut self.deprovision),
        ];
        let modes = modes.into_iter().map(|(mode, granted)| (mode.to_owned(), logical_id(mode), granted));
        let named = self.named.iter_mut();
        modes.chain(named.map(|role| (role.key.to_string(), format!("{}Role", role.key.camel()), &mut role.granted)))
    }
}

/// Returns the logical id of the role of a mode.
fn logical_id(mode: &str) -> String {
    let mut letters = mode.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).chain("Role".chars()).collect()
}

/// Reads the roles of a template. Reports a switch that does not belong to a role.
pub(super) fn read(root: &Node, findings: &mut Vec<Finding>) -> Roles {
    let parameters = root.get("Parameters").map(Node::entries).unwrap_or_default().iter();
    let switches = parameters.filter(|(name, _)| name.starts_with("Enable") && !SWITCHES.contains(&name.as_str()));
    let named = switches.filter_map(|(name, switch)| {
        let role = named(root, name, switch);
        if role.is_none() {
            findings.push(finding(
                switch.line,
                name,
                "the template has no role of an app that this parameter could switch on and off".to_owned(),
            ));
        }
        role
    });
    Roles {
        named: named.collect(),
        provision: managed(root, "ProvisionRole"),
        maintenance: managed(root, "MaintenanceRole"),
        deprovision: managed(root, "DeprovisionRole"),
    }
}

fn named(root: &Node, name: &str, switch: &Node) -> Option<NamedRole> {
    let camel = name.strip_prefix("Enable")?;
    let role = format!("{camel}Role");
    // The name of the role in AWS ends with the key of the role in terms.
    let whole = root.at(&["Resources", &role, "Properties", "RoleName"])?.text()?;
    let ends = whole.match_indices('-').filter_map(|(at, _)| whole.get(at + 1..)?.parse::<RoleKey>().ok());
    let key = ends.into_iter().find(|key| key.camel() == camel)?;
    let is_on = switch.get("Default").and_then(Node::text) == Some("true") && !key.is_break_glass();
    let is_of_app = key.is_break_glass() || key.as_str().starts_with("custom");
    is_of_app.then(|| NamedRole { key, is_on, granted: managed(root, &role) })
}

/// Returns the managed policies of AWS that a role lists. All inline policies are accepted.
fn managed(root: &Node, role: &str) -> Granted {
    let listed = root.at(&["Resources", role, "Properties", "ManagedPolicyArns"]).map(Node::items).unwrap_or_default();
    let mut arns = Vec::new();
    for arn in listed.iter().filter_map(Node::text).filter(|arn| is_of_aws(arn)) {
        if !arns.iter().any(|known| known == arn) {
            arns.push(arn.to_owned());
        }
    }
    Granted { managed: arns, inline: None }
}

/// Returns whether an ARN is that of a managed policy of AWS.
pub(super) fn is_of_aws(arn: &str) -> bool {
    Arn::parse(arn).is_some_and(|arn| {
        let place = (arn.service, arn.region, arn.account);
        let name = arn.resource.strip_prefix("policy/");
        Partition::named(arn.partition).is_some()
            && place == ("iam", "", "aws")
            && name.is_some_and(|name| name.split('/').all(is_part))
    })
}

/// Returns whether a text is a part of the path of a policy, or its name. None of AWS's begins with a dot: a part such as
/// `..` could lead out of the place that the rest of the ARN names.
fn is_part(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"+=,.@_-".contains(&byte);
    !text.is_empty() && !text.starts_with('.') && text.bytes().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_of_aws_is_one_in_any_partition() {
        for arn in ["arn:aws:iam::aws:policy/ReadOnlyAccess", "arn:aws-cn:iam::aws:policy/job-function/ViewOnlyAccess"]
        {
            assert!(is_of_aws(arn), "{arn}");
        }
        for arn in [
            "arn:aws:iam::222222222222:policy/ReadOnlyAccess",
            "arn:aws-evil:iam::aws:policy/ReadOnlyAccess",
            "arn:aws:iam:eu-west-1:aws:policy/ReadOnlyAccess",
            "arn:aws:iam::aws:role/x",
            "arn:aws:iam::aws:policy/",
            "arn:aws:iam::aws:policy/a:b",
            "arn:aws:iam::aws:policy/../x",
            "arn:aws:iam::aws:policy/service-role/./x",
            "arn:aws:iam::aws:policy//x",
            "arn:aws:iam::aws:policy/x/",
        ] {
            assert!(!is_of_aws(arn), "{arn}");
        }
    }
}

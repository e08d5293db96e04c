//! Checks that the dangerous modes are off until the customer switches them on.

use crate::finding::{Finding, Rule};
use crate::node::Node;
use crate::template::Template;

/// The prefixes of the parameters that switch on the roles of dangerous modes.
const OFF: [&str; 2] = ["EnableDeprovision", "EnableBreakGlass"];

/// Finds parameters that switch a dangerous mode on by default.
pub(super) fn find(template: &Template<'_>) -> Vec<Finding> {
    let parameters = template.root.get("Parameters").map(Node::entries).unwrap_or_default();
    let switches = parameters.iter().filter(|(name, _)| OFF.iter().any(|off| name.starts_with(off)));
    switches.filter_map(|(name, switch)| of_switch(name, switch)).collect()
}

fn of_switch(name: &str, switch: &Node) -> Option<Finding> {
    let default = switch.get("Default");
    let line = default.unwrap_or(switch).line;
    let reason = "this role has to be off by default".to_owned();
    let is_off = default.and_then(Node::text) == Some("false");
    (!is_off).then(|| Finding { line, of: name.to_owned(), rule: Rule::SwitchDefaults, reason, way_out: None })
}

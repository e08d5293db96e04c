//! Checks that no security group lets traffic in, except HTTPS from a security group of the template to VPC
//! endpoints.

use std::collections::BTreeSet;

use crate::finding::{Finding, Rule};
use crate::node::Node;
use crate::template::{Resource, Template};

/// Finds rules of security groups that let traffic in.
pub(super) fn find(template: &Template<'_>) -> Vec<Finding> {
    let given = given(template);
    let groups = template.resources().flat_map(|resource| match resource.kind {
        "AWS::EC2::SecurityGroup" => of_group(template, resource, &given),
        "AWS::EC2::SecurityGroupIngress" => vec![lets_in(resource, resource.node)],
        _ => Vec::new(),
    });
    groups.collect()
}

fn lets_in(resource: Resource<'_>, rule: &Node) -> Finding {
    resource.finding(Rule::NoIngress, rule, "the rule lets traffic in")
}

fn of_group(template: &Template<'_>, group: Resource<'_>, given: &BTreeSet<String>) -> Vec<Finding> {
    let rules = group.property(&["SecurityGroupIngress"]).map(Node::each).unwrap_or_default();
    let guarded = guards_endpoints_only(group.name, given);
    let open = rules.into_iter().filter(|rule| !(guarded && is_from_inside(template, rule)));
    open.map(|rule| lets_in(group, rule)).collect()
}

/// Returns whether a rule lets in only HTTPS from a security group of this template.
fn is_from_inside(template: &Template<'_>, rule: &Node) -> bool {
    let says = |key: &str| rule.get(key).map(Node::to_text).unwrap_or_default();
    let others = ["CidrIp", "CidrIpv6", "SourcePrefixListId", "SourceSecurityGroupName", "SourceSecurityGroupOwnerId"];
    template.is_resource(&says("SourceSecurityGroupId"))
        && others.iter().all(|key| rule.get(key).is_none())
        && [says("IpProtocol"), says("FromPort"), says("ToPort")] == ["tcp", "443", "443"]
}

/// Returns the references in resources other than VPC endpoints.
fn given(template: &Template<'_>) -> BTreeSet<String> {
    let mut given = BTreeSet::new();
    for resource in template.resources_with_grants() {
        resource.node.walk(&mut |node| given.extend(Some(node.to_text()).filter(|text| text.starts_with("${"))));
    }
    given
}

/// Returns whether a security group is attached to VPC endpoints only. Only AWS receives traffic there.
fn guards_endpoints_only(name: &str, given: &BTreeSet<String>) -> bool {
    [format!("${{{name}}}"), format!("${{{name}.GroupId}}")].iter().all(|reference| !given.contains(reference))
}

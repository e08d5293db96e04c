//! Checks that no security group lets traffic in.

use crate::finding::{Finding, Rule};
use crate::node::Node;
use crate::template::{Resource, Template};

/// Finds rules of security groups that let traffic in.
pub(super) fn find(template: &Template<'_>) -> Vec<Finding> {
    let groups = template.resources().flat_map(|resource| match resource.kind {
        "AWS::EC2::SecurityGroup" => of_group(template, resource),
        "AWS::EC2::SecurityGroupIngress" => vec![lets_in(resource, resource.node)],
        _ => Vec::new(),
    });
    groups.collect()
}

fn lets_in(resource: Resource<'_>, rule: &Node) -> Finding {
    resource.finding(Rule::NoIngress, rule, "the rule lets traffic in")
}

fn of_group(template: &Template<'_>, group: Resource<'_>) -> Vec<Finding> {
    let rules = group.property(&["SecurityGroupIngress"]).map(Node::each).unwrap_or_default();
    let guarded = guards_endpoints_only(template, group.name);
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

/// Returns whether a security group is attached to VPC endpoints only. Only AWS receives traffic there.
fn guards_endpoints_only(template: &Template<'_>, name: &str) -> bool {
    let given = |resource: Resource<'_>| {
        let mut found = false;
        resource.node.walk(&mut |node| {
            found |= node.names(&format!("${{{name}}}")) || node.names(&format!("${{{name}.GroupId}}"));
        });
        found
    };
    template.resources_with_grants().all(|resource| !given(resource))
}

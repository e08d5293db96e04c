//! Checks that no policy allows `sts:AssumeRole` on a pattern such as `*`: the policy, or the boundary of the role that
//! has it, must list the roles by name.

use crate::finding::{Finding, Rule};
use crate::node::Node;
use crate::policy::{Statement, admits, statements, unreadable};
use crate::template::{Resource, Template};

const RULE: Rule = Rule::NoWildcardAssumeRole;

/// Finds statements that allow `sts:AssumeRole` on a pattern of roles, and policies that cannot be read.
pub(super) fn find(template: &Template<'_>) -> Vec<Finding> {
    let of = |resource: Resource<'_>| {
        let mut found = unreadable(RULE, resource, |property| !admits(property));
        found.extend(assumed(template, resource));
        found
    };
    template.resources_with_grants().flat_map(of).collect()
}

fn assumed(template: &Template<'_>, resource: Resource<'_>) -> Vec<Finding> {
    let grants_nothing = resource.kind == "AWS::IAM::ManagedPolicy" && is_boundary_only(template, resource);
    let limited = resource.kind == "AWS::IAM::Role" && is_limited(template, resource.node);
    if grants_nothing || limited {
        return Vec::new();
    }
    let statements = statements(resource.node).into_iter().filter(|statement| statement.allows());
    let mut found = Vec::new();
    for statement in statements.filter(|statement| statement.is_about("sts:AssumeRole")) {
        if let Some(rest) = statement.0.get("NotResource") {
            found.push(resource.finding(RULE, rest, "the role may assume every role except the named roles"));
        }
        for role in statement.resources() {
            let text = role.to_text();
            if text.contains('*') {
                found.push(resource.finding(
                    RULE,
                    role,
                    format!("the role may assume every role that `{text}` matches"),
                ));
            }
        }
    }
    found
}

/// Returns whether a managed policy is used only as a boundary, so that it grants no permission.
fn is_boundary_only(template: &Template<'_>, policy: Resource<'_>) -> bool {
    let attached = ["Roles", "Users", "Groups"].iter().any(|who| policy.property(&[who]).is_some());
    let own = format!("${{{}}}", policy.name);
    let bounds = |role: Resource<'_>| role.property(&["PermissionsBoundary"]).is_some_and(|one| one.names(&own));
    // Some roles also attach the policy, but only under a condition under which all its statements deny.
    let lists = |role: Resource<'_>| {
        let listed = role.property(&["ManagedPolicyArns"]).map(Node::items).unwrap_or_default();
        let mut listed = listed.iter().filter(|one| one.names(&own));
        listed.any(|one| !one.choice().is_some_and(|case| only_denies(policy.node, case)))
    };
    !attached && !template.resources().any(lists) && template.resources().any(bounds)
}

/// Returns whether all statements of a policy deny, if the condition `case.0` of the template has the value `case.1`.
fn only_denies(policy: &Node, case: (&str, bool)) -> bool {
    let (condition, holds) = case;
    let list = policy.at(&["Properties", "PolicyDocument", "Statement"]).map(Node::items).unwrap_or_default();
    let there = list.iter().flat_map(|statement| match (statement.condition(), statement.get("Fn::If")) {
        (Some(known), Some(sides)) if known == condition => {
            sides.items().get(if holds { 1 } else { 2 }).map(Node::each).unwrap_or_default()
        }
        _ => statement.each(),
    });
    there.map(Statement).all(Statement::denies)
}

/// Returns whether a role's boundary lets it assume named roles only, under every condition of the template. A boundary
/// of the customer's own is not known here. A role with such a boundary must attach a policy of the template that
/// limits `sts:AssumeRole`.
fn is_limited(template: &Template<'_>, role: &Node) -> bool {
    let boundary = role.at(&["Properties", "PermissionsBoundary"]);
    let sides = boundary.map(Node::each).unwrap_or_default();
    !sides.is_empty()
        && !boundary.is_some_and(Node::may_be_nothing)
        && sides.into_iter().all(|side| match template.managed_policy(side) {
            Some(policy) => limits_assume_role(policy),
            None => template.is_own_parameter(&side.to_text()) && template.role_lists(role, limits_assume_role),
        })
}

/// Returns whether a policy denies `sts:AssumeRole` for all roles except named ones.
fn limits_assume_role(policy: &Node) -> bool {
    statements(policy).into_iter().any(|statement| {
        let all_but_some = statement.0.get("NotResource").is_some() && statement.0.get("Condition").is_none();
        statement.denies() && statement.is_about("sts:AssumeRole") && all_but_some
    })
}

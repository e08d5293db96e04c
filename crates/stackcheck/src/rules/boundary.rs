//! Checks that every role has a permissions boundary, and that nobody can remove the boundary. A role without a
//! boundary is accepted if its policies name each action that they allow, and no action of IAM.

use crate::finding::{Finding, Rule};
use crate::node::Node;
use crate::policy::{Statement, statements};
use crate::template::{Resource, Template};

/// Finds roles without an effective permissions boundary.
pub(super) fn find(template: &Template<'_>) -> Vec<Finding> {
    let roles = template.resources().filter(|resource| resource.kind == "AWS::IAM::Role");
    roles.flat_map(|role| of_role(template, role)).collect()
}

fn of_role(template: &Template<'_>, role: Resource<'_>) -> Vec<Finding> {
    let boundary = role.property(&["PermissionsBoundary"]);
    let mut unbounded = boundary.is_none_or(Node::may_be_nothing);
    let mut found = Vec::new();
    for one in boundary.map(Node::each).unwrap_or_default() {
        match template.managed_policy(one) {
            // The customer is responsible for a boundary that a parameter names. The role must then attach a policy of
            // the template that protects boundaries.
            None if template.is_own_parameter(&one.to_text()) => {
                unbounded |= !template.role_lists(role.node, keeps_boundaries);
            }
            None => {
                let reason =
                    format!("the boundary `{}` is not in this template, so it cannot be checked", one.to_text());
                found.push(role.finding(Rule::Boundary, one, reason));
            }
            Some(policy) if !keeps_boundaries(policy) => {
                let reason =
                    "its boundary lets the role make roles without this boundary, or remove the boundary from roles";
                found.push(role.finding(Rule::Boundary, one, reason));
            }
            Some(_) => {}
        }
    }
    // Without a boundary, only the role's own policies limit it: they must name each action, and must not name actions
    // of IAM.
    if unbounded && is_wide(role) {
        let reason = "no permissions boundary of this template limits the role, so it must not have managed policies, \
                      and its policies must not allow actions of IAM, `NotAction`, or patterns such as `s3:*`";
        found.push(role.finding(Rule::Boundary, role.node, reason));
    }
    found
}

/// Returns whether a role's policies allow actions that they do not name, or actions of IAM. Also returns true for a
/// role with attached managed policies.
fn is_wide(role: Resource<'_>) -> bool {
    let wide = statements(role.node).into_iter().filter(|statement| statement.allows()).any(grants_unnamed);
    wide || role.property(&["ManagedPolicyArns"]).is_some_and(|list| !list.each().is_empty())
}

/// Returns whether a statement allows actions that it does not name, or actions of IAM.
fn grants_unnamed(statement: Statement<'_>) -> bool {
    statement.0.get("NotAction").is_some()
        || statement.0.get("Action").is_some_and(|actions| {
            actions.each().iter().any(|action| action.to_text().contains('*') || action.to_text().starts_with("iam:"))
        })
}

/// Returns whether a boundary policy denies two things: to create roles without this boundary, and to remove the
/// boundary from roles.
fn keeps_boundaries(policy: &Node) -> bool {
    let everywhere = |statement: &Statement<'_>| {
        statement.denies() && statement.resources().iter().any(|resource| resource.to_text() == "*")
    };
    let all = statements(policy);
    let makes = all.iter().filter(|one| everywhere(one)).any(|statement| {
        let conditioned = statement.0.at(&["Condition", "StringNotEquals", "iam:PermissionsBoundary"]).is_some()
            || statement.0.at(&["Condition", "ArnNotEquals", "iam:PermissionsBoundary"]).is_some();
        ["iam:CreateRole", "iam:PutRolePermissionsBoundary"].iter().all(|action| statement.is_about(action))
            && conditioned
    });
    let removes = all.iter().filter(|one| everywhere(one) && one.0.get("Condition").is_none());
    makes && removes.into_iter().any(|statement| statement.is_about("iam:DeleteRolePermissionsBoundary"))
}

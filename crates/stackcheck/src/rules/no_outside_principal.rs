//! Checks that nobody outside of the account may assume a role or use a resource.

use crate::finding::{Finding, Rule};
use crate::node::Node;
use crate::policy::{admits, statements, unreadable};
use crate::template::{Resource, Template};

const RULE: Rule = Rule::NoOutsidePrincipal;

/// Finds users, principals of other accounts, and policies whose principals cannot be determined.
pub(super) fn find(template: &Template<'_>) -> Vec<Finding> {
    let users = template.resources().filter(|one| ["AWS::IAM::User", "AWS::IAM::AccessKey"].contains(&one.kind));
    let users =
        users.map(|user| user.finding(RULE, user.node, "the key of a user works from anywhere and does not expire"));
    let policies = template.resources_with_grants().flat_map(|resource| {
        let mut found = unreadable(RULE, resource, admits);
        found.extend(principals(template, resource));
        found
    });
    users.chain(policies).collect()
}

fn principals(template: &Template<'_>, resource: Resource<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for statement in statements(resource.node).into_iter().filter(|statement| statement.allows()) {
        if let Some(others) = statement.0.get("NotPrincipal") {
            let reason = "`NotPrincipal` lets in everybody in the world except the named principals";
            found.push(resource.finding(RULE, others, reason));
        }
        for (kind, who) in statement.principals() {
            found.extend(outside(template, kind, who).map(|reason| resource.finding(RULE, who, reason)));
        }
    }
    found
}

/// Returns the reason to refuse a principal that is neither of this account nor a service of AWS. Returns `None` for a
/// permitted principal.
fn outside(template: &Template<'_>, kind: &str, who: &Node) -> Option<String> {
    let text = who.to_text();
    match kind {
        "Service" => {
            let aws = text.ends_with(".amazonaws.com") || text.ends_with(".amazonaws.com.cn");
            (!aws || text.contains('*')).then(|| format!("`{text}` is not a service of AWS"))
        }
        "AWS" if template.is_own(&text) => None,
        "AWS" if text == "*" => Some("everybody in the world is permitted".to_owned()),
        "AWS" => Some(format!("`{text}` may belong to another account")),
        "Federated" if text.contains(":${AWS::AccountId}:") || template.is_resource(&text) => None,
        "*" => Some("everybody in the world is permitted".to_owned()),
        _ => Some(format!("`{text}` is an identity from outside of this account")),
    }
}

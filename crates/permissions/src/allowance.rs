//! Decides whether policies can allow an action, before their templates are rendered with the values of an install.

use std::collections::BTreeSet;

use freehold_protocol::app_version::RolePolicy;

use crate::pattern::Pattern;
use crate::statements::Statements;

/// The effect that the policies of one role have on one action on one resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A statement allows the action always, under a condition, or for some values of its templates.
    Possible,
    /// No statement allows the action. The AWS managed policies with these names may allow it: this crate does not know
    /// what they contain.
    Managed(BTreeSet<String>),
    /// No policy allows the action.
    NotAllowed,
    /// A statement denies the action.
    Denied,
    /// The permissions boundary of the role does not allow the action, whatever its policies do.
    OutsideBoundary,
}

/// The parsed policies of one role.
#[derive(Debug, Default)]
pub struct Allowance {
    statements: Statements,
    managed: BTreeSet<String>,
    boundary: Option<Statements>,
}

impl Allowance {
    /// Returns what `policies` allow within `boundary`, the permissions boundary of the vendor's config.
    pub fn of(policies: &[RolePolicy], boundary: Option<&str>) -> Self {
        let mut allowance = Self { boundary: boundary.map(Statements::of_boundary), ..Self::default() };
        for policy in policies {
            match policy {
                RolePolicy::Managed(name) => drop(allowance.managed.insert(name.clone())),
                RolePolicy::Inline { name, document } => {
                    allowance.statements.read(&format!("policy `{name}`"), document);
                }
                RolePolicy::GcpPredefined(_) => {}
            }
        }
        allowance
    }

    /// Returns the effect of the policies on `action` on `resource`. A `resource` of `*` means any resource. In every
    /// other `resource`, which is a pattern of ARNs, `*` and a template match texts without `/` and `:`.
    pub fn answer(&self, action: &str, resource: &str) -> Answer {
        let (name, resource) = (action, Some(resource).filter(|text| *text != "*").map(Pattern::of_name));
        let (action, resource) = (Pattern::of_action(action), resource.as_ref());
        if self.statements.deny(&action, resource) {
            return Answer::Denied;
        }
        let is_outside =
            |boundary: &Statements| boundary.deny(&action, resource) || !boundary.may_allow(&action, resource);
        if self.boundary.as_ref().is_some_and(is_outside) {
            return Answer::OutsideBoundary;
        }
        if self.statements.may_allow(&action, resource) {
            return Answer::Possible;
        }
        let mut unknown = BTreeSet::new();
        for policy in &self.managed {
            match managed(policy, name) {
                Some(true) => return Answer::Possible,
                Some(false) => {}
                None => drop(unknown.insert(policy.clone())),
            }
        }
        if unknown.is_empty() { Answer::NotAllowed } else { Answer::Managed(unknown) }
    }
}

/// Returns whether an AWS managed policy allows an action, or `None` when this function does not know (AWS managed
/// policy reference guide).
fn managed(policy: &str, action: &str) -> Option<bool> {
    let (service, verb) = action.split_once(':').unwrap_or((action, ""));
    let reads = ["Describe", "Get", "List"].iter().any(|start| verb.starts_with(start));
    match policy {
        "AdministratorAccess" => Some(true),
        "PowerUserAccess" => Some(!["iam", "organizations", "account"].contains(&service)),
        "IAMFullAccess" => Some(service == "iam"),
        "AWSCloudFormationFullAccess" => Some(service == "cloudformation"),
        // Both policies allow most actions that read, but this function does not know the exceptions.
        "ReadOnlyAccess" | "job-function/ViewOnlyAccess" if reads => None,
        "ReadOnlyAccess" | "job-function/ViewOnlyAccess" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const TOPIC: &str = "arn:*:cloudformation:*:*:stack/{{ .nuon.install.id }}-topic/*";

    fn inline(statement: &Value) -> RolePolicy {
        RolePolicy::Inline { name: "own".into(), document: json!({ "Statement": statement }).to_string() }
    }

    fn answer(policies: &[RolePolicy]) -> Answer {
        Allowance::of(policies, None).answer("cloudformation:CreateChangeSet", TOPIC)
    }

    fn allow(action: &str, resource: &str) -> RolePolicy {
        inline(&json!({ "Effect": "Allow", "Action": action, "Resource": resource }))
    }

    #[test]
    fn a_statement_that_may_allow_it_is_enough() {
        let own = "arn:aws:cloudformation:*:*:stack/{{.nuon.install.id}}-topic/*";
        let condition = json!({ "StringEquals": { "aws:RequestedRegion": "eu-west-1" } });
        for policy in [
            allow("cloudformation:*", "*"),
            allow("CloudFormation:create*", own),
            inline(&json!([{ "Effect": "Allow", "Action": "*", "Resource": "*", "Condition": condition }])),
            inline(&json!({ "Effect": "Allow", "NotAction": "iam:*", "Resource": "*" })),
            RolePolicy::Inline { name: "text".into(), document: "{{ .nuon.inputs.inputs.policy }}".into() },
            RolePolicy::Managed("AdministratorAccess".into()),
        ] {
            assert_eq!(answer(std::slice::from_ref(&policy)), Answer::Possible, "{policy:?}");
        }
    }

    #[test]
    fn another_stack_another_action_and_no_policy_allow_nothing() {
        let other = "arn:aws:cloudformation:*:*:stack/{{ .nuon.install.id }}-queue/*";

        for policies in [
            vec![],
            vec![allow("cloudformation:*", other)],
            vec![allow("cloudformation:Describe*", "*"), allow("sns:*", "*")],
            vec![RolePolicy::Managed("ReadOnlyAccess".into()), RolePolicy::Managed("IAMFullAccess".into())],
        ] {
            assert_eq!(answer(&policies), Answer::NotAllowed, "{policies:?}");
        }
    }

    #[test]
    fn a_denial_decides_and_a_managed_policy_that_is_not_known_is_named() {
        let all = allow("*", "*");
        let denial = inline(&json!({ "Effect": "Deny", "Action": "cloudformation:*ChangeSet", "Resource": "*" }));
        let narrow = inline(
            &json!({ "Effect": "Deny", "Action": "cloudformation:*", "Resource": "arn:aws:cloudformation:*:*:stack/x/*" }),
        );
        let managed = RolePolicy::Managed("AmazonSQSFullAccess".into());

        assert_eq!(answer(&[all.clone(), denial]), Answer::Denied);
        assert_eq!(answer(&[all, narrow]), Answer::Possible);
        assert_eq!(answer(&[managed]), Answer::Managed(["AmazonSQSFullAccess".to_owned()].into()));
    }
}

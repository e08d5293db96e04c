//! Handles requests to attach a policy to a role of the install stack. The customer agreed to the permissions of these
//! roles, so the policy is not attached. Instead, a tag on the policy records the request, and reads show the policy as
//! attached.

use std::collections::BTreeSet;

use crate::answer::Answer;
use crate::conceal::tags;
use crate::install::{HELD, Install};
use crate::query::Query;
use crate::refusal::Refusal;
use crate::upstream::Upstream;
use crate::xml::Element;

/// Returns the request to IAM that sets or removes the tag for an attachment of `policy` to `role`.
pub(crate) fn request(action: &str, role: &str, policy: &str) -> Query {
    let key = format!("{HELD}{role}");
    if action == "AttachRolePolicy" {
        let tag = [("PolicyArn", policy), ("Tags.member.1.Key", &key), ("Tags.member.1.Value", "true")];
        Query::new("TagPolicy", &tag)
    } else {
        Query::new("UntagPolicy", &[("PolicyArn", policy), ("TagKeys.member.1", &key)])
    }
}

/// Adds the recorded attachments to the last page of the list of a role's policies.
pub(crate) async fn add(answer: Answer, role: &str, install: &Install, upstream: &Upstream) -> Result<Answer, Refusal> {
    let Some(mut tree) = answer.tree().filter(|_| answer.is_success()) else { return Ok(answer) };
    let Some(result) = tree.child_mut("ListAttachedRolePoliciesResult") else { return Ok(answer) };
    if result.value("IsTruncated").as_deref() == Some("true") {
        return Ok(answer);
    }
    let held = of_role(role, install, upstream).await?;
    if let Some(list) = result.child_mut("AttachedPolicies") {
        for (name, arn) in held {
            let member = vec![Element::with_text("PolicyName", &name), Element::with_text("PolicyArn", &arn)];
            list.push(Element::with("member", member));
        }
    }
    Ok(tree.document().map_or(answer, |body| Answer { status: 200, body: body.into() }))
}

/// Returns the name and the ARN of each policy with a recorded attachment to `role`.
async fn of_role(role: &str, install: &Install, upstream: &Upstream) -> Result<BTreeSet<(String, String)>, Refusal> {
    let key = format!("{HELD}{role}");
    let mut held = BTreeSet::new();
    for (name, arn) in own_policies(install, upstream).await? {
        let answer = upstream.iam(&Query::new("ListPolicyTags", &[("PolicyArn", &arn)])).await?;
        let tree = answer.tree();
        let result = tree.as_ref().and_then(|tree| tree.child("ListPolicyTagsResult"));
        if result.is_some_and(|result| tags(result).any(|(known, _)| known == key)) {
            held.insert((name, arn));
        }
    }
    Ok(held)
}

async fn own_policies(install: &Install, upstream: &Upstream) -> Result<Vec<(String, String)>, Refusal> {
    let mut query = Query::new("ListPolicies", &[("Scope", "Local")]);
    let mut all = Vec::new();
    loop {
        let answer = upstream.iam(&query).await?;
        let unread = || Refusal::Unavailable("the policies of the install cannot be listed; try again".to_owned());
        let tree = answer.tree().filter(|_| answer.is_success()).ok_or_else(unread)?;
        let result = tree.child("ListPoliciesResult").ok_or_else(unread)?;
        let members = result.child("Policies").into_iter().flat_map(Element::children);
        let named = members.filter_map(|policy| Some((policy.value("PolicyName")?, policy.value("Arn")?)));
        all.extend(named.filter(|(_, arn)| install.owns_policy(arn)));
        match result.value("Marker").filter(|_| result.value("IsTruncated").as_deref() == Some("true")) {
            Some(marker) => query.set("Marker", marker),
            None => return Ok(all),
        }
    }
}

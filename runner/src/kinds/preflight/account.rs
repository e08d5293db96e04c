//! Checks the account: whether the region is enabled, and whether the quotas are sufficient.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_iam::types::SummaryKeyType;
use aws_types::SdkConfig;
use freehold_aws_errors::is_region_off;
use freehold_protocol::preflight::{CheckInstall, Finding};

use super::finding::{Answer, fail, pass, unchecked, warn, way_to};

/// The maximum number of stacks that are counted. AWS's default quota is 2,000.
const MAX_STACKS: usize = 10_000;

/// Checks that the region is enabled, by `GetCallerIdentity` at the region's STS endpoint. This call does not need a
/// permission, but a region that is not enabled refuses all credentials of the account (AWS Account Management
/// reference guide, "Enable or disable AWS Regions"). `account:GetRegionOptStatus` would need an additional permission.
pub(super) async fn region(sdk: &SdkConfig, region: &str) -> Vec<Finding> {
    let answer = aws_sdk_sts::Client::new(sdk).get_caller_identity().send().await;
    let arn = answer.as_ref().ok().and_then(|answer| answer.arn()).unwrap_or_default().to_owned();
    vec![judge_region(Answer::of(&answer), region, &arn)]
}

fn judge_region(answer: Answer, region: &str, arn: &str) -> Finding {
    const CHECK: &str = "region";
    match answer {
        Answer::Allowed => pass(CHECK, format!("`{region}` accepts the credentials of `{arn}`")),
        Answer::Other { code, text } if is_region_off(&code) => {
            let fix =
                format!("switch region `{region}` on in the account's settings (AWS Regions), or install elsewhere");
            fail(CHECK, format!("`{region}` does not accept the credentials of this account: {text}"), fix)
        }
        Answer::Unreachable(text) => fail(CHECK, text, way_to("AWS STS")),
        Answer::Denied(text) | Answer::Other { text, .. } => unchecked(CHECK, text, ""),
    }
}

/// Compares the numbers of IAM resources with their quotas. Returns no finding for an app that cannot create IAM
/// resources.
pub(super) async fn iam_quotas(sdk: &SdkConfig, work: &CheckInstall) -> Vec<Finding> {
    const CHECK: &str = "quotas of IAM";
    if work.terraform_versions.is_empty() && work.stacks.is_empty() {
        return Vec::new();
    }
    let answer = aws_sdk_iam::Client::new(sdk).get_account_summary().send().await;
    match (&answer, Answer::of(&answer)) {
        (Ok(summary), _) => {
            let of = |key: &SummaryKeyType| summary.summary_map()?.get(key).copied();
            let counted = [
                ("roles", of(&SummaryKeyType::Roles), of(&SummaryKeyType::RolesQuota)),
                ("policies", of(&SummaryKeyType::Policies), of(&SummaryKeyType::PoliciesQuota)),
                (
                    "instance profiles",
                    of(&SummaryKeyType::InstanceProfiles),
                    of(&SummaryKeyType::InstanceProfilesQuota),
                ),
            ];
            let counted = counted.into_iter().filter_map(|(what, used, quota)| Some((what, used?, quota?)));
            vec![judge_iam(&counted.collect::<Vec<_>>())]
        }
        (Err(_), Answer::Denied(text)) => {
            vec![unchecked(
                CHECK,
                text,
                "allow `iam:GetAccountSummary` for the mode's role, so that preflight can check the quotas",
            )]
        }
        (Err(_), Answer::Unreachable(text)) => vec![unchecked(CHECK, text, way_to("AWS IAM"))],
        (Err(_), Answer::Other { text, .. }) => vec![unchecked(CHECK, text, "")],
        // INVARIANT: `Answer::of` never turns an error into `Allowed`.
        (Err(_), Answer::Allowed) => Vec::new(),
    }
}

/// Warns if 90 % or more of a quota is used. This is not a failure, because preflight does not read the app's modules
/// and so does not know how much the app creates.
fn judge_iam(counted: &[(&str, i32, i32)]) -> Finding {
    const CHECK: &str = "quotas of IAM";
    let words = |(what, used, quota): &(&str, i32, i32)| format!("{used} of {quota} {what}");
    let full: Vec<String> =
        counted.iter().filter(|(_, used, quota)| i64::from(*used) * 10 >= i64::from(*quota) * 9).map(words).collect();
    match (counted.is_empty(), full.is_empty()) {
        (true, _) => unchecked(CHECK, "the response contains no counts", ""),
        (false, true) => pass(CHECK, counted.iter().map(words).collect::<Vec<_>>().join(", ")),
        (false, false) => {
            warn(CHECK, format!("in use: {}", full.join(", ")), "remove what is unused, or ask AWS for a higher quota")
        }
    }
}

/// Compares the number of existing and new stacks with the region's quota.
pub(super) async fn stack_quota(sdk: &SdkConfig, names: &BTreeSet<String>) -> Vec<Finding> {
    const CHECK: &str = "quota of stacks";
    const FIX: &str = "allow `cloudformation:DescribeAccountLimits` and `cloudformation:DescribeStacks` on all stacks for \
                       the mode's role, so that preflight can check the quota";
    if names.is_empty() {
        return Vec::new();
    }
    let client = aws_sdk_cloudformation::Client::new(sdk);
    let (limits, stacks) = tokio::join!(client.describe_account_limits().send(), all_stacks(&client));
    let answers = [Answer::of(&limits), Answer::of(&stacks)];
    let (Ok(limits), Ok(stacks)) = (limits, stacks) else {
        let problem = answers.into_iter().find_map(|answer| match answer {
            Answer::Allowed => None,
            Answer::Denied(text) => Some((text, FIX.to_owned())),
            Answer::Unreachable(text) => Some((text, way_to("AWS CloudFormation"))),
            Answer::Other { text, .. } => Some((text, String::new())),
        });
        let (text, fix) = problem.unwrap_or_default();
        return vec![unchecked(CHECK, text, fix)];
    };
    let limits: BTreeMap<&str, i32> =
        limits.account_limits().iter().filter_map(|limit| Some((limit.name()?, limit.value()?))).collect();
    let limit = limits.get("StackLimit").and_then(|limit| usize::try_from(*limit).ok());
    vec![judge_stacks(limit, &stacks, names)]
}

async fn all_stacks(
    client: &aws_sdk_cloudformation::Client,
) -> Result<
    BTreeSet<String>,
    aws_sdk_cloudformation::error::SdkError<aws_sdk_cloudformation::operation::describe_stacks::DescribeStacksError>,
> {
    let mut found = BTreeSet::new();
    let mut stacks = client.describe_stacks().into_paginator().items().send();
    while let Some(stack) = stacks.try_next().await? {
        found.extend(stack.stack_name);
        if found.len() >= MAX_STACKS {
            break;
        }
    }
    Ok(found)
}

fn judge_stacks(limit: Option<usize>, there: &BTreeSet<String>, wanted: &BTreeSet<String>) -> Finding {
    const CHECK: &str = "quota of stacks";
    let Some(limit) = limit else { return unchecked(CHECK, "the response has no `StackLimit`", "") };
    let new = wanted.difference(there).count();
    let detail = format!("{} of {limit} stacks exist; this deploy creates {new} more", there.len());
    if there.len() + new > limit {
        fail(CHECK, detail, "remove stacks that nobody needs, or ask AWS for a higher quota `Stack count`")
    } else {
        pass(CHECK, detail)
    }
}

#[cfg(test)]
mod tests {
    use freehold_protocol::preflight::Verdict;

    use super::*;

    #[test]
    fn a_region_that_knows_no_credential_of_the_account_is_switched_off() {
        let text = "InvalidClientTokenId: The security token included in the request is invalid".to_owned();
        let off = judge_region(Answer::Other { code: "InvalidClientTokenId".into(), text }, "ap-east-1", "");
        let strange = judge_region(Answer::Other { code: "Throttling".into(), text: "later".into() }, "ap-east-1", "");

        assert!(off.state == Verdict::Fail && off.fix.contains("switch region `ap-east-1` on"), "{off:?}");
        assert_eq!(strange.state, Verdict::Warn);
        assert_eq!(judge_region(Answer::Allowed, "eu-west-1", "arn").state, Verdict::Pass);
    }

    #[test]
    fn nine_tenths_of_a_quota_are_a_warning() {
        let room = judge_iam(&[("roles", 899, 1000), ("policies", 0, 1500)]);
        let full = judge_iam(&[("roles", 900, 1000), ("policies", 0, 1500)]);

        assert_eq!(room, pass("quotas of IAM", "899 of 1000 roles, 0 of 1500 policies"));
        assert!(full.state == Verdict::Warn && full.detail == "in use: 900 of 1000 roles", "{full:?}");
        assert_eq!(judge_iam(&[]).state, Verdict::Warn);
    }

    #[test]
    fn stacks_that_are_there_take_no_more_room() {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
        let (there, wanted) = (names(&["a", "b"]), names(&["b", "c"]));

        assert_eq!(judge_stacks(Some(3), &there, &wanted).state, Verdict::Pass);
        assert_eq!(judge_stacks(Some(2), &there, &wanted).state, Verdict::Fail);
        assert_eq!(judge_stacks(Some(2), &there, &names(&["a"])).state, Verdict::Pass);
        assert_eq!(judge_stacks(None, &there, &wanted).state, Verdict::Warn);
    }
}

//! Checks permissions that the later jobs need: makes some of their read-only calls under the mode's role.

use std::collections::BTreeSet;

use aws_types::SdkConfig;
use freehold_protocol::names;
use freehold_protocol::preflight::{CheckInstall, Finding};

use super::finding::{Answer, fail};
use crate::job::Job;

/// The name of a change set that does not exist.
const NO_CHANGE_SET: &str = "freehold-preflight";

/// Lists Terraform's states in the bucket, as a job does to find its own state. Reading an absent state would prove
/// nothing: if the role may list only some prefixes, S3 returns `AccessDenied` (Amazon S3 API, `GetObject`,
/// "Permissions"). The simulation checks whether the role may read and write a state.
pub(super) async fn state_bucket(job: &Job, sdk: &SdkConfig, work: &CheckInstall) -> Vec<Finding> {
    const CHECK: &str = "state bucket";
    if work.terraform_versions.is_empty() {
        return Vec::new();
    }
    let Some(bucket) = &job.config.bucket else {
        let fix = "write the install stack's `BucketName` into the key `bucket`";
        return vec![fail(CHECK, "the runner's config names no bucket", fix)];
    };
    let client = aws_sdk_s3::Client::from_conf(aws_sdk_s3::config::Builder::from(sdk).force_path_style(true).build());
    let list = client.list_objects_v2().bucket(bucket).prefix("terraform/").max_keys(1).send().await;
    vec![match missing_bucket(Answer::of(&list)) {
        Ok(text) => fail(CHECK, text, format!("bucket `{bucket}` is part of the install stack; update that stack")),
        Err(answer) => {
            let role = role(job);
            let fix = format!("allow `s3:ListBucket` on `{bucket}` with the prefix `terraform/*` for {role}");
            answer.needed(CHECK, &format!("states in `{bucket}` can be listed"), "Amazon S3", &fix)
        }
    }]
}

/// Returns the message of a response that the bucket does not exist. Returns any other response as the error.
fn missing_bucket(answer: Answer) -> Result<String, Answer> {
    match answer {
        Answer::Other { code, text } if code == "NoSuchBucket" => Ok(text),
        other => Err(other),
    }
}

/// Describes each stack and an absent change set of it, with the same calls as a deploy.
pub(super) async fn stacks(job: &Job, sdk: &SdkConfig, names: &BTreeSet<String>) -> Vec<Finding> {
    let client = aws_sdk_cloudformation::Client::new(sdk);
    let role = role(job);
    let mut found = Vec::new();
    for name in names {
        let (stack, change_set) = tokio::join!(
            client.describe_stacks().stack_name(name).send(),
            client.describe_change_set().stack_name(name).change_set_name(NO_CHANGE_SET).send(),
        );
        let check = format!("stack {name}");
        let stack = Answer::of(&stack).or_expected(&["does not exist"]);
        let fix = format!("allow `cloudformation:DescribeStacks` on stack `{name}` for {role}");
        let stack = stack.needed(&check, "can be described", "AWS CloudFormation", &fix);
        let change_set = Answer::of(&change_set).or_expected(&["does not exist", "ChangeSetNotFound"]);
        let fix = format!("allow `cloudformation:DescribeChangeSet` on stack `{name}` for {role}");
        found.push(stack);
        found.push(change_set.needed(&check, "its change sets can be described", "AWS CloudFormation", &fix));
    }
    found
}

/// Returns the name of the mode's role for messages.
pub(super) fn role(job: &Job) -> String {
    let mode = job.order.mode;
    match job.config.modes.role(mode) {
        Some(arn) => format!("role `{}`", names::name_of_arn(arn)),
        None => format!("the role of mode `{}`", mode.as_str()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_bucket_is_distinguished_from_a_closed_one() {
        let gone = Answer::Other { code: "NoSuchBucket".into(), text: "NoSuchBucket: gone".into() };
        let closed = Answer::Denied("AccessDenied: no".into());

        assert_eq!(missing_bucket(gone), Ok("NoSuchBucket: gone".into()));
        assert_eq!(missing_bucket(closed.clone()), Err(closed));
    }
}

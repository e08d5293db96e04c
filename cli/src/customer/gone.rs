//! `freehold customer gone`: whether anything of an install still exists in the customer's account, with the customer's own
//! credentials and without the tenant's API.

use std::collections::BTreeSet;

use aws_config::SdkConfig;
use aws_sdk_kms::types::KeyState;
use aws_sdk_resourcegroupstagging::Client;
use aws_sdk_resourcegroupstagging::types::TagFilter;
use aws_sdk_s3::error::ProvideErrorMetadata as _;
use clap::Args;
use freehold_protocol::order::leftovers::type_and_name;
use freehold_protocol::{InstallId, Partition, TenantName, names};
use serde::Serialize;

use super::own_install::OwnInstall;
use super::question::Question;
use crate::cloudformation::{Names, Stacks};
use crate::context::Context;
use crate::error::{Error, Result, ResultExt};
use crate::output::{Output, Table, clean, plural};

/// The prefix of Terraform's states in the install's bucket.
const STATES: &str = "terraform/";

/// For customers: check whether any resource of an install exists in your account.
#[derive(Debug, Args)]
#[command(after_help = Question::IsGone.help("\
Example:
  freehold customer gone globex --tenant acme

Uses the AWS credentials of the customer's account, and needs nothing from the vendor. Finds the resources of one region by the
tags that Freehold gives them (`tag:GetResources`), roles by their names (`iam:ListRoles`), stacks by their names, and the
states of Terraform in the bucket. AWS may list a resource for some time after its deletion. A key that waits for its deletion
counts as gone.

Exit code 0 when nothing exists and the install existed before: AWS lists its deleted stack (for 90 days) or its key
that waits for deletion. Exit code 1 when something exists. Exit code 3 when nothing exists and nothing shows that the
install ever existed, for example because its name is mistyped."))]
pub(crate) struct Gone {
    /// Name of the install.
    install: InstallId,
}

/// The parts of an install that exist: resources by their ARNs, stacks by their names.
#[derive(Debug, Default, Serialize)]
struct Found {
    /// CloudFormation stacks of the app, and the install stack.
    stacks: BTreeSet<String>,
    /// The states of Terraform in the bucket. The resources that they list may exist without a tag.
    states: BTreeSet<String>,
    /// Keys that AWS deletes when their waiting period ends.
    pending_keys: BTreeSet<String>,
    /// Stacks of the install and of its app that were deleted, which AWS lists for 90 days.
    deleted_stacks: BTreeSet<String>,
    /// Resources that the app's modules and stacks made.
    app: BTreeSet<String>,
    /// Resources that the install stack made. The bucket, the registry and the key stay when the stack is deleted.
    install_stack: BTreeSet<String>,
}

impl Gone {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let own = OwnInstall::find(context, &self.install).await?;
        let mut found = find(&own.config, &own.tenant, &self.install).await?;
        (found.stacks, found.deleted_stacks) = stacks(&own).await?;
        found.states = states(&own).await?;
        // AWS may list a bucket late, or not at all.
        let bucket = own.bucket();
        let is_listed = found.install_stack.iter().any(|arn| arn.ends_with(&format!(":::{bucket}")));
        if !is_listed && own.s3().head_bucket().bucket(&bucket).send().await.is_ok() {
            found.install_stack.insert(bucket_arn(&bucket, &crate::aws::region(&own.config)));
        }
        found.pending_keys = pending_keys(&own.config, &mut found.install_stack).await?;
        let place = crate::aws::place(&own.config).await?;
        let count = found.count();
        let answer = Answer {
            question: Question::IsGone.text(),
            gone: count == 0 && found.ever_was(),
            found: &found,
            rests_on: Question::IsGone.rests_on(),
        };
        context.out.show(&answer, |answer| render(answer.found, &self.install, &place, context.out))?;
        if count == 0 && found.ever_was() {
            return Ok(());
        }
        if count == 0 {
            return Err(Error::not_found(format!(
                "nothing shows that install `{}` of vendor `{}` ever existed in {place}",
                self.install, own.tenant
            ))
            .or("check the name, `--tenant`, the region and the credentials; AWS lists a deleted stack for 90 days \
                 only"));
        }
        Err(Error::failed(format!("install `{}` is not gone: found {}", self.install, plural(count, "thing")))
            .or("docs/guides/customer.md describes how to remove these resources"))
    }
}

/// Returns the ARN of a bucket in a region.
fn bucket_arn(bucket: &str, region: &str) -> String {
    format!("arn:{}:s3:::{bucket}", Partition::of_region(region).name)
}

#[derive(Debug, Serialize)]
struct Answer<'a> {
    question: &'static str,
    gone: bool,
    #[serde(flatten)]
    found: &'a Found,
    rests_on: &'static str,
}

impl Found {
    fn count(&self) -> usize {
        self.app.len() + self.install_stack.len() + self.stacks.len() + self.states.len()
    }

    /// Returns whether something shows that the install existed and was removed.
    fn ever_was(&self) -> bool {
        !self.pending_keys.is_empty() || !self.deleted_stacks.is_empty()
    }
}

/// Returns the names of the stacks that exist, and of those that were deleted.
async fn stacks(own: &OwnInstall) -> Result<(BTreeSet<String>, BTreeSet<String>)> {
    let (of_install, of_app) = (own.stack_name(), names::app_prefix(&own.tenant, &own.install));
    let ours = |name: &String| *name == of_install || name.starts_with(&of_app);
    let Names { there, deleted } = Stacks::new(&own.config).names().await?;
    Ok((there.into_iter().filter(ours).collect(), deleted.into_iter().filter(ours).collect()))
}

/// Returns the states of Terraform in the bucket.
async fn states(own: &OwnInstall) -> Result<BTreeSet<String>> {
    let (client, bucket) = (own.s3(), own.bucket());
    let mut pages = client.list_objects_v2().bucket(&bucket).prefix(STATES).into_paginator().send();
    let mut found = BTreeSet::new();
    while let Some(page) = pages.next().await {
        match page {
            Ok(page) => found.extend(page.contents().iter().filter_map(|object| object.key().map(str::to_owned))),
            Err(error) if error.code() == Some("NoSuchBucket") => return Ok(BTreeSet::new()),
            Err(error) => return Err(error).doing(format!("list the states in bucket `{bucket}`")),
        }
    }
    Ok(found)
}

/// Removes from `arns` the keys that wait for their deletion, and returns these keys.
async fn pending_keys(config: &SdkConfig, arns: &mut BTreeSet<String>) -> Result<BTreeSet<String>> {
    let client = aws_sdk_kms::Client::new(config);
    let mut pending = BTreeSet::new();
    for arn in arns.iter().filter(|arn| arn.contains(":kms:")) {
        let described = client.describe_key().key_id(arn).send().await.doing(format!("look up key `{arn}`"))?;
        let state = described.key_metadata().and_then(|key| key.key_state());
        if state == Some(&KeyState::PendingDeletion) {
            pending.insert(arn.clone());
        }
    }
    arns.retain(|arn| !pending.contains(arn));
    Ok(pending)
}

async fn find(config: &SdkConfig, tenant: &TenantName, install: &InstallId) -> Result<Found> {
    let owner = names::owner(tenant, install);
    let mut app = find_tagged(config, &[(names::OWNER_TAG, &owner)]).await?;
    let both = [(names::TENANT_TAG, tenant.as_str()), (names::INSTALL_TAG, install.as_str())];
    let mut install_stack = find_tagged(config, &both).await?;
    let (path, prefix) = (names::app_path(tenant, install), names::app_prefix(tenant, install));
    let of_stack = names::install_part(tenant, install, "");
    // The search by tag does not cover roles.
    let mut pages = aws_sdk_iam::Client::new(config).list_roles().max_items(1_000).into_paginator().send();
    while let Some(page) = pages.next().await {
        for role in page.doing("list roles")?.roles() {
            if role.path().starts_with(&path) || role.role_name().starts_with(&prefix) {
                app.insert(role.arn().to_owned());
            } else if role.role_name().starts_with(&of_stack) {
                install_stack.insert(role.arn().to_owned());
            }
        }
    }
    let install_stack = install_stack.difference(&app).cloned().collect();
    Ok(Found { app, install_stack, ..Found::default() })
}

/// Returns the ARNs of the resources that have all these tags.
async fn find_tagged(config: &SdkConfig, tags: &[(&str, &str)]) -> Result<BTreeSet<String>> {
    let filters = tags.iter().map(|(key, value)| TagFilter::builder().key(*key).values(*value).build()).collect();
    let mut pages = Client::new(config).get_resources().set_tag_filters(Some(filters)).into_paginator().send();
    let mut found = BTreeSet::new();
    while let Some(page) = pages.next().await {
        let page = page.doing("search by tag")?;
        found.extend(page.resource_tag_mapping_list().iter().filter_map(|one| one.resource_arn().map(str::to_owned)));
    }
    Ok(found)
}

fn render(found: &Found, install: &InstallId, place: &str, out: Output) -> String {
    let count = found.count();
    let pending = if found.pending_keys.is_empty() {
        String::new()
    } else {
        let keys: Vec<&str> = found.pending_keys.iter().map(String::as_str).collect();
        format!("\n\nAWS deletes these keys when their waiting period ends: {}", keys.join(", "))
    };
    if count == 0 {
        let was = if found.deleted_stacks.is_empty() {
            String::new()
        } else {
            let stacks: Vec<&str> = found.deleted_stacks.iter().map(String::as_str).collect();
            format!("\n\nDeleted stacks that AWS still lists: {}", clean(&stacks.join(", ")))
        };
        return format!(
            "nothing with the tags or names of install `{install}` exists in {place}; resources without tags, such as log \
             groups that a function made itself, are not found{was}{pending}"
        );
    }
    let mut table = Table::new(&["MADE BY", "TYPE", "NAME"]);
    for (made_by, arns) in [("the app", &found.app), ("the install stack", &found.install_stack)] {
        for arn in arns {
            let (kind, name) = type_and_name(arn);
            table.row([made_by.to_owned(), kind, name.to_owned()]);
        }
    }
    for (kind, names) in [("cloudformation stack", &found.stacks), ("terraform state", &found.states)] {
        for name in names {
            table.row([String::new(), kind.to_owned(), clean(name)]);
        }
    }
    format!(
        "{}\n\n{} of install `{install}` in {place}; AWS may list a resource for some time after its deletion, and does not \
         list resources without tags{pending}",
        out.table(&table),
        plural(count, "thing")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_that_aws_does_not_list_is_in_the_partition_of_its_region() {
        assert_eq!(bucket_arn("b", "eu-west-1"), "arn:aws:s3:::b");
        assert_eq!(bucket_arn("b", "cn-north-1"), "arn:aws-cn:s3:::b");
    }

    #[test]
    fn what_exists_is_listed_by_who_made_it() {
        let arns = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let found = Found {
            app: arns(&[
                "arn:aws:ec2:eu-west-1:222222222222:volume/vol-1",
                "arn:aws:iam::222222222222:role/acme--globex--web",
            ]),
            install_stack: arns(&["arn:aws:s3:::fh-acme--globex--222222222222"]),
            stacks: arns(&["acme--globex--queue"]),
            ..Found::default()
        };
        let none = Found { pending_keys: arns(&["arn:aws:kms:eu-west-1:222222222222:key/1"]), ..Found::default() };
        let removed = Found { deleted_stacks: arns(&["freehold-acme--globex"]), ..Found::default() };
        assert_eq!([&none, &removed, &Found::default()].map(Found::ever_was), [true, true, false]);
        let (install, place) = ("globex".parse().unwrap(), "account 222222222222, eu-west-1");
        let lines_of = |found| {
            let lines = render(found, &install, place, Output::plain());
            lines.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
        };

        let lines = lines_of(&found);

        assert_eq!(
            lines[..5],
            [
                "MADE BY TYPE NAME",
                "the app ec2 volume vol-1",
                "the app iam role acme--globex--web",
                "the install stack s3 fh-acme--globex--222222222222",
                "cloudformation stack acme--globex--queue",
            ]
        );
        assert!(lines[6].starts_with("4 things of install `globex` in account 222222222222, eu-west-1; "), "{lines:?}");
        assert!(
            lines_of(&none)[0].starts_with("nothing with the tags or names of install `globex` exists in account 222")
        );
    }
}

//! `leftovers`: lists the resources that still exist with the tag `freehold:owner` of the install, and the roles of the
//! app, which AWS does not find by tag. It changes nothing.
//!
//! Only names and types are reported: an ARN has both, and no value. A teardown has removed everything that it could when
//! this job runs, so the job succeeds even if AWS does not answer, and reports the reason instead of the list.

use std::time::Duration;

use aws_sdk_resourcegroupstagging::Client;
use aws_sdk_resourcegroupstagging::types::TagFilter;
use freehold_protocol::names::{self, OWNER_TAG};
use freehold_protocol::order::leftovers::{Leftovers, OUTPUT, type_and_name};

use crate::aws::{explain, timeouts};
use crate::identity::trusts::{AppRoles as _, IamRoles};
use crate::job::failure::{Failure, until_stopped};
use crate::job::{Job, sdk_config};
use crate::kinds::result::Done;

/// The time limit for one attempt of a call.
const ATTEMPT: Duration = Duration::from_secs(10);
/// The time limit for all attempts of a call together.
const OPERATION: Duration = Duration::from_secs(25);

pub(super) async fn run(job: &Job) -> Result<Done, Failure> {
    let found = until_stopped(job, async { Ok(find(job).await) }).await?;
    for line in lines(&found) {
        job.log.line(&line);
    }
    let value = serde_json::to_value(&found);
    let value = value.map_err(|error| Failure::because("could not write the leftovers as JSON", &error))?;
    Ok(Done { outputs: [(OUTPUT.to_owned(), value)].into(), ..Done::default() })
}

async fn find(job: &Job) -> Leftovers {
    let roles = IamRoles::new(&job.config);
    let (tagged, roles) = tokio::join!(find_tagged(job), roles.list(job.credentials.clone()));
    let (mut arns, mut unknown) = (Vec::new(), Vec::new());
    match tagged {
        Ok(found) => arns.extend(found),
        Err(error) => unknown.push(not_asked(&error)),
    }
    match roles {
        Ok(found) => arns.extend(found.into_iter().map(|role| role.arn)),
        Err(error) => unknown.push(format!("the roles of the app could not be listed: {error}")),
    }
    let unknown = (!unknown.is_empty()).then(|| unknown.join("; "));
    Leftovers { unknown, ..Leftovers::of(arns) }
}

/// Returns the ARNs of the resources with the install's tag.
async fn find_tagged(job: &Job) -> Result<Vec<String>, String> {
    let sdk = sdk_config(job).await.into_builder().timeout_config(timeouts(ATTEMPT, OPERATION)).build();
    let owner = names::owner(&job.order.tenant, &job.order.install);
    let filter = TagFilter::builder().key(OWNER_TAG).values(owner).build();
    let mut pages = Client::new(&sdk).get_resources().tag_filters(filter).into_paginator().send();
    let mut arns = Vec::new();
    while let Some(page) = pages.next().await {
        let page = page.map_err(|error| explain(&error))?;
        let resources = page.resource_tag_mapping_list().iter();
        arns.extend(resources.filter_map(|one| one.resource_arn().map(str::to_owned)));
    }
    Ok(arns)
}

fn not_asked(error: &str) -> String {
    format!(
        "the resources with the tag `{OWNER_TAG}` could not be listed: {error}; if `tag:GetResources` is denied, launch \
         the current template of the install stack, in which the role of mode `deprovision` may call it; if the \
         runner's network cannot reach this API, as with `PrivateEndpoints`, make a VPC endpoint for `tagging` there, \
         or run `freehold customer gone` on a machine that can reach it"
    )
}

fn lines(found: &Leftovers) -> Vec<String> {
    let mut lines: Vec<String> = found
        .resources
        .iter()
        .map(|arn| {
            let (kind, name) = type_and_name(arn);
            format!("left: {kind} {name}")
        })
        .collect();
    if found.more > 0 {
        lines.push(format!("and {} more", found.more));
    }
    match &found.unknown {
        Some(reason) => lines.push(reason.clone()),
        None if lines.is_empty() => lines.push(format!(
            "no resource has the tag `{OWNER_TAG}` of this install, and no role has its path or name prefix"
        )),
        None => lines.push("AWS may list a resource for some time after its deletion".to_owned()),
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_names_what_is_left_and_says_when_nothing_is_or_nobody_knows() {
        let some = Leftovers { more: 2, ..Leftovers::of(vec!["arn:aws:ec2:eu-west-1:1:volume/vol-1".to_owned()]) };
        let denied = Leftovers { unknown: Some(not_asked("AccessDenied")), ..Leftovers::default() };

        assert_eq!(
            lines(&some),
            ["left: ec2 volume vol-1", "and 2 more", "AWS may list a resource for some time after its deletion"]
        );
        assert_eq!(
            lines(&Leftovers::default()),
            ["no resource has the tag `freehold:owner` of this install, and no role has its path or name prefix"]
        );
        assert!(lines(&denied).concat().contains("could not be listed: AccessDenied; "), "{:?}", lines(&denied));
    }
}

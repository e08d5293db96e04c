//! Finds resources that remain of a tenant: by tag, and by name in services that the search by tag does not cover well.

use aws_config::SdkConfig;
use freehold_protocol::{Arn, TenantName};

use super::Bucket;
use super::names::{INSTALL_TAG, TENANT_TAG, named};
use super::remove::Remover;
use super::resources::{find_tagged, is_going};
use super::source;
use crate::error::{Result, ResultExt};

/// The resources that remain of a tenant.
#[derive(Debug, Default)]
pub(super) struct Leftovers {
    /// The ARNs or names of the tenant's own remaining resources.
    pub(super) ours: Vec<String>,
    /// The number of resources that belong to installs in the same account. The installs' own stacks remove them.
    pub(super) of_installs: usize,
}

impl Leftovers {
    /// Returns the resources that a deleted tenant left, in every service that it used.
    pub(super) async fn find(
        config: &SdkConfig,
        tenant: &TenantName,
        bucket: &Bucket,
        remover: &Remover,
    ) -> Result<Self> {
        let mut found = Self::default();
        let listed = find_tagged(config, tenant).await?;
        for resource in listed.into_iter().filter(|one| one.of_install || !ends_with_its_group(&one.arn)) {
            match (resource.of_install, still_there(config, &resource.arn).await?) {
                (_, false) => {}
                (true, true) => found.of_installs += 1,
                (false, true) => found.ours.push(resource.arn),
            }
        }
        found.ours.extend(remover.queues().await?);
        found.ours.extend(remover.log_groups().await?);
        found.ours.extend(roles(config, tenant).await?);
        let sources = source::list_stored(config, tenant).await?;
        found.ours.extend(sources.iter().map(|(address, _)| address.secret_name(tenant)));
        if bucket.exists().await? {
            found.ours.push(bucket.name().to_owned());
        }
        found.ours.sort();
        found.ours.dedup();
        Ok(found)
    }
}

/// Returns whether a resource is the build runner's machine or its disk. Both end with the stack's Auto Scaling group,
/// and the search by tag still returns them for about an hour.
fn ends_with_its_group(arn: &str) -> bool {
    let is_of_group = |resource: &str| resource.starts_with("instance/") || resource.starts_with("volume/");
    Arn::parse(arn).is_some_and(|arn| arn.service == "ec2" && is_of_group(arn.resource))
}

/// Returns whether a resource still exists. The search by tag returns resources for some time after their deletion, and
/// keys until their scheduled deletion.
async fn still_there(config: &SdkConfig, arn: &str) -> Result<bool> {
    let (service, name) = Arn::parse(arn).map_or(("", ""), |arn| (arn.service, arn.resource));
    match service {
        "kms" => Ok(!is_going(&aws_sdk_kms::Client::new(config), arn).await?),
        // These services have searches of their own.
        "sqs" | "logs" | "secretsmanager" | "s3" => Ok(false),
        "dynamodb" => {
            let name = name.trim_start_matches("table/");
            let found = aws_sdk_dynamodb::Client::new(config).describe_table().table_name(name).send().await;
            Ok(!found.is_err_and(|e| e.as_service_error().is_some_and(|e| e.is_resource_not_found_exception())))
        }
        "ecr" => {
            let name = name.trim_start_matches("repository/");
            let found = aws_sdk_ecr::Client::new(config).describe_repositories().repository_names(name).send().await;
            Ok(!found.is_err_and(|e| e.as_service_error().is_some_and(|e| e.is_repository_not_found_exception())))
        }
        "lambda" => {
            let found =
                aws_sdk_lambda::Client::new(config).get_function_configuration().function_name(arn).send().await;
            Ok(!found.is_err_and(|e| e.as_service_error().is_some_and(|e| e.is_resource_not_found_exception())))
        }
        _ => Ok(true),
    }
}

/// Returns the ARNs of the tenant's roles. The search by tag does not cover IAM.
async fn roles(config: &SdkConfig, tenant: &TenantName) -> Result<Vec<String>> {
    let client = aws_sdk_iam::Client::new(config);
    let start = named(tenant, "");
    let mut pages = client.list_roles().into_paginator().send();
    let mut ours = Vec::new();
    while let Some(page) = pages.next().await {
        for role in page.doing("list roles")?.roles().iter().filter(|role| role.role_name().starts_with(&start)) {
            let tags = client.list_role_tags().role_name(role.role_name()).send().await;
            let tags = match tags {
                Err(error) if error.as_service_error().is_some_and(|e| e.is_no_such_entity_exception()) => {
                    continue;
                }
                tags => tags.doing(format!("read the tags of role `{}`", role.role_name()))?,
            };
            let has = |key: &str, value: &str| {
                tags.tags().iter().any(|t| t.key() == key && (value.is_empty() || t.value() == value))
            };
            if has(TENANT_TAG, tenant.as_str()) && !has(INSTALL_TAG, "") {
                ours.push(role.arn().to_owned());
            }
        }
    }
    Ok(ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_ended_with_the_stack_is_not_left_over_and_its_launch_template_is() {
        let arn = |name: &str| format!("arn:aws:ec2:eu-west-1:111111111111:{name}");

        let gone: Vec<bool> = ["instance/i-1", "volume/vol-1", "launch-template/lt-1", "security-group/sg-1"]
            .map(|name| ends_with_its_group(&arn(name)))
            .into();

        assert_eq!(gone, [true, true, false, false]);
        assert!(!ends_with_its_group("arn:aws:sqs:eu-west-1:111111111111:instance/i-1"));
    }
}

//! Finds the AWS resources that carry the tenant's tag.

use aws_config::SdkConfig;
use aws_sdk_resourcegroupstagging::types::TagFilter;
use freehold_protocol::TenantName;

use super::names::{INSTALL_TAG, TENANT_TAG};
use crate::error::{Result, ResultExt};

/// A resource with the tenant's tag.
#[derive(Debug)]
pub(super) struct Tagged {
    pub(super) arn: String,
    /// Whether the resource also has an install's tag. The tenant's orders queues also have it.
    pub(super) of_install: bool,
}

/// Returns all resources with the tenant's tag.
pub(super) async fn find_tagged(config: &SdkConfig, tenant: &TenantName) -> Result<Vec<Tagged>> {
    let client = aws_sdk_resourcegroupstagging::Client::new(config);
    let filter = TagFilter::builder().key(TENANT_TAG).values(tenant.as_str()).build();
    let mut pages = client.get_resources().tag_filters(filter).into_paginator().send();
    let mut found = Vec::new();
    while let Some(page) = pages.next().await {
        for resource in page.doing("search by tag")?.resource_tag_mapping_list() {
            let of_install = resource.tags().iter().any(|tag| tag.key() == INSTALL_TAG);
            found.extend(resource.resource_arn().map(|arn| Tagged { arn: arn.to_owned(), of_install }));
        }
    }
    Ok(found)
}

/// Returns whether the KMS key is deleted, or its deletion is scheduled.
pub(super) async fn is_going(client: &aws_sdk_kms::Client, arn: &str) -> Result<bool> {
    match client.describe_key().key_id(arn).send().await {
        Ok(found) => Ok(found.key_metadata().is_none_or(|key| key.deletion_date().is_some())),
        Err(error) if error.as_service_error().is_some_and(|e| e.is_not_found_exception()) => Ok(true),
        Err(error) => Err(error).doing(format!("look up key `{arn}`")),
    }
}

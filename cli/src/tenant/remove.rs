//! Removes resources that a tenant has outside its stack, or that the stack retains. The resources are found by name
//! and by tag, so that a tenant with a similar name stays untouched. A second run continues after a failure.

use aws_config::SdkConfig;
use aws_sdk_cloudwatchlogs::types::LogGroup;
use aws_sdk_sqs::types::QueueAttributeName;
use freehold_protocol::TenantName;
use freehold_protocol::names::{is_reports_queue, queue_of};

use super::names::{FUNCTIONS, LOG_PREFIXES, QUEUES, TENANT_TAG, named, prefix};
use super::resources::{find_tagged, is_going};
use super::source;
use crate::error::{Result, ResultExt};

/// The waiting period before KMS deletes the signing key, in days. KMS does not allow a shorter period.
const KEY_WINDOW_DAYS: i32 = 7;

/// The removal of one tenant's resources.
#[derive(Debug)]
pub(super) struct Remover {
    config: SdkConfig,
    tenant: TenantName,
}

impl Remover {
    pub(super) fn new(config: &SdkConfig, tenant: TenantName) -> Self {
        Self { config: config.clone(), tenant }
    }

    /// Removes all resources except the stack and the bucket. Returns descriptions of the removed resources.
    pub(super) async fn remove(&self) -> Result<Vec<String>> {
        let mut removed = Vec::new();
        removed.extend(self.remove_queues().await?);
        removed.extend(self.remove_keys().await?);
        removed.extend(self.remove_table().await?);
        removed.extend(self.remove_repository().await?);
        removed.extend(self.remove_secrets().await?);
        removed.extend(self.remove_log_groups().await?);
        Ok(removed)
    }

    /// Returns the URLs of the installs' orders queues.
    pub(super) async fn orders_queues(&self) -> Result<Vec<String>> {
        let own: Vec<String> = QUEUES.iter().map(|queue| format!("/{}", named(&self.tenant, queue))).collect();
        let is_own =
            |url: &String| own.iter().any(|name| url.ends_with(name)) || is_reports_queue(&self.tenant, queue_of(url));
        Ok(self.queues().await?.into_iter().filter(|url| !is_own(url)).collect())
    }

    /// Returns the URLs of all queues of the tenant.
    pub(super) async fn queues(&self) -> Result<Vec<String>> {
        let client = aws_sdk_sqs::Client::new(&self.config);
        let mut pages = client.list_queues().queue_name_prefix(named(&self.tenant, "")).into_paginator().send();
        let mut ours = Vec::new();
        while let Some(page) = pages.next().await {
            for url in page.doing("list queues")?.queue_urls() {
                if self.owns_queue(&client, url).await? {
                    ours.push(url.clone());
                }
            }
        }
        Ok(ours)
    }

    /// Returns whether a queue belongs to the tenant: it has the tenant's tag, or its dead-letter queue belongs to the
    /// tenant.
    async fn owns_queue(&self, client: &aws_sdk_sqs::Client, url: &str) -> Result<bool> {
        let tags = match client.list_queue_tags().queue_url(url).send().await {
            Err(error) if error.as_service_error().is_some_and(|e| e.is_queue_does_not_exist()) => {
                return Ok(false);
            }
            tags => tags.doing(format!("read the tags of queue `{url}`"))?,
        };
        if let Some(owner) = tags.tags().and_then(|tags| tags.get(TENANT_TAG)) {
            return Ok(owner == self.tenant.as_str());
        }
        let ask = client.get_queue_attributes().queue_url(url).attribute_names(QueueAttributeName::RedrivePolicy);
        let found = ask.send().await.doing(format!("read queue `{url}`"))?;
        let policy = found.attributes().and_then(|all| all.get(&QueueAttributeName::RedrivePolicy));
        let target = format!(":{}\"", named(&self.tenant, "dead.fifo"));
        Ok(policy.is_some_and(|policy| policy.contains(&target)))
    }

    async fn remove_queues(&self) -> Result<Vec<String>> {
        let client = aws_sdk_sqs::Client::new(&self.config);
        let mut removed = Vec::new();
        for url in self.queues().await? {
            if is_reports_queue(&self.tenant, queue_of(&url)) {
                self.remove_event_sources(&client, &url).await?;
            }
            match client.delete_queue().queue_url(&url).send().await {
                Err(error) if error.as_service_error().is_some_and(|e| e.is_queue_does_not_exist()) => {
                    continue;
                }
                deleted => drop(deleted.doing(format!("delete queue `{url}`"))?),
            }
            removed.push(format!("queue {}", url.rsplit('/').next().unwrap_or(&url)));
        }
        Ok(removed)
    }

    /// Removes the event source mappings of a reports queue that is not in the stack. Lambda does not delete these
    /// mappings with their function.
    async fn remove_event_sources(&self, client: &aws_sdk_sqs::Client, url: &str) -> Result<()> {
        let ask = client.get_queue_attributes().queue_url(url).attribute_names(QueueAttributeName::QueueArn);
        let found = match ask.send().await {
            Err(error) if error.as_service_error().is_some_and(|e| e.is_queue_does_not_exist()) => return Ok(()),
            found => found.doing(format!("read queue `{url}`"))?,
        };
        let Some(arn) = found.attributes().and_then(|all| all.get(&QueueAttributeName::QueueArn)) else {
            return Ok(());
        };
        let lambda = aws_sdk_lambda::Client::new(&self.config);
        let listed = lambda.list_event_source_mappings().event_source_arn(arn).send().await;
        let listed = listed.doing(format!("list the event source mappings of `{arn}`"))?;
        let left = listed.event_source_mappings().iter().filter(|mapping| mapping.state() != Some("Deleting"));
        for id in left.filter_map(|mapping| mapping.uuid()) {
            let what = format!("delete the event source mapping `{id}`");
            match lambda.delete_event_source_mapping().uuid(id).send().await {
                Err(error) if error.as_service_error().is_some_and(|e| e.is_resource_not_found_exception()) => {}
                // Lambda is still creating or updating the mapping. If the queue were deleted now, the mapping would
                // stay, because a second run finds mappings only by their queue.
                Err(error) if error.as_service_error().is_some_and(|e| e.is_resource_in_use_exception()) => {
                    return Err(error).doing(what).map_err(|error| error.or("run the command again in a minute"));
                }
                deleted => drop(deleted.doing(what)?),
            }
        }
        Ok(())
    }

    /// Schedules the deletion of the signing key. The key has no name, so it is found by its tag.
    async fn remove_keys(&self) -> Result<Vec<String>> {
        let client = aws_sdk_kms::Client::new(&self.config);
        let mut removed = Vec::new();
        for found in find_tagged(&self.config, &self.tenant)
            .await?
            .into_iter()
            .filter(|f| f.arn.contains(":kms:") && !f.of_install)
        {
            if is_going(&client, &found.arn).await? {
                continue;
            }
            let schedule = client.schedule_key_deletion().key_id(&found.arn).pending_window_in_days(KEY_WINDOW_DAYS);
            schedule.send().await.doing(format!("delete key `{}`", found.arn))?;
            removed.push(format!("key {} (gone in {KEY_WINDOW_DAYS} days)", found.arn));
        }
        Ok(removed)
    }

    async fn remove_table(&self) -> Result<Option<String>> {
        let client = aws_sdk_dynamodb::Client::new(&self.config);
        let name = prefix(&self.tenant);
        match client.delete_table().table_name(&name).send().await {
            Ok(_) => Ok(Some(format!("table {name}"))),
            Err(error) if error.as_service_error().is_some_and(|e| e.is_resource_not_found_exception()) => Ok(None),
            Err(error) => Err(error).doing(format!("delete table `{name}`")),
        }
    }

    async fn remove_repository(&self) -> Result<Option<String>> {
        let client = aws_sdk_ecr::Client::new(&self.config);
        let name = prefix(&self.tenant);
        match client.delete_repository().repository_name(&name).force(true).send().await {
            Ok(_) => Ok(Some(format!("repository {name} with its artifacts"))),
            Err(error) if error.as_service_error().is_some_and(|e| e.is_repository_not_found_exception()) => Ok(None),
            Err(error) => Err(error).doing(format!("delete repository `{name}`")),
        }
    }

    async fn remove_secrets(&self) -> Result<Vec<String>> {
        let sources = source::list_stored(&self.config, &self.tenant).await?;
        let sources = sources.iter().map(|(address, _)| address.secret_name(&self.tenant));
        let mut removed = Vec::new();
        for name in sources {
            if source::delete(&self.config, &name).await? {
                removed.push(format!("secret {name}"));
            }
        }
        Ok(removed)
    }

    /// Deletes log groups. They are found by name, because a function that is still running creates its group again
    /// without tags.
    async fn remove_log_groups(&self) -> Result<Vec<String>> {
        let client = aws_sdk_cloudwatchlogs::Client::new(&self.config);
        let mut removed = Vec::new();
        for name in self.log_groups().await? {
            match client.delete_log_group().log_group_name(&name).send().await {
                Err(error) if error.as_service_error().is_some_and(|e| e.is_resource_not_found_exception()) => {
                    continue;
                }
                deleted => drop(deleted.doing(format!("delete log group `{name}`"))?),
            }
            removed.push(format!("log group {name}"));
        }
        Ok(removed)
    }

    /// Returns the names of the tenant's log groups.
    pub(super) async fn log_groups(&self) -> Result<Vec<String>> {
        let client = aws_sdk_cloudwatchlogs::Client::new(&self.config);
        let mut ours = Vec::new();
        for start in LOG_PREFIXES {
            let start = format!("{start}{}", prefix(&self.tenant));
            let mut pages = client.describe_log_groups().log_group_name_prefix(start).into_paginator().send();
            while let Some(page) = pages.next().await {
                for group in page.doing("list log groups")?.log_groups() {
                    if self.owns_log_group(&client, group).await? {
                        ours.extend(group.log_group_name().map(str::to_owned));
                    }
                }
            }
        }
        Ok(ours)
    }

    async fn owns_log_group(&self, client: &aws_sdk_cloudwatchlogs::Client, group: &LogGroup) -> Result<bool> {
        let name = group.log_group_name().unwrap_or_default();
        let of_function = |function: &&str| name == format!("/aws/lambda/{}", named(&self.tenant, function));
        if FUNCTIONS.iter().any(of_function) {
            return Ok(true);
        }
        let Some(arn) = group.log_group_arn().or_else(|| group.arn()) else {
            return Ok(false);
        };
        let tags = client.list_tags_for_resource().resource_arn(arn.trim_end_matches(":*")).send().await;
        match tags {
            Err(error) if error.as_service_error().is_some_and(|e| e.is_resource_not_found_exception()) => Ok(false),
            tags => {
                let tags = tags.doing(format!("read the tags of log group `{name}`"))?;
                Ok(tags.tags().and_then(|tags| tags.get(TENANT_TAG)).is_some_and(|owner| owner == self.tenant.as_str()))
            }
        }
    }
}

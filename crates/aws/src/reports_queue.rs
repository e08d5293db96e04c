//! SQS and Lambda: the reports queues, who may send to them, and the function that receives their messages.

use std::collections::{BTreeSet, HashMap};

use aws_sdk_lambda::types::{FunctionResponseType, ScalingConfig};
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::QueueAttributeName;
use freehold_app::ports::PortError;
use freehold_domain::reports::shards::ReportShard;
use freehold_protocol::{AccountId, Arn, TenantName, names};
use serde_json::json;

use crate::error::port_error;
use crate::tenant_queues::{RETENTION_SECS, TenantQueues};

/// The largest SQS queue policy, in bytes (Amazon SQS quotas, "Policies").
const MAX_POLICY_BYTES: usize = 8192;
/// The attributes of a reports queue. The tenant stack creates the first one with the same values.
const VISIBILITY_SECS: u32 = 90;
const MAX_RECEIVES: u32 = 1_000;
/// The number of messages that the function receives at once.
const BATCH: i32 = 10;

/// Creates a reports queue, unless the tenant stack has created it, and lets `accept-report` receive its messages.
pub(crate) async fn create(
    client: &Client,
    lambda: &aws_sdk_lambda::Client,
    place: &TenantQueues,
    shard: u32,
) -> Result<String, PortError> {
    if shard == ReportShard::FIRST {
        return Ok(place.reports_url.clone());
    }
    let name = names::reports_queue(&place.tenant, shard);
    let redrive = json!({ "deadLetterTargetArn": place.dead_letter_arn, "maxReceiveCount": MAX_RECEIVES });
    let attributes = HashMap::from([
        (QueueAttributeName::VisibilityTimeout, VISIBILITY_SECS.to_string()),
        (QueueAttributeName::ReceiveMessageWaitTimeSeconds, "20".to_owned()),
        (QueueAttributeName::MessageRetentionPeriod, RETENTION_SECS.to_string()),
        (QueueAttributeName::SqsManagedSseEnabled, "true".to_owned()),
        (QueueAttributeName::RedrivePolicy, redrive.to_string()),
    ]);
    // SQS returns the URL of a queue that exists with the same attributes. It does not compare the policy.
    let made = client
        .create_queue()
        .queue_name(&name)
        .set_attributes(Some(attributes))
        .tags(names::TENANT_TAG, place.tenant.as_str())
        .send()
        .await
        .map_err(|e| port_error("reports queue", e))?;
    let missing = || PortError::Failed { what: "reports queue".into(), reason: format!("SQS gave no URL of `{name}`") };
    let url = made.queue_url.ok_or_else(missing)?;
    let made = lambda
        .create_event_source_mapping()
        .function_name(names::tenant_part(&place.tenant, "accept-report"))
        .event_source_arn(place.arn(&name))
        .batch_size(BATCH)
        .function_response_types(FunctionResponseType::ReportBatchItemFailures)
        .scaling_config(ScalingConfig::builder().maximum_concurrency(place.report_concurrency).build())
        .send()
        .await;
    match made {
        Ok(_) => Ok(url),
        // An earlier call has created the mapping.
        Err(error) if error.as_service_error().is_some_and(|e| e.is_resource_conflict_exception()) => Ok(url),
        Err(error) => Err(port_error("reports queue", error)),
    }
}

/// Writes the policy of a reports queue.
pub(crate) async fn allow(
    client: &Client,
    place: &TenantQueues,
    shard: u32,
    accounts: &BTreeSet<AccountId>,
) -> Result<(), PortError> {
    let name = names::reports_queue(&place.tenant, shard);
    let policy =
        policy(&place.arn(&name), &place.tenant, accounts).map(|policy| policy.to_string()).unwrap_or_default();
    if policy.len() > MAX_POLICY_BYTES {
        let reason = format!("the policy of `{name}` is full, because it names {} accounts", accounts.len());
        return Err(PortError::Failed { what: "reports queue".into(), reason });
    }
    let url = if shard == ReportShard::FIRST {
        place.reports_url.clone()
    } else {
        let found =
            client.get_queue_url().queue_name(&name).send().await.map_err(|e| port_error("reports queue", e))?;
        found.queue_url.unwrap_or_default()
    };
    let set = client.set_queue_attributes().queue_url(url).attributes(QueueAttributeName::Policy, policy);
    set.send().await.map_err(|e| port_error("reports queue", e))?;
    Ok(())
}

/// Returns the policy of the reports queue `arn`: only the runner roles in these accounts may send to it. `None` without
/// accounts. The roles are in the partition of the queue, because no identity of AWS counts in another one.
pub(crate) fn policy(arn: &str, tenant: &TenantName, accounts: &BTreeSet<AccountId>) -> Option<serde_json::Value> {
    let partition = Arn::parse(arn).map_or("aws", |arn| arn.partition);
    let every = format!("arn:{partition}:iam::*:role/fh-{tenant}--*--runner");
    (!accounts.is_empty()).then(|| {
        json!({
            "Version": "2012-10-17",
            "Statement": [{
                "Sid": "RunnersSendReports",
                "Effect": "Allow",
                "Principal": "*",
                "Action": "sqs:SendMessage",
                "Resource": arn,
                "Condition": {
                    "StringEquals": { "aws:PrincipalAccount": accounts },
                    "ArnLike": { "aws:PrincipalArn": every },
                },
            }],
        })
    })
}

#[cfg(test)]
mod tests {
    use freehold_domain::reports::shards::MAX_ACCOUNTS;

    use super::*;

    fn accounts(count: usize) -> BTreeSet<AccountId> {
        (0..count).map(|number| format!("{number:012}").parse().unwrap()).collect()
    }

    #[test]
    fn a_reports_queue_names_each_account_and_nobody_without_one() {
        let acme = "acme".parse().unwrap();

        let policy = |count| super::policy("arn:q", &acme, &accounts(count));

        let named = &policy(2).unwrap()["Statement"][0]["Condition"]["StringEquals"]["aws:PrincipalAccount"];
        assert_eq!(*named, json!(["000000000000", "000000000001"]));
        assert_eq!(policy(0), None);
    }

    /// Two writers can add an account each when they have both read the last free place, so some room is left.
    #[test]
    fn a_full_shard_fits_into_the_policy_with_the_longest_names() {
        let tenant: TenantName = "t".repeat(16).parse().unwrap();
        let name = names::reports_queue(&tenant, 9999);
        let arn = format!("arn:aws:sqs:ap-southeast-1:111111111111:{name}");

        let bytes = |count| policy(&arn, &tenant, &accounts(count)).unwrap().to_string().len();

        assert!(bytes(MAX_ACCOUNTS + 50) <= MAX_POLICY_BYTES, "{}", bytes(MAX_ACCOUNTS + 50));
    }
}

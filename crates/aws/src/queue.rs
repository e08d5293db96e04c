//! SQS: the internal queues, the orders queues, and the policies that decide who may read from them and write to them.

use std::collections::{BTreeSet, HashMap};

use async_trait::async_trait;
use aws_config::SdkConfig;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::operation::create_queue::CreateQueueError;
use aws_sdk_sqs::operation::delete_queue::DeleteQueueError;
use aws_sdk_sqs::operation::get_queue_url::GetQueueUrlError;
use aws_sdk_sqs::types::{QueueAttributeName, SendMessageBatchRequestEntry};
use freehold_app::messages::{DispatchMessage, GrantMessage};
use freehold_app::ports::{OrdersQueue, Outbox, PortError, QueueAdmin};
use freehold_protocol::limits::{CLAIM_WINDOW_SECS, LEASE_SECS};
use freehold_protocol::{AccountId, Arn, InstallId, TenantName, names};
use serde_json::json;

use crate::error::port_error;
use crate::reports_queue;
use crate::tenant_queues::{RETENTION_SECS, TenantQueues};

/// The number of receives after which an order goes to the dead-letter queue. A receive whose lease expired counts too.
/// A runner that cannot read the data that decides about an order leaves the order in the queue and receives it again,
/// at most every 30 seconds, until it is too late to start the job. A failure of that length must not move the order,
/// because nothing puts the order back while its job waits.
const MAX_RECEIVES: u32 = 200;
const _: () = assert!(MAX_RECEIVES as u64 * LEASE_SECS > CLAIM_WINDOW_SECS);

/// The internal queues of the tenant to which its functions write.
#[derive(Debug, Clone)]
pub struct SqsOutbox {
    client: Client,
    dispatch_url: String,
    grants_url: Option<String>,
}

impl SqsOutbox {
    /// Returns the outbox. Only functions that request grants pass a `grants_url`.
    pub fn new(config: &SdkConfig, dispatch_url: impl Into<String>, grants_url: Option<String>) -> Self {
        Self { client: Client::new(config), dispatch_url: dispatch_url.into(), grants_url }
    }
}

#[async_trait]
impl Outbox for SqsOutbox {
    async fn dispatch(&self, messages: &[DispatchMessage]) -> Result<(), PortError> {
        for batch in messages.chunks(10) {
            let mut request = self.client.send_message_batch().queue_url(&self.dispatch_url);
            for (at, message) in batch.iter().enumerate() {
                let entry = SendMessageBatchRequestEntry::builder()
                    .id(at.to_string())
                    .message_body(body(message)?)
                    .build()
                    .map_err(|e| failed("dispatch queue", e))?;
                request = request.entries(entry);
            }
            let answer = request.send().await.map_err(|e| port_error("dispatch queue", e))?;
            if let Some(refused) = answer.failed().first() {
                let reason = refused.message().unwrap_or(refused.code()).to_owned();
                return Err(PortError::Transient { what: "dispatch queue".into(), reason });
            }
        }
        Ok(())
    }

    async fn request_grant(&self, message: &GrantMessage) -> Result<(), PortError> {
        let url =
            self.grants_url.as_ref().ok_or_else(|| failed("grants queue", "the function's settings lack its URL"))?;
        let request = self.client.send_message().queue_url(url).message_body(body(message)?);
        request.send().await.map_err(|e| port_error("grants queue", e))?;
        Ok(())
    }
}

/// Sends messages to orders queues.
#[derive(Debug, Clone)]
pub struct SqsOrders(Client);

impl SqsOrders {
    /// Returns a sender for orders queues.
    pub fn new(config: &SdkConfig) -> Self {
        Self(Client::new(config))
    }
}

#[async_trait]
impl OrdersQueue for SqsOrders {
    async fn send(&self, queue_url: &str, group: &str, dedup: &str, body: &str) -> Result<(), PortError> {
        self.0
            .send_message()
            .queue_url(queue_url)
            .message_group_id(group)
            .message_deduplication_id(dedup)
            .message_body(body)
            .send()
            .await
            .map_err(|e| port_error("orders queue", e))?;
        Ok(())
    }
}

/// Creates orders queues, and writes the policies of the queues that vendor and customer share.
#[derive(Debug, Clone)]
pub struct SqsAdmin {
    client: Client,
    lambda: aws_sdk_lambda::Client,
    place: TenantQueues,
}

impl SqsAdmin {
    /// Returns the administrator of the tenant's queues.
    pub fn new(config: &SdkConfig, place: TenantQueues) -> Self {
        Self { client: Client::new(config), lambda: aws_sdk_lambda::Client::new(config), place }
    }

    /// Sets the attributes of an existing orders queue. Such a queue belonged to a deleted install of the same name,
    /// perhaps in another account, or an earlier version created it with other attributes.
    async fn take_over(
        &self,
        name: &str,
        mut attributes: HashMap<QueueAttributeName, String>,
    ) -> Result<String, PortError> {
        let found = self.client.get_queue_url().queue_name(name).send().await;
        let url = found.map_err(|e| port_error("orders queue", e))?.queue_url;
        let url = url.ok_or_else(|| failed("orders queue", "the response of SQS has no URL"))?;
        // Only `CreateQueue` accepts this attribute.
        attributes.remove(&QueueAttributeName::FifoQueue);
        let set = self.client.set_queue_attributes().queue_url(&url).set_attributes(Some(attributes));
        set.send().await.map_err(|e| port_error("orders queue", e))?;
        Ok(url)
    }

    /// Returns the URL of the orders queue of `install`; `None` if the queue does not exist.
    async fn orders_queue(&self, install: &InstallId) -> Result<Option<String>, PortError> {
        let name = names::orders_queue(&self.place.tenant, install);
        match self.client.get_queue_url().queue_name(name).send().await {
            Ok(found) => {
                found.queue_url.map(Some).ok_or_else(|| failed("orders queue", "the response of SQS has no URL"))
            }
            Err(error) if error.as_service_error().is_some_and(GetQueueUrlError::is_queue_does_not_exist) => Ok(None),
            Err(error) => Err(port_error("orders queue", error)),
        }
    }
}

#[async_trait]
impl QueueAdmin for SqsAdmin {
    async fn create_orders_queue(&self, install: &InstallId, account: &AccountId) -> Result<String, PortError> {
        let TenantQueues { tenant, account: vendor, .. } = &self.place;
        let name = names::orders_queue(tenant, install);
        let policy = orders_policy(&self.place.arn(&name), vendor, tenant, install, account).to_string();
        let dead = &self.place.orders_dead_letter_arn;
        let redrive = json!({ "deadLetterTargetArn": dead, "maxReceiveCount": MAX_RECEIVES });
        let attributes = HashMap::from([
            (QueueAttributeName::FifoQueue, "true".to_owned()),
            (QueueAttributeName::VisibilityTimeout, LEASE_SECS.to_string()),
            (QueueAttributeName::ReceiveMessageWaitTimeSeconds, "20".to_owned()),
            (QueueAttributeName::MessageRetentionPeriod, RETENTION_SECS.to_string()),
            (QueueAttributeName::SqsManagedSseEnabled, "true".to_owned()),
            (QueueAttributeName::RedrivePolicy, redrive.to_string()),
            (QueueAttributeName::Policy, policy),
        ]);
        let made = self
            .client
            .create_queue()
            .queue_name(&name)
            .set_attributes(Some(attributes.clone()))
            .tags(names::TENANT_TAG, tenant.as_str())
            .tags(names::INSTALL_TAG, install.as_str())
            .send()
            .await;
        let made = match made {
            Ok(made) => made,
            Err(error) if error.as_service_error().is_some_and(CreateQueueError::is_queue_name_exists) => {
                return self.take_over(&name, attributes).await;
            }
            Err(error) => return Err(port_error("orders queue", error)),
        };
        made.queue_url.ok_or_else(|| failed("orders queue", "SQS created it, but the response has no URL"))
    }

    async fn turn_orders_queue(&self, install: &InstallId, account: &AccountId, open: bool) -> Result<(), PortError> {
        let Some(url) = self.orders_queue(install).await? else { return Ok(()) };
        let TenantQueues { tenant, account: vendor, .. } = &self.place;
        let arn = self.place.arn(&names::orders_queue(tenant, install));
        let mut policy = orders_policy(&arn, vendor, tenant, install, account);
        if !open {
            close(&mut policy);
        }
        let set = self.client.set_queue_attributes().queue_url(url);
        let set = set.attributes(QueueAttributeName::Policy, policy.to_string());
        set.send().await.map(drop).map_err(|e| port_error("orders queue", e))
    }

    async fn remove_orders_queue(&self, install: &InstallId) -> Result<(), PortError> {
        let Some(url) = self.orders_queue(install).await? else { return Ok(()) };
        match self.client.delete_queue().queue_url(url).send().await {
            Ok(_) => Ok(()),
            Err(error) if error.as_service_error().is_some_and(DeleteQueueError::is_queue_does_not_exist) => Ok(()),
            Err(error) => Err(port_error("orders queue", error)),
        }
    }

    async fn create_reports_queue(&self, shard: u32) -> Result<String, PortError> {
        reports_queue::create(&self.client, &self.lambda, &self.place, shard).await
    }

    async fn allow_reporters(&self, shard: u32, accounts: &BTreeSet<AccountId>) -> Result<(), PortError> {
        reports_queue::allow(&self.client, &self.place, shard, accounts).await
    }
}

/// The functions that send to an orders queue: the first sends orders, the second answers requests for artifacts.
const SENDERS: [&str; 2] = ["dispatch-job", "grant-artifact"];

/// Returns the policy of the orders queue `arn`. Exactly one role of the customer's `account` may receive orders, and two
/// functions may send them. Other roles of the tenant's account `vendor` are denied, whatever their own policies allow.
/// The conditions compare role names, so a role that is deleted and created again still matches. All roles are in the
/// partition of the queue.
fn orders_policy(
    arn: &str,
    vendor: &AccountId,
    tenant: &TenantName,
    install: &InstallId,
    account: &AccountId,
) -> serde_json::Value {
    let partition = Arn::parse(arn).map_or("aws", |arn| arn.partition);
    let role = |account: &AccountId, name: String| format!("arn:{partition}:iam::{account}:role/{name}");
    let runner = role(account, names::install_part(tenant, install, "runner"));
    let senders = SENDERS.map(|name| role(vendor, names::tenant_part(tenant, name)));
    let takes = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility"];
    json!({
        "Version": "2012-10-17",
        "Statement": [{
            "Sid": "RunnerTakesOrders",
            "Effect": "Allow",
            "Principal": { "AWS": format!("arn:{partition}:iam::{account}:root") },
            "Action": takes,
            "Resource": arn,
            "Condition": { "ArnEquals": { "aws:PrincipalArn": runner } },
        }, {
            "Sid": "TakenByTheRunnerAlone",
            "Effect": "Deny",
            "Principal": { "AWS": "*" },
            "Action": takes,
            "Resource": arn,
            "Condition": { "ArnNotEquals": { "aws:PrincipalArn": runner } },
        }, {
            "Sid": "SentByTwoFunctionsAlone",
            "Effect": "Deny",
            "Principal": { "AWS": "*" },
            "Action": "sqs:SendMessage",
            "Resource": arn,
            "Condition": { "ArnNotEquals": { "aws:PrincipalArn": senders } },
        }],
    })
}

/// Removes the permission to receive orders from the policy of an orders queue.
fn close(policy: &mut serde_json::Value) {
    if let Some(statements) = policy.get_mut("Statement").and_then(serde_json::Value::as_array_mut) {
        statements.retain(|statement| statement.get("Effect").is_some_and(|effect| effect != "Allow"));
    }
}

fn body<T: serde::Serialize>(message: &T) -> Result<String, PortError> {
    serde_json::to_string(message).map_err(|e| failed("message", e))
}

fn failed(what: &str, reason: impl ToString) -> PortError {
    PortError::Failed { what: what.to_owned(), reason: reason.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_orders_queue_lets_exactly_one_role_take_orders() {
        let policy = globex_orders("arn:q");

        let statement = &policy["Statement"][0];
        let allowing =
            policy["Statement"].as_array().unwrap().iter().filter(|statement| statement["Effect"] == "Allow");
        assert_eq!(allowing.count(), 1);
        assert_eq!(
            statement["Condition"]["ArnEquals"]["aws:PrincipalArn"],
            "arn:aws:iam::222222222222:role/fh-acme--globex--runner"
        );
        assert!(!statement["Action"].to_string().contains("SendMessage"));
    }

    /// The Deny statements hold against roles of the vendor's own account, which need no permission of the queue.
    #[test]
    fn an_orders_queue_keeps_out_every_other_role_of_the_vendor() {
        let policy = globex_orders("arn:q");

        let denied = |at: usize| {
            let statement = &policy["Statement"][at];
            assert_eq!((&statement["Effect"], &statement["Principal"]["AWS"]), (&json!("Deny"), &json!("*")));
            (statement["Action"].clone(), statement["Condition"]["ArnNotEquals"]["aws:PrincipalArn"].clone())
        };
        assert_eq!(
            denied(1),
            (
                json!(["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility"]),
                json!("arn:aws:iam::222222222222:role/fh-acme--globex--runner")
            )
        );
        assert_eq!(
            denied(2),
            (
                json!("sqs:SendMessage"),
                json!([
                    "arn:aws:iam::111111111111:role/fh-acme--dispatch-job",
                    "arn:aws:iam::111111111111:role/fh-acme--grant-artifact",
                ])
            )
        );
    }

    #[test]
    fn from_a_closed_orders_queue_nobody_receives_and_everybody_else_stays_denied() {
        let (open, mut closed) = (globex_orders("arn:q"), globex_orders("arn:q"));

        close(&mut closed);

        assert_eq!(closed["Statement"], json!([open["Statement"][1], open["Statement"][2]]));
    }

    #[test]
    fn the_roles_in_the_policies_are_in_the_partition_of_their_queue() {
        let (tenant, accounts) = ("acme".parse().unwrap(), BTreeSet::from(["222222222222".parse().unwrap()]));
        let queue = "arn:aws-cn:sqs:cn-north-1:111111111111:q";

        let orders = globex_orders(queue).to_string();
        let reports = reports_queue::policy(queue, &tenant, &accounts).unwrap().to_string();

        assert!(!orders.contains("arn:aws:") && orders.contains("\"arn:aws-cn:iam::222222222222:root\""), "{orders}");
        assert!(
            !reports.contains("arn:aws:") && reports.contains("arn:aws-cn:iam::*:role/fh-acme--*--runner"),
            "{reports}"
        );
    }

    fn globex_orders(arn: &str) -> serde_json::Value {
        let (vendor, account) = ("111111111111".parse().unwrap(), "222222222222".parse().unwrap());
        orders_policy(arn, &vendor, &"acme".parse().unwrap(), &"globex".parse().unwrap(), &account)
    }

    /// `tests/iam` decides by this file what the policies permit; `FREEHOLD_UPDATE=1` writes it.
    #[test]
    fn the_policies_are_those_that_the_simulation_decides_by() {
        let (tenant, install) = ("acme".parse().unwrap(), "globex-prod".parse().unwrap());
        let (vendor, account) = ("111111111111".parse().unwrap(), "222222222222".parse().unwrap());
        let queue = |name: &str| format!("arn:aws:sqs:eu-west-1:111111111111:{name}");
        let policies = json!({
            "orders": orders_policy(&queue("fh-acme--globex-prod.fifo"), &vendor, &tenant, &install, &account),
            "reports": reports_queue::policy(&queue("fh-acme--reports"), &tenant, &BTreeSet::from([account.clone()])),
        });
        let golden = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/queue-policies.json");

        if std::env::var_os("FREEHOLD_UPDATE").is_some() {
            std::fs::write(&golden, format!("{policies:#}\n")).unwrap();
        }

        let kept: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&golden).unwrap()).unwrap();
        assert_eq!(policies, kept, "the policies have changed; write the file with FREEHOLD_UPDATE=1");
    }
}

//! The tenant's queues, as its administrator reaches them: to stop what reads them, to change what waits in them, and to look.

use anyhow::Context as _;
use aws_sdk_sqs::types::QueueAttributeName;
use serde_json::{Value, json};

use crate::harness::wait::{SOON, until};
use crate::harness::{Install, World};

/// The queues that functions read.
const READ_BY_FUNCTIONS: [&str; 3] = ["dispatch", "reports", "grants"];

/// Clients of the tenant's account.
#[derive(Debug)]
pub struct Queues {
    sqs: aws_sdk_sqs::Client,
    lambda: aws_sdk_lambda::Client,
    prefix: String,
}

impl Queues {
    /// Returns the queues of a world.
    ///
    /// # Errors
    /// None so far; whoever calls it can fail anyway.
    pub fn new(world: &World) -> anyhow::Result<Self> {
        let config = world.administrator(world.tenant_account())?;
        let prefix = format!("fh-{}--", world.tenant());
        Ok(Self { sqs: aws_sdk_sqs::Client::new(&config), lambda: aws_sdk_lambda::Client::new(&config), prefix })
    }

    /// Lets a message return after this many seconds when its function failed.
    ///
    /// # Errors
    /// When SQS refuses.
    pub async fn hide_failed_for(&self, secs: u32) -> anyhow::Result<()> {
        for name in READ_BY_FUNCTIONS {
            let set = self.sqs.set_queue_attributes().queue_url(self.url(name).await?);
            set.attributes(QueueAttributeName::VisibilityTimeout, secs.to_string()).send().await?;
        }
        Ok(())
    }

    /// Stops the function that reads the queue `name`, or lets it continue.
    ///
    /// # Errors
    /// When Lambda refuses.
    pub async fn enable(&self, name: &str, enabled: bool) -> anyhow::Result<()> {
        let all = self.lambda.list_event_source_mappings().send().await?;
        let of_queue = format!(":{}{name}", self.prefix);
        let read = |arn: &&str| arn.ends_with(&of_queue);
        for mapping in all.event_source_mappings().iter().filter(|one| one.event_source_arn().filter(read).is_some()) {
            let id = mapping.uuid().context("a mapping without an id")?;
            self.lambda.update_event_source_mapping().uuid(id).enabled(enabled).send().await?;
        }
        Ok(())
    }

    /// Stops all functions that read queues, or lets them continue.
    ///
    /// # Errors
    /// When Lambda refuses.
    pub async fn enable_all(&self, enabled: bool) -> anyhow::Result<()> {
        for name in READ_BY_FUNCTIONS {
            self.enable(name, enabled).await?;
        }
        Ok(())
    }

    /// Runs the function `name` once.
    ///
    /// # Errors
    /// When Lambda refuses.
    pub async fn invoke(&self, name: &str) -> anyhow::Result<()> {
        let invoked = self.lambda.invoke().function_name(format!("{}{name}", self.prefix)).send().await?;
        anyhow::ensure!(invoked.function_error().is_none(), "`{name}` failed: {invoked:?}");
        Ok(())
    }

    /// Puts a message into the queue `name`.
    ///
    /// # Errors
    /// When SQS refuses.
    pub async fn send(&self, name: &str, body: &str) -> anyhow::Result<()> {
        self.sqs.send_message().queue_url(self.url(name).await?).message_body(body).send().await?;
        Ok(())
    }

    /// Returns how many messages a queue has, those that somebody took included.
    ///
    /// # Errors
    /// When SQS refuses.
    pub async fn length(&self, name: &str) -> anyhow::Result<usize> {
        Ok(self.count(name, QueueAttributeName::ApproximateNumberOfMessages).await? + self.taken(name).await?)
    }

    /// Returns how many messages of a queue somebody took and did not delete yet.
    ///
    /// # Errors
    /// When SQS refuses.
    pub async fn taken(&self, name: &str) -> anyhow::Result<usize> {
        self.count(name, QueueAttributeName::ApproximateNumberOfMessagesNotVisible).await
    }

    async fn count(&self, name: &str, what: QueueAttributeName) -> anyhow::Result<usize> {
        let ask = self.sqs.get_queue_attributes().queue_url(self.url(name).await?).attribute_names(what.clone());
        let answer = ask.send().await?;
        Ok(answer.attributes().and_then(|all| all.get(&what)?.parse().ok()).unwrap_or(0))
    }

    /// Waits until a queue is empty.
    ///
    /// # Errors
    /// When it is not in time.
    pub async fn empty(&self, name: &str) -> anyhow::Result<()> {
        let look = || async { Ok((self.length(name).await? == 0).then_some(())) };
        until(&format!("`{name}` is empty"), SOON, look).await
    }

    /// Lets SQS move every report to the dead letters, as it does after 1,000 failed receives. The function that reads the
    /// reports has to be stopped. Returns how many dead letters there are.
    ///
    /// # Errors
    /// When SQS refuses, or does not move all of them in time.
    pub async fn move_reports_to_dead_letters(&self) -> anyhow::Result<usize> {
        let (url, name) = (self.url("reports").await?, QueueAttributeName::RedrivePolicy);
        let found = self.sqs.get_queue_attributes().queue_url(&url).attribute_names(name.clone()).send().await?;
        let policy =
            found.attributes().and_then(|all| all.get(&name)).context("the queue has no dead letters")?.clone();
        let mut at_once: Value = serde_json::from_str(&policy)?;
        at_once["maxReceiveCount"] = json!(1);
        let set =
            |policy: String| self.sqs.set_queue_attributes().queue_url(&url).attributes(name.clone(), policy).send();
        set(at_once.to_string()).await?;
        until("every report is a dead letter", SOON, || async {
            self.sqs.receive_message().queue_url(&url).max_number_of_messages(10).visibility_timeout(0).send().await?;
            Ok((self.length("reports").await? == 0).then_some(()))
        })
        .await?;
        set(policy).await?;
        self.length("dead").await
    }

    /// Returns the names of all queues of the tenant, without their common beginning.
    ///
    /// # Errors
    /// When SQS refuses.
    pub async fn names(&self) -> anyhow::Result<Vec<String>> {
        let found = self.sqs.list_queues().queue_name_prefix(&self.prefix).send().await?;
        let names = found.queue_urls().iter().filter_map(|url| url.rsplit('/').next()?.strip_prefix(&self.prefix));
        Ok(names.map(str::to_owned).collect())
    }

    /// Takes everything out of the queue `name`.
    ///
    /// # Errors
    /// When SQS refuses.
    pub async fn take_all(&self, name: &str) -> anyhow::Result<Vec<String>> {
        self.take_all_as(&self.sqs, name).await
    }

    /// Takes all messages of a queue as `taker`, and returns their bodies: only its runner may take an install's orders.
    ///
    /// # Errors
    /// When SQS refuses.
    pub async fn take_all_as(&self, taker: &aws_sdk_sqs::Client, name: &str) -> anyhow::Result<Vec<String>> {
        let (url, mut bodies) = (self.url(name).await?, Vec::new());
        loop {
            let receive = taker.receive_message().queue_url(&url).max_number_of_messages(10);
            let found = receive.visibility_timeout(60).wait_time_seconds(0).send().await?.messages.unwrap_or_default();
            if found.is_empty() {
                return Ok(bodies);
            }
            for message in found {
                let handle = message.receipt_handle.context("a message without a handle")?;
                taker.delete_message().queue_url(&url).receipt_handle(handle).send().await?;
                bodies.push(message.body.unwrap_or_default());
            }
        }
    }

    /// Returns the delay of a queue of the customer: the round that was deployed last.
    ///
    /// # Errors
    /// When there is no such queue.
    pub async fn delay(&self, world: &World, install: &Install, queue: &str) -> anyhow::Result<u64> {
        let sqs = aws_sdk_sqs::Client::new(&world.administrator(&install.account)?);
        let url = sqs.get_queue_url().queue_name(queue).send().await?;
        let name = QueueAttributeName::DelaySeconds;
        let ask = sqs.get_queue_attributes().set_queue_url(url.queue_url).attribute_names(name.clone());
        let answer = ask.send().await?;
        Ok(answer.attributes().and_then(|all| all.get(&name)).context("the queue has no delay")?.parse()?)
    }

    /// Returns whether the policy of an install's orders queue lets its runner take orders.
    ///
    /// # Errors
    /// When there is no such queue.
    pub async fn gives_orders(&self, install: &str) -> anyhow::Result<bool> {
        let (url, name) = (self.url(&format!("{install}.fifo")).await?, QueueAttributeName::Policy);
        let answer = self.sqs.get_queue_attributes().queue_url(url).attribute_names(name.clone()).send().await?;
        let policy = answer.attributes().and_then(|all| all.get(&name)).context("the queue has no policy")?;
        let policy: Value = serde_json::from_str(policy)?;
        Ok(policy["Statement"].as_array().is_some_and(|all| all.iter().any(|one| one["Effect"] == "Allow")))
    }

    /// Returns the address of the queue `name`.
    ///
    /// # Errors
    /// When there is no such queue.
    pub async fn url(&self, name: &str) -> anyhow::Result<String> {
        let found = self.sqs.get_queue_url().queue_name(format!("{}{name}", self.prefix)).send().await?;
        Ok(found.queue_url().context("no such queue")?.to_owned())
    }
}

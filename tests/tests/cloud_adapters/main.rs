//! The adapters of DynamoDB, S3, SQS, Step Functions and KMS against a cloud without a tenant: what each sends, and what it makes of
//! the answers. `localstack/cloud test --engine localstack` runs them on LocalStack too. That of STS is
//! tested where signatures and policies are enforced (`tests/tests/cloud/runner/identity`).

#![cfg(test)]

mod keys;
mod machines;
mod objects;
mod queues;
mod tables;

use freehold_tests::harness::{Capability, Needs, World};

/// What an adapter needs of a cloud.
const NEEDS: Needs = Needs { cloud: &[Capability::EmptyAccounts], programs: &[] };

/// Returns the URL of a new queue.
async fn queue(world: &World, name: &str) -> anyhow::Result<String> {
    use aws_sdk_sqs::types::QueueAttributeName::FifoQueue;

    let sqs = aws_sdk_sqs::Client::new(&world.administrator(world.tenant_account())?);
    let request = sqs.create_queue().queue_name(name);
    let request = if name.ends_with(".fifo") { request.attributes(FifoQueue, "true") } else { request };
    let made = request.send().await?;
    made.queue_url.ok_or_else(|| anyhow::anyhow!("queue `{name}` has no URL"))
}

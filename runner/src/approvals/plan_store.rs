//! The records of plans and the customer's decisions about them, in the install's bucket. The runner uses its own role for them.
//! The roles of modes can neither read nor write the records. Neither they nor the runner can write a decision.

use std::sync::{Mutex, PoisonError};

use aws_sdk_s3::Client;
use aws_sdk_s3::primitives::ByteStream;
use freehold_protocol::approval::{
    APPROVALS, CustomerDecision, PLANS, PlanRecord, Side, WrittenDecision, approval_object, record_object, use_object,
};
use freehold_protocol::{Digest, Timestamp};
use tokio::sync::Notify;

use crate::{aws, bucket_object};

/// The maximum size of one object, in bytes.
const MAX_BYTES: usize = 1024 * 1024;

/// The plans of one install.
#[derive(Debug)]
pub struct PlanStore {
    /// `None` when the runner has no bucket.
    bucket: Option<(Client, String)>,
    /// The plans that wait for the customer.
    waiting: Mutex<Waiting>,
    proposed: Notify,
}

/// The plans that wait for the customer, as far as is known.
#[derive(Debug, Default)]
struct Waiting {
    /// Whether the bucket was read for the plans of an earlier process.
    is_read: bool,
    plans: Vec<(Digest, PlanRecord)>,
}

impl PlanStore {
    /// Returns the store, which uses the credentials of `sdk`.
    pub fn new(sdk: &aws_config::SdkConfig, bucket: Option<String>) -> Self {
        // As in `job::bucket`: a path-style address also works where a bucket does not have a host name.
        let config = || aws_sdk_s3::config::Builder::from(sdk).force_path_style(true).build();
        Self {
            bucket: bucket.map(|bucket| (Client::from_conf(config()), bucket)),
            waiting: Mutex::default(),
            proposed: Notify::new(),
        }
    }

    /// Returns an object, or `None` if it does not exist.
    ///
    /// # Errors
    /// The reason, when it cannot be read.
    pub async fn get(&self, object: &str) -> Result<Option<Vec<u8>>, String> {
        let (client, bucket) = self.bucket()?;
        bucket_object::read(client, bucket, object, MAX_BYTES).await.map_err(|error| {
            format!(
                "cannot {} `{object}` of bucket `{bucket}`: {}; when the install stack is older than the runner, launch its \
                 current template",
                error.verb(),
                aws::explain(&error)
            )
        })
    }

    /// Writes an object. A plan that the customer has to approve counts as waiting once its record is written, until
    /// the note that an order applies the plan is written.
    ///
    /// # Errors
    /// The reason, when it cannot be written.
    pub async fn put(&self, object: &str, bytes: Vec<u8>) -> Result<(), String> {
        let (client, bucket) = self.bucket()?;
        let record = serde_json::from_slice::<PlanRecord>(&bytes).ok().map(|record| (Digest::of(&bytes), record));
        let request = client.put_object().bucket(bucket).key(object).body(ByteStream::from(bytes));
        request.send().await.map_err(|error| {
            format!(
                "cannot write `{object}` of bucket `{bucket}`: {}; when the install stack is older than the runner, launch its \
                 current template",
                aws::explain(&error)
            )
        })?;
        let asks = record.filter(|(_, record)| record.asks.contains(&Side::Customer));
        let plans = &mut self.waiting.lock().unwrap_or_else(PoisonError::into_inner).plans;
        plans.retain(|(plan, _)| use_object(plan) != object);
        plans.extend(asks);
        self.proposed.notify_one();
        Ok(())
    }

    /// Waits until this store writes an object, which may be a plan that waits for the customer.
    pub async fn has_proposed(&self) {
        self.proposed.notified().await;
    }

    /// Returns the customer's decisions about the plans that wait for them. Does not read the bucket while no plan waits.
    ///
    /// # Errors
    /// The reason, when the bucket cannot be read.
    pub async fn decisions(&self, now: Timestamp) -> Result<Vec<CustomerDecision>, String> {
        if self.bucket.is_none() {
            return Ok(Vec::new());
        }
        let waiting = self.still_waiting(now).await?;
        if waiting.is_empty() {
            return Ok(Vec::new());
        }
        let written = self.list(APPROVALS).await?;
        let mut decisions = Vec::new();
        for (plan, record) in waiting {
            let object = approval_object(&plan);
            if !written.contains(&object) {
                continue;
            }
            let Some(bytes) = self.get(&object).await? else { continue };
            let Ok(decision) = serde_json::from_slice::<WrittenDecision>(&bytes) else { continue };
            if (&decision.tenant, &decision.install, &decision.plan) != (&record.tenant, &record.install, &plan) {
                continue;
            }
            let WrittenDecision { approved, by, at, reason, .. } = decision;
            decisions.push(CustomerDecision { job: record.job, plan, approved, by, at, reason });
        }
        Ok(decisions)
    }

    /// Returns whether a plan waits for the customer, as far as is known.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.lock().unwrap_or_else(PoisonError::into_inner).plans.is_empty()
    }

    async fn still_waiting(&self, now: Timestamp) -> Result<Vec<(Digest, PlanRecord)>, String> {
        let is_read = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).is_read;
        // Jobs may propose plans while this reads the bucket.
        let kept = if is_read { Vec::new() } else { self.kept().await? };
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = |plan: &Digest, known: &[(Digest, PlanRecord)]| known.iter().all(|(known, _)| known != plan);
        let added: Vec<_> = kept.into_iter().filter(|(plan, _)| is_new(plan, &waiting.plans)).collect();
        waiting.plans.extend(added);
        waiting.plans.retain(|(_, record)| record.until > now);
        waiting.is_read = true;
        Ok(waiting.plans.clone())
    }

    /// Returns the plans in the bucket that the customer has to approve and that no order has applied.
    async fn kept(&self) -> Result<Vec<(Digest, PlanRecord)>, String> {
        let objects = self.list(PLANS).await?;
        let mut kept = Vec::new();
        for object in objects.iter().filter(|object| object.ends_with(".json")) {
            let Some(bytes) = self.get(object).await? else { continue };
            let plan = Digest::of(&bytes);
            let is_used = objects.contains(&use_object(&plan));
            if is_used || record_object(&plan) != *object {
                continue;
            }
            let record = serde_json::from_slice::<PlanRecord>(&bytes).ok();
            kept.extend(record.filter(|record| record.asks.contains(&Side::Customer)).map(|record| (plan, record)));
        }
        Ok(kept)
    }

    async fn list(&self, prefix: &str) -> Result<Vec<String>, String> {
        let (client, bucket) = self.bucket()?;
        let mut pages = client.list_objects_v2().bucket(bucket).prefix(prefix).into_paginator().send();
        let mut all = Vec::new();
        while let Some(page) = pages.next().await {
            let page =
                page.map_err(|error| format!("cannot list `{prefix}` of bucket `{bucket}`: {}", aws::explain(&error)))?;
            all.extend(page.contents().iter().filter_map(|object| object.key()).map(str::to_owned));
        }
        Ok(all)
    }

    fn bucket(&self) -> Result<&(Client, String), String> {
        self.bucket.as_ref().ok_or_else(|| {
            "this runner's config names no bucket; write the install stack's `BucketName` into the key `bucket`"
                .to_owned()
        })
    }
}

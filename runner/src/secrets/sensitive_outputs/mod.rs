//! The sensitive outputs of components and of the sandbox. The runner keeps them in its bucket, where only its own role may
//! read them, and puts them into the values of the jobs that read them. The vendor gets keyed digests (decision 0067).
//!
//! Each attempt has an object of its own, and an order names the attempt whose success the control plane recorded. So an
//! attempt that ends late, or whose success was not recorded, changes nothing for other jobs.

use std::collections::BTreeMap;

use aws_sdk_s3::Client;
use aws_sdk_s3::error::ProvideErrorMetadata;
use aws_sdk_s3::primitives::ByteStream;
use freehold_protocol::digest::hex;
use freehold_protocol::order::{KeptOutputs, Order};
use freehold_protocol::report::Fence;
use freehold_protocol::{ComponentName, Digest, JobId};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::record::log::JobLog;
use crate::secrets::keyed_digest::keyed_digest;
use crate::secrets::sensitive_inputs::texts;
use crate::secrets::tree::child;
use crate::{aws, bucket_object};

/// The maximum size of the outputs of one part, in bytes.
const MAX_BYTES: usize = 4 * 1024 * 1024;
/// The maximum number of former values that are kept for redaction.
const FORMER_VALUES: usize = 32;
/// The number of digits of a serial in an object's name. Names are in the order of serials.
const SERIAL_DIGITS: usize = 20;

/// Keeps sensitive outputs with the runner's own role. The roles of modes have no permission to read or write them.
#[derive(Debug, Clone)]
pub struct SensitiveOutputs {
    /// `None` when the runner has no bucket.
    bucket: Option<(Client, String)>,
}

/// The contents of the object in which an attempt keeps sensitive outputs.
#[derive(Serialize, Deserialize)]
struct Kept {
    /// The key of the digests, as hex. The next attempt for the part uses the same key, so that a value that did not change
    /// has the same digest.
    key: String,
    outputs: BTreeMap<String, Value>,
    /// Values that later values have replaced, the newest first. They are redacted too, because a program may print
    /// them: the plan of a module that reads an output shows the value before the change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    former: Vec<Value>,
}

/// The reason why sensitive outputs cannot be kept or read.
#[derive(Debug, thiserror::Error)]
pub enum SensitiveOutputError {
    #[error(
        "the sensitive outputs of {part} are not in the install's bucket (object `{key}`); a later deploy may have replaced \
         them, so start the deploy or the action again, and if that does not help, deploy {part} again"
    )]
    Gone { part: String, key: String },
    #[error(
        "the sensitive outputs of {part} in object `{key}` are not those that its deploy reported; deploy {part} again, and \
         then the components that read them"
    )]
    Other { part: String, key: String },
    #[error(
        "the sensitive outputs of {part} have {size} bytes, and at most {MAX_BYTES} can be stored; make them smaller"
    )]
    TooLarge { part: String, size: usize },
    #[error(
        "cannot {verb} `{key}` of bucket `{bucket}`, where the runner stores sensitive outputs: {reason}; when the \
         install stack is older than the runner, launch its current template"
    )]
    Refused { verb: &'static str, key: String, bucket: String, reason: String, denied: bool },
    #[error("this runner's config names no bucket; write the install stack's `BucketName` into the key `bucket`")]
    NoBucket,
    #[error("the system gave no random bytes for the key of sensitive outputs; deploy again")]
    Random,
    #[error("the job's log cannot be prepared for sensitive outputs; deploy again")]
    Unprepared,
}

impl SensitiveOutputError {
    /// Returns whether AWS refused the permission, which the install stacks of earlier releases do not give.
    pub const fn is_denied(&self) -> bool {
        matches!(self, Self::Refused { denied: true, .. })
    }
}

impl SensitiveOutputs {
    /// Returns the storage of the sensitive outputs of one install, which uses the credentials of `sdk`.
    pub fn new(sdk: &aws_config::SdkConfig, bucket: Option<String>) -> Self {
        // As in `job::bucket`: a path-style address also works where a bucket does not have a host name.
        let config = || aws_sdk_s3::config::Builder::from(sdk).force_path_style(true).build();
        Self { bucket: bucket.map(|bucket| (Client::from_conf(config()), bucket)) }
    }

    /// Returns `order` with the sensitive outputs of the parts that it names. The outputs of the work's own part are left
    /// out. `log` redacts every value.
    ///
    /// # Errors
    /// A [`SensitiveOutputError`], which contains no value.
    pub async fn add_to(&self, mut order: Order, log: &JobLog) -> Result<Order, SensitiveOutputError> {
        let own = order.work.component().cloned();
        let mut hidden = Vec::new();
        for kept in order.kept_outputs.iter().filter(|kept| Some(&kept.part) != own.as_ref()) {
            let found = self.read(kept).await?;
            hidden.extend(found.outputs.values().chain(&found.former).flat_map(texts));
            put(&mut order.context, kept, &found.outputs);
        }
        if hidden.is_empty() {
            return Ok(order);
        }
        // Preparing the search for thousands of forms takes seconds. The async loop must renew leases meanwhile.
        let log = log.clone();
        let prepared = tokio::task::spawn_blocking(move || {
            log.add_secrets(&hidden.iter().map(|text| text.as_str()).collect::<Vec<_>>());
        });
        prepared.await.map_err(|_| SensitiveOutputError::Unprepared)?;
        Ok(order)
    }

    /// Keeps the sensitive outputs of the part that `order` deploys, and returns their keyed digests. Removes those that no
    /// order can name any more.
    ///
    /// # Errors
    /// A [`SensitiveOutputError`], which contains no value.
    pub async fn keep(
        &self,
        order: &Order,
        fence: Fence,
        outputs: BTreeMap<String, Value>,
    ) -> Result<BTreeMap<String, Digest>, SensitiveOutputError> {
        let Some(part) = order.work.component() else { return Ok(BTreeMap::new()) };
        let counted = order.kept_outputs.iter().find(|kept| kept.part == *part);
        if outputs.is_empty() {
            self.remove_older(order, part, counted).await?;
            return Ok(BTreeMap::new());
        }
        let known = match counted {
            Some(counted) => self.find(&object_of(counted)).await?,
            None => None,
        };
        let kept = match known {
            Some(known) => known.replaced_by(outputs),
            None => Kept { key: new_key()?, outputs, former: Vec::new() },
        };
        self.write(part, &object(part, order.serial, &order.job, fence), &kept).await?;
        self.remove_older(order, part, counted).await?;
        Ok(kept.digests())
    }

    /// Copies the outputs that an earlier attempt at the job of `order` kept. `by` is the fence of that attempt, and `to` is
    /// the fence under which its outcome is reported: orders will look for the outputs there. Copies nothing if the outputs
    /// no longer exist, because a later job has replaced them.
    ///
    /// # Errors
    /// A [`SensitiveOutputError`], which contains no value.
    pub async fn hand_on(&self, order: &Order, by: Fence, to: Fence) -> Result<(), SensitiveOutputError> {
        let Some(part) = order.work.component() else { return Ok(()) };
        let [from, to] = [by, to].map(|fence| object(part, order.serial, &order.job, fence));
        match self.find(&from).await? {
            Some(kept) => self.write(part, &to, &kept).await,
            None => Ok(()),
        }
    }

    async fn write(&self, part: &ComponentName, name: &str, kept: &Kept) -> Result<(), SensitiveOutputError> {
        let body = json!(kept).to_string().into_bytes();
        if body.len() > MAX_BYTES {
            return Err(SensitiveOutputError::TooLarge { part: named(part), size: body.len() });
        }
        let (client, bucket) = self.bucket.as_ref().ok_or(SensitiveOutputError::NoBucket)?;
        let sent = client.put_object().bucket(bucket).key(name).body(ByteStream::from(body)).send().await;
        sent.map(drop).map_err(|error| refused("write object", name, bucket, &error))
    }

    /// Removes all sensitive outputs of the part that `order` removed.
    ///
    /// # Errors
    /// A [`SensitiveOutputError`].
    pub async fn remove(&self, order: &Order) -> Result<(), SensitiveOutputError> {
        let Some(part) = order.work.component() else { return Ok(()) };
        let removed = self.remove_each(part, |serial| serial <= order.serial).await;
        match removed {
            // A stack that does not permit listing kept outputs does not permit keeping them, so there are none.
            Err(error) if error.is_denied() && order.kept_outputs.iter().all(|kept| kept.part != *part) => Ok(()),
            other => other,
        }
    }

    /// Removes the outputs that earlier jobs kept. The outputs that `order` names stay: other jobs read them until the
    /// success of this job is recorded.
    async fn remove_older(
        &self,
        order: &Order,
        part: &ComponentName,
        counted: Option<&KeptOutputs>,
    ) -> Result<(), SensitiveOutputError> {
        let removed =
            self.remove_each(part, |serial| is_over(serial, order.serial, counted.map(|one| one.serial))).await;
        match removed {
            Err(error) if error.is_denied() && counted.is_none() => Ok(()),
            other => other,
        }
    }

    async fn remove_each(
        &self,
        part: &ComponentName,
        is_over: impl Fn(u64) -> bool,
    ) -> Result<(), SensitiveOutputError> {
        let Some((client, bucket)) = &self.bucket else { return Ok(()) };
        let prefix = prefix(part);
        let mut pages = client.list_objects_v2().bucket(bucket).prefix(&prefix).into_paginator().send();
        let mut over = Vec::new();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|error| refused("list objects", &prefix, bucket, &error))?;
            let names = page.contents().iter().filter_map(|object| object.key());
            over.extend(names.filter(|name| serial_of(name, &prefix).is_some_and(&is_over)).map(str::to_owned));
        }
        for name in over {
            let removed = client.delete_object().bucket(bucket).key(&name).send().await;
            removed.map_err(|error| refused("remove object", &name, bucket, &error))?;
        }
        Ok(())
    }

    /// Returns the outputs that were kept by the attempt that `kept` names, and checks their digests.
    async fn read(&self, kept: &KeptOutputs) -> Result<Kept, SensitiveOutputError> {
        let key = object_of(kept);
        let found = self.find(&key).await?;
        let found = found.ok_or_else(|| SensitiveOutputError::Gone { part: named(&kept.part), key: key.clone() })?;
        if found.digests() != kept.digests {
            return Err(SensitiveOutputError::Other { part: named(&kept.part), key });
        }
        Ok(found)
    }

    /// Returns the contents of the object `key`; `None` when the object does not exist or cannot be parsed.
    async fn find(&self, key: &str) -> Result<Option<Kept>, SensitiveOutputError> {
        let (client, bucket) = self.bucket.as_ref().ok_or(SensitiveOutputError::NoBucket)?;
        let read = bucket_object::read(client, bucket, key, MAX_BYTES).await;
        let read = read.map_err(|error| SensitiveOutputError::Refused {
            verb: error.verb(),
            key: key.to_owned(),
            bucket: bucket.clone(),
            reason: aws::explain(&error),
            denied: error.is_denied(),
        })?;
        Ok(read.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }
}

impl Kept {
    /// Returns these contents with the new `outputs`. Values that changed or are gone become former values; the oldest
    /// former values for which there is no room are left out.
    fn replaced_by(self, outputs: BTreeMap<String, Value>) -> Self {
        let changed: Vec<Value> = self
            .outputs
            .into_iter()
            .filter(|(name, value)| outputs.get(name) != Some(value))
            .map(|(_, value)| value)
            .collect();
        let mut kept = Self { key: self.key, outputs, former: Vec::new() };
        let mut room = MAX_BYTES.saturating_sub(json!(kept).to_string().len() + r#","former":[]"#.len());
        let fits = |value: &Value| {
            let size = value.to_string().len() + 1;
            let has_room = size <= room;
            room = room.saturating_sub(size);
            has_room
        };
        kept.former = changed.into_iter().chain(self.former).take(FORMER_VALUES).take_while(fits).collect();
        kept
    }

    /// Returns the keyed digest of each output, over its value as JSON.
    fn digests(&self) -> BTreeMap<String, Digest> {
        let digest = |name: &str, value: &Value| keyed_digest(&self.key, name, &value.to_string());
        self.outputs.iter().map(|(name, value)| (name.clone(), digest(name, value))).collect()
    }
}

fn new_key() -> Result<String, SensitiveOutputError> {
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(|_| SensitiveOutputError::Random)?;
    Ok(hex(&random))
}

/// Returns the prefix of all objects of a part. The part's name cannot contain a slash, so two prefixes are never equal.
fn prefix(part: &ComponentName) -> String {
    format!("locked/{part}/")
}

fn object(part: &ComponentName, serial: u64, job: &JobId, fence: Fence) -> String {
    format!("{}{serial:0SERIAL_DIGITS$}.{job}.{fence}.json", prefix(part))
}

fn object_of(kept: &KeptOutputs) -> String {
    object(&kept.part, kept.serial, &kept.job, kept.fence)
}

/// Returns the serial in the name of an object.
fn serial_of(name: &str, prefix: &str) -> Option<u64> {
    name.strip_prefix(prefix)?.split_once('.')?.0.parse().ok()
}

/// Returns whether no later order can name the objects of `serial`, so that they can be removed. `now` is the serial of
/// the job that has just succeeded, and `counted` is the serial of the object that its order names. Objects of `now` stay,
/// because the control plane may have recorded an earlier attempt at the same job.
fn is_over(serial: u64, now: u64, counted: Option<u64>) -> bool {
    serial < now && Some(serial) != counted
}

/// Puts outputs at the places where templates look them up.
fn put(context: &mut Value, kept: &KeptOutputs, outputs: &BTreeMap<String, Value>) {
    let components = |name: &str| vec!["components".to_owned(), name.to_owned()];
    let places = if kept.sandbox {
        vec![vec!["sandbox".to_owned()], vec!["install".to_owned(), "sandbox".to_owned()]]
    } else {
        let names = [kept.part.as_str(), &kept.var_name];
        names.into_iter().filter(|name| !name.is_empty()).map(components).collect()
    };
    for place in places {
        let owner = place.iter().fold(child(context, "nuon"), |place, name| child(place, name));
        let all = child(owner, "outputs");
        for (name, value) in outputs {
            *child(all, name) = value.clone();
        }
    }
}

/// Returns the part as messages name it.
fn named(part: &ComponentName) -> String {
    if part.is_sandbox() { "the sandbox".to_owned() } else { format!("component `{part}`") }
}

fn refused<E>(verb: &'static str, key: &str, bucket: &str, error: &E) -> SensitiveOutputError
where
    E: std::error::Error + ProvideErrorMetadata,
{
    let denied = aws::is_denied(error.code());
    SensitiveOutputError::Refused {
        verb,
        key: key.to_owned(),
        bucket: bucket.to_owned(),
        reason: aws::explain(error),
        denied,
    }
}

#[cfg(test)]
mod tests;

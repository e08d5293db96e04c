//! Decides whether an attempt may remove a lock that an earlier attempt left on a state.
//!
//! Terraform locks a state by an object beside the state, and removes the object before Terraform ends. A killed
//! attempt leaves the object, and every later plan would wait for a process that has ended.
//!
//! Terraform's lock does not name the attempt that holds it. So before the first command that locks, the runner writes
//! a mark ([`AttemptMark`]) beside the state: `terraform/<component>.fence.json`, or
//! `terraform/sandbox/sandbox.fence.json` for the app's sandbox. An attempt removes a lock only if the lock existed
//! when the attempt began, and if the mark proves that the previous attempt can have left it. The attempt waits for any
//! other lock and then reports it.

use aws_sdk_s3::primitives::{DateTime, DateTimeFormat};
use freehold_protocol::Timestamp;
use serde::Deserialize;

use crate::job::Job;
use crate::job::bucket::JobBucket;
use crate::job::failure::Failure;
use crate::kinds::attempt_mark::{AttemptMark, HeldLock};
use crate::state_objects::StateObjects;

const MAX_BYTES: usize = 64 * 1024;

/// The content of Terraform's lock, without the fields that the runner does not need.
#[derive(Debug, Deserialize)]
struct Lock {
    #[serde(rename = "ID")]
    id: String,
    #[serde(default, rename = "Created")]
    created: String,
}

/// The state's lock for one attempt: the attempt's mark, which names the lock that the attempt may remove.
#[derive(Debug)]
pub(super) struct StateLock {
    mark: AttemptMark,
    lock_key: String,
}

impl StateLock {
    /// Replaces the mark of the previous attempt, and looks for a lock that this attempt may remove.
    pub(super) async fn take_over(job: &Job, bucket: &JobBucket, objects: &StateObjects) -> Result<Self, Failure> {
        let lock_key = objects.lock();
        let held = find_held(bucket, &lock_key).await?;
        let mark = AttemptMark::take_over(job, bucket, objects.mark(), &objects.state(), &held).await?;
        Ok(Self { mark, lock_key })
    }

    /// Returns the id of the lock that this attempt may remove, if a killed attempt left one.
    pub(super) fn stale(&self) -> Option<&str> {
        self.mark.stale().first().map(String::as_str)
    }

    /// Writes into the mark that the attempt ended cleanly, unless it may have left a lock. `abrupt` means that
    /// Terraform may have been killed.
    pub(super) async fn end(&self, bucket: &JobBucket, abrupt: bool) -> Result<(), Failure> {
        self.mark.end_with(bucket, &find_held(bucket, &self.lock_key).await?, abrupt).await
    }
}

/// Returns the lock of the state, if it is locked.
async fn find_held(bucket: &JobBucket, key: &str) -> Result<Vec<HeldLock>, Failure> {
    let Some(bytes) = bucket.get(key, MAX_BYTES).await? else { return Ok(Vec::new()) };
    let lock: Lock = serde_json::from_slice(&bytes)
        .map_err(|error| Failure::because(&format!("could not read the lock `{key}`"), &error))?;
    // The job's role may write the object, and the id becomes an argument of Terraform.
    if !is_id(&lock.id) {
        return Err(Failure::new(format!(
            "the lock `{key}` has an id that Terraform does not make; remove this object"
        )));
    }
    Ok(vec![HeldLock { since: time(&lock.created), name: lock.id }])
}

fn is_id(text: &str) -> bool {
    !text.starts_with('-') && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn time(text: &str) -> Option<Timestamp> {
    let millis = DateTime::from_str(text, DateTimeFormat::DateTimeWithOffset).ok()?.to_millis().ok()?;
    u64::try_from(millis).ok().map(Timestamp::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_no_option_of_terraform() {
        assert!(is_id("7d3b0c9e-52b8-2b8f-3c0e-6d5e0a0f1f11"));
        assert!(["-lock=false", "a b", "../x"].iter().all(|text| !is_id(text)));
    }

    #[test]
    fn the_time_of_a_lock_is_read_as_terraform_writes_it() {
        assert_eq!(time("1970-01-01T00:00:01.5Z"), Some(Timestamp::from_millis(1_500)));
        assert!(time("2026-11-23T11:40:53.123456789Z").is_some() && time("").is_none());
    }
}

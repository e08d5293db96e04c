//! Decides whether an attempt may remove a lock that an earlier attempt left on a state.
//!
//! Terraform locks a state by an object beside the state, and removes the object before Terraform ends. A killed
//! attempt leaves the object, and every later plan would wait for a process that has ended.
//!
//! Terraform's lock does not name the attempt that holds it. So before the first command that locks, the runner writes
//! a mark ([`AttemptMark`]) beside the state: `terraform/<component>.fence.json`, or
//! `terraform/sandbox/sandbox.fence.json` for the app's sandbox. An attempt removes a lock only if the lock existed
//! when the attempt began, and if the mark proves that the previous attempt left it. The attempt waits for any other
//! lock and then reports it.

use serde::Deserialize;

use crate::kinds::attempt_mark::AttemptMark;
use crate::kinds::bucket::JobBucket;
use crate::kinds::failure::Failure;
use crate::state_objects::StateObjects;
use crate::work::job::Job;

const MAX_BYTES: usize = 64 * 1024;

/// The content of Terraform's lock, without the fields that the runner does not need.
#[derive(Debug, Deserialize)]
struct Lock {
    #[serde(rename = "ID")]
    id: String,
}

/// The state's lock for one attempt: the attempt's mark, and the id of a lock that the attempt may remove.
#[derive(Debug)]
pub(super) struct StateLock {
    mark: AttemptMark,
    lock_key: String,
    stale: Option<String>,
}

impl StateLock {
    /// Replaces the mark of the previous attempt, and looks for a lock that this attempt may remove.
    pub(super) async fn take_over(job: &Job, bucket: &JobBucket, objects: &StateObjects) -> Result<Self, Failure> {
        let lock_key = objects.lock();
        let mark = AttemptMark::take_over(job, bucket, objects.mark(), &objects.state()).await?;
        let stale = if mark.inherits() { held(bucket, &lock_key).await?.map(|lock| lock.id) } else { None };
        Ok(Self { mark, lock_key, stale })
    }

    /// Returns the id of the lock that this attempt may remove, if a killed attempt left one.
    pub(super) fn stale(&self) -> Option<&str> {
        self.stale.as_deref()
    }

    /// Writes into the mark that the attempt ended in order, unless it may have left a lock. `stopped` means that
    /// Terraform may have been killed. Otherwise Terraform released its own lock, and a new lock belongs to somebody
    /// else.
    pub(super) async fn end(&self, bucket: &JobBucket, stopped: bool) -> Result<(), Failure> {
        match held(bucket, &self.lock_key).await? {
            Some(_) if stopped => Ok(()),
            Some(lock) if Some(&lock.id) == self.stale.as_ref() => Ok(()),
            Some(_) | None => self.mark.end(bucket).await,
        }
    }
}

async fn held(bucket: &JobBucket, key: &str) -> Result<Option<Lock>, Failure> {
    let Some(bytes) = bucket.get(key, MAX_BYTES).await? else { return Ok(None) };
    let lock = serde_json::from_slice(&bytes);
    lock.map(Some).map_err(|error| Failure::because(&format!("could not read the lock `{key}`"), &error))
}

//! Decides when a lock that an earlier attempt left on a state may be removed.
//!
//! Terraform locks a state by an object beside it and removes the object when it ends. An attempt that is killed leaves
//! the object, and every later plan would wait for a process that has ended. Terraform's lock does not say which
//! attempt holds it, so the runner writes a mark beside it (`terraform/<component>.fence.json`: job, fence, whether the
//! attempt ended in order) before the first command that locks.
//!
//! A lock is removed only if it was there when this attempt began, and if the mark is from an attempt that did not end
//! in order and cannot be working any more. Such an attempt is one of these:
//! - of the same job with a lower fence: its lease has ended, and a runner stops its job before its lease ends;
//! - of another job: the component is the FIFO group of the orders, so SQS delivers this order only after the other
//!   order is gone.
//!
//! Any other lock belongs to somebody else, for example to a person; the attempt waits for it and then reports it. An
//! attempt that finds a mark of its own job with a higher fence is itself stale and changes nothing.

use freehold_protocol::report::Fence;
use freehold_protocol::{ComponentName, JobId};
use serde::{Deserialize, Serialize};

use crate::kinds::bucket::JobBucket;
use crate::kinds::failure::Failure;
use crate::state_objects;
use crate::work::job::Job;

const MAX_BYTES: usize = 64 * 1024;

/// The content of the mark: the last attempt that worked on a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    job: JobId,
    fence: Fence,
    /// Whether the attempt ended without leaving a lock.
    ended: bool,
}

/// Terraform's lock (only the fields that the runner reads).
#[derive(Debug, Deserialize)]
struct Lock {
    #[serde(rename = "ID")]
    id: String,
}

/// What a new attempt may do with the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Claim {
    /// Work; a lock belongs to somebody else.
    Work,
    /// Work, and remove the existing lock.
    Inherit,
    /// Nothing: a newer attempt has left its mark.
    Yield,
}

#[must_use]
fn claim(mark: Option<&Mark>, job: &JobId, fence: Fence) -> Claim {
    match mark {
        Some(mark) if mark.job == *job && mark.fence > fence => Claim::Yield,
        Some(mark) if mark.ended => Claim::Work,
        // The same fence means this attempt, which has not locked anything yet.
        Some(mark) if mark.job == *job && mark.fence == fence => Claim::Work,
        Some(_) => Claim::Inherit,
        None => Claim::Work,
    }
}

/// What one attempt knows about the lock on its state.
#[derive(Debug)]
pub(super) struct StateLock {
    mark: Mark,
    mark_key: String,
    lock_key: String,
    stale: Option<String>,
}

impl StateLock {
    /// Reads the mark of the attempt before, and replaces it with the mark of this attempt.
    pub(super) async fn take_over(job: &Job, bucket: &JobBucket, component: &ComponentName) -> Result<Self, Failure> {
        let (mark_key, lock_key) = (state_objects::mark(component), state_objects::lock(component));
        // An unreadable mark proves nothing, so a lock then counts as somebody else's.
        let before: Option<Mark> =
            bucket.get(&mark_key, MAX_BYTES).await?.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let stale = match claim(before.as_ref(), &job.order.job, job.fence) {
            Claim::Yield => {
                return Err(Failure::new(format!("a newer attempt works on `{component}`; this one changes nothing")));
            }
            Claim::Inherit => held(bucket, &lock_key).await?.map(|lock| lock.id),
            Claim::Work => None,
        };
        let mark = Mark { job: job.order.job.clone(), fence: job.fence, ended: false };
        let state_lock = Self { mark, mark_key, lock_key, stale };
        state_lock.write(bucket, &state_lock.mark).await?;
        Ok(state_lock)
    }

    /// Returns the id of a lock that a killed attempt left.
    pub(super) fn stale(&self) -> Option<&str> {
        self.stale.as_deref()
    }

    /// Writes that the attempt ended in order, if it did not leave a lock. `stopped` says that Terraform may have been
    /// killed; otherwise Terraform released its own lock, and a lock that exists now belongs to somebody else.
    pub(super) async fn end(&self, bucket: &JobBucket, stopped: bool) -> Result<(), Failure> {
        match held(bucket, &self.lock_key).await? {
            Some(_) if stopped => Ok(()),
            Some(lock) if Some(&lock.id) == self.stale.as_ref() => Ok(()),
            Some(_) | None => self.write(bucket, &Mark { ended: true, ..self.mark.clone() }).await,
        }
    }

    async fn write(&self, bucket: &JobBucket, mark: &Mark) -> Result<(), Failure> {
        let bytes = serde_json::to_vec(mark).map_err(|error| Failure::because("could not write the mark", &error))?;
        bucket.put(&self.mark_key, bytes).await
    }
}

async fn held(bucket: &JobBucket, key: &str) -> Result<Option<Lock>, Failure> {
    let Some(bytes) = bucket.get(key, MAX_BYTES).await? else { return Ok(None) };
    let lock = serde_json::from_slice(&bytes);
    lock.map(Some).map_err(|error| Failure::because(&format!("could not read the lock `{key}`"), &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(n: u32) -> JobId {
        format!("job_{n:020x}").parse().unwrap()
    }

    fn fence(receive: u32) -> Fence {
        Fence { dispatch: 1, receive }
    }

    fn mark(n: u32, receive: u32, ended: bool) -> Mark {
        Mark { job: job(n), fence: fence(receive), ended }
    }

    #[test]
    fn only_the_lock_of_a_killed_lower_fence_or_of_an_older_job_is_inherited() {
        for (before, expected) in [
            (None, Claim::Work),
            (Some(mark(1, 1, true)), Claim::Work),
            (Some(mark(1, 1, false)), Claim::Inherit),
            (Some(mark(1, 2, false)), Claim::Work),
            (Some(mark(1, 3, false)), Claim::Yield),
            (Some(mark(1, 3, true)), Claim::Yield),
            (Some(mark(7, 9, false)), Claim::Inherit),
            (Some(mark(7, 9, true)), Claim::Work),
        ] {
            assert_eq!(claim(before.as_ref(), &job(1), fence(2)), expected, "{before:?}");
        }
    }
}

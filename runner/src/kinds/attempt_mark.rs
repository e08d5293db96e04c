//! The mark that an attempt stores beside a state. It names the attempt and records whether the attempt ended in order,
//! which means that the attempt left neither a lock nor a pending change.
//!
//! A killed attempt may leave a Terraform lock or a pending Helm release. A new attempt may take it over only if the
//! mark names an attempt that did not end in order and cannot be running any more. There are two such cases:
//! - The mark is of the same job with a lower fence. The lease of that attempt has ended, and a runner stops a
//!   job before its lease ends.
//! - The mark is of another job. All orders of a component are in one FIFO group, so SQS delivers this order only after
//!   the other order was deleted.
//!
//! In all other cases, the lock or release belongs to somebody else, for example to a person. An attempt that finds a
//! mark of its own job with a higher fence is itself outdated and changes nothing.

use freehold_protocol::JobId;
use freehold_protocol::report::Fence;
use serde::{Deserialize, Serialize};

use crate::kinds::bucket::JobBucket;
use crate::kinds::failure::Failure;
use crate::work::job::Job;

const MAX_BYTES: usize = 64 * 1024;

/// The content of the mark, which describes the last attempt that worked on a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    job: JobId,
    fence: Fence,
    /// Whether the attempt ended in order, which means without leaving a lock or a pending change.
    ended: bool,
}

/// The decision whether a new attempt may work on the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Claim {
    /// The attempt may work. An existing lock or pending change belongs to somebody else.
    Work,
    /// The attempt may work, and may take over an existing lock or pending change.
    Inherit,
    /// The attempt must not work, because the mark is of a newer attempt.
    Yield,
}

#[must_use]
fn claim(mark: Option<&Mark>, job: &JobId, fence: Fence) -> Claim {
    match mark {
        Some(mark) if mark.job == *job && mark.fence > fence => Claim::Yield,
        Some(mark) if mark.ended => Claim::Work,
        // The mark is of this attempt itself, which cannot have left a lock yet.
        Some(mark) if mark.job == *job && mark.fence == fence => Claim::Work,
        Some(_) => Claim::Inherit,
        None => Claim::Work,
    }
}

/// The mark of one attempt.
#[derive(Debug)]
pub(super) struct AttemptMark {
    mark: Mark,
    key: String,
    inherits: bool,
}

impl AttemptMark {
    /// Reads the mark of the previous attempt, and replaces it with the mark of this attempt.
    pub(super) async fn take_over(job: &Job, bucket: &JobBucket, key: String, state: &str) -> Result<Self, Failure> {
        // An unreadable mark counts as no mark: an existing lock or pending change then belongs to somebody else.
        let before: Option<Mark> =
            bucket.get(&key, MAX_BYTES).await?.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let claim = claim(before.as_ref(), &job.order.job, job.fence);
        if claim == Claim::Yield {
            return Err(Failure::new(format!("a newer attempt works on `{state}`; this attempt changes nothing")));
        }
        let mark = Mark { job: job.order.job.clone(), fence: job.fence, ended: false };
        let made = Self { mark, key, inherits: claim == Claim::Inherit };
        made.write(bucket, &made.mark).await?;
        Ok(made)
    }

    /// Returns whether this attempt may take over a lock or a pending change of the previous attempt.
    pub(super) const fn inherits(&self) -> bool {
        self.inherits
    }

    /// Writes into the mark that the attempt ended in order.
    pub(super) async fn end(&self, bucket: &JobBucket) -> Result<(), Failure> {
        self.write(bucket, &Mark { ended: true, ..self.mark.clone() }).await
    }

    async fn write(&self, bucket: &JobBucket, mark: &Mark) -> Result<(), Failure> {
        let bytes = serde_json::to_vec(mark)
            .map_err(|error| Failure::because("could not write the mark of this attempt", &error))?;
        bucket.put(&self.key, bytes).await
    }
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

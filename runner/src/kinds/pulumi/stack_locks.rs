//! Finds the locks on a stack, and removes those that a killed attempt left.
//!
//! Pulumi's S3 backend locks a stack with an object below `.pulumi/locks/`, whose name is random, and removes the object
//! before Pulumi ends. `pulumi cancel` removes all such objects. The runner removes only those objects that the mark of a
//! killed attempt accounts for ([`AttemptMark`]), because a person may have locked the stack since.

use freehold_protocol::ComponentName;

use crate::job::Job;
use crate::job::bucket::JobBucket;
use crate::job::failure::{Failure, until_stopped};
use crate::kinds::attempt_mark::{AttemptMark, HeldLock};
use crate::state_objects;

/// The locks of a stack for one attempt.
#[derive(Debug)]
pub(super) struct StackLocks {
    mark: AttemptMark,
    prefix: String,
}

impl StackLocks {
    /// Replaces the mark of the previous attempt, and looks for locks that this attempt may remove.
    pub(super) async fn take_over(job: &Job, bucket: &JobBucket, component: &ComponentName) -> Result<Self, Failure> {
        let state = state_objects::pulumi(component);
        let prefix = format!("{state}.pulumi/locks/");
        let held = list_held(bucket, &prefix).await?;
        let mark = AttemptMark::take_over(job, bucket, format!("{state}fence.json"), &state, &held).await?;
        Ok(Self { mark, prefix })
    }

    /// Removes the locks that a killed attempt left.
    pub(super) async fn remove_stale(&self, job: &Job, bucket: &JobBucket) -> Result<(), Failure> {
        for lock in self.mark.stale() {
            job.log.line(&format!("removing lock `{lock}`, which a killed attempt left on the stack"));
            until_stopped(job, bucket.delete(lock)).await?;
        }
        Ok(())
    }

    /// Records in the mark that the attempt ended cleanly, unless it may have left a lock. `abrupt` means that Pulumi may
    /// have been killed.
    pub(super) async fn end(&self, bucket: &JobBucket, abrupt: bool) -> Result<(), Failure> {
        self.mark.end_with(bucket, &list_held(bucket, &self.prefix).await?, abrupt).await
    }
}

async fn list_held(bucket: &JobBucket, prefix: &str) -> Result<Vec<HeldLock>, Failure> {
    let objects = bucket.list(prefix).await?;
    Ok(objects.into_iter().map(|(name, since)| HeldLock { name, since }).collect())
}

//! The mark that an attempt stores beside a state. It names the attempt and records whether the attempt ended cleanly,
//! which means that the attempt left neither a lock nor a pending change.
//!
//! A killed attempt may leave a Terraform lock or a pending Helm release. A new attempt may take over this lock or
//! release only if the mark names an attempt that did not end cleanly and cannot be running any more. There are two
//! such cases:
//! - The mark is of the same job with a lower fence. The lease of that attempt has ended, and a runner stops a
//!   job before its lease ends.
//! - The mark is of another job. All orders of a component are in one FIFO group, so SQS delivers this order only after
//!   the other order was deleted.
//!
//! In all other cases, the lock or release belongs to somebody else, for example to a person. An attempt that finds a
//! mark of its own job with a higher fence is itself outdated and changes nothing.
//!
//! A person may also lock the state between two attempts. So for a state with locks, the mark records which locks the
//! attempt cannot have left: the locks of others that existed when it began, and all locks that were made after its
//! time limit. An attempt whose program was killed, while the runner was not, records exactly the locks that it left.

use std::time::{SystemTime, UNIX_EPOCH};

use freehold_protocol::report::Fence;
use freehold_protocol::{JobId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::job::bucket::JobBucket;
use crate::job::failure::Failure;
use crate::job::{Job, STOP_GRACE};

const MAX_BYTES: usize = 64 * 1024;
/// The largest difference between the clocks of this machine and of AWS, in seconds. AWS refuses requests of a machine
/// whose clock differs more (IAM user guide, "Elements of an AWS API request signature").
const CLOCKS_SECS: u64 = 15 * 60;

/// A lock that exists on a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HeldLock {
    /// The name of the lock. Two locks never have the same name.
    pub name: String,
    /// The time at which the lock was made, if it is known.
    pub since: Option<Timestamp>,
}

/// The content of the mark, which describes the last attempt that worked on a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    job: JobId,
    fence: Fence,
    /// Whether the attempt ended cleanly, which means without leaving a lock or a pending change.
    ended: bool,
    /// The locks that existed when the attempt began and that it does not take over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    others: Vec<String>,
    /// The time after which the attempt cannot have made a lock, on the clock of its machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<Timestamp>,
    /// The locks that the attempt left. `None` when the runner could not record them, because it was killed itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    left: Option<Vec<String>>,
}

impl Mark {
    /// Returns whether the attempt may have left `lock`, if it did not end cleanly.
    fn may_have_left(&self, lock: &HeldLock) -> bool {
        if let Some(left) = &self.left {
            return left.contains(&lock.name);
        }
        let in_time = self.until.zip(lock.since).is_none_or(|(until, since)| since <= until);
        in_time && !self.others.contains(&lock.name)
    }
}

/// The decision whether a new attempt may work on the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Claim {
    /// The attempt may work. An existing lock or pending change belongs to somebody else.
    Work,
    /// The attempt may work, and may take over an existing lock or pending change.
    Inherit,
    /// The attempt must not work, because the mark belongs to a newer attempt.
    Yield,
}

#[must_use]
fn claim(mark: Option<&Mark>, job: &JobId, fence: Fence) -> Claim {
    match mark {
        Some(mark) if mark.job == *job && mark.fence > fence => Claim::Yield,
        Some(mark) if mark.ended => Claim::Work,
        // The mark belongs to this attempt itself, which cannot have left a lock yet.
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
    stale: Vec<String>,
}

impl AttemptMark {
    /// Reads the mark of the previous attempt, and replaces it with the mark of this attempt. `held` are the locks that
    /// exist on the state; none for a state without locks.
    pub(super) async fn take_over(
        job: &Job,
        bucket: &JobBucket,
        key: String,
        state: &str,
        held: &[HeldLock],
    ) -> Result<Self, Failure> {
        // An unreadable mark counts as no mark: an existing lock or pending change then belongs to somebody else.
        let before: Option<Mark> =
            bucket.get(&key, MAX_BYTES).await?.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let claim = claim(before.as_ref(), &job.order.job, job.fence);
        if claim == Claim::Yield {
            return Err(Failure::new(format!("a newer attempt works on `{state}`; this attempt changes nothing")));
        }
        let inherits = claim == Claim::Inherit;
        let (stale, others) = divided(before.as_ref().filter(|_| inherits), held);
        let (job_id, until) = (job.order.job.clone(), Some(latest(job)));
        let mark = Mark { job: job_id, fence: job.fence, ended: false, others, until, left: None };
        let made = Self { mark, key, inherits, stale };
        made.write(bucket, &made.mark).await?;
        Ok(made)
    }

    /// Returns whether this attempt may take over a pending change of the previous attempt.
    pub(super) const fn inherits(&self) -> bool {
        self.inherits
    }

    /// Returns the names of the locks that a killed attempt left and that this attempt may remove.
    pub(super) fn stale(&self) -> &[String] {
        &self.stale
    }

    /// Writes into the mark that the attempt ended cleanly.
    pub(super) async fn end(&self, bucket: &JobBucket) -> Result<(), Failure> {
        self.write(bucket, &self.ended(&[], false)).await
    }

    /// Writes into the mark which of the locks in `held` the attempt left; the attempt ended cleanly when it left none.
    /// `abrupt` means that a program of the attempt may have been killed. Otherwise the program released its own lock,
    /// and a new lock belongs to somebody else.
    pub(super) async fn end_with(&self, bucket: &JobBucket, held: &[HeldLock], abrupt: bool) -> Result<(), Failure> {
        self.write(bucket, &self.ended(held, abrupt)).await
    }

    fn ended(&self, held: &[HeldLock], abrupt: bool) -> Mark {
        let is_left = |name: &String| self.stale.contains(name) || (abrupt && !self.mark.others.contains(name));
        let left: Vec<String> = held.iter().map(|lock| &lock.name).filter(|name| is_left(name)).cloned().collect();
        if left.is_empty() {
            return Mark { ended: true, others: Vec::new(), until: None, ..self.mark.clone() };
        }
        Mark { left: Some(left), ..self.mark.clone() }
    }

    async fn write(&self, bucket: &JobBucket, mark: &Mark) -> Result<(), Failure> {
        let bytes = serde_json::to_vec(mark)
            .map_err(|error| Failure::because("could not write the mark of this attempt", &error))?;
        bucket.put(&self.key, bytes).await
    }
}

/// Splits the locks `held` in two: those that the previous attempt may have left, by its mark `before`, and the rest.
/// Without a mark, all locks are in the rest.
fn divided(before: Option<&Mark>, held: &[HeldLock]) -> (Vec<String>, Vec<String>) {
    let is_stale = |lock: &&HeldLock| before.is_some_and(|mark| mark.may_have_left(lock));
    let (stale, others): (Vec<&HeldLock>, Vec<&HeldLock>) = held.iter().partition(is_stale);
    let names = |locks: Vec<&HeldLock>| locks.into_iter().map(|lock| lock.name.clone()).collect();
    (names(stale), names(others))
}

/// Returns the time after which an attempt that begins now cannot make a lock any more.
fn latest(job: &Job) -> Timestamp {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = Timestamp::from_millis(u64::try_from(now.as_millis()).unwrap_or(u64::MAX));
    now.plus_secs(u64::from(job.order.timeout_secs) + STOP_GRACE.as_secs() + CLOCKS_SECS)
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
        Mark { job: job(n), fence: fence(receive), ended, others: Vec::new(), until: None, left: None }
    }

    #[test]
    fn a_mark_of_the_version_before_is_read_and_nothing_of_it_is_lost() {
        crate::testing::check_golden_values::<Mark>("Mark");
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

    fn held(name: &str, since: u64) -> HeldLock {
        HeldLock { name: name.to_owned(), since: Some(Timestamp::from_millis(since)) }
    }

    #[test]
    fn a_lock_is_stale_only_if_the_killed_attempt_can_have_made_it() {
        let locks = [held("before", 5), held("own", 15), held("later", 25)];
        let unknown = [HeldLock { name: "own".to_owned(), since: None }];
        let others = vec!["before".to_owned()];
        let killed = Mark { others, until: Some(Timestamp::from_millis(20)), ..mark(1, 1, false) };
        let stale = |before: Option<&Mark>, locks: &[HeldLock]| divided(before, locks).0;

        assert_eq!(stale(Some(&killed), &locks), ["own"]);
        assert_eq!(divided(Some(&killed), &locks).1, ["before", "later"]);
        assert_eq!(stale(Some(&killed), &unknown), ["own"]);
        // An older runner wrote neither the locks of others nor the time.
        assert_eq!(stale(Some(&mark(1, 1, false)), &locks), ["before", "own", "later"]);
        assert!(stale(None, &locks).is_empty());
    }

    #[test]
    fn an_attempt_that_could_record_its_locks_left_exactly_these() {
        let made = AttemptMark {
            mark: Mark { others: vec!["of a person".to_owned()], ..mark(1, 1, false) },
            key: String::new(),
            inherits: true,
            stale: vec!["stale".to_owned()],
        };
        let [stale, own, of_a_person] = [held("stale", 1), held("own", 2), held("of a person", 1)];
        let left = |held: &[HeldLock], abrupt: bool| made.ended(held, abrupt).left.unwrap_or_default();

        assert!(made.ended(std::slice::from_ref(&of_a_person), true).ended);
        assert!(made.ended(std::slice::from_ref(&own), false).ended);
        assert_eq!(left(&[own.clone(), of_a_person.clone()], true), ["own"]);
        assert_eq!(left(&[stale, own.clone(), of_a_person], false), ["stale"]);
        let killed = made.ended(std::slice::from_ref(&own), true);
        assert!(!killed.ended);
        assert_eq!(divided(Some(&killed), &[own, held("new", 3)]), (vec!["own".to_owned()], vec!["new".to_owned()]));
    }
}

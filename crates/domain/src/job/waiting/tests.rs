use std::collections::BTreeMap;

use freehold_protocol::KeyId;
use freehold_protocol::limits::MAX_JOB_SECS;
use freehold_protocol::report::Fence;
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::job::tests::new_job;
use crate::job::{MAX_DISPATCHES, WaitLimits};

const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;

fn runner() -> KeyId {
    serde_json::from_value(Value::from("a")).unwrap()
}

fn fence(dispatch: u32, receive: u32) -> Fence {
    Fence { dispatch, receive }
}

fn at(secs: u64) -> Timestamp {
    Timestamp::from_millis(1_000_000_000).plus_secs(secs)
}

fn job() -> Job {
    Job::new(new_job(), WaitLimits { order_secs: HOUR, job_secs: MAX_WAIT_SECS }, at(0))
}

fn changed(job: &Job, event: &JobEvent, now: Timestamp) -> Job {
    match job.on(event, now) {
        Ok(Step::Changed { job, .. }) => *job,
        other => panic!("{other:?}"),
    }
}

fn started(dispatch: u32, receive: u32) -> JobEvent {
    JobEvent::Started { fence: fence(dispatch, receive), seq: 1, runner: runner() }
}

fn finished(dispatch: u32, receive: u32) -> JobEvent {
    let outcome = Outcome::Succeeded { outputs: BTreeMap::new(), sensitive: BTreeMap::new(), artifact: None };
    JobEvent::finished(fence(dispatch, receive), runner(), outcome)
}

fn returned(dispatch: u32, receive: u32) -> JobEvent {
    JobEvent::Returned { fence: fence(dispatch, receive), runner: runner() }
}

#[test]
fn a_job_that_nobody_claims_waits_for_its_runner_and_is_not_lost_before_thirteen_days() {
    let queued = job();
    let expired = HOUR + 600 + LOST_GRACE_SECS;

    assert_eq!(queued.on(&JobEvent::Wait, at(expired - 1)), Ok(Step::NotYet));
    let waiting = changed(&queued, &JobEvent::Wait, at(expired));

    assert_eq!((waiting.state.as_str(), waiting.waits_since(at(DAY))), ("waiting_for_runner", Some(at(0))));
    assert!(!waiting.state.is_terminal() && waiting.lost_at.is_none());
    assert_eq!(waiting.on(&JobEvent::Wait, at(13 * DAY - 1)), Ok(Step::NotYet));
    let lost = changed(&waiting, &JobEvent::Wait, at(13 * DAY));
    assert_eq!(lost.state.as_str(), "lost");
    let reason = "the job waited for its runner until 1970-01-25T13:46:40.000Z, and no report of its end came";
    assert_eq!(lost.reason().as_deref(), Some(reason));
}

#[test]
fn an_order_that_never_reached_its_queue_is_ordered_again_until_the_job_has_waited_long_enough() {
    let unsent = |dispatch| JobEvent::Unsent { dispatch };
    let expired = HOUR + 600 + LOST_GRACE_SECS;
    let waiting = changed(&job(), &JobEvent::Wait, at(expired));
    let started = changed(&changed(&job(), &started(1, 1), at(60)), &JobEvent::Wait, at(expired));
    let cancelled = changed(&job(), &JobEvent::Cancel(Default::default()), at(60));

    assert_eq!(job().on(&unsent(1), at(expired - 1)), Ok(Step::NotYet));
    for queued in [job(), waiting] {
        let again = changed(&queued, &unsent(1), at(expired));
        assert_eq!(again.state, JobState::Queued { dispatch: 2 });
        assert_eq!((again.start_by(), again.runner_wait_until()), (at(expired + HOUR), at(13 * DAY)));
        assert_eq!(again.on(&unsent(1), at(DAY)), Ok(Step::Already), "a second look");
        assert_eq!(changed(&again, &unsent(2), at(13 * DAY)).state.as_str(), "lost");
    }
    assert_eq!(started.on(&unsent(1), at(DAY)), Ok(Step::Already), "an attempt had the order");
    assert_eq!(changed(&cancelled, &unsent(1), at(expired)).state.as_str(), "cancelled");
}

#[test]
fn a_queued_job_is_seen_to_wait_from_the_first_minute_and_a_running_one_is_not() {
    let queued = job();
    let running = changed(&queued, &started(1, 1), at(1));

    assert_eq!(queued.waits_since(at(UNCLAIMED_SECS - 1)), None);
    assert_eq!(queued.waits_since(at(UNCLAIMED_SECS)), Some(at(0)));
    assert_eq!(running.waits_since(at(HOUR)), None);
}

#[test]
fn an_order_that_comes_back_is_sent_again_with_a_higher_dispatch_and_its_whole_time() {
    let waiting = changed(&job(), &JobEvent::Wait, at(2 * HOUR));
    let monday = at(3 * DAY);

    let again = changed(&waiting, &returned(1, 1), monday);

    assert_eq!(again.state, JobState::Queued { dispatch: 2 });
    assert_eq!((again.start_by(), again.not_after), (monday.plus_secs(HOUR), monday.plus_secs(HOUR + 600)));
    assert_eq!((again.runner_wait_until(), again.returned), (at(13 * DAY), 1));
    assert!(matches!(again.on(&returned(1, 1), monday), Err(Rejected::Stale { .. })), "a second copy of the report");
    assert_eq!(changed(&again, &finished(2, 1), monday).state.as_str(), "succeeded");
}

#[test]
fn an_order_that_can_still_be_started_is_not_replaced_whatever_the_runners_clock_says() {
    let queued = job();

    assert_eq!(queued.on(&returned(1, 1), at(HOUR - LOST_GRACE_SECS - 1)), Ok(Step::NotYet));
    assert_eq!(changed(&queued, &returned(1, 1), at(HOUR)).state, JobState::Queued { dispatch: 2 });
}

#[test]
fn a_job_that_was_stopped_by_the_pause_continues_and_its_old_attempt_counts_no_more() {
    let running = changed(&job(), &started(1, 1), at(60));
    let waiting = changed(&running, &JobEvent::Wait, at(2 * HOUR));

    assert_eq!(waiting.waits_since(at(DAY)), Some(at(60)));
    assert_eq!(waiting.on(&returned(1, 1), at(DAY)), Ok(Step::Already), "this attempt has started");
    let again = changed(&waiting, &returned(1, 2), at(DAY));

    assert_eq!(again.state, JobState::Queued { dispatch: 2 });
    assert!(matches!(again.on(&finished(1, 1), at(DAY)), Err(Rejected::Stale { .. })));
}

#[test]
fn a_report_of_the_end_ends_a_waiting_job_as_if_it_had_not_waited() {
    let waiting = changed(&job(), &JobEvent::Wait, at(2 * HOUR));

    let ended = changed(&waiting, &finished(1, 1), at(DAY));

    assert_eq!((ended.state.as_str(), ended.is_reported_late(), ended.reason()), ("succeeded", false, None));
}

#[test]
fn a_waiting_job_that_somebody_cancels_ends_without_its_runner() {
    let waiting = changed(&job(), &JobEvent::Wait, at(2 * HOUR));
    let asked = changed(&waiting, &JobEvent::Cancel(Default::default()), at(DAY));

    assert_eq!(asked.state.as_str(), "waiting_for_runner");
    assert_eq!(changed(&asked, &JobEvent::Wait, at(DAY)).state.as_str(), "cancelled");
    let back = changed(&asked, &returned(1, 1), at(DAY));
    assert_eq!((back.state.as_str(), back.may_have_changed()), ("cancelled", false));
}

#[test]
fn orders_that_come_back_use_up_no_retry() {
    let mut job = job();
    for dispatch in 1..=MAX_DISPATCHES {
        job = changed(&job, &returned(dispatch, 1), at(u64::from(dispatch) * 2 * HOUR));
    }
    let failed = Outcome::Failed { reason: "no".into(), partial: true };
    let failed = JobEvent::finished(fence(MAX_DISPATCHES + 1, 1), runner(), failed);

    let again = changed(&changed(&job, &failed, at(DAY)), &JobEvent::Retry, at(DAY));

    assert_eq!(again.state, JobState::Queued { dispatch: MAX_DISPATCHES + 2 });
}

#[test]
fn the_longest_job_that_waits_longest_ends_before_sqs_deletes_its_order() {
    let last = MAX_WAIT_SECS + u64::from(MAX_JOB_SECS) + LOST_GRACE_SECS;

    assert!(last < 14 * DAY, "{last}");
}

/// What happens, and how many seconds pass before.
fn happenings() -> impl Strategy<Value = Vec<(u64, u8, u32)>> {
    let pause = prop_oneof![3 => 0..400_u64, 2 => HOUR / 2..3 * HOUR, 1 => DAY..4 * DAY];
    prop::collection::vec((pause, 0..7_u8, 1..4_u32), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// A new order exists only when no attempt can start under the old one, and whatever happens the job ends.
    #[test]
    fn a_new_order_never_meets_an_old_one_and_every_job_ends(happenings in happenings()) {
        let mut job = job();
        let mut now = at(0);
        for (pause, what, receive) in happenings {
            now = now.plus_secs(pause);
            let dispatch = job.state.dispatch();
            let event = match what {
                0 => started(dispatch, receive),
                1 => finished(dispatch, receive),
                2 | 3 => returned(dispatch, receive),
                4 => JobEvent::Cancel(Default::default()),
                5 => JobEvent::Expire,
                _ => JobEvent::Wait,
            };
            let Ok(Step::Changed { job: next, .. }) = job.on(&event, now) else { continue };
            if next.state.dispatch() > dispatch {
                prop_assert!(now.plus_secs(LOST_GRACE_SECS) >= job.start_by(), "{event:?} at {now:?} of {job:?}");
                prop_assert!(!job.state.is_terminal());
                prop_assert_eq!(next.start_by(), now.plus_secs(HOUR));
            }
            if matches!(next.state, JobState::WaitingForRunner { .. } | JobState::Lost { .. }) {
                prop_assert!(now >= job.not_after.plus_secs(LOST_GRACE_SECS));
            }
            prop_assert_eq!(next.runner_wait_until(), job.runner_wait_until());
            job = *next;
        }
        let end = job.runner_wait_until().max(job.not_after.plus_secs(LOST_GRACE_SECS));

        prop_assert!(job.state.is_terminal() || changed(&job, &JobEvent::Wait, end).state.is_terminal());
    }
}

use freehold_protocol::KeyId;
use freehold_protocol::limits::MAX_WAIT_SECS;
use serde_json::Value;

use super::*;
use crate::job::WaitLimits;
use crate::job::tests::new_job;

const HOUR: u64 = 3600;

fn runner() -> KeyId {
    serde_json::from_value(Value::from("a")).unwrap()
}

fn at(secs: u64) -> Timestamp {
    Timestamp::from_millis(1_000_000_000).plus_secs(secs)
}

fn job() -> Job {
    Job::new(new_job(), WaitLimits { order_secs: HOUR, job_secs: MAX_WAIT_SECS }, at(0))
}

fn closed(dispatch: u32) -> JobEvent {
    JobEvent::Window(WindowEvent::Closed { dispatch, until: Some(at(HOUR)), reason: "closed".into() })
}

fn refused(dispatch: u32, receive: u32) -> JobEvent {
    let (until, reason) = (Some(at(HOUR)), "closed".to_owned());
    JobEvent::Window(WindowEvent::Refused { fence: Fence { dispatch, receive }, runner: runner(), until, reason })
}

const OPENED: JobEvent = JobEvent::Window(WindowEvent::Opened);

fn started(dispatch: u32, receive: u32) -> JobEvent {
    JobEvent::Started { fence: Fence { dispatch, receive }, seq: 1, runner: runner() }
}

fn changed(job: &Job, event: &JobEvent, now: Timestamp) -> Job {
    match job.on(event, now) {
        Ok(Step::Changed { job, .. }) => *job,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_job_outside_the_window_waits_and_is_ordered_with_the_whole_time_when_it_opens() {
    let waiting = changed(&job(), &closed(1), at(5));
    let queued = changed(&waiting, &OPENED, at(HOUR));

    assert_eq!((waiting.state.as_str(), waiting.opens_at()), ("waiting_for_window", Some(at(HOUR))));
    assert_eq!(waiting.reason().as_deref(), Some("closed"));
    assert_eq!(queued.state, JobState::Queued { dispatch: 1 });
    assert_eq!((queued.created_at, queued.start_by()), (at(HOUR), at(2 * HOUR)));
    assert_eq!(queued.runner_wait_until(), at(HOUR + MAX_WAIT_SECS));
}

#[test]
fn an_order_that_the_runner_gave_back_is_followed_by_one_with_the_next_number() {
    let waiting = changed(&job(), &refused(1, 1), at(5));

    let queued = changed(&waiting, &OPENED, at(HOUR));

    assert_eq!((queued.state.dispatch(), queued.returned), (2, 1));
    assert!(matches!(waiting.on(&refused(1, 1), at(6)), Err(Rejected::Stale { .. })));
    assert!(matches!(queued.on(&started(1, 1), at(HOUR)), Err(Rejected::Stale { .. })));
}

#[test]
fn only_the_present_order_of_a_queued_job_can_be_kept_back() {
    let again = changed(&changed(&job(), &refused(1, 1), at(5)), &OPENED, at(HOUR));
    let running = changed(&job(), &started(1, 1), at(5));

    for (job, event) in [(&again, closed(1)), (&running, closed(1)), (&running, refused(1, 1)), (&job(), OPENED)] {
        assert_eq!(job.on(&event, at(HOUR)), Ok(Step::Already), "{event:?}");
    }
}

#[test]
fn an_attempt_that_began_while_the_window_closed_counts() {
    let waiting = changed(&job(), &closed(1), at(5));

    let running = changed(&waiting, &started(1, 1), at(6));

    assert_eq!(running.state.as_str(), "running");
}

#[test]
fn a_cancelled_job_ends_without_its_window() {
    let asked = changed(&changed(&job(), &closed(1), at(5)), &JobEvent::Cancel(Default::default()), at(6));
    assert_eq!(asked.on(&OPENED, at(HOUR)), Ok(Step::Already));

    let ended = changed(&asked, &JobEvent::Expire, at(7));

    assert_eq!(ended.state, JobState::Cancelled { dispatch: 1, ended_at: at(7), unclaimed: true });
    let late = changed(&job(), &JobEvent::Cancel(Default::default()), at(1));
    assert_eq!(changed(&late, &refused(1, 1), at(2)).state.as_str(), "cancelled");
}

#[test]
fn a_window_that_never_opens_ends_the_job_after_sixty_days_with_a_clear_reason() {
    let waiting = changed(&job(), &closed(1), at(0));

    assert_eq!(waiting.on(&JobEvent::Wait, at(MAX_WINDOW_WAIT_SECS - 1)), Ok(Step::NotYet));
    let ended = changed(&waiting, &JobEvent::Wait, at(MAX_WINDOW_WAIT_SECS));

    let reason = "the job waited 60 days for the customer's change window; start it again, or ask the customer";
    assert_eq!((ended.state.as_str(), ended.reason().as_deref()), ("failed", Some(reason)));
    assert!(!ended.may_have_changed());
}

#[test]
fn a_job_that_may_have_begun_before_its_window_closed_may_have_changed_something() {
    let running = changed(&job(), &started(1, 1), at(5));
    let given_back = changed(&running, &refused(1, 2), at(60));
    let asked = changed(&given_back, &JobEvent::Cancel(Default::default()), at(61));

    let ended = changed(&asked, &JobEvent::Wait, at(62));

    assert_eq!(ended.state, JobState::Cancelled { dispatch: 2, ended_at: at(62), unclaimed: false });
    assert!(ended.may_have_changed());
}

#[test]
fn an_attempt_that_spoke_while_the_job_waited_for_its_runner_may_have_changed_something() {
    let waiting = changed(&job(), &JobEvent::Wait, at(2 * HOUR));
    let began = changed(&waiting, &started(1, 1), at(2 * HOUR + 1));
    let given_back = changed(&began, &refused(1, 2), at(2 * HOUR + 60));

    let ended = changed(&given_back, &JobEvent::Wait, at(2 * HOUR + 60 + MAX_WINDOW_WAIT_SECS));

    assert_eq!(ended.state.as_str(), "failed");
    assert!(ended.may_have_changed());
}

#[test]
fn a_cancelled_job_whose_first_delivery_was_refused_changed_nothing() {
    let asked = changed(&job(), &JobEvent::Cancel(Default::default()), at(1));

    let (first, second) = (changed(&asked, &refused(1, 1), at(2)), changed(&asked, &refused(1, 2), at(2)));

    assert_eq!((first.may_have_changed(), second.may_have_changed()), (false, true));
}

#[test]
fn a_wait_for_the_window_outlasts_the_wait_for_a_runner_and_the_next_order_has_all_of_it() {
    let days = |days: u64| at(days * 24 * HOUR);
    let waiting = changed(&job(), &closed(1), at(0));
    assert_eq!(waiting.on(&JobEvent::Wait, days(30)), Ok(Step::NotYet));

    let queued = changed(&waiting, &OPENED, days(30));
    let away = changed(&queued, &JobEvent::Wait, days(31));

    assert_eq!((away.state.as_str(), away.runner_wait_until()), ("waiting_for_runner", days(30 + 13)));
}

#[test]
fn a_row_of_a_waiting_job_can_be_read_again() {
    let waiting = changed(&job(), &closed(1), at(5));

    let read: Job = serde_json::from_value(serde_json::to_value(&waiting).unwrap()).unwrap();

    assert_eq!(read, waiting);
}

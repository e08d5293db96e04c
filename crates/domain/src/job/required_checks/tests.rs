use std::collections::BTreeSet;

use freehold_protocol::CheckName;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::health::found_by;
use crate::job::tests::new_job;
use crate::job::{CancelAsked, WaitLimits};
use crate::required_checks::{AwaitedChecks, RequiredChecks};

const WINDOW: u32 = 300;

fn at(secs: u64) -> Timestamp {
    Timestamp::from_millis(1_000_000_000).plus_secs(secs)
}

fn runner(name: &str) -> KeyId {
    serde_json::from_value(Value::from(name)).unwrap()
}

fn fence(receive: u32) -> Fence {
    Fence { dispatch: 1, receive }
}

fn names(names: &[&str]) -> BTreeSet<CheckName> {
    names.iter().map(|name| name.parse().unwrap()).collect()
}

fn missing(checks: &[&str]) -> JobEvent {
    JobEvent::Checks(Verdict::Missing(names(checks)))
}

fn failed() -> JobEvent {
    JobEvent::Checks(Verdict::Failed([("load".parse().unwrap(), "too slow".to_owned())].into()))
}

const PASSED: JobEvent = JobEvent::Checks(Verdict::Passed);

fn succeeded() -> Outcome {
    let outputs = [("health".to_owned(), json!({ "state": "healthy" }))].into();
    Outcome::Succeeded { outputs, sensitive: BTreeMap::new(), artifact: None }
}

fn succeeds(receive: u32) -> JobEvent {
    JobEvent::finished(fence(receive), runner("a"), succeeded())
}

fn changed(job: &Job, event: &JobEvent, now: Timestamp) -> Job {
    match job.on(event, now) {
        Ok(Step::Changed { job, .. }) => *job,
        other => panic!("{other:?}"),
    }
}

/// Returns the queued job of a gate with these checks.
fn gate(checks: &[&str]) -> Job {
    let required = RequiredChecks { names: names(checks), window_secs: WINDOW };
    let checks = AwaitedChecks { component: "web".parse().unwrap(), required };
    let limits = WaitLimits { order_secs: 3600, job_secs: 3600 };
    Job { checks: Some(checks), ..Job::new(new_job(), limits, at(0)) }
}

/// Returns the job of a gate that waits for `ci` and `load` since the time 5.
fn waiting() -> Job {
    changed(&gate(&["ci", "load"]), &succeeds(1), at(5))
}

#[test]
fn a_gate_waits_for_its_checks_and_has_what_the_runner_reported_when_they_pass() {
    let waiting = waiting();
    let ended = changed(&waiting, &PASSED, at(9));

    assert_eq!((waiting.state.as_str(), waiting.waits_since(at(6))), ("waiting_for_checks", Some(at(5))));
    assert_eq!(waiting.waits_until(), at(5).plus_secs(WINDOW.into()));
    assert!(!waiting.state.is_terminal() && waiting.is_left_to_wait());
    let reason = waiting.reason().unwrap();
    assert!(
        reason.starts_with("the component is healthy, and waits for checks `ci`, `load` to pass until "),
        "{reason}"
    );
    assert!(matches!(&ended.state, JobState::Succeeded { outputs, .. } if outputs.contains_key("health")));
    let last = ended.history.last().unwrap();
    assert_eq!((last.what.as_str(), last.reason.as_str()), ("check_results", "all required checks have passed"));
}

#[test]
fn a_job_without_required_checks_succeeds_at_once() {
    let none = Job { checks: None, ..gate(&["ci"]) };

    for job in [gate(&[]), none] {
        assert_eq!(changed(&job, &succeeds(1), at(5)).state.as_str(), "succeeded");
    }
}

#[test]
fn a_failed_check_blocks_the_job_and_the_reason_has_a_way_out() {
    let ended = changed(&waiting(), &failed(), at(9));

    assert!(matches!(&ended.state, JobState::Blocked { block: Block::Unhealthy, .. }), "{:?}", ended.state);
    assert_eq!(
        ended.reason().unwrap(),
        format!(
            "component `web` is not healthy: check `load` failed: too slow; when the check passes, report this result \
             with `freehold check report globex web NAME passed`, and then run `freehold job retry {}`",
            ended.id
        )
    );
    assert_eq!(found_by(&ended).unwrap().state.as_str(), "unhealthy");
    assert!(ended.is_blocked_by_checks());
    assert!(ended.on(&JobEvent::Resume { why: String::new() }, at(10)).is_ok());
}

#[test]
fn a_missing_check_blocks_the_job_only_after_a_report_in_time_was_stored() {
    let waiting = waiting();
    let until = at(5).plus_secs(WINDOW.into());
    let end = until.plus_secs(LOST_GRACE_SECS);

    let early = waiting.on(&missing(&["ci", "load"]), Timestamp::from_millis(end.as_millis() - 1));
    let late = changed(&waiting, &missing(&["load"]), end);

    assert_eq!(early, Ok(Step::NotYet));
    assert_eq!(waiting.checks_end_at(), Some(end));
    let reason = late.reason().unwrap();
    assert!(reason.starts_with("component `web` is not healthy: no result of check `load` came before "), "{reason}");
}

#[test]
fn the_job_says_which_checks_are_still_missing() {
    let half = changed(&waiting(), &missing(&["load"]), at(8));

    assert!(half.reason().unwrap().contains("waits for check `load` to pass"), "{:?}", half.reason());
    assert_eq!(half.waits_since(at(9)), Some(at(5)));
    assert_eq!(half.on(&missing(&["load"]), at(9)), Ok(Step::NotYet));
}

#[test]
fn a_cancelled_job_ends_with_the_next_sweep_and_a_verdict_comes_too_late() {
    let asked = changed(&waiting(), &JobEvent::Cancel(CancelAsked::default()), at(7));
    let ended = changed(&asked, &JobEvent::Expire, at(8));

    assert_eq!((asked.state.as_str(), asked.is_left_to_wait()), ("waiting_for_checks", false));
    assert_eq!(asked.ends_by(), Some(at(7)));
    assert_eq!(asked.on(&PASSED, at(8)), Ok(Step::Already));
    assert_eq!(ended.state.as_str(), "cancelled");
}

#[test]
fn a_job_that_was_cancelled_before_its_runner_answered_does_not_begin_to_wait() {
    let asked = changed(&gate(&["ci"]), &JobEvent::Cancel(CancelAsked::default()), at(2));

    assert_eq!(changed(&asked, &succeeds(1), at(5)).state.as_str(), "cancelled");
}

#[test]
fn the_same_report_again_changes_nothing_and_a_later_delivery_checks_again() {
    let waiting = waiting();
    let again = JobEvent::Started { fence: fence(2), seq: 1, runner: runner("a") };

    assert_eq!(waiting.on(&succeeds(1), at(6)), Ok(Step::Already));
    let running = changed(&waiting, &again, at(7));
    let waits = changed(&running, &succeeds(2), at(8));
    assert_eq!((running.state.as_str(), waits.waits_since(at(9))), ("running", Some(at(8))));
    assert_eq!(running.on(&PASSED, at(9)), Ok(Step::Already), "the new attempt decides");
    assert!(matches!(waits.on(&succeeds(1), at(9)), Err(Rejected::Stale { .. })));
}

#[test]
fn the_end_of_another_attempt_does_not_prolong_the_wait() {
    let again = changed(&waiting(), &succeeds(2), at(20));

    assert_eq!((again.state.as_str(), again.state.fence()), ("waiting_for_checks", Some(fence(2))));
    assert_eq!((again.waits_since(at(21)), again.waits_until()), (Some(at(5)), at(5).plus_secs(WINDOW.into())));
}

#[test]
fn a_job_that_its_runner_blocked_is_not_blocked_by_checks() {
    let outcome = Outcome::Blocked { block: Block::Unhealthy, reason: "the answer is 503".to_owned() };
    let blocked = changed(&gate(&["ci"]), &JobEvent::finished(fence(1), runner("a"), outcome), at(5));

    assert!(!blocked.is_blocked_by_checks() && !waiting().is_blocked_by_checks());
}

#[test]
fn a_wait_begins_once_in_each_dispatch() {
    let gate = gate(&["ci", "load"]);
    let first = changed(&gate, &succeeds(1), at(5));
    let half = changed(&first, &missing(&["load"]), at(6));
    let other = changed(&half, &succeeds(2), at(7));
    let running = changed(&half, &JobEvent::Started { fence: fence(2), seq: 1, runner: runner("a") }, at(7));
    let again = changed(&running, &succeeds(2), at(8));
    let queued = changed(&changed(&half, &failed(), at(9)), &JobEvent::Resume { why: String::new() }, at(10));
    let second = JobEvent::finished(Fence { dispatch: 2, receive: 1 }, runner("a"), succeeded());
    let retried = changed(&queued, &second, at(11));

    assert!(first.begins_to_await_checks(&gate) && retried.begins_to_await_checks(&queued));
    assert!(!half.begins_to_await_checks(&first) && !other.begins_to_await_checks(&half));
    assert!(!running.begins_to_await_checks(&half) && !again.begins_to_await_checks(&running));
}

#[test]
fn a_retry_waits_for_the_checks_again() {
    let blocked = changed(&waiting(), &failed(), at(9));

    let queued = changed(&blocked, &JobEvent::Resume { why: String::new() }, at(10));
    let second = Fence { dispatch: 2, receive: 1 };
    let outcome = Outcome::Succeeded { outputs: BTreeMap::new(), sensitive: BTreeMap::new(), artifact: None };
    let waits = changed(&queued, &JobEvent::finished(second, runner("a"), outcome), at(11));

    assert_eq!((queued.state.as_str(), waits.state.as_str()), ("queued", "waiting_for_checks"));
    assert_eq!(waits.waits_until(), at(11).plus_secs(WINDOW.into()));
}

#[test]
fn a_verdict_means_nothing_to_a_job_that_does_not_wait() {
    let queued = gate(&["ci"]);
    let ended = changed(&waiting(), &PASSED, at(9));

    for job in [queued, ended] {
        for event in [PASSED, failed(), missing(&["ci"])] {
            assert_eq!(job.on(&event, at(10_000)), Ok(Step::Already));
        }
    }
}

fn any_event() -> impl Strategy<Value = JobEvent> {
    prop_oneof![
        Just(PASSED),
        Just(failed()),
        Just(missing(&["ci"])),
        Just(missing(&["ci", "load"])),
        Just(JobEvent::Cancel(CancelAsked::default())),
        Just(JobEvent::Expire),
        Just(JobEvent::Wait),
        Just(succeeds(1)),
        Just(JobEvent::Unsent { dispatch: 1 }),
    ]
}

proptest! {
    /// Whatever comes in whatever order: the gate opens only when all checks passed, a later event does not undo that, and the
    /// job has ended once a sweep looks after the end of its time.
    #[test]
    fn a_gate_opens_only_when_all_checks_passed(events in proptest::collection::vec((0_u64..200, any_event()), 0..12)) {
        let mut job = waiting();
        let mut now = at(5);
        let mut passed = false;

        for (pause, event) in events {
            now = now.plus_secs(pause);
            if let Ok(Step::Changed { job: next, .. }) = job.on(&event, now) {
                prop_assert!(!job.state.is_terminal(), "{:?} after {:?}", event, job.state);
                passed |= event == PASSED;
                job = *next;
            }
        }

        prop_assert_eq!(matches!(job.state, JobState::Succeeded { .. }), passed);
        let end = now.max(at(5).plus_secs(u64::from(WINDOW) + LOST_GRACE_SECS));
        let event = if job.cancel_requested.is_some() { JobEvent::Expire } else { missing(&["ci"]) };
        if let Ok(Step::Changed { job: next, .. }) = job.on(&event, end) {
            job = *next;
        }
        prop_assert!(job.state.is_terminal(), "{:?}", job.state);
    }
}

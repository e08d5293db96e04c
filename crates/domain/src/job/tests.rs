use std::collections::BTreeMap;

use freehold_protocol::limits::LOST_GRACE_SECS;
use freehold_protocol::report::Block;
use proptest::prelude::*;
use serde_json::Value;

use super::*;

const NOW: Timestamp = Timestamp::from_millis(1_000_000);

fn runner(name: &str) -> KeyId {
    serde_json::from_value(Value::from(name)).unwrap()
}

fn fence(dispatch: u32, receive: u32) -> Fence {
    Fence { dispatch, receive }
}

pub(super) fn new_job() -> NewJob {
    NewJob {
        install: "globex".parse().unwrap(),
        workflow: WorkflowId::derive("globex", "test"),
        node: "web".into(),
        group: "component:web".parse().unwrap(),
        serial: 7,
        mode: Mode::Maintenance,
        role: None,
        timeout_secs: 600,
    }
}

fn job_in(state: JobState) -> Job {
    let limits = WaitLimits { order_secs: 3600, job_secs: 24 * 3600 };
    Job { state, ..Job::new(new_job(), limits, Timestamp::from_millis(0)) }
}

/// Every state, with attempt 2.2 as the one that counts where there is one.
fn states() -> Vec<JobState> {
    let current = fence(2, 2);
    let reason = String::new();
    vec![
        JobState::Queued { dispatch: 2 },
        JobState::Running { fence: current, runner: runner("a"), started_at: NOW, last_seq: 3, last_contact: NOW },
        JobState::WaitingForRunner {
            dispatch: 2,
            since: NOW,
            attempt: Some(LastAttempt { fence: current, runner: runner("a") }),
        },
        JobState::Succeeded {
            fence: current,
            ended_at: NOW,
            outputs: BTreeMap::new(),
            sensitive: BTreeMap::new(),
            artifact: None,
        },
        JobState::Failed { fence: current, ended_at: NOW, reason: reason.clone(), partial: false },
        JobState::Blocked { fence: current, ended_at: NOW, block: Block::ModeDisabled, reason: reason.clone() },
        JobState::Interrupted { fence: current, ended_at: NOW, reason },
        JobState::Lost {
            dispatch: 2,
            ended_at: NOW,
            attempt: Some(LastAttempt { fence: current, runner: runner("a") }),
        },
        JobState::Cancelled { dispatch: 2, ended_at: NOW, unclaimed: false },
        JobState::Cancelled { dispatch: 2, ended_at: NOW, unclaimed: true },
    ]
}

fn done() -> Outcome {
    Outcome::Succeeded { outputs: BTreeMap::new(), sensitive: Default::default(), artifact: None }
}

/// Every event, against attempt 2.2 of runner `a`.
fn events() -> Vec<(&'static str, JobEvent)> {
    let started = |f, seq, r: &str| JobEvent::Started { fence: f, seq, runner: runner(r) };
    let progress = |f, seq| JobEvent::Progress { fence: f, seq, runner: runner("a") };
    let finished = |f, r: &str| JobEvent::finished(f, runner(r), done());
    vec![
        ("started, never dispatched", started(fence(3, 1), 1, "a")),
        ("started, earlier dispatch", started(fence(1, 9), 1, "a")),
        ("started, earlier receive", started(fence(2, 1), 1, "a")),
        ("started, current", started(fence(2, 2), 1, "a")),
        ("started, current, other runner", started(fence(2, 2), 1, "b")),
        ("started, newer receive", started(fence(2, 3), 1, "b")),
        ("progress, current, next", progress(fence(2, 2), 4)),
        ("progress, current, seen", progress(fence(2, 2), 3)),
        ("finished, earlier receive", finished(fence(2, 1), "a")),
        ("finished, current", finished(fence(2, 2), "a")),
        ("finished, current, other runner", finished(fence(2, 2), "b")),
        ("finished, newer receive", finished(fence(2, 3), "b")),
        ("refused, newer receive", JobEvent::Refused { fence: fence(2, 3), runner: runner("b") }),
        ("cancel", JobEvent::Cancel(Default::default())),
        ("expire, early", JobEvent::Expire),
        ("wait, early", JobEvent::Wait),
        ("returned, current", JobEvent::Returned { fence: fence(2, 2), runner: runner("a") }),
        ("returned, newer receive", JobEvent::Returned { fence: fence(2, 3), runner: runner("b") }),
        ("unsent, early", JobEvent::Unsent { dispatch: 2 }),
        ("unsent, earlier dispatch", JobEvent::Unsent { dispatch: 1 }),
        ("retry", JobEvent::Retry),
        ("resume", JobEvent::Resume { why: "resumed".into() }),
    ]
}

fn outcome(result: Result<Step, Rejected>) -> String {
    match result {
        Ok(Step::Changed { job, .. }) => job.state.as_str().to_owned(),
        Ok(Step::Already) => "already".into(),
        Ok(Step::NotYet) => "not yet".into(),
        Err(Rejected::Stale { .. }) => "STALE".into(),
        Err(Rejected::Held { .. }) => "HELD".into(),
        Err(Rejected::Ended { .. }) => "ENDED".into(),
        Err(Rejected::NeverDispatched { .. }) => "NEVER".into(),
        Err(Rejected::Exhausted { .. }) => "EXHAUSTED".into(),
        Err(Rejected::NotRetryable { .. }) => "NO".into(),
        Err(Rejected::NotWaiting { .. } | Rejected::OtherPlan { .. } | Rejected::ExpiredPlan { .. }) => {
            "no plan".into()
        }
    }
}

fn changed(result: Result<Step, Rejected>) -> Job {
    match result {
        Ok(Step::Changed { job, .. }) => *job,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_event_in_every_state_has_one_answer() {
    // Columns: queued, running, waiting for its runner, succeeded, failed, blocked, interrupted, lost, cancelled, cancelled and unclaimed.
    let expected = "
started, never dispatched       | NEVER NEVER NEVER NEVER NEVER NEVER NEVER NEVER NEVER NEVER
started, earlier dispatch       | STALE STALE STALE STALE STALE STALE STALE STALE STALE STALE
started, earlier receive        | running STALE STALE ENDED ENDED ENDED ENDED STALE ENDED lost
started, current                | running already already already already already already already ENDED lost
started, current, other runner  | running HELD HELD already already already already HELD ENDED lost
started, newer receive          | running running waiting_for_runner ENDED ENDED ENDED ENDED lost ENDED lost
progress, current, next         | running running already already already already already already ENDED lost
progress, current, seen         | running already already already already already already already ENDED lost
finished, earlier receive       | succeeded STALE STALE ENDED ENDED ENDED ENDED STALE ENDED succeeded
finished, current               | succeeded succeeded succeeded already already already already succeeded ENDED succeeded
finished, current, other runner | succeeded HELD HELD already already already already HELD ENDED succeeded
finished, newer receive         | succeeded succeeded succeeded ENDED ENDED ENDED ENDED succeeded ENDED succeeded
refused, newer receive          | cancelled cancelled cancelled ENDED ENDED ENDED ENDED cancelled ENDED cancelled
cancel                          | queued running waiting_for_runner already already already already already already already
expire, early                   | not yet not yet not yet already already already already already already already
wait, early                     | not yet not yet not yet already already already already already already already
returned, current               | not yet already already already already already already already ENDED already
returned, newer receive         | not yet not yet not yet ENDED ENDED ENDED ENDED already ENDED already
unsent, early                   | not yet already already already already already already already already already
unsent, earlier dispatch        | already already already already already already already already already already
retry                           | NO NO NO NO queued NO queued queued NO NO
resume                          | NO NO NO NO queued queued queued queued queued queued";

    let mut table = String::new();
    for (name, event) in events() {
        let row: Vec<_> = states().into_iter().map(|state| outcome(job_in(state).on(&event, NOW))).collect();
        table.push_str(&format!("\n{name:<31} | {}", row.join(" ")));
    }

    assert_eq!(table, expected);
}

#[test]
fn a_job_that_nobody_ends_is_lost_only_after_its_order_expired() {
    let job = job_in(JobState::Queued { dispatch: 1 });
    let last = job.not_after.plus_secs(LOST_GRACE_SECS);

    assert_eq!(job.on(&JobEvent::Expire, Timestamp::from_millis(last.as_millis() - 1)), Ok(Step::NotYet));
    assert_eq!(outcome(job.on(&JobEvent::Expire, last)), "lost");
}

#[test]
fn an_unclaimed_job_that_was_cancelled_ends_as_cancelled() {
    let mut job = job_in(JobState::Queued { dispatch: 1 });
    job.cancel_requested = Some(NOW);

    assert_eq!(outcome(job.on(&JobEvent::Expire, job.not_after.plus_secs(LOST_GRACE_SECS))), "cancelled");
}

#[test]
fn a_report_that_comes_after_the_loss_still_counts_and_the_reason_says_so() {
    let job = job_in(JobState::Queued { dispatch: 1 });
    let (end, later) = (job.not_after.plus_secs(LOST_GRACE_SECS), job.not_after.plus_secs(3_000));
    let lost = changed(job.on(&JobEvent::Expire, end));
    let finished = |outcome| JobEvent::finished(fence(1, 1), runner("a"), outcome);

    let succeeded = changed(lost.on(&finished(done()), later));
    let failed = Outcome::Failed { reason: "exit status 1".into(), partial: true };
    let failed = changed(lost.on(&finished(failed), later));

    assert_eq!((lost.lost_at, lost.is_reported_late(), succeeded.is_reported_late()), (Some(end), false, true));
    assert!(matches!(succeeded.state, JobState::Succeeded { .. }));
    let late = "was lost at 1970-01-01T01:12:00.000Z, the report of its end came at 1970-01-01T02:00:00.000Z";
    assert_eq!(succeeded.reason().as_deref(), Some(late));
    assert_eq!(failed.reason(), Some(format!("{late}: exit status 1 (partial)")));
    assert_eq!(lost.reason(), lost.state.reason());
    let again = changed(failed.on(&JobEvent::Retry, later));
    assert_eq!((again.lost_at, again.reason()), (None, None));
}

#[test]
fn a_resumed_job_has_a_new_dispatch_and_says_why() {
    let cancelled = JobState::Cancelled { dispatch: 2, ended_at: NOW, unclaimed: true };
    let job = Job { cancel_requested: Some(NOW), ..job_in(cancelled) };

    let again = changed(job.on(&JobEvent::Resume { why: "resumed by ana: paid".into() }, NOW));

    assert_eq!((again.state, again.cancel_requested), (JobState::Queued { dispatch: 3 }, None));
    let last = again.history.last().unwrap();
    assert_eq!((last.what.as_str(), last.reason.as_str()), ("resume", "resumed by ana: paid"));
}

/// Reports of the attempts 1.1 to 1.3 of two runners, in any order and as often as they come.
fn reports() -> impl Strategy<Value = Vec<JobEvent>> {
    let outcome = prop_oneof![
        Just(done()),
        Just(Outcome::Failed { reason: "no".into(), partial: true }),
        Just(Outcome::Interrupted { reason: "died".into() }),
        Just(Outcome::Cancelled),
    ];
    let attempt = || (1..4_u32, prop_oneof![Just("a"), Just("b")]).prop_map(|(at, name)| (fence(1, at), runner(name)));
    let report = prop_oneof![
        (attempt(), 1..4_u64).prop_map(|((fence, runner), seq)| JobEvent::Started { fence, seq, runner }),
        (attempt(), 1..4_u64).prop_map(|((fence, runner), seq)| JobEvent::Progress { fence, seq, runner }),
        (attempt(), outcome).prop_map(|((fence, runner), outcome)| JobEvent::finished(fence, runner, outcome)),
    ];
    prop::collection::vec(report, 1..12)
}

/// Returns the job after these events. The one at `expires` comes after the job's order has expired, which has the effect of
/// the given event.
fn after(job: &Job, events: &[JobEvent], expires: Option<(usize, &JobEvent)>) -> Job {
    let mut job = job.clone();
    for (at, event) in events.iter().enumerate() {
        if let Some((_, expiry)) = expires.filter(|(expires, _)| *expires == at)
            && let Ok(Step::Changed { job: next, .. }) = job.on(expiry, job.not_after.plus_secs(LOST_GRACE_SECS))
        {
            job = *next;
        }
        if let Ok(Step::Changed { job: next, .. }) = job.on(event, NOW) {
            job = *next;
        }
    }
    job
}

/// Returns the state that reports of an end led to, or `open` for a job whose end was not reported.
fn kept(job: &Job) -> (&'static str, Option<Fence>) {
    match &job.state {
        JobState::Queued { .. }
        | JobState::Running { .. }
        | JobState::WaitingForRunner { .. }
        | JobState::WaitingForWindow { .. }
        | JobState::Lost { .. }
        | JobState::Cancelled { unclaimed: true, .. } => ("open", None),
        ended => (ended.as_str(), ended.fence()),
    }
}

proptest! {
    /// Two functions accept reports at the same time, and their clocks differ.
    #[test]
    fn the_time_of_the_last_report_never_goes_backward(
        events in reports(),
        times in prop::collection::vec(0..1_000_u64, 12),
        expires in 0..12_usize,
    ) {
        let mut job = job_in(JobState::Queued { dispatch: 1 });
        let end = job.not_after.plus_secs(LOST_GRACE_SECS);

        for (at, (event, secs)) in events.iter().zip(times).enumerate() {
            let before = job.last_report();
            for (event, now) in [(event, NOW.plus_secs(secs)), (&JobEvent::Expire, end)].iter().take(1 + usize::from(at == expires)) {
                if let Ok(Step::Changed { job: next, .. }) = job.on(event, *now) {
                    job = *next;
                }
                prop_assert!(job.last_report() >= before, "{:?} after {:?}", job.last_report(), before);
            }
        }
    }

    #[test]
    fn the_outcome_does_not_depend_on_when_the_job_was_lost_or_began_to_wait(
        events in reports(),
        expires in 0..12_usize,
        waits in any::<bool>(),
        cancelled in any::<bool>(),
    ) {
        let mut job = job_in(JobState::Queued { dispatch: 1 });
        job.cancel_requested = cancelled.then_some(NOW);

        let in_time = after(&job, &events, None);
        let expiry = if waits { JobEvent::Wait } else { JobEvent::Expire };
        let late = after(&job, &events, Some((expires, &expiry)));

        prop_assert_eq!(kept(&late), kept(&in_time));
    }

    /// An attempt that has lost its lease reports no end, so one attempt at most ends a job, and it is the last one.
    #[test]
    fn the_outcome_does_not_depend_on_the_order_of_the_reports_nor_on_the_loss(
        order in Just(vec![0, 1, 2, 3, 4, 0, 1, 2, 3, 4]).prop_shuffle(),
        expires in 0..12_usize,
    ) {
        let started = |at, name: &str| JobEvent::Started { fence: fence(1, at), seq: 1, runner: runner(name) };
        let progress = |at, name: &str| JobEvent::Progress { fence: fence(1, at), seq: 2, runner: runner(name) };
        let end = JobEvent::finished(fence(1, 2), runner("b"), done());
        let sent = [started(1, "a"), progress(1, "a"), started(2, "b"), progress(2, "b"), end];
        let events: Vec<_> = order.into_iter().map(|at: usize| sent[at].clone()).collect();

        let job = after(&job_in(JobState::Queued { dispatch: 1 }), &events, Some((expires, &JobEvent::Expire)));

        prop_assert_eq!(kept(&job), ("succeeded", Some(fence(1, 2))));
    }
}

#[test]
fn the_last_dispatch_cannot_be_repeated() {
    let job = job_in(JobState::Lost { dispatch: MAX_DISPATCHES, ended_at: NOW, attempt: None });

    assert_eq!(outcome(job.on(&JobEvent::Retry, NOW)), "EXHAUSTED");
}

#[test]
fn a_job_whose_workflow_was_continued_has_all_its_dispatches_again() {
    let lost = |dispatch| JobState::Lost { dispatch, ended_at: NOW, attempt: None };
    let job = Job { returned: 3, ..job_in(lost(MAX_DISPATCHES + 3)) };
    let Ok(Step::Changed { job: continued, .. }) = job.on(&JobEvent::Resume { why: String::new() }, NOW) else {
        panic!("a job that used up its dispatches cannot be continued")
    };

    let outcomes = [0, MAX_DISPATCHES - 1, MAX_DISPATCHES].map(|more| {
        let job = Job { state: lost(MAX_DISPATCHES + 3 + more), ..(*continued).clone() };
        outcome(job.on(&JobEvent::Retry, NOW))
    });

    assert_eq!(continued.state, JobState::Queued { dispatch: MAX_DISPATCHES + 4 });
    assert_eq!(outcomes, ["queued", "queued", "EXHAUSTED"]);
}

#[test]
fn a_retry_gives_the_new_order_a_life_of_its_own() {
    let job = job_in(JobState::Lost { dispatch: 1, ended_at: NOW, attempt: None });

    let Ok(Step::Changed { job: again, .. }) = job.on(&JobEvent::Retry, NOW) else { panic!("retry was refused") };

    assert_eq!(again.not_after, NOW.plus_secs(3600 + 600));
    assert_eq!(again.state, JobState::Queued { dispatch: 2 });
}

#[test]
fn only_a_report_can_say_that_a_job_changed_nothing() {
    let in_each: Vec<bool> = states().into_iter().map(|state| job_in(state).changed_nothing()).collect();
    let progressed = JobEvent::Progress { fence: fence(1, 1), seq: 2, runner: runner("a") };
    let cancelled = JobEvent::finished(fence(1, 1), runner("a"), Outcome::Cancelled);
    let heard_late = [progressed, cancelled].iter().fold(job_in(JobState::Queued { dispatch: 1 }), |job, event| {
        let Ok(Step::Changed { job, .. }) = job.on(event, NOW) else { panic!("{event:?}") };
        *job
    });

    // These are of the second delivery: the first one may have changed something.
    assert_eq!(in_each, [false; 10]);
    assert!(heard_late.may_have_changed() && !heard_late.changed_nothing(), "no report of the start came");

    let failed = |job: Job, receive: u32| {
        let outcome = Outcome::Failed { reason: "no".into(), partial: false };
        let event = JobEvent::finished(fence(1, receive), runner("a"), outcome);
        let Ok(Step::Changed { job, .. }) = job.on(&event, NOW) else { panic!("receive {receive}") };
        job.changed_nothing()
    };
    let lost = Job { lost_at: Some(NOW), ..job_in(JobState::Queued { dispatch: 1 }) };
    let at = |receive| failed(job_in(JobState::Queued { dispatch: 1 }), receive);
    assert_eq!([at(1), at(2), failed(lost, 1)], [true, false, false], "an earlier delivery may have worked unheard");
}

#[test]
fn a_job_may_have_changed_something_in_an_earlier_attempt_also_if_no_report_of_it_came() {
    let ends = |outcome: Outcome, receives: &[u32], last: u32| {
        let mut job = job_in(JobState::Queued { dispatch: 1 });
        for receive in receives {
            let event = JobEvent::Started { fence: fence(1, *receive), seq: 1, runner: runner("a") };
            job = changed(job.on(&event, NOW));
        }
        let event = JobEvent::finished(fence(1, last), runner("a"), outcome);
        changed(job.on(&event, NOW)).may_have_changed()
    };
    let blocked = || Outcome::Blocked { block: Block::ModeDisabled, reason: "off".into() };
    let failed = |partial| Outcome::Failed { reason: "no".into(), partial };

    assert_eq!([ends(blocked(), &[1], 1), ends(failed(false), &[1], 1), ends(done(), &[1, 2], 2)], [false; 3]);
    assert_eq!([ends(blocked(), &[1, 2], 2), ends(failed(false), &[1, 2], 2), ends(failed(true), &[1], 1)], [true; 3]);
    assert_eq!([ends(blocked(), &[], 2), ends(failed(false), &[2], 2)], [true; 2], "nobody heard of the first attempt");
    let again = changed(
        job_in(JobState::Queued { dispatch: 2 })
            .on(&JobEvent::Undeliverable { dispatch: 2, reason: "too large".into() }, NOW),
    );
    let never = changed(
        job_in(JobState::Queued { dispatch: 1 })
            .on(&JobEvent::Undeliverable { dispatch: 1, reason: "too large".into() }, NOW),
    );
    assert_eq!([again.may_have_changed(), never.may_have_changed()], [true, false]);
}

#[test]
fn only_the_refusal_of_the_first_delivery_says_that_a_cancelled_job_changed_nothing() {
    let queued = || job_in(JobState::Queued { dispatch: 1 });
    let refused = |receive| JobEvent::Refused { fence: fence(1, receive), runner: runner("a") };
    let started = JobEvent::Started { fence: fence(1, 1), seq: 1, runner: runner("a") };
    let stopped = JobEvent::finished(fence(1, 1), runner("a"), Outcome::Cancelled);
    let asked = Job { cancel_requested: Some(NOW), ..queued() };
    let expired = changed(asked.on(&JobEvent::Expire, asked.not_after.plus_secs(LOST_GRACE_SECS)));

    let nothing = changed(queued().on(&refused(1), NOW));
    let unheard = changed(queued().on(&refused(2), NOW));
    let after_a_start = changed(changed(queued().on(&started, NOW)).on(&refused(2), NOW));
    let running = changed(queued().on(&stopped, NOW));

    assert_eq!(nothing.state, JobState::Cancelled { dispatch: 1, ended_at: NOW, unclaimed: false });
    assert!(!nothing.may_have_changed());
    for job in [unheard, after_a_start, running, expired] {
        assert!(job.may_have_changed(), "{job:?}");
    }
}

#[test]
fn a_report_that_is_handled_late_is_heard_when_it_was_sent() {
    let (sent, handled) = (NOW.plus_secs(10), NOW.plus_secs(900));
    let job = job_in(JobState::Queued { dispatch: 1 });
    let started = JobEvent::Started { fence: fence(1, 1), seq: 1, runner: runner("a") };
    let ended = JobEvent::finished(fence(1, 1), runner("a"), done());

    let running = changed(job.on(&started, NOW)).heard_at(NOW, &job);
    let late = changed(running.on(&ended, handled)).heard_at(sent, &running);
    let older = changed(running.on(&ended, handled)).heard_at(Timestamp::from_millis(1), &running);

    assert_eq!([&running, &late, &older].map(|job| job.last_report()), [Some(NOW), Some(sent), Some(NOW)]);
}

#[test]
fn a_runner_that_reports_start_after_start_does_not_fill_the_row() {
    let mut job = job_in(JobState::Queued { dispatch: 1 });
    for receive in 1..=3_000 {
        let started = JobEvent::Started { fence: fence(1, receive), seq: 1, runner: runner("a") };
        job = changed(job.on(&started, NOW.plus_secs(receive.into())));
    }
    let first = job.history.first().and_then(|line| line.fence);

    let asked = changed(job.on(&JobEvent::Cancel(CancelAsked::default()), NOW));
    let stopped = JobEvent::finished(fence(1, 3_000), runner("a"), Outcome::Cancelled);
    let ended = changed(asked.on(&stopped, NOW));

    assert!(serde_json::to_vec(&ended).unwrap().len() < 100_000);
    assert_eq!((first, ended.state.as_str()), (Some(fence(1, 1)), "cancelled"));
    let newest: Vec<&str> = ended.history.iter().rev().take(3).map(|line| line.what.as_str()).collect();
    assert_eq!(newest, ["finished", "cancel", "started"]);
    assert!(ended.may_have_begun() && ended.may_have_changed());
}

#[test]
fn a_runner_that_gives_orders_back_for_ever_ends_the_job() {
    let mut job = job_in(JobState::Queued { dispatch: 1 });
    let mut times = 0;
    while !job.state.is_terminal() {
        let back = WindowEvent::Refused {
            fence: fence(job.state.dispatch(), 1),
            runner: runner("a"),
            until: Some(NOW),
            reason: "\u{1}".repeat(8_000),
        };
        job = changed(job.on(&JobEvent::Window(back), NOW));
        if matches!(job.state, JobState::WaitingForWindow { .. }) {
            job = changed(job.on(&JobEvent::Window(WindowEvent::Opened), NOW));
        }
        times += 1;
        assert!(times <= 1_000, "{:?}", job.state);
    }

    assert!(job.reason().is_some_and(|reason| reason.contains("was ordered again 500 times")));
    assert!(serde_json::to_vec(&job).unwrap().len() < 350_000);
}

#[test]
fn starts_of_a_runner_leave_what_people_did_in_the_history() {
    let mut job = job_in(JobState::Queued { dispatch: 1 });
    for receive in 1..=1_000 {
        if receive == 30 {
            let asked = CancelAsked { reason: "the customer calls".into(), ..CancelAsked::default() };
            job = changed(job.on(&JobEvent::Cancel(asked), NOW));
        }
        let started = JobEvent::Started { fence: fence(1, receive), seq: 1, runner: runner("a") };
        job = changed(job.on(&started, NOW));
    }

    assert!(job.history.len() <= 200 && job.history.iter().any(|line| line.reason == "the customer calls"));
}

use super::*;

const NOW: Timestamp = Timestamp::from_millis(1_000_000);

fn runner(name: &str) -> KeyId {
    serde_json::from_value(Value::from(name)).unwrap()
}

fn fence(dispatch: u32, receive: u32) -> Fence {
    Fence { dispatch, receive }
}

fn job_in(state: JobState) -> Job {
    let new = NewJob {
        install: "globex".parse().unwrap(),
        workflow: WorkflowId::derive("globex", "test"),
        node: "web".into(),
        group: "component:web".parse().unwrap(),
        serial: 7,
        mode: Mode::Maintenance,
        role: None,
        timeout_secs: 600,
    };
    Job { state, ..Job::new(new, 3600, Timestamp::from_millis(0)) }
}

/// Every state, with attempt 2.2 as the one that counts where there is one.
fn states() -> Vec<JobState> {
    let current = fence(2, 2);
    let reason = String::new();
    vec![
        JobState::Queued { dispatch: 2 },
        JobState::Running { fence: current, runner: runner("a"), started_at: NOW, last_seq: 3, last_contact: NOW },
        JobState::Succeeded { fence: current, ended_at: NOW, outputs: BTreeMap::new(), artifact: None },
        JobState::Failed { fence: current, ended_at: NOW, reason: reason.clone(), partial: false },
        JobState::Blocked { fence: current, ended_at: NOW, block: Block::ModeDisabled, reason: reason.clone() },
        JobState::Interrupted { fence: current, ended_at: NOW, reason },
        JobState::Lost { dispatch: 2, ended_at: NOW },
        JobState::Cancelled { dispatch: 2, ended_at: NOW },
    ]
}

fn done() -> Outcome {
    Outcome::Succeeded { outputs: BTreeMap::new(), artifact: None }
}

/// Every event, against attempt 2.2 of runner `a`.
fn events() -> Vec<(&'static str, JobEvent)> {
    let started = |f, seq, r: &str| JobEvent::Started { fence: f, seq, runner: runner(r) };
    let progress = |f, seq| JobEvent::Progress { fence: f, seq, runner: runner("a") };
    let finished = |f, r: &str| JobEvent::Finished { fence: f, runner: runner(r), outcome: done() };
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
        ("cancel", JobEvent::Cancel),
        ("expire, early", JobEvent::Expire),
        ("retry", JobEvent::Retry),
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
    }
}

#[test]
fn every_event_in_every_state_has_one_answer() {
    // Columns: queued, running, succeeded, failed, blocked, interrupted, lost, cancelled.
    let expected = "
started, never dispatched       | NEVER NEVER NEVER NEVER NEVER NEVER NEVER NEVER
started, earlier dispatch       | STALE STALE STALE STALE STALE STALE STALE STALE
started, earlier receive        | running STALE ENDED ENDED ENDED ENDED ENDED ENDED
started, current                | running already already already already already ENDED ENDED
started, current, other runner  | running HELD already already already already ENDED ENDED
started, newer receive          | running running ENDED ENDED ENDED ENDED ENDED ENDED
progress, current, next         | running running already already already already ENDED ENDED
progress, current, seen         | running already already already already already ENDED ENDED
finished, earlier receive       | succeeded STALE ENDED ENDED ENDED ENDED ENDED ENDED
finished, current               | succeeded succeeded already already already already ENDED ENDED
finished, current, other runner | succeeded HELD already already already already ENDED ENDED
finished, newer receive         | succeeded succeeded ENDED ENDED ENDED ENDED ENDED ENDED
cancel                          | queued running already already already already already already
expire, early                   | not yet not yet already already already already already already
retry                           | NO NO NO queued NO queued queued NO";

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
fn the_last_dispatch_cannot_be_repeated() {
    let job = job_in(JobState::Lost { dispatch: MAX_DISPATCHES, ended_at: NOW });

    assert_eq!(outcome(job.on(&JobEvent::Retry, NOW)), "EXHAUSTED");
}

#[test]
fn a_retry_gives_the_new_order_a_life_of_its_own() {
    let job = job_in(JobState::Lost { dispatch: 1, ended_at: NOW });

    let Ok(Step::Changed { job: again, .. }) = job.on(&JobEvent::Retry, NOW) else { panic!("retry was refused") };

    assert_eq!(again.not_after, NOW.plus_secs(3600 + 600));
    assert_eq!(again.state, JobState::Queued { dispatch: 2 });
}

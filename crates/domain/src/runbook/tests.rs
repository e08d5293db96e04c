use proptest::prelude::*;

use super::*;

const NOW: Timestamp = Timestamp::from_millis(1_000);

fn step(component: &str) -> RunbookStep {
    serde_json::from_value(serde_json::json!({ "does": { "type": "component_deploy", "component": component } }))
        .unwrap()
}

fn run(steps: usize) -> Run {
    let install: InstallId = "globex".parse().unwrap();
    let step = |at: usize| Step::waiting(step(&format!("c{at}")));
    Run {
        id: RunId::derive(&install, "test"),
        install,
        app: "shop".parse().unwrap(),
        runbook: "fix".parse().unwrap(),
        version: Digest::of(b"version"),
        number: 3,
        inputs: BTreeMap::new(),
        request_digest: Digest::of(b"request"),
        asked_by: AskedBy::Schedule,
        after: None,
        now: false,
        created_at: NOW,
        steps: (0..steps).map(step).collect(),
        resumed: Vec::new(),
        cancelled_by: None,
        state: RunState::Running,
        later_fields: BTreeMap::new(),
    }
}

fn resumed(reason: &str) -> Resumed {
    let (cause, after) = (format!("key of {reason}"), String::new());
    Resumed { at: NOW, by: AskedBy::Sweep, reason: reason.to_owned(), cause, after }
}

fn looked_at(run: &Run) -> (usize, WorkflowId) {
    match run.next() {
        Next::Follow { step, workflow } => (step, workflow),
        other => panic!("{other:?}"),
    }
}

fn failed() -> WorkflowState {
    WorkflowState::Failed { ended_at: NOW, reason: "`c1` failed: exit status 1".to_owned() }
}

#[test]
fn each_step_begins_when_the_one_before_has_succeeded() {
    let mut now = run(2);
    for at in 0..2 {
        assert_eq!(now.next(), Next::Begin);
        now = now.begin();
        let (step, workflow) = looked_at(&now);
        assert_eq!((step, &now.cause(step)), (at, &format!("runbook {} {at} 1", now.id)));
        assert_eq!(workflow, WorkflowId::derive("globex", &now.cause(step)));
        now = now.on_end(&workflow, &WorkflowState::Succeeded { ended_at: NOW }, NOW);
    }

    assert_eq!((now.next(), now.state), (Next::Nothing, RunState::Succeeded { ended_at: NOW }));
}

#[test]
fn a_step_that_fails_ends_the_run_and_is_the_first_that_runs_again() {
    let begun = run(3).begin();
    let second = begun.on_end(&looked_at(&begun).1, &WorkflowState::Succeeded { ended_at: NOW }, NOW).begin();
    let ended = second.on_end(&looked_at(&second).1, &failed(), NOW);

    assert_eq!(ended.state, RunState::Failed { ended_at: NOW });
    assert_eq!(ended.failure(), "step 2 (deploy component c1): `c1` failed: exit status 1");
    assert_eq!(ended.next(), Next::Nothing);

    let again = ended.resume(resumed("fixed")).unwrap();

    assert_eq!(again.next(), Next::Begin);
    let again = again.begin();
    let (step, workflow) = looked_at(&again);
    assert_eq!((step, again.steps[1].tries), (1, 2));
    assert_ne!(Some(&workflow), ended.steps[1].state.workflow(), "each try has a workflow of its own");
    assert_eq!(again.resumed[0].after, ended.failure());
    assert!(again.was_resumed_by("key of fixed") && !again.was_resumed_by("another"));
}

#[test]
fn what_was_refused_has_no_workflow_and_says_why() {
    let begun = run(1).begin();

    let ended = begun.on_refusal(&looked_at(&begun).1, "install `globex` is disabled", NOW);

    assert_eq!(ended.steps[0].state.workflow(), None);
    assert_eq!(ended.failure(), "step 1 (deploy component c0): install `globex` is disabled");
}

#[test]
fn a_step_that_has_nothing_to_remove_succeeds_and_long_reasons_are_cut() {
    let begun = run(1).begin();

    let done = begun.on_nothing(&looked_at(&begun).1, NOW);
    let long = begun.on_refusal(&looked_at(&begun).1, &"é".repeat(2000), NOW);

    assert_eq!(
        (&done.state, done.steps[0].state.reason()),
        (&RunState::Succeeded { ended_at: NOW }, "nothing was left to remove")
    );
    assert_eq!(long.steps[0].state.reason().chars().count(), REASON_CHARS);
}

#[test]
fn a_workflow_that_somebody_continued_to_its_end_is_not_tried_again() {
    let begun = run(1).begin();
    let workflow = looked_at(&begun).1;
    let stopped = begun.on_end(&workflow, &failed(), NOW);
    assert_eq!(stopped.stopped_by(), Some(&workflow));

    let noticed = stopped.noticing(&workflow, &WorkflowState::Succeeded { ended_at: NOW });

    assert_eq!(noticed.resume(resumed("fixed")).unwrap().state, RunState::Succeeded { ended_at: NOW });
    assert_eq!(stopped.noticing(&workflow, &failed()), stopped);
}

#[test]
fn who_resumes_a_run_asks_for_its_steps_and_passes_no_window() {
    let mut first = run(1);
    first.now = true;
    assert_eq!(first.asker(), (&AskedBy::Schedule, true));
    let begun = first.begin();

    let again = begun.on_end(&looked_at(&begun).1, &failed(), NOW).resume(resumed("fixed")).unwrap();

    assert_eq!(again.asker(), (&AskedBy::Sweep, false));
}

#[test]
fn a_cancel_ends_the_run_with_its_step_and_no_further_step_starts() {
    let begun = run(2).begin();
    let stopped = begun.cancel(&AskedBy::Schedule, NOW);
    assert_eq!((stopped.state.clone(), stopped.cancelled_by.clone()), (RunState::Running, Some(AskedBy::Schedule)));

    let workflow = looked_at(&stopped).1;
    let states = [WorkflowState::Cancelled { ended_at: NOW }, WorkflowState::Succeeded { ended_at: NOW }, failed()];
    for state in states {
        let ended = stopped.on_end(&workflow, &state, NOW);
        assert_eq!((&ended.state, ended.next()), (&RunState::Cancelled { ended_at: NOW }, Next::Nothing), "{state:?}");
    }
    assert_eq!(run(2).cancel(&AskedBy::Schedule, NOW).state, RunState::Cancelled { ended_at: NOW });
    assert_eq!(stopped.cancel(&AskedBy::Sweep, NOW), stopped, "a second cancel changes nothing");
}

#[test]
fn only_a_run_that_stopped_can_be_resumed_and_not_for_ever() {
    let begun = run(1).begin();
    let resume = |run: &Run| run.resume(resumed("because")).map(|_| ()).map_err(|error| error.to_string());
    let done = begun.on_end(&looked_at(&begun).1, &WorkflowState::Succeeded { ended_at: NOW }, NOW);
    let mut worn = begun.on_end(&looked_at(&begun).1, &failed(), NOW);
    worn.resumed = vec![resumed("because"); MAX_RESUMES];

    assert!(resume(&begun).unwrap_err().contains("has not ended; wait for it"));
    assert!(resume(&done).unwrap_err().contains("has succeeded; start a new run"));
    assert!(resume(&worn).unwrap_err().contains("was resumed 50 times already"));
}

#[test]
fn a_runbook_has_between_one_and_a_hundred_steps() {
    let of = |count: usize| {
        let step = serde_json::json!({ "does": { "type": "sandbox_provision" } });
        serde_json::from_value(serde_json::json!({ "name": "fix", "steps": vec![step; count] })).unwrap()
    };
    let refused = |count| check_steps(&of(count)).unwrap_err().to_string();

    assert!(check_steps(&of(1)).is_ok() && check_steps(&of(MAX_RUNBOOK_STEPS)).is_ok());
    assert!(refused(0).contains("has no steps") && refused(101).contains("has 101 steps"));
}

/// What happens to a run.
#[derive(Debug, Clone)]
enum Happens {
    Begin,
    End(WorkflowState),
    /// A workflow that is not the one of the running step ends.
    StaleEnd,
    Refusal,
    Cancel,
    Resume,
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        4 => Just(Happens::Begin),
        3 => Just(Happens::End(WorkflowState::Succeeded { ended_at: NOW })),
        1 => Just(Happens::End(failed())),
        1 => Just(Happens::End(WorkflowState::Cancelled { ended_at: NOW })),
        1 => Just(Happens::End(WorkflowState::Running { slots: 1 })),
        1 => Just(Happens::StaleEnd),
        1 => Just(Happens::Refusal),
        1 => Just(Happens::Cancel),
        2 => Just(Happens::Resume),
    ]
}

proptest! {
    #[test]
    fn whatever_happens_one_step_runs_at_a_time_in_order_and_what_succeeded_stays(
        count in 1..5_usize,
        all in proptest::collection::vec(happens(), 0..60),
    ) {
        let mut now = run(count);
        let mut seen = std::collections::BTreeSet::new();
        for one in all {
            let before = now.clone();
            now = match (&one, before.next()) {
                (Happens::Begin, Next::Begin) => before.begin(),
                (Happens::End(state), Next::Follow { workflow, .. }) => before.on_end(&workflow, state, NOW),
                (Happens::Refusal, Next::Follow { workflow, .. }) => before.on_refusal(&workflow, "no", NOW),
                (Happens::StaleEnd, _) => {
                    let stale = WorkflowId::derive("globex", "another");
                    let after = before.on_end(&stale, &WorkflowState::Succeeded { ended_at: NOW }, NOW);
                    prop_assert_eq!(&after, &before);
                    after
                }
                (Happens::Cancel, _) => before.cancel(&AskedBy::Schedule, NOW),
                (Happens::Resume, _) => before.resume(resumed("again")).unwrap_or(before.clone()),
                (Happens::Begin | Happens::End(_) | Happens::Refusal, _) => before.clone(),
            };
            let running = now.steps.iter().filter(|step| matches!(step.state, StepState::Running { .. })).count();
            prop_assert!(running <= 1);
            prop_assert!(running == 0 || now.state == RunState::Running);
            let first = now.steps.iter().position(|step| !matches!(step.state, StepState::Succeeded { .. }));
            let rest = now.steps.iter().skip(first.map_or(count, |at| at + 1));
            prop_assert!(rest.into_iter().all(|step| step.state == StepState::Waiting), "{now:?}");
            prop_assert_eq!(first.is_none(), matches!(now.state, RunState::Succeeded { .. }));
            for (old, new) in before.steps.iter().zip(&now.steps) {
                if matches!(old.state, StepState::Succeeded { .. }) {
                    prop_assert_eq!(old, new);
                }
                if new.tries > old.tries && let Some(workflow) = new.state.workflow() {
                    prop_assert!(seen.insert(workflow.clone()), "a workflow was begun twice");
                }
            }
        }
    }
}

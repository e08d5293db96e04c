use freehold_protocol::BuildId;
use freehold_protocol::report::{Fence, Outcome};
use proptest::prelude::*;

use super::*;
use crate::job::{JobEvent, Step};
use crate::sandbox::SandboxReads;

const NOW: Timestamp = Timestamp::from_millis(1_000);

/// Returns a deploy that has no nodes yet.
pub(crate) fn pending() -> Workflow {
    Workflow {
        id: WorkflowId::derive("globex", "test"),
        install: "globex".parse().unwrap(),
        kind: WorkflowKind::DeployComponents,
        mode: Mode::Maintenance,
        created_at: NOW,
        serial: 1,
        request: Request::deploy_latest(),
        request_digest: None,
        now: false,
        run: None,
        asked_by: None,
        version: None,
        post_deploy_runbooks: Vec::new(),
        tool_image: None,
        cancel_requested: None,
        cancelled_by: None,
        cancel_reason: String::new(),
        last_report: None,
        again: Vec::new(),
        planned_from: None,
        roll_back: RollBack::None,
        nodes: Vec::new(),
        state: WorkflowState::Pending,
        graph_of_other_version: None,
        later_fields: BTreeMap::new(),
    }
}

pub(crate) fn node(name: &str, dependencies: &[&str]) -> Node {
    Node {
        name: name.into(),
        target: Target::Action { action: name.parse().unwrap(), directories: Vec::new() },
        dependencies: dependencies.iter().map(ToString::to_string).collect(),
        timeout_secs: 60,
        serial: 1,
        runs_as: None,
        retries: 0,
        retried: 0,
        earlier: 0,
        state: NodeState::Waiting,
    }
}

fn end(job: &Job, succeeds: bool) -> Job {
    let outcome = if succeeds {
        Outcome::Succeeded { outputs: BTreeMap::new(), sensitive: Default::default(), artifact: None }
    } else {
        Outcome::Failed { reason: "exit status 1".into(), partial: false }
    };
    let runner = serde_json::from_value("a".into()).unwrap();
    let event = JobEvent::finished(Fence { dispatch: 1, receive: 1 }, runner, outcome);
    match job.on(&event, NOW) {
        Ok(Step::Changed { job, .. }) => *job,
        other => panic!("{other:?}"),
    }
}

fn names(jobs: &[Job]) -> Vec<&str> {
    jobs.iter().map(|job| job.node.as_str()).collect()
}

#[test]
fn a_component_starts_the_moment_its_last_dependency_ends() {
    let graph = vec![node("a", &[]), node("b", &[]), node("c", &["a", "b"]), node("d", &["a"])];
    let started = pending().start(graph, 9, NOW).unwrap();
    assert_eq!(names(&started.jobs), ["a", "b"]);

    let after_a = started.workflow.on_job(&end(&started.jobs[0], true), NOW).unwrap();
    let after_b = after_a.workflow.on_job(&end(&started.jobs[1], true), NOW).unwrap();

    assert_eq!(names(&after_a.jobs), ["d"]);
    assert_eq!(names(&after_b.jobs), ["c"]);
}

#[test]
fn the_runs_of_one_action_have_groups_of_their_own_about_the_same_thing() {
    let run = |name: &str| Node { name: name.into(), ..node("check", &[]) };
    let started = pending().start(vec![run("action:check@a"), run("action:check@b")], 9, NOW).unwrap();
    let by_hand = Workflow { kind: WorkflowKind::RunAction, ..pending() };
    let by_hand = by_hand.start(vec![node("check", &[])], 9, NOW).unwrap();

    let groups: Vec<&str> = started.jobs.iter().chain(&by_hand.jobs).map(|job| job.group.as_str()).collect();

    assert_eq!(groups, ["action:check.1", "action:check.2", "action:check"]);
    assert!(started.jobs.iter().all(|job| job.group.thing() == "action:check"));
}

#[test]
fn a_failure_stops_its_dependents_only() {
    let graph = vec![node("a", &[]), node("b", &[]), node("c", &["a"]), node("d", &["c"]), node("e", &["b"])];
    let started = pending().start(graph, 9, NOW).unwrap();

    let after_a = started.workflow.on_job(&end(&started.jobs[0], false), NOW).unwrap();
    let after_b = after_a.workflow.on_job(&end(&started.jobs[1], true), NOW).unwrap();

    assert_eq!(after_a.workflow.nodes[3].state, NodeState::not_reached("`a` failed"));
    assert_eq!(names(&after_b.jobs), ["e"]);
}

#[test]
fn a_second_report_of_the_same_end_starts_nothing() {
    let started = pending().start(vec![node("a", &[]), node("b", &["a"])], 9, NOW).unwrap();
    let ended = end(&started.jobs[0], true);
    let once = started.workflow.on_job(&ended, NOW).unwrap();

    let twice = once.workflow.on_job(&ended, NOW).unwrap();

    assert!(!twice.changed && twice.jobs.is_empty());
}

#[test]
fn no_more_jobs_run_than_the_runner_has_slots() {
    let started = pending().start(vec![node("a", &[]), node("b", &[]), node("c", &[])], 2, NOW).unwrap();
    assert_eq!(names(&started.jobs), ["a", "b"]);

    let next = started.workflow.on_job(&end(&started.jobs[1], true), NOW).unwrap();

    assert_eq!(names(&next.jobs), ["c"]);
}

#[test]
fn a_cancelled_workflow_starts_nothing_more_and_ends_cancelled() {
    let started = pending().start(vec![node("a", &[]), node("b", &["a"])], 9, NOW).unwrap();
    let cancelled = started.workflow.cancel(&AskedBy::Sweep, NOW).workflow;

    let settled = cancelled.on_job(&end(&started.jobs[0], true), NOW).unwrap();
    let finished = settled.workflow.finish(None, NOW).workflow;

    assert!(settled.jobs.is_empty() && settled.workflow.is_settled());
    assert_eq!(finished.state, WorkflowState::Cancelled { ended_at: NOW });
}

#[test]
fn a_cancel_that_stopped_nothing_leaves_the_end_as_it_was() {
    let started = pending().start(vec![node("a", &[])], 9, NOW).unwrap();
    let finished = |succeeds: bool| {
        let settled = started
            .workflow
            .cancel(&AskedBy::Sweep, NOW)
            .workflow
            .on_job(&end(&started.jobs[0], succeeds), NOW)
            .unwrap();
        settled.workflow.finish(None, NOW).workflow.state
    };

    assert_eq!(finished(true), WorkflowState::Succeeded { ended_at: NOW });
    assert_eq!(finished(false), WorkflowState::Failed { ended_at: NOW, reason: "`a` failed: exit status 1".into() });
    assert_eq!(pending().cancel(&AskedBy::Sweep, NOW).workflow.finish(None, NOW).workflow.state.as_str(), "cancelled");
}

#[test]
fn inputs_are_restored_only_while_no_job_was_made() {
    let former = BTreeMap::from([("days".to_owned(), Value::Null)]);
    let mut changed = pending();
    if let Request::Deploy { former_inputs, .. } = &mut changed.request {
        former_inputs.clone_from(&former);
    }
    let started = changed.start(vec![node("a", &[])], 9, NOW).unwrap();

    let ended = |workflow: &Workflow, error| workflow.finish(error, NOW).workflow;

    assert_eq!(ended(&changed, Some("no artifact")).inputs_to_restore(), Some(&former));
    assert_eq!(ended(&changed.cancel(&AskedBy::Sweep, NOW).workflow, None).inputs_to_restore(), Some(&former));
    assert_eq!(ended(&changed, None).inputs_to_restore(), None, "nothing had to run, and the deploy succeeded");
    assert_eq!(ended(&started.workflow, Some("timed out")).inputs_to_restore(), None);
    assert_eq!(ended(&changed, Some("x")).without_former_inputs().inputs_to_restore(), None);
}

#[test]
fn an_error_of_the_state_machine_ends_the_workflow_as_failed_whatever_its_nodes_say() {
    let started = pending().start(vec![node("a", &[])], 9, NOW).unwrap();

    let finished = started.workflow.finish(Some("the run phase timed out"), NOW).workflow;

    assert_eq!(finished.state, WorkflowState::Failed { ended_at: NOW, reason: "the run phase timed out".into() });
}

#[test]
fn a_workflow_that_is_cancelled_while_it_is_pending_ends_as_cancelled() {
    let asked = pending().cancel(&AskedBy::Sweep, NOW).workflow;

    assert_eq!(asked.finish(Some("no answer"), NOW).workflow.state, WorkflowState::Cancelled { ended_at: NOW });
    assert_eq!(pending().finish(Some("no answer"), NOW).workflow.state.as_str(), "failed");
}

#[test]
fn an_invalid_graph_is_refused() {
    let cycle = pending().start(vec![node("a", &["b"]), node("b", &["a"])], 1, NOW).unwrap_err();
    let unknown = pending().start(vec![node("a", &["zz"])], 1, NOW).unwrap_err();
    let twice = pending().start(vec![node("a", &[]), node("a", &[])], 1, NOW).unwrap_err();

    assert_eq!(cycle.to_string(), "`a` depends on itself through other nodes");
    assert_eq!(unknown.to_string(), "node `a` depends on `zz`, which is not part of the workflow");
    assert_eq!(twice.to_string(), "two nodes are called `a`");
}

/// Returns what `job`, as it was queued last, becomes by this outcome.
fn ended_by(job: &Job, outcome: Outcome) -> Job {
    let runner = serde_json::from_value("a".into()).unwrap();
    let fence = Fence { dispatch: job.state.dispatch(), receive: 1 };
    match job.on(&JobEvent::finished(fence, runner, outcome), NOW) {
        Ok(Step::Changed { job, .. }) => *job,
        other => panic!("{other:?}"),
    }
}

fn failed() -> Outcome {
    Outcome::Failed { reason: "exit status 1".into(), partial: true }
}

#[test]
fn a_failed_job_is_dispatched_again_until_its_retries_are_used() {
    let graph = vec![Node { retries: 2, ..node("a", &[]) }, node("b", &["a"])];
    let started = pending().start(graph, 9, NOW).unwrap();

    let (once, second) = started.workflow.retry(&ended_by(&started.jobs[0], failed()), NOW).unwrap();
    let (twice, third) = once.retry(&ended_by(&second, failed()), NOW).unwrap();
    let ended = ended_by(&third, failed());

    assert_eq!((second.state.dispatch(), third.state.dispatch(), &third.id), (2, 3, &started.jobs[0].id));
    assert_eq!((once.dispatch_of(&second.id), twice.dispatch_of(&third.id)), (2, 3));
    assert_eq!((twice.retry(&ended, NOW), twice.nodes[0].retried), (None, 2));
    assert_eq!(twice.on_job(&ended, NOW).unwrap().workflow.nodes[1].state.as_str(), "skipped");
}

#[test]
fn an_outcome_that_is_reported_after_the_loss_changes_the_reason_of_its_node_only() {
    let graph = vec![node("a", &[]), node("b", &["a"])];
    let started = pending().start(graph, 9, NOW).unwrap();
    let job = &started.jobs[0];
    let late = job.not_after.plus_secs(freehold_protocol::limits::LOST_GRACE_SECS);
    let Ok(Step::Changed { job: lost, .. }) = job.on(&JobEvent::Expire, late) else { panic!("the job was not lost") };
    let without = started.workflow.on_job(&lost, late).unwrap().workflow;

    let ended = end(&lost, true);
    let with = without.on_job(&ended, late).unwrap();
    let again = with.workflow.on_job(&ended, late).unwrap();

    let states =
        |workflow: &Workflow| workflow.nodes.iter().map(|node| node.state.as_str().to_owned()).collect::<Vec<_>>();
    assert_eq!(states(&without), ["lost", "skipped"]);
    assert_eq!((states(&with.workflow), names(&with.jobs).len(), with.changed), (states(&without), 0, true));
    let Some(reason) = with.workflow.failure() else { panic!("the workflow did not fail") };
    assert_eq!(
        reason,
        "`a` lost: was lost at 1970-01-01T01:03:01.000Z, the report of its end came at 1970-01-01T00:00:01.000Z; the \
         state of the job is succeeded"
    );
    assert!(!again.changed);
}

#[test]
fn only_a_failure_is_retried_and_nothing_after_a_cancel() {
    let started = pending().start(vec![Node { retries: 2, ..node("a", &[]) }], 9, NOW).unwrap();
    let (workflow, job) = (&started.workflow, &started.jobs[0]);
    let done = Outcome::Succeeded { outputs: BTreeMap::new(), sensitive: Default::default(), artifact: None };
    let lost = Job { state: JobState::Lost { dispatch: 1, ended_at: NOW, attempt: None }, ..job.clone() };

    assert_eq!(workflow.retry(&ended_by(job, done), NOW), None);
    assert_eq!(workflow.retry(&lost, NOW), None);
    assert_eq!(workflow.cancel(&AskedBy::Sweep, NOW).workflow.retry(&ended_by(job, failed()), NOW), None);
    assert!(workflow.retry(&ended_by(job, Outcome::Interrupted { reason: "died".into() }), NOW).is_some());
}

prop_compose! {
    /// Nodes that depend on earlier ones only.
    fn graph()(edges in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 0..4), 1..14)) -> Vec<Node> {
        edges.iter().enumerate().map(|(at, picks)| {
            let names: Vec<_> = picks.iter().filter(|_| at > 0).map(|pick| format!("n{}", pick.index(at))).collect();
            node(&format!("n{at}"), &names.iter().map(String::as_str).collect::<Vec<_>>())
        }).collect()
    }
}

proptest! {
    #[test]
    fn on_any_graph_nothing_starts_twice_or_early_and_everything_ends(
        graph in graph(),
        slots in 1u32..5,
        order in prop::collection::vec((any::<prop::sample::Index>(), prop::bool::weighted(0.8)), 14),
    ) {
        let mut started = BTreeSet::new();
        let mut succeeded = BTreeSet::new();
        let mut failed = BTreeSet::new();
        let advance = pending().start(graph.clone(), slots, NOW).unwrap();
        let (mut workflow, mut running) = (advance.workflow, advance.jobs.clone());
        started.extend(advance.jobs.iter().map(|job| job.node.clone()));

        for (pick, succeeds) in order {
            if running.is_empty() { break; }
            prop_assert!(running.len() <= slots as usize);
            let ended = end(&running.remove(pick.index(running.len())), succeeds);
            if succeeds { succeeded.insert(ended.node.clone()); } else { failed.insert(ended.node.clone()); }
            let advance = workflow.on_job(&ended, NOW).unwrap();
            for job in &advance.jobs {
                prop_assert!(started.insert(job.node.clone()), "{} started twice", job.node);
                let node = graph.iter().find(|node| node.name == job.node).unwrap();
                prop_assert!(node.dependencies.is_subset(&succeeded), "{} started early", job.node);
            }
            running.extend(advance.jobs);
            workflow = advance.workflow;
            let ready = graph.iter().filter(|n| !started.contains(&n.name) && n.dependencies.is_subset(&succeeded)).count();
            prop_assert!(ready == 0 || running.len() == slots as usize, "a ready node waits beside a free slot");
        }

        prop_assert!(workflow.is_settled());
        for node in &workflow.nodes {
            let doomed = ancestors(&graph, &node.name).iter().any(|name| failed.contains(name));
            prop_assert_eq!(matches!(node.state, NodeState::Skipped { .. }), doomed, "{}", node.name);
        }
    }
}

fn ancestors(graph: &[Node], name: &str) -> BTreeSet<String> {
    let node = graph.iter().find(|node| node.name == name).unwrap();
    let mut all = node.dependencies.clone();
    for dependency in &node.dependencies {
        all.extend(ancestors(graph, dependency));
    }
    all
}

#[test]
fn a_sandbox_without_an_output_that_a_component_requires_refuses_it_before_it_starts() {
    let required: BTreeSet<String> = ["vpc".to_owned()].into();
    let digest = freehold_protocol::Digest::of(b"x");
    let build = BuildId::derive(&"demo".parse().unwrap(), &digest, &"web".parse().unwrap());
    let (artifact, fingerprint) = (digest.clone(), digest);
    let mut sandbox = node("sandbox", &[]);
    sandbox.target =
        Target::Sandbox { build: build.clone(), artifact: artifact.clone(), fingerprint: fingerprint.clone() };
    let mut web = node("web", &["sandbox"]);
    let sandbox_reads = SandboxReads { outputs: required.clone(), required };
    web.target =
        Target::Component { component: "web".parse().unwrap(), build, artifact, fingerprint, sandbox: sandbox_reads };
    let nodes = vec![sandbox, web, node("site", &["sandbox"]), node("after-web", &["web"])];
    let Advance { workflow, jobs, .. } = pending().start(nodes, 3, NOW).unwrap();

    let Advance { workflow, jobs, .. } = workflow.on_job(&end(&jobs[0], true), NOW).unwrap();
    let ended = workflow.on_job(&end(&jobs[0], true), NOW).unwrap().workflow.finish(None, NOW).workflow;

    let states: Vec<&str> = workflow.nodes.iter().map(|node| node.state.as_str()).collect();
    assert_eq!(names(&jobs), ["site"]);
    assert_eq!(states, ["succeeded", "refused", "active", "skipped"]);
    let WorkflowState::Failed { reason, .. } = ended.state else { panic!("{:?}", ended.state) };
    assert!(reason.starts_with("`web` refused: component `web` reads output `vpc` of the sandbox"), "{reason}");
}

proptest! {
    #[test]
    fn a_node_is_dispatched_once_and_once_more_for_each_retry_and_ends_as_its_last_dispatch(
        retries in 0_u32..20,
        outcomes in prop::collection::vec(prop::bool::weighted(0.2), 30),
    ) {
        let started = pending().start(vec![Node { retries, ..node("a", &[]) }], 9, NOW).unwrap();
        let (mut workflow, mut job) = (started.workflow, started.jobs[0].clone());
        let mut dispatches = 1;

        for succeeds in outcomes {
            let outcome = if succeeds { Outcome::Succeeded { outputs: BTreeMap::new(), sensitive: Default::default(), artifact: None } } else { failed() };
            let ended = ended_by(&job, outcome);
            prop_assert_eq!(workflow.dispatch_of(&job.id), dispatches);
            let Some((next, again)) = workflow.retry(&ended, NOW) else {
                let end = workflow.on_job(&ended, NOW).unwrap().workflow;
                prop_assert!(end.is_settled());
                prop_assert_eq!(end.nodes[0].state.as_str(), ended.state.as_str());
                break;
            };
            (workflow, job) = (next, again);
            dispatches += 1;
        }

        prop_assert!(dispatches <= 1 + retries.min(MAX_RETRIES));
        prop_assert!(workflow.nodes[0].retried < dispatches);
    }
}

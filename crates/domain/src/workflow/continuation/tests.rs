use std::collections::BTreeMap;

use freehold_protocol::Digest;
use freehold_protocol::report::{Fence, Outcome};
use proptest::prelude::*;

use super::*;
use crate::job::{Job, JobEvent, Step};
use crate::workflow::Advance;
use crate::workflow::tests::{node, pending};

const NOW: Timestamp = Timestamp::from_millis(1_000);

/// A workflow with its jobs, whose runner ends each job as it is told.
#[derive(Debug, Clone)]
struct Story {
    workflow: Workflow,
    jobs: BTreeMap<JobId, Job>,
    /// The nodes whose jobs were dispatched, in order.
    ran: Vec<String>,
}

impl Story {
    fn start(nodes: Vec<Node>, slots: u32) -> Self {
        let mut story = Self { workflow: pending(), jobs: BTreeMap::new(), ran: Vec::new() };
        story.take(pending().start(nodes, slots, NOW).unwrap());
        story
    }

    fn take(&mut self, advance: Advance) {
        for job in advance.jobs {
            self.ran.push(job.node.clone());
            assert!(self.jobs.insert(job.id.clone(), job).is_none(), "a job was made twice");
        }
        for id in advance.again {
            let event = JobEvent::Resume { why: "why".into() };
            let Ok(Step::Changed { job, .. }) = self.jobs[&id].on(&event, NOW) else { panic!("{id} cannot run again") };
            self.ran.push(job.node.clone());
            self.jobs.insert(id, *job);
        }
        self.workflow = advance.workflow;
    }

    /// Ends the jobs of all active nodes, one after the other, until the workflow has ended.
    fn run(&mut self, succeeds: impl Fn(&str) -> bool) {
        loop {
            let Some(id) = self.workflow.active_jobs().next().cloned() else { break };
            let job = &self.jobs[&id];
            let outcome = if succeeds(&job.node) {
                Outcome::Succeeded { outputs: BTreeMap::new(), sensitive: BTreeMap::new(), artifact: None }
            } else {
                Outcome::Failed { reason: "exit status 1".into(), partial: false }
            };
            let fence = Fence { dispatch: job.state.dispatch(), receive: 1 };
            assert_eq!(self.workflow.dispatch_of(&id), fence.dispatch, "the message names another dispatch");
            let event = JobEvent::finished(fence, serde_json::from_value("a".into()).unwrap(), outcome);
            let Ok(Step::Changed { job, .. }) = job.on(&event, NOW) else { panic!("{id} cannot end") };
            self.jobs.insert(id, (*job).clone());
            let advance = self.workflow.on_job(&job, NOW).unwrap();
            self.take(advance);
        }
        self.workflow = self.workflow.finish(None, NOW).workflow;
    }

    fn continue_by(&mut self, act: Act, slots: u32) -> Result<(), ContinuationError> {
        self.workflow = self.workflow.continued(again(act), &BTreeSet::new())?;
        let nodes = self.workflow.nodes.clone();
        self.take(self.workflow.start(nodes, slots, NOW).unwrap());
        Ok(())
    }

    fn states(&self) -> Vec<&str> {
        self.workflow.nodes.iter().map(|node| node.state.as_str()).collect()
    }
}

fn again(act: Act) -> Again {
    let (by, key) = (AskedBy::Sweep, Digest::of(b"key"));
    let (ended_as, ended_reason) = ("failed".into(), "`a` failed".into());
    Again { act, by, reason: "the network was down".into(), at: NOW, key, ended_as, ended_reason }
}

fn retry(node: &str) -> Act {
    Act::Retry { node: node.into() }
}

fn skip(node: &str) -> Act {
    Act::Skip { node: node.into() }
}

#[test]
fn a_resume_runs_what_failed_and_what_was_not_reached_and_nothing_else() {
    let graph = vec![node("a", &[]), node("b", &["a"]), node("c", &["b"]), node("d", &[])];
    let mut story = Story::start(graph, 9);
    story.run(|name| name != "b");
    assert_eq!(story.states(), ["succeeded", "failed", "skipped", "succeeded"]);

    story.continue_by(Act::Resume, 9).unwrap();
    story.run(|_| true);

    assert_eq!(story.ran, ["a", "d", "b", "b", "c"]);
    assert_eq!(story.workflow.state, WorkflowState::Succeeded { ended_at: NOW });
    assert_eq!(story.workflow.again[0].why(), "resumed: the network was down");
}

#[test]
fn a_retry_leaves_other_failed_nodes_as_they_are() {
    let graph = vec![node("a", &[]), node("b", &[]), node("after-a", &["a"]), node("both", &["a", "b"])];
    let mut story = Story::start(graph, 9);
    story.run(|_| false);

    story.continue_by(retry("a"), 9).unwrap();
    story.run(|_| true);

    assert_eq!(story.states(), ["succeeded", "failed", "succeeded", "skipped"]);
    assert_eq!(story.workflow.state.as_str(), "failed");
    assert_eq!(story.workflow.nodes[3].state, NodeState::not_reached("`b` failed"));
}

#[test]
fn what_the_plan_left_out_never_runs() {
    let idle = Node { state: NodeState::Skipped { because: "`c` is off".into(), left_out: true }, ..node("idle", &[]) };
    let mut story = Story::start(vec![node("a", &[]), idle], 9);
    story.run(|_| false);

    story.continue_by(Act::Resume, 9).unwrap();
    story.run(|_| true);

    assert_eq!(story.ran, ["a", "a"]);
    assert_eq!((story.states(), story.workflow.state.as_str()), (vec!["succeeded", "skipped"], "succeeded"));
}

#[test]
fn a_retry_is_no_success_while_another_node_was_not_reached() {
    let mut story = Story::start(vec![node("a", &[]), node("b", &[])], 1);
    story.workflow = story.workflow.cancel(&AskedBy::Sweep, NOW).workflow;
    story.run(|_| false);
    assert_eq!(story.states(), ["failed", "skipped"]);

    story.continue_by(retry("a"), 9).unwrap();
    story.run(|_| true);

    let WorkflowState::Failed { reason, .. } = &story.workflow.state else { panic!("{:?}", story.workflow.state) };
    assert!(reason.contains("`b` was not reached; run it with `freehold workflow resume"), "{reason}");
    story.continue_by(Act::Resume, 9).unwrap();
    story.run(|_| true);
    assert_eq!(story.workflow.state.as_str(), "succeeded");
}

#[test]
fn a_skipped_node_lets_its_dependents_continue_and_says_who_and_why() {
    let graph = vec![node("a", &[]), node("b", &["a"])];
    let mut story = Story::start(graph, 9);
    story.run(|_| false);

    story.continue_by(skip("a"), 9).unwrap();
    story.run(|_| true);

    assert_eq!(story.states(), ["skipped", "succeeded"]);
    let by_request = NodeState::SkippedByRequest { by: AskedBy::Sweep, reason: "the network was down".into() };
    assert_eq!(story.workflow.nodes[0].state, by_request);
    assert_eq!(story.workflow.state.as_str(), "succeeded");
    assert!(story.workflow.has_skipped());
}

#[test]
fn a_cancelled_workflow_is_resumed_without_its_cancel() {
    let mut story = Story::start(vec![node("a", &[]), node("b", &["a"])], 9);
    story.workflow = story.workflow.cancel(&AskedBy::Sweep, NOW).workflow;
    story.run(|_| false);

    story.continue_by(Act::Resume, 9).unwrap();
    story.run(|_| true);

    assert_eq!((story.workflow.cancel_requested, &story.workflow.cancelled_by), (None, &None));
    assert_eq!(story.states(), ["succeeded", "succeeded"]);
}

#[test]
fn a_workflow_that_runs_succeeded_or_has_an_open_job_is_not_continued() {
    let mut story = Story::start(vec![node("a", &[])], 9);
    let running = story.clone().continue_by(Act::Resume, 9).unwrap_err();
    let mut cut = story.clone();
    cut.workflow = cut.workflow.finish(Some("the state machine failed"), NOW).workflow;
    let open = cut.continue_by(Act::Resume, 9).unwrap_err();
    story.run(|_| true);

    let succeeded = story.continue_by(Act::Resume, 9).unwrap_err();

    assert!(matches!(running, ContinuationError::NotEnded(_)), "{running}");
    assert!(matches!(open, ContinuationError::JobOpen { .. }), "{open}");
    assert!(matches!(succeeded, ContinuationError::Succeeded(_)), "{succeeded}");
}

#[test]
fn a_workflow_of_another_kind_or_without_nodes_names_what_starts_another_one() {
    let ended = pending().finish(Some("no"), NOW).workflow;
    let run = Workflow { kind: WorkflowKind::RunAction, ..ended.clone() };

    let of = |workflow: &Workflow| workflow.continued(again(Act::Resume), &BTreeSet::new()).unwrap_err().to_string();

    assert!(of(&ended).ends_with("start another one with `freehold deploy globex`"), "{}", of(&ended));
    assert!(of(&run).ends_with("start another one with `freehold action run globex ACTION`"), "{}", of(&run));
}

#[test]
fn a_workflow_is_not_continued_for_ever() {
    let mut story = Story::start(vec![node("a", &[])], 9);
    story.run(|_| false);
    for _ in 0..MAX_CONTINUED {
        story.continue_by(Act::Resume, 9).unwrap();
        story.run(|_| false);
    }

    let refused = story.continue_by(Act::Resume, 9).unwrap_err();

    assert!(matches!(refused, ContinuationError::TooOften { .. }), "{refused}");
    assert_eq!(story.ran.len(), MAX_CONTINUED + 1);
}

#[test]
fn only_a_failed_node_is_retried_or_skipped() {
    let mut story = Story::start(vec![node("a", &[]), node("b", &["a"]), node("c", &[])], 9);
    story.run(|name| name == "c");

    let refused = |act: Act| story.clone().continue_by(act, 9).unwrap_err().to_string();

    assert!(refused(retry("b")).ends_with("is skipped; only a node whose job failed can be retried"));
    assert!(refused(skip("c")).ends_with("is succeeded; only a node whose job failed can be skipped"));
    assert!(refused(skip("x")).contains("has no node `x`"));
}

#[test]
fn a_component_is_skipped_only_if_nothing_reads_outputs_that_were_never_made() {
    let digest = Digest::of(b"x");
    let build = freehold_protocol::BuildId::derive(&"demo".parse().unwrap(), &digest, &"db".parse().unwrap());
    let target = Target::Component {
        component: "db".parse().unwrap(),
        build,
        artifact: digest.clone(),
        fingerprint: digest,
        sandbox: crate::sandbox::SandboxReads::default(),
    };
    let db = Node { target, ..node("db", &[]) };
    let ended = |nodes: Vec<Node>| {
        let mut story = Story::start(nodes, 9);
        story.run(|_| false);
        story.workflow
    };
    let (read, unread) = (ended(vec![db.clone(), node("web", &["db"])]), ended(vec![db]));
    let deployed = BTreeSet::from(["db".parse().unwrap()]);

    let refused = read.continued(again(skip("db")), &BTreeSet::new()).unwrap_err().to_string();

    assert!(refused.ends_with("`db` was never deployed in this install, so it has no outputs for `web` to read"));
    assert!(read.continued(again(skip("db")), &deployed).is_ok());
    assert!(unread.continued(again(skip("db")), &BTreeSet::new()).is_ok());
}

#[test]
fn a_removal_is_never_skipped() {
    let target = Target::Teardown {
        part: "db".parse().unwrap(),
        version: Digest::of(b"v"),
        build: None,
        artifact: Digest::of(b"a"),
        sandbox: false,
    };
    let mut story = Story::start(vec![Node { target, ..node("remove", &[]) }], 9);
    story.run(|_| false);

    let refused = story.continue_by(skip("remove"), 9).unwrap_err().to_string();

    assert!(refused.contains("it may still use what the next nodes remove"), "{refused}");
}

/// Returns graphs of up to eight nodes, each of which depends on some nodes before it.
fn graphs() -> impl Strategy<Value = Vec<Node>> {
    prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 0..3), 1..8).prop_map(|all| {
        let named = all.iter().enumerate().map(|(at, dependencies)| {
            let before: BTreeSet<String> =
                dependencies.iter().filter(|_| at > 0).map(|index| format!("n{}", index.index(at))).collect();
            Node { dependencies: before, ..node(&format!("n{at}"), &[]) }
        });
        named.collect()
    })
}

proptest! {
    #[test]
    fn whatever_is_continued_nothing_that_succeeded_runs_again_and_everything_ends(
        graph in graphs(),
        slots in 1_u32..4,
        rounds in prop::collection::vec((0_u8..3, any::<prop::sample::Index>(), prop::collection::vec(any::<bool>(), 8)), 0..6),
    ) {
        let names: Vec<String> = graph.iter().map(|node| node.name.clone()).collect();
        let mut story = Story::start(graph, slots);
        story.run(|name| name != "n0");
        for (act, index, fails) in rounds {
            let name = index.get(&names);
            let done: Vec<String> = story.workflow.nodes.iter().filter(|node| node.state.is_done()).map(|node| node.name.clone()).collect();
            let before = story.ran.len();
            let act = match act { 0 => Act::Resume, 1 => retry(name), _ => skip(name) };
            if story.continue_by(act, slots).is_err() {
                continue;
            }
            story.run(|name| !fails[names.iter().position(|one| one == name).unwrap()]);
            prop_assert!(story.ran[before..].iter().all(|name| !done.contains(name)));
            prop_assert!(story.workflow.state.is_terminal() && story.workflow.active_jobs().next().is_none());
            prop_assert!(story.workflow.nodes.iter().all(|node| node.state.is_terminal()));
        }
        if story.continue_by(Act::Resume, slots).is_ok() {
            story.run(|_| true);
        }
        prop_assert!(story.workflow.nodes.iter().all(|node| node.state.is_done()), "{:?}", story.states());
    }
}

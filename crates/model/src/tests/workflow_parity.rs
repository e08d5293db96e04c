//! The model's workflow, with the jobs of its nodes, and its install give the same answers as the domain's.

use std::collections::{BTreeMap, BTreeSet};

use freehold_domain::install::{Install, Serves};
use freehold_domain::job::{CancelAsked, Job, JobEvent, JobState, Step};
use freehold_domain::workflow::{self as real, RollBack, RolledBack, Target, WorkflowState};
use freehold_protocol::order::AskedBy;
use freehold_protocol::report::{Block, Fence, Outcome};
use freehold_protocol::{Digest, JobId, Timestamp, WorkflowId};
use proptest::prelude::*;
use serde_json::json;
use stateright::Model as _;

use crate::bug::Seed;
use crate::workflow::install::{self, Who};
use crate::workflow::nodes::{Act, End, Graph, NODES, NodeState, Part, State, Workflow};
use crate::workflow::world::{Action, DISPATCHES, SERIAL, Space, World};

/// Something that happens to the workflow.
#[derive(Debug, Clone, Copy)]
enum Event {
    Start,
    Report { node: usize, end: End, is_interrupted: bool },
    Expire { node: usize },
    CancelJob { node: usize },
    Cancel,
    Finish { has_error: bool },
    Continue(Act),
    Follow(Part),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let node = || 0..NODES;
    let end = prop_oneof![
        4 => Just(End::Succeeded),
        4 => Just(End::Failed),
        1 => Just(End::Blocked),
        1 => Just(End::Cancelled),
    ];
    let act = prop_oneof![Just(Act::Resume), node().prop_map(Act::Retry), node().prop_map(Act::Skip)];
    let follow = prop_oneof![Just(Part::RolledBack), Just(Part::Refused)];
    let report = (node(), end, any::<bool>()).prop_map(|(node, end, is_interrupted)| Event::Report {
        node,
        end,
        is_interrupted,
    });
    let event = prop_oneof![
        4 => Just(Event::Start),
        12 => report,
        2 => node().prop_map(|node| Event::Expire { node }),
        1 => node().prop_map(|node| Event::CancelJob { node }),
        1 => Just(Event::Cancel),
        4 => any::<bool>().prop_map(|has_error| Event::Finish { has_error }),
        4 => act.prop_map(Event::Continue),
        1 => follow.prop_map(Event::Follow),
    ];
    prop::collection::vec(event, 1..60)
}

fn graphs() -> impl Strategy<Value = Graph> {
    let needs = (0..2_u8, 0..4_u8).prop_map(|(second, third)| [0, second, third]);
    (needs, prop::array::uniform3(0..3_u8), 1..4_u8).prop_map(|(needs, retries, slots)| Graph { needs, retries, slots })
}

/// What the model and the domain must say of the same workflow. Its part in a roll back is compared by what has to follow.
#[derive(Debug, PartialEq)]
struct View {
    /// The state of each node, its retries, and the dispatches of its job before the last continuation.
    nodes: Vec<(NodeState, u32, u32)>,
    state: State,
    is_cancelled: bool,
    attempt: u32,
    is_settled: bool,
    is_to_roll_back: bool,
    /// The dispatch and the end of each job.
    jobs: Vec<(u32, Option<End>)>,
}

/// The domain's workflow with the jobs of its nodes, used as the functions use them.
struct Real {
    workflow: real::Workflow,
    jobs: [Option<Job>; NODES],
    now: Timestamp,
}

fn before() -> real::Before {
    serde_json::from_value(json!({ "version": Digest::of(b"v1") })).unwrap()
}

fn name(node: usize) -> String {
    format!("n{node}")
}

impl Real {
    fn new(graph: Graph, part: Part) -> Self {
        let mut workflow: real::Workflow = serde_json::from_value(json!({
            "id": WorkflowId::derive("globex", "model"), "install": "globex", "kind": "deploy-components",
            "mode": "maintenance", "created_at": Timestamp::default(), "serial": SERIAL,
            "request": real::Request::deploy_latest(), "nodes": [], "state": { "state": "pending" },
        }))
        .unwrap();
        workflow.roll_back = match part {
            Part::None => RollBack::None,
            Part::Of => RollBack::Of { workflow: workflow.id.clone(), reason: String::new() },
            Part::Verified | Part::RolledBack | Part::Refused => {
                RollBack::Verified { before: Box::new(before()), followed: None }
            }
        };
        workflow.nodes = (0..NODES)
            .map(|node| {
                let target = Target::Action { action: name(node).parse().unwrap(), directories: Vec::new() };
                let dependencies = graph.needs(node).map(name).collect();
                let retries = graph.retries[node].into();
                real::Node { dependencies, retries, ..real::Node::waiting(name(node), target, 60) }
            })
            .collect();
        Self { workflow, jobs: [const { None }; NODES], now: Timestamp::from_millis(1_000) }
    }

    /// As `start_jobs` of `crates/app` does.
    fn take(&mut self, advance: real::Advance) {
        let real::Advance { workflow, mut jobs, mut again, .. } = advance;
        self.workflow = workflow;
        while let Some(id) = again.pop() {
            let node = self.node_of(&id);
            let job = self.jobs[node].clone().unwrap();
            if let JobState::Succeeded { .. } = job.state {
                let next = self.workflow.on_job(&job, self.now).unwrap();
                self.workflow = next.workflow;
                jobs.extend(next.jobs);
                again.extend(next.again);
                continue;
            }
            let Ok(Step::Changed { job, .. }) = job.on(&JobEvent::Resume { why: "why".into() }, self.now) else {
                panic!("{id} cannot run again");
            };
            self.jobs[node] = Some(*job);
        }
        for job in jobs {
            let node = self.node_of(&job.id);
            assert!(self.jobs[node].is_none(), "a job was made twice");
            self.jobs[node] = Some(job);
        }
    }

    fn node_of(&self, id: &JobId) -> usize {
        (0..NODES).find(|node| JobId::derive(&self.workflow.id, &name(*node)) == *id).unwrap()
    }

    /// As `job_event` of `crates/app` does.
    fn job_event(&mut self, node: usize, event: &JobEvent) {
        let Some(job) = &self.jobs[node] else { return };
        let Ok(Step::Changed { job, .. }) = job.on(event, self.now) else { return };
        self.jobs[node] = Some((*job).clone());
        if !job.state.is_terminal() {
            return;
        }
        if let Some((workflow, again)) = self.workflow.retry(&job, self.now) {
            self.workflow = workflow;
            self.jobs[node] = Some(again);
            return;
        }
        let advance = self.workflow.on_job(&job, self.now).unwrap();
        self.take(advance);
    }

    fn cancel_active(&mut self) {
        let active: Vec<JobId> = self.workflow.active_jobs().cloned().collect();
        for id in active {
            self.job_event(self.node_of(&id), &JobEvent::Cancel(CancelAsked::default()));
        }
    }

    fn perform(&mut self, event: Event, slots: u8) {
        self.now = self.now.plus_secs(1);
        match event {
            Event::Start => {
                let has_nothing_to_run = self.workflow.nodes.iter().all(|node| node.state.is_terminal());
                let is_pending = self.workflow.state == WorkflowState::Pending;
                if is_pending && self.workflow.cancel_requested.is_none() && !has_nothing_to_run {
                    let nodes = self.workflow.nodes.clone();
                    self.take(self.workflow.start(nodes, slots.into(), self.now).unwrap());
                }
            }
            Event::Report { node, end, is_interrupted } => {
                let dispatch = self.jobs[node].as_ref().map_or(0, |job| job.state.dispatch());
                let runner = serde_json::from_value("a".into()).unwrap();
                let fence = Fence { dispatch, receive: 1 };
                self.job_event(node, &JobEvent::finished(fence, runner, outcome_of(end, is_interrupted)));
            }
            Event::Expire { node } => {
                self.now = self.now.plus_secs(100 * 24 * 3600);
                self.job_event(node, &JobEvent::Expire);
            }
            Event::CancelJob { node } => self.job_event(node, &JobEvent::Cancel(CancelAsked::default())),
            Event::Cancel => {
                self.workflow = self.workflow.cancel(&AskedBy::Sweep, self.now).workflow;
                if self.workflow.cancel_requested.is_some() {
                    self.cancel_active();
                }
            }
            Event::Finish { has_error } => {
                self.cancel_active();
                self.workflow = self.workflow.finish(has_error.then_some("no"), self.now).workflow;
            }
            Event::Continue(act) => {
                let again = real::Again {
                    act: act_of(act),
                    by: AskedBy::Sweep,
                    reason: String::new(),
                    at: self.now,
                    key: Digest::of(b"key"),
                    ended_as: String::new(),
                    ended_reason: String::new(),
                };
                if let Ok(workflow) = self.workflow.continued(again, &BTreeSet::new()) {
                    self.workflow = workflow;
                }
            }
            Event::Follow(part) => {
                if self.workflow.to_roll_back().is_some() {
                    self.workflow = self.workflow.followed_by(match part {
                        Part::RolledBack => RolledBack::By { workflow: self.workflow.roll_back_id() },
                        _ => RolledBack::refused("no", "deploy again"),
                    });
                }
            }
        }
    }

    fn view(&self) -> View {
        let workflow = &self.workflow;
        let view = |node: &real::Node| (state_of(&node.state), node.retried, node.earlier);
        let job = |job: &Option<Job>| job.as_ref().map_or((0, None), |job| (job.state.dispatch(), end_of(job)));
        View {
            nodes: workflow.nodes.iter().map(view).collect(),
            state: match workflow.state {
                WorkflowState::Pending => State::Pending,
                WorkflowState::Running { .. } => State::Running,
                WorkflowState::Succeeded { .. } => State::Succeeded,
                WorkflowState::Failed { .. } => State::Failed,
                WorkflowState::Cancelled { .. } => State::Cancelled,
            },
            is_cancelled: workflow.cancel_requested.is_some(),
            attempt: workflow.attempt(),
            is_settled: workflow.is_settled(),
            is_to_roll_back: workflow.to_roll_back().is_some(),
            jobs: self.jobs.iter().map(job).collect(),
        }
    }
}

fn view_of(world: &World) -> View {
    let deploy = world.deploy;
    View {
        nodes: deploy.nodes.map(|node| (node.state, node.retried.into(), node.earlier.into())).to_vec(),
        state: deploy.state,
        is_cancelled: deploy.is_cancelled,
        attempt: deploy.attempt.into(),
        is_settled: deploy.is_settled(),
        is_to_roll_back: deploy.is_to_roll_back(Seed::default()),
        jobs: world.jobs.map(|job| (job.dispatch.into(), job.end)).to_vec(),
    }
}

fn outcome_of(end: End, is_interrupted: bool) -> Outcome {
    let reason = String::from("exit status 1");
    match end {
        End::Succeeded => {
            Outcome::Succeeded { outputs: Default::default(), sensitive: Default::default(), artifact: None }
        }
        End::Failed if is_interrupted => Outcome::Interrupted { reason },
        End::Failed => Outcome::Failed { reason, partial: false },
        End::Blocked => Outcome::Blocked { block: Block::Unhealthy, reason },
        End::Cancelled => Outcome::Cancelled,
        End::Lost => panic!("no report says that a job is lost"),
    }
}

fn end_named(name: &str) -> End {
    match name {
        "failed" | "interrupted" => End::Failed,
        "blocked" => End::Blocked,
        "lost" => End::Lost,
        "cancelled" => End::Cancelled,
        other => panic!("{other}"),
    }
}

fn end_of(job: &Job) -> Option<End> {
    match &job.state {
        JobState::Succeeded { .. } => Some(End::Succeeded),
        state => state.is_terminal().then(|| end_named(state.as_str())),
    }
}

fn state_of(state: &real::NodeState) -> NodeState {
    match state {
        real::NodeState::Waiting => NodeState::Waiting,
        real::NodeState::Active { .. } => NodeState::Active,
        real::NodeState::Succeeded { .. } => NodeState::Succeeded,
        real::NodeState::Failed { outcome, .. } => NodeState::Failed(end_named(outcome)),
        real::NodeState::Skipped { .. } => NodeState::NotReached,
        real::NodeState::SkippedByRequest { .. } => NodeState::Skipped,
        real::NodeState::Refused { .. } => panic!("nothing is refused"),
    }
}

fn act_of(act: Act) -> real::Act {
    match act {
        Act::Resume => real::Act::Resume,
        Act::Retry(node) => real::Act::Retry { node: name(node) },
        Act::Skip(node) => real::Act::Skip { node: name(node) },
    }
}

/// Lets the event happen in the model: puts its message there, and performs its action.
fn perform(space: &Space, world: &World, event: Event) -> World {
    let mut now = *world;
    now.asked = [0; NODES];
    now.at_work = [0; NODES];
    now.executions = Default::default();
    let attempt = now.deploy.attempt;
    let action = match event {
        Event::Start if now.deploy.state != State::Pending => return now,
        Event::Start => {
            now.executions.starting = 1 << attempt;
            Action::Start { attempt, is_acknowledged: true }
        }
        Event::Report { node, end, .. } => {
            let dispatch = now.jobs[node].dispatch;
            if dispatch == 0 {
                return now;
            }
            now.reports[node][usize::from(dispatch)] = Some(end);
            Action::Report { node, dispatch, is_acknowledged: true }
        }
        Event::Expire { node } => Action::Expire { node },
        Event::CancelJob { node } => {
            now.jobs[node].is_cancelled |= now.jobs[node].is_open();
            return now;
        }
        Event::Cancel => Action::Cancel,
        Event::Finish { has_error } => {
            *(if has_error { &mut now.executions.failing } else { &mut now.executions.finishing }) = 1 << attempt;
            Action::Finish { attempt, has_error, is_acknowledged: true }
        }
        Event::Continue(act) => Action::Continue(act),
        Event::Follow(part) => {
            if now.deploy.is_to_roll_back(Seed::default()) {
                now.deploy.part = part;
            }
            return now;
        }
    };
    space.next_state(&now, action).unwrap_or(now)
}

/// Returns whether the event could lead to more dispatches than the model has room for.
fn is_too_much(world: &World, event: Event) -> bool {
    let is_full = |node: usize| usize::from(world.jobs[node].dispatch) + 1 >= DISPATCHES;
    match event {
        Event::Report { node, .. } => is_full(node),
        Event::Continue(_) => (0..NODES).any(is_full) || world.deploy.attempt == 6,
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_model_decides_as_the_workflow_does(
        graph in graphs(),
        part in prop_oneof![1 => Just(Part::None), 3 => Just(Part::Verified), 1 => Just(Part::Of)],
        events in events(),
    ) {
        let most = u8::MAX;
        let space =
            Space { graph, failures: most, lost: most, repeated: most, continued: most, cancels: most, ..Space::GATE };
        let mut real = Real::new(graph, part);
        let mut world = World { deploy: Workflow::new(part), ..World::new() };
        let mut reported = BTreeMap::new();
        for mut event in events {
            if is_too_much(&world, event) {
                continue;
            }
            // An attempt ends once. What it reports again is the same.
            if let Event::Report { node, .. } = event {
                event = *reported.entry((node, world.jobs[node].dispatch)).or_insert(event);
            }
            real.perform(event, graph.slots);
            world = perform(&space, &world, event);

            prop_assert_eq!(view_of(&world), real.view(), "{:?}", event);
        }
    }

    #[test]
    fn the_model_gives_the_install_to_whom_the_domain_does(
        events in prop::collection::vec((0..3_u8, 0..3_usize), 1..24),
    ) {
        let serves = Serves::App { app: "demo".parse().unwrap(), version: None };
        let (id, account) = ("globex".parse().unwrap(), "222222222222".parse().unwrap());
        let install = Install::new(id, serves, account, "eu-west-1".into(), Timestamp::default());
        let ids = ["deploy", "other", "roll-back"].map(|cause| WorkflowId::derive("globex", cause));
        let whos = [Who::Deploy, Who::Other, Who::RollBack];
        // The first workflow has begun.
        let (mut real, first) = install.begin(&ids[0], true).unwrap();
        let mut model = World::new().install;
        prop_assert_eq!(first, u64::from(SERIAL));
        let mut serials = [SERIAL; 3];
        for (event, at) in events {
            match event {
                0 => {
                    let begun = model.begin(Seed::default(), whos[at]);
                    let found = real.begin(&ids[at], true).ok();
                    prop_assert_eq!(begun.map(|(_, serial)| u64::from(serial)), found.as_ref().map(|(_, serial)| *serial));
                    if let (Some((next, serial)), Some((found, _))) = (begun, found) {
                        (model, real, serials[at]) = (next, found, serial);
                    }
                }
                1 => {
                    let held = model.hold_again(Seed::default(), whos[at], serials[at]);
                    let found = real.hold_again(&ids[at], serials[at].into()).ok();
                    prop_assert_eq!(held.is_some(), found.is_some());
                    (model, real) = (held.unwrap_or(model), found.unwrap_or(real));
                }
                _ => (model, real) = (model.release(whos[at]), real.release(&ids[at], None)),
            }
            let live = real.live.as_ref().map(|live| whos[ids.iter().position(|id| id == live).unwrap()]);
            let (last, next_serial) = (real.last_exclusive as u8, real.next_serial as u8);
            prop_assert_eq!(model, install::Install { live, last, next_serial });
        }
    }
}

//! Resuming a workflow: what failed and what was not reached runs once, in another execution, and says who and why.

use std::sync::atomic::{AtomicBool, Ordering};

use freehold_app::install::set_inputs::SetInputs;
use freehold_app::new_workflow::Asked;
use freehold_app::ports::{Committed, Expect, Store as _};
use freehold_app::read;
use freehold_app::table::Stored;
use freehold_app::testing::Fault;
use freehold_app::workflow::accept_report::resume_run;
use freehold_app::workflow::plan_workflow::Next;
use freehold_app::{AppError, Kind, table};
use freehold_domain::build::Build;
use freehold_domain::workflow::{Workflow, WorkflowKind, WorkflowState};
use freehold_protocol::api::{
    DeployComponentsRequest, ResumeWorkflowRequest, SetInputsRequest, TeardownInstallRequest,
};
use freehold_protocol::order::Order;
use freehold_protocol::report::{AttemptEvent, Fence, Outcome};
use freehold_protocol::{Digest, Envelope, Payload as _, WorkflowId};

use crate::support::runner::Behaviour;
use crate::support::walk::{At, Rng};
use crate::support::{World, caller, globex};

fn failing() -> Behaviour {
    Behaviour::Ends(Outcome::Failed { reason: "exit status 1".into(), partial: false })
}

/// Returns a world in which the deploy of `storage` failed, and the runner's next attempt would succeed.
pub(super) async fn failed() -> (World, WorkflowId) {
    let (mut world, workflow) = World::deploying(failing()).await;
    world.settle().await;
    assert_eq!(world.machines[&workflow].at, At::Ended("failed"));
    world.runner("globex").behaviours.clear();
    world.runner("globex").started.clear();
    (world, workflow)
}

/// Returns a world in which `storage` failed in the first deploy of `globex`.
pub(super) async fn failed_provisioning() -> (World, WorkflowId) {
    let mut world = World::with_app().await;
    let workflow = world.create().await;
    world.runner("globex").behaviours.insert("storage".into(), failing());
    world.run().await;
    world.hello("globex");
    world.settle().await;
    assert_eq!(world.machines[&workflow].at, At::Ended("failed"));
    (world, workflow)
}

pub(super) async fn resume(world: &World, workflow: &WorkflowId, cause: &str) -> Result<Workflow, AppError> {
    let request = ResumeWorkflowRequest { reason: Some("the network is back".into()) };
    let (by, resume) = (caller("bea"), world.resume_workflow());
    crate::support::client(async || resume.resume(workflow, &request, Asked { by: &by, cause, step: None }).await).await
}

#[tokio::test]
async fn what_failed_and_what_was_not_reached_runs_and_says_who_and_why() {
    let (mut world, workflow) = failed().await;

    resume(&world, &workflow, "resume-1").await.unwrap();
    world.settle().await;

    assert_eq!(world.node_states(&workflow).await, ["info succeeded", "storage succeeded"]);
    assert_eq!(world.runners["globex"].started, ["storage", "info"]);
    assert_eq!((&world.machines[&workflow].at, world.refusals().len()), (&At::Ended("succeeded"), 0));
    let view = read::show_workflow(&*world.memory, &workflow, world.now()).await.unwrap();
    let again = &view.again[0];
    assert_eq!(
        (again.act.as_str(), &again.by, again.reason.as_str()),
        ("resume", &caller("bea"), "the network is back")
    );
    assert_eq!((again.ended_as.as_str(), again.ended_reason.as_str()), ("failed", "`storage` failed: exit status 1"));
    let sent = world.memory.orders.lock().unwrap().clone();
    let orders = sent.iter().map(|(_, _, _, body)| Envelope::parse(body.as_bytes()).unwrap());
    let orders = orders.filter(|one| one.payload_type == Order::TYPE).map(|one| one.peek::<Order>().unwrap());
    let asked: Vec<_> = orders
        .filter(|order| order.workflow == workflow)
        .map(|order| (order.dispatch, order.asked_by, order.asked_why))
        .collect();
    let why = Some("resumed: the network is back".to_owned());
    assert_eq!(asked[1..], [(2, Some(caller("bea")), why.clone()), (1, Some(caller("bea")), why)]);
    let job = view.nodes[1].job.clone().unwrap();
    let job_view = read::show_job(&*world.memory, &job, world.now()).await.unwrap();
    let step = job_view.history.iter().find(|step| step.what == "resume").unwrap();
    assert_eq!(step.reason, format!("resumed: the network is back, by {}", caller("bea")));
    assert_eq!(table::install(&*world.memory, &globex()).await.unwrap().value.live, None);
}

#[tokio::test]
async fn the_same_request_twice_makes_one_execution_and_another_one_meanwhile_is_refused() {
    let (mut world, workflow) = failed().await;

    let first = resume(&world, &workflow, "resume-1").await.unwrap();
    let repeated = resume(&world, &workflow, "resume-1").await.unwrap();
    let other = resume(&world, &workflow, "resume-2").await.unwrap_err();
    world.settle().await;
    let late = resume(&world, &workflow, "resume-1").await.unwrap();

    assert_eq!((first.again.len(), repeated.again.len(), late.again.len()), (1, 1, 1));
    assert_eq!(other.kind, Kind::Conflict);
    assert!(other.message.contains("has not ended"), "{other}");
    assert_eq!(world.memory.continued.lock().unwrap().len(), 1);
    assert_eq!(world.runners["globex"].started, ["storage", "info"]);
}

#[tokio::test]
async fn a_late_callback_of_the_first_execution_does_not_resume_the_second_one() {
    let (mut world, workflow) = failed().await;
    // A function found that the last job had ended, and was then held up.
    let found = Workflow { state: WorkflowState::Running { slots: 4 }, ..world.workflow(&workflow).await };
    assert!(found.is_settled());
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::Hangs);
    resume(&world, &workflow, "resume-1").await.unwrap();
    world.run().await;

    resume_run(&*world.memory, &*world.memory, &found).await.unwrap();
    world.run().await;

    assert_eq!(world.workflow(&workflow).await.state.as_str(), "running");
    assert_eq!(world.node_states(&workflow).await, ["info waiting", "storage active"]);
}

#[tokio::test]
async fn a_key_that_asked_for_something_else_is_refused() {
    let (world, workflow) = failed().await;
    resume(&world, &workflow, "resume-1").await.unwrap();
    let (request, by) = (ResumeWorkflowRequest::default(), caller("bea"));

    let asked = Asked { by: &by, cause: "resume-1", step: None };
    let refused = world.resume_workflow().resume(&workflow, &request, asked).await.unwrap_err();

    assert_eq!(refused.message, "idempotency key was used for another request; use a new key");
}

#[tokio::test]
async fn a_provisioning_is_resumed_without_another_wait_for_its_runner() {
    let (mut world, workflow) = failed_provisioning().await;
    world.runner("globex").behaviours.clear();

    resume(&world, &workflow, "resume-1").await.unwrap();
    world.settle().await;

    assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"));
    let continued = world.memory.continued.lock().unwrap().clone();
    assert_eq!(continued.into_values().collect::<Vec<_>>(), [WorkflowKind::DeployComponents]);
    let install = table::install(&*world.memory, &globex()).await.unwrap().value;
    assert_eq!(install.version(), world.workflow(&workflow).await.version.as_ref());
}

#[tokio::test]
async fn a_cancelled_teardown_is_resumed() {
    let mut world = World::with_install().await;
    world.runner("globex").behaviours.insert("remove:info".into(), Behaviour::Hangs);
    let workflow = world.teardown(&TeardownInstallRequest::default(), "teardown-1").await.unwrap();
    world.run().await;
    world.cancel_workflow().cancel(&workflow, &Default::default(), crate::support::member()).await.unwrap();
    world.settle().await;
    assert_eq!(world.machines[&workflow].at, At::Ended("cancelled"));
    world.runner("globex").behaviours.clear();

    resume(&world, &workflow, "resume-1").await.unwrap();
    world.settle().await;

    assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"));
    assert!(table::parts(&*world.memory, &globex()).await.unwrap().is_empty());
    assert_eq!(world.workflow(&workflow).await.cancelled_by, None);
}

#[tokio::test]
async fn a_workflow_that_a_later_one_followed_is_not_resumed() {
    let (mut world, workflow) = failed().await;
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::Hangs);
    world.deploy(&DeployComponentsRequest::default(), "deploy-2").await.unwrap();
    world.run().await;
    let during = resume(&world, &workflow, "resume-1").await.unwrap_err();
    let job = world.workflow(&WorkflowId::derive("globex", "deploy-2")).await.active_jobs().next().unwrap().clone();
    let done = Outcome::Succeeded { outputs: Default::default(), sensitive: Default::default(), artifact: None };
    let (now, sent_at) = (world.now(), world.now());
    let end = world.runner("globex").finish(&job, done, now);
    world.accept_report().accept(&end[0], sent_at).await.unwrap();
    world.settle().await;

    let after = resume(&world, &workflow, "resume-2").await.unwrap_err();

    assert!(during.message.contains("wait for it or cancel it"), "{during}");
    assert!(after.message.starts_with("another workflow has changed install `globex` since"), "{after}");
    assert_eq!((during.kind, after.kind), (Kind::Conflict, Kind::Conflict));
}

#[tokio::test]
async fn a_run_of_an_action_meanwhile_does_not_matter() {
    let (mut world, workflow) = failed().await;
    world.action("check", "run-1").await.unwrap();
    world.settle().await;

    resume(&world, &workflow, "resume-1").await.unwrap();
    world.settle().await;

    assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"));
}

#[tokio::test]
async fn a_deploy_whose_inputs_changed_since_is_not_resumed() {
    let (world, workflow) = failed().await;
    let inputs = [("days".to_owned(), 9.into())].into();
    let (store, clock) = (world.memory.clone(), world.memory.clone());
    let set_inputs = SetInputs { store, versions: world.versions(), clock };
    set_inputs.set(&globex(), &SetInputsRequest { inputs }).await.unwrap();

    let refused = resume(&world, &workflow, "resume-1").await.unwrap_err();

    assert!(refused.message.starts_with("inputs or toggles of install `globex` have changed since workflow"));
    assert_eq!(refused.kind, Kind::Conflict);
}

#[tokio::test]
async fn a_deploy_whose_contract_is_not_accepted_any_more_is_not_resumed() {
    let (mut world, workflow) = failed().await;
    world.runner("globex").accepted_contract = Some(Digest::of(b"other terms"));
    world.hello("globex");
    world.run().await;

    let refused = resume(&world, &workflow, "resume-1").await.unwrap_err();

    assert_eq!(refused.kind, Kind::Conflict);
    assert!(refused.message.starts_with("the customer of install `globex` agreed to the terms"), "{refused}");
    assert!(world.memory.continued.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_reason_is_one_line() {
    let (world, workflow) = failed().await;
    let (request, by) = (ResumeWorkflowRequest { reason: Some("a\nb".into()) }, caller("bea"));

    let asked = Asked { by: &by, cause: "resume-1", step: None };
    let refused = world.resume_workflow().resume(&workflow, &request, asked).await.unwrap_err();

    assert_eq!(refused.kind, Kind::Invalid);
}

#[tokio::test]
async fn an_execution_of_an_earlier_attempt_changes_nothing() {
    let (mut world, workflow) = failed().await;
    resume(&world, &workflow, "resume-1").await.unwrap();
    let before = world.memory.rows();

    let planned = world.plan_workflow().plan(&workflow, 0).await.unwrap_err();
    let run = world.plan_workflow().run(&workflow, 0, "stale".into()).await.unwrap_err();
    let ended = world.finish_workflow().finish(&workflow, 0, Some("States.Timeout")).await.unwrap();

    assert_eq!((planned.kind, run.kind, ended.state), (Kind::Conflict, Kind::Conflict, "pending"));
    assert_eq!(world.memory.rows(), before);
    assert_eq!(world.plan_workflow().plan(&workflow, 1).await.unwrap(), Next::Run);
    world.settle().await;
    assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"));
}

#[tokio::test]
async fn an_execution_that_was_not_started_is_started_by_the_sweep() {
    let (mut world, workflow) = failed().await;
    let is_down = AtomicBool::new(true);
    world.memory.faults.set(move |what| {
        let fails = what == "start" && is_down.load(Ordering::Relaxed);
        fails.then_some(Fault::Before)
    });
    let lost = resume(&world, &workflow, "resume-1").await.unwrap_err();
    world.memory.faults.set(|_| None);

    world.settle().await;

    assert!(lost.is_transient(), "{lost}");
    assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"));
    assert_eq!(world.runners["globex"].started, ["storage", "info"]);
}

#[tokio::test]
async fn a_job_that_succeeded_after_all_does_not_run_again() {
    let (mut world, workflow, job) = World::with_lost_job().await;
    resume(&world, &workflow, "resume-1").await.unwrap();
    let outcome = Outcome::Succeeded { outputs: Default::default(), sensitive: Default::default(), artifact: None };
    let event = AttemptEvent::finished(outcome, "");
    let end = world.runners["globex"].says(&job, Fence { dispatch: 1, receive: 1 }, 2, event, world.now());

    world.accept_report().accept(&end, world.now()).await.unwrap();
    world.settle().await;

    assert_eq!(world.runners["globex"].started, ["info"]);
    assert_eq!(world.node_states(&workflow).await, ["info succeeded", "storage succeeded"]);
    assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"));
}

#[tokio::test]
async fn messages_in_any_order_and_up_to_three_times_run_each_node_once() {
    let (before, workflow) = failed().await;
    for seed in 0..20 {
        let mut world = before.copy();
        world.chaos = Some(Rng::new(seed));

        resume(&world, &workflow, "resume-1").await.unwrap();
        world.settle().await;

        assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"), "seed {seed}");
        assert_eq!(world.runners["globex"].started, ["storage", "info"], "seed {seed}");
    }
}

#[tokio::test]
async fn a_workflow_whose_artifact_was_removed_or_built_again_is_not_resumed() {
    let (world, workflow) = failed().await;
    let nodes = world.workflow(&workflow).await.nodes;
    let uses = nodes.iter().find_map(|node| node.target.uses().into_iter().next());
    let (part, used) = uses.map(|(part, used)| (part, used.build.clone())).unwrap();
    let key = table::build_key(&"demo".parse().unwrap(), &used);
    let mut build: Stored<Build> = table::load(&*world.memory, &key).await.unwrap().unwrap();
    build.value.unused_since = Some(world.now());
    let marked = table::put(&build.value, Expect::Rev(build.rev)).unwrap();
    assert_eq!(world.memory.commit(vec![marked]).await.unwrap(), Committed::Done);

    let refused = resume(&world, &workflow, "resume-1").await.unwrap_err();

    assert_eq!(refused.kind, Kind::Conflict);
    assert!(refused.message.contains(&format!("the artifact of `{part}` was removed or built again")), "{refused:?}");
}

//! The health of components after their deploy: what is asked, who waits for the answer, and what is shown of it.

use freehold_app::workflow::advance::{Advanced, job_event};
use freehold_app::{read, table};
use freehold_domain::job::{CancelAsked, JobEvent, JobState};
use freehold_protocol::api::{DeployComponentsRequest, InstallView};
use freehold_protocol::order::health::{Asks, HealthState, ProbeKind};
use freehold_protocol::order::{Order, Work};
use freehold_protocol::report::Outcome;
use freehold_protocol::{Digest, Envelope, Payload as _, WorkflowId};
use serde_json::json;

use crate::support::runner::{Behaviour, sick};
use crate::support::{World, app, asked_with, globex, with_input};

async fn deployed(world: &mut World, cause: &str) -> WorkflowId {
    let workflow = world.deploy(&DeployComponentsRequest::default(), cause).await.unwrap();
    world.settle().await;
    workflow
}

async fn shown(world: &World) -> InstallView {
    read::show_install(&world.versions(), &globex(), world.now()).await.unwrap()
}

fn order_of(world: &World, kind: &str) -> Order {
    let sent = world.memory.orders.lock().unwrap().clone();
    let envelopes = sent.iter().map(|(_, _, _, body)| Envelope::parse(body.as_bytes()).unwrap());
    let mut orders = envelopes.filter(|one| one.payload_type == Order::TYPE).map(|one| one.peek::<Order>().unwrap());
    orders.rfind(|order| order.work.kind() == kind).unwrap()
}

#[tokio::test]
async fn dependents_wait_for_a_gate_and_the_install_is_healthy() {
    let mut world = World::with_health(true).await;

    let workflow = deployed(&mut world, "deploy-1").await;

    assert_eq!(world.runners["globex"].started, ["storage", "health:storage", "info"]);
    assert_eq!(world.node_states(&workflow).await, ["info succeeded", "storage succeeded", "health:storage succeeded"]);
    let view = shown(&world).await;
    assert_eq!(view.health.map(|health| health.state), Some(HealthState::Healthy));
    let known: Vec<_> = view.components.iter().map(|one| (one.component.as_str(), one.health.is_some())).collect();
    assert_eq!(known, [("info", false), ("settings", false), ("storage", true)]);
}

#[tokio::test]
async fn the_order_asks_all_probes_under_the_role_of_the_deploy() {
    let mut world = World::with_health(true).await;
    deployed(&mut world, "deploy-1").await;

    let (deploy, order) = (order_of(&world, "terraform_module"), order_of(&world, "health"));

    let Work::Health(work) = order.work else { panic!("{:?}", order.work) };
    assert_eq!((work.asks, work.hold_secs, work.limit_secs, work.gate), (Asks::Nothing, 30, 60, true));
    let kinds: Vec<_> = work.probes.into_iter().map(|probe| probe.kind).collect();
    let asked = ProbeKind::Http { url: "https://storage.example/up".into() };
    assert_eq!(kinds, [asked, ProbeKind::Exec { command: vec!["check".into()] }]);
    assert_eq!((order.mode, order.role, order.timeout_secs), (deploy.mode, deploy.role, 960));
    assert_eq!(order.group.to_string(), "health:storage");
}

#[tokio::test]
async fn a_gate_that_closes_stops_the_dependents_and_a_retry_lets_them_continue() {
    let mut world = World::with_health(true).await;
    world.runner("globex").behaviours.insert("health:storage".into(), sick());

    let workflow = deployed(&mut world, "deploy-1").await;

    assert_eq!(world.node_states(&workflow).await, ["info skipped", "storage succeeded", "health:storage blocked"]);
    let view = shown(&world).await;
    assert_eq!(view.health.as_ref().map(|health| health.state), Some(HealthState::Unhealthy));
    let storage = view.components.iter().find(|one| one.component.as_str() == "storage").unwrap();
    let health = storage.health.as_ref().unwrap();
    assert!(health.reason.contains("the answer is 503"), "{}", health.reason);
    // The component is deployed all the same.
    assert_eq!(Some(&storage.version), world.workflow(&workflow).await.version.as_ref());
    assert_ne!(view.version.as_ref(), Some(&storage.version));

    world.runner("globex").behaviours.clear();
    world.runner("globex").started.clear();
    let job = health.job.clone();
    world.retry_job().retry(&job, &Default::default(), asked_with("retry-1")).await.unwrap();
    world.settle().await;

    assert_eq!(world.runners["globex"].started, ["health:storage", "info"]);
    assert_eq!(shown(&world).await.health.map(|health| health.state), Some(HealthState::Healthy));
}

#[tokio::test]
async fn a_second_deploy_does_not_pass_a_gate_that_closed() {
    let mut world = World::with_health(true).await;
    world.runner("globex").behaviours.insert("health:storage".into(), sick());
    deployed(&mut world, "deploy-1").await;

    let second = deployed(&mut world, "deploy-2").await;
    world.runner("globex").behaviours.clear();
    world.runner("globex").started.clear();
    let third = deployed(&mut world, "deploy-3").await;

    assert_eq!(world.node_states(&second).await, ["info skipped", "health:storage blocked"]);
    assert_eq!(world.node_states(&third).await, ["info succeeded", "health:storage succeeded"]);
    assert_eq!(world.runners["globex"].started, ["health:storage", "info"]);
}

#[tokio::test]
async fn a_health_check_that_is_not_a_gate_does_not_roll_a_deploy_back() {
    let mut world = World::with_health(false).await;
    let failed = Outcome::Failed { reason: "the program does not know this work".into(), partial: false };
    world.runner("globex").behaviours.insert("health:storage".into(), Behaviour::Ends(failed));

    let request = DeployComponentsRequest { verified: true, ..DeployComponentsRequest::default() };
    let workflow = world.deploy(&request, "deploy-1").await.unwrap();
    world.settle().await;

    let workflow = world.workflow(&workflow).await;
    assert_eq!((workflow.state.as_str(), workflow.to_roll_back()), ("succeeded", None));
}

#[tokio::test]
async fn without_a_gate_nobody_waits_and_the_deploy_succeeds_although_the_component_is_sick() {
    let mut world = World::with_health(false).await;
    let outputs = [("health".to_owned(), json!({ "state": "unhealthy", "reason": "the answer is 503" }))].into();
    let found = Outcome::Succeeded { outputs, sensitive: Default::default(), artifact: None };
    world.runner("globex").behaviours.insert("health:storage".into(), Behaviour::Ends(found));

    let workflow = deployed(&mut world, "deploy-1").await;

    assert_eq!(world.workflow(&workflow).await.state.as_str(), "succeeded");
    let view = shown(&world).await;
    assert_eq!((view.state.as_str(), view.version), ("ready", world.workflow(&workflow).await.version));
    assert_eq!(view.health.map(|health| health.state), Some(HealthState::Unhealthy));
}

#[tokio::test]
async fn a_look_that_failed_says_that_nobody_knows() {
    let mut world = World::with_health(false).await;
    let failed = Outcome::Failed { reason: "the cluster does not answer".into(), partial: false };
    world.runner("globex").behaviours.insert("health:storage".into(), Behaviour::Ends(failed));

    deployed(&mut world, "deploy-1").await;

    let view = shown(&world).await;
    let storage = view.components.iter().find(|one| one.component.as_str() == "storage").unwrap();
    let health = storage.health.as_ref().unwrap();
    assert_eq!((health.state, health.reason.as_str()), (HealthState::Unknown, "the cluster does not answer"));
}

#[tokio::test]
async fn a_later_deploy_without_a_look_shows_no_health_and_a_later_look_keeps_since_when() {
    let mut world = World::with_health(true).await;
    deployed(&mut world, "deploy-1").await;
    let first = shown(&world).await.health.unwrap();
    world.memory.advance_secs(600);

    world.deploy(&DeployComponentsRequest { all: true, ..Default::default() }, "deploy-2").await.unwrap();
    world.settle().await;

    let second = shown(&world).await;
    assert_eq!(second.health, Some(first));
    let storage = second.components.iter().find(|one| one.component.as_str() == "storage").unwrap();
    assert!(storage.health.as_ref().is_some_and(|health| health.at > health.since), "{storage:?}");
    world.sync(&app::with_source("storage", "example/storage:3")).await;
    world.build("build-3").await;
    world.settle().await;
    deployed(&mut world, "deploy-3").await;
    assert_eq!(shown(&world).await.health, None);
}

#[tokio::test]
async fn the_version_of_an_install_whose_gate_closed_is_the_one_before() {
    let mut world = World::with_health(true).await;
    world.runner("globex").behaviours.insert("health:storage".into(), sick());
    let before: Option<Digest> = table::install(&*world.memory, &globex()).await.unwrap().value.version().cloned();

    world.deploy(&with_input("days", 9), "deploy-1").await.unwrap();
    world.settle().await;

    assert_eq!(shown(&world).await.version, before);
}

#[tokio::test]
async fn the_success_that_ended_a_cancelled_gate_is_accepted_again() {
    let mut world = World::with_checks(true).await;
    world.runner("globex").behaviours.insert("health:storage".into(), Behaviour::Hangs);
    let workflow = world.deploy(&DeployComponentsRequest::default(), "deploy-1").await.unwrap();
    world.run().await;
    let job = world.workflow(&workflow).await.active_jobs().next().unwrap().clone();
    let JobState::Running { fence, runner, .. } = world.job(&job).await.state else { panic!("not running") };
    let outcome = Outcome::Succeeded { outputs: Default::default(), sensitive: Default::default(), artifact: None };
    let ends = JobEvent::finished(fence, runner, outcome);

    let mut found = Vec::new();
    for event in [&JobEvent::Cancel(CancelAsked::default()), &ends, &ends] {
        found.push(match job_event(&*world.memory, &job, event, None, world.now()).await.unwrap() {
            Advanced::Now { job, workflow, changed, .. } => (job.state.as_str(), workflow.is_some(), changed),
            other => panic!("{other:?}"),
        });
    }

    assert_eq!(found, [("running", false, true), ("cancelled", true, true), ("cancelled", true, false)]);
}

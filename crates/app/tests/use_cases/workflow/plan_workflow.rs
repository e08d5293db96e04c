//! Planning and running phases: repeatable, with clear errors for graphs that cannot be planned; the newest token wins.

use freehold_app::Kind;
use freehold_app::read;
use freehold_app::table;
use freehold_app::workflow::plan_workflow::Next;
use freehold_protocol::api::DeployComponentsRequest;

use crate::support::runner::Behaviour;
use crate::support::walk::At;
use crate::support::{World, app, globex, with_input};

#[tokio::test]
async fn a_phase_that_is_tried_again_is_resumed_by_its_newest_token() {
    let mut world = World::with_install().await;
    world
        .runner("globex")
        .behaviours
        .insert("storage".into(), Behaviour::Ends(freehold_protocol::report::Outcome::Cancelled));
    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    assert_eq!(world.plan_workflow().plan(&workflow).await.unwrap(), Next::Run);
    world.plan_workflow().run(&workflow, "old".into()).await.unwrap();
    let first = world.memory.take_dispatched();

    world.plan_workflow().run(&workflow, "new".into()).await.unwrap();

    assert_eq!(world.memory.take_dispatched(), first, "the same jobs, handed over again");
    world.dispatch_job().perform(&first[0]).await.unwrap();
    world.machines.clear();
    world.memory.started.lock().unwrap().clear();
    world.run().await;
    let resumed = world.memory.resumed.lock().unwrap().clone();
    assert!(resumed.iter().any(|(token, _)| token == "new"));
    assert!(!resumed.iter().any(|(token, _)| token == "old"));
}

#[tokio::test]
async fn planning_again_plans_the_same() {
    let world = World::with_install().await;
    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    let first = world.plan_workflow().plan(&workflow).await.unwrap();
    let planned = world.workflow(&workflow).await;

    let second = world.plan_workflow().plan(&workflow).await.unwrap();

    assert_eq!((first, second), (Next::Run, Next::Run));
    assert_eq!(world.workflow(&workflow).await, planned);
}

#[tokio::test]
async fn phases_of_a_workflow_that_has_ended_do_nothing() {
    let mut world = World::with_install().await;
    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.settle().await;
    let state = world.workflow(&workflow).await;

    let next = world.plan_workflow().plan(&workflow).await.unwrap();
    world.plan_workflow().run(&workflow, "late".into()).await.unwrap();

    assert_eq!(next, Next::Finish);
    assert_eq!(world.workflow(&workflow).await, state);
    assert!(world.memory.take_dispatched().is_empty());
}

#[tokio::test]
async fn a_component_without_artifact_fails_the_deploy_by_name() {
    let mut world = World::with_install().await;
    world.sync(&app::with_source("storage", "example/storage:2")).await;

    let workflow = world.deploy(&DeployComponentsRequest::default(), "deploy-1").await.unwrap();
    world.settle().await;

    let view = read::workflow::view(&world.workflow(&workflow).await);
    assert_eq!(world.machines[&workflow].at, At::Ended("failed"));
    assert_eq!(view.reason, "component `storage` has no artifact; run `freehold build demo` and deploy again");
}

#[tokio::test]
async fn an_input_that_a_version_dropped_keeps_no_install_from_deploying() {
    let mut world = World::with_install().await;
    world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.settle().await;
    let mut version = app::document();
    version.inputs.retain(|input| input.name != "days");
    for component in &mut version.components {
        component.references.clear();
    }
    world.sync(&version).await;

    let workflow = world
        .deploy(&DeployComponentsRequest { all: true, ..DeployComponentsRequest::default() }, "deploy-2")
        .await
        .unwrap();
    world.settle().await;
    let refused = world.deploy(&with_input("days", 9), "deploy-3").await.unwrap_err();
    let action = world.action("check", "run-1").await.unwrap();
    world.settle().await;

    assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"));
    assert_eq!(world.machines[&action].at, At::Ended("succeeded"));
    assert_eq!((refused.kind, refused.message.as_str()), (Kind::Invalid, "app `demo` has no input `days`"));
    assert!(world.dead.is_empty());
    let install = table::install(&*world.memory, &globex()).await.unwrap().value;
    assert_eq!(install.inputs["days"], 8, "an older version may bring it back");
}

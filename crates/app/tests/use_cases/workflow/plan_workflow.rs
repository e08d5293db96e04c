//! Planning and running phases: repeatable, with clear errors for graphs that cannot be planned; the newest token wins.

use freehold_app::Kind;
use freehold_app::app_version::builds::source_builds;
use freehold_app::ports::{Store as _, Write};
use freehold_app::read;
use freehold_app::table::{self, build_key};
use freehold_app::workflow::plan_workflow::Next;
use freehold_protocol::api::DeployComponentsRequest;

use crate::support::runner::Behaviour;
use crate::support::walk::At;
use crate::support::{World, app, globex, member, with_input};

#[tokio::test]
async fn a_phase_that_is_tried_again_is_resumed_by_its_newest_token() {
    let mut world = World::with_install().await;
    world
        .runner("globex")
        .behaviours
        .insert("storage".into(), Behaviour::Ends(freehold_protocol::report::Outcome::Cancelled));
    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    assert_eq!(world.plan_workflow().plan(&workflow, 0).await.unwrap(), Next::Run);
    world.plan_workflow().run(&workflow, 0, "old".into()).await.unwrap();
    let first = world.memory.take_dispatched();

    world.plan_workflow().run(&workflow, 0, "new".into()).await.unwrap();

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
    let first = world.plan_workflow().plan(&workflow, 0).await.unwrap();
    let planned = world.workflow(&workflow).await;

    let second = world.plan_workflow().plan(&workflow, 0).await.unwrap();

    assert_eq!((first, second), (Next::Run, Next::Run));
    assert_eq!(world.workflow(&workflow).await, planned);
}

#[tokio::test]
async fn phases_of_a_workflow_that_has_ended_do_nothing() {
    let mut world = World::with_install().await;
    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.settle().await;
    let state = world.workflow(&workflow).await;

    let next = world.plan_workflow().plan(&workflow, 0).await.unwrap();
    world.plan_workflow().run(&workflow, 0, "late".into()).await.unwrap();

    assert_eq!(next, Next::Finish);
    assert_eq!(world.workflow(&workflow).await, state);
    assert!(world.memory.take_dispatched().is_empty());
}

#[tokio::test]
async fn an_artifact_that_goes_before_the_plan_fails_the_deploy_by_name_and_restores_its_inputs() {
    let mut world = World::with_install().await;
    world.deploy(&with_input("greeting", "ho"), "deploy-1").await.unwrap();
    world.settle().await;
    let mut request = with_input("days", 99);
    request.inputs.insert("greeting".into(), "hm".into());
    let workflow = world.deploy(&request, "deploy-2").await.unwrap();
    let known = source_builds(&*world.memory, &app::document()).await.unwrap();
    for source in known {
        let gone = Write::Delete { key: build_key(&app::document().app, &source.id) };
        let _ = world.memory.commit(vec![gone]).await.unwrap();
    }

    world.settle().await;

    let view = read::workflow_view(&world.workflow(&workflow).await);
    assert_eq!(world.machines[&workflow].at, At::Ended("failed"));
    assert_eq!(view.reason, "component `info` has no artifact; run `freehold build demo` and deploy again");
    let install = table::install(&*world.memory, &globex()).await.unwrap().value;
    assert_eq!(install.inputs, [("greeting".to_owned(), "ho".into())].into());
    let row = world.memory.rows().into_iter().find(|row| row.key.pk == format!("workflow#{workflow}")).unwrap();
    assert!(!row.body.contains("former_inputs"), "values of inputs are not kept with workflows");
}

#[tokio::test]
async fn a_deploy_that_is_cancelled_before_its_plan_restores_its_inputs() {
    let mut world = World::with_install().await;
    let workflow = world.deploy(&with_input("days", 99), "deploy-1").await.unwrap();
    world.cancel_workflow().cancel(&workflow, &Default::default(), member()).await.unwrap();

    world.settle().await;

    assert_eq!(world.machines[&workflow].at, At::Ended("cancelled"));
    let install = table::install(&*world.memory, &globex()).await.unwrap().value;
    assert!(!install.inputs.contains_key("days"), "{:?}", install.inputs);
}

#[tokio::test]
async fn a_deploy_that_fails_after_its_first_job_keeps_its_inputs() {
    let mut world = World::with_install().await;
    let no = freehold_protocol::report::Outcome::Failed { reason: "no".into(), partial: false };
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::Ends(no));
    world.deploy(&with_input("days", 9), "deploy-1").await.unwrap();

    world.settle().await;

    let install = table::install(&*world.memory, &globex()).await.unwrap().value;
    assert_eq!(install.inputs["days"], 9, "what ran had this value");
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
    assert_eq!(
        (refused.kind, refused.message.as_str()),
        (Kind::Invalid, "app `demo` has no input `days`; its inputs are `greeting`")
    );
    assert!(world.dead.is_empty());
    let install = table::install(&*world.memory, &globex()).await.unwrap().value;
    assert_eq!(install.inputs["days"], 8, "an older version may bring it back");
}

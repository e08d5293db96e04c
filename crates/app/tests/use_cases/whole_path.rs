//! The whole path without faults: sync, build, create, provision, deploy, action.

use freehold_app::read;
use freehold_app::table::{self, DeployedRecord};
use freehold_domain::workflow::WorkflowState;
use freehold_protocol::api::DeployComponentsRequest;
use freehold_protocol::report::Outcome;
use serde_json::json;

use crate::support::runner::Behaviour;
use crate::support::walk::At;
use crate::support::{World, globex, with_input};

#[tokio::test]
async fn a_built_app_has_one_artifact_for_each_component() {
    let world = World::with_app().await;

    let again = world.build("build-2").await;

    assert_eq!(again.workflow, None);
    let states: Vec<_> = again.builds.iter().map(|build| (build.component.as_str(), build.state.as_str())).collect();
    assert_eq!(states, [("info", "built"), ("settings", "built"), ("storage", "built")]);
    assert!(again.builds.iter().all(|build| build.artifact.is_some()));
}

#[tokio::test]
async fn a_new_install_is_provisioned_when_its_runner_says_hello() {
    let mut world = World::with_app().await;
    let workflow = world.create().await;
    world.run().await;

    assert!(matches!(world.machines[&workflow].at, At::AwaitRunner(Some(_))));
    world.hello("globex");
    world.run().await;

    assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"));
    assert_eq!(
        world.node_states(&workflow).await,
        [
            "preflight:install succeeded",
            "info succeeded",
            "settings succeeded",
            "storage succeeded",
            "action:welcome succeeded"
        ]
    );
    let position = |name: &str| world.runners["globex"].started.iter().position(|started| started == name).unwrap();
    assert!(position("storage") < position("info"));
    assert_eq!((position("preflight"), position("action:welcome")), (0, 4));
    let install = read::show_install(&world.versions(), &globex(), world.now()).await.unwrap();
    assert_eq!((install.state.as_str(), install.components.len(), install.live), ("ready", 3, None));
    assert!(install.runner.unwrap().last_contact.is_some());
    assert!(world.open().is_empty());
    assert!(world.dead.is_empty());
    assert!(world.refusals().is_empty());
}

#[tokio::test]
async fn a_preflight_that_fails_stops_all_and_the_next_deploy_begins_with_another() {
    let mut world = World::with_app().await;
    let workflow = world.create().await;
    world.run().await;
    let no = Outcome::Failed { reason: "1 of 9 checks fail; `disk`".into(), partial: false };
    world.runner("globex").behaviours.insert("preflight".into(), Behaviour::Ends(no));
    world.hello("globex");
    world.run().await;

    let stopped = world.workflow(&workflow).await;
    let first = world.runners["globex"].started.clone();
    world.runner("globex").behaviours.clear();
    let deploy = world.deploy(&DeployComponentsRequest::default(), "deploy-1").await.unwrap();
    world.settle().await;

    let WorkflowState::Failed { reason, .. } = &stopped.state else { panic!("{stopped:?}") };
    assert_eq!(reason, "`preflight:install` failed: 1 of 9 checks fail; `disk`");
    assert_eq!(first, ["preflight"]);
    assert_eq!(
        world.node_states(&deploy).await,
        ["preflight:install succeeded", "info succeeded", "settings succeeded", "storage succeeded"]
    );
}

#[tokio::test]
async fn a_deploy_with_one_changed_input_runs_what_uses_it_and_what_depends_on_that() {
    let mut world = World::with_install().await;
    world.runner("globex").started.clear();

    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.settle().await;

    assert_eq!(world.node_states(&workflow).await, ["info succeeded", "storage succeeded"]);
    assert_eq!(world.runners["globex"].started, ["storage", "info"]);
    let rows: Vec<DeployedRecord> = table::load_all(&*world.memory, "install#globex", "component#").await.unwrap();
    let by = |name: &str| rows.iter().find(|row| row.deployed.component.as_str() == name).unwrap().deployed.clone();
    assert_eq!(world.job(&by("storage").job).await.workflow, workflow);
    assert_ne!(world.job(&by("settings").job).await.workflow, workflow);
    assert_eq!(by("storage").outputs["name"], json!("storage-out"));
    let install = table::install(&*world.memory, &globex()).await.unwrap().value;
    assert_eq!(install.inputs["days"], json!(8));
}

#[tokio::test]
async fn a_deploy_of_nothing_new_succeeds_without_a_job() {
    let mut world = World::with_install().await;
    let orders = world.memory.orders.lock().unwrap().len();

    let workflow = world.deploy(&DeployComponentsRequest::default(), "deploy-1").await.unwrap();
    world.settle().await;

    assert!(matches!(world.workflow(&workflow).await.state, WorkflowState::Succeeded { .. }));
    assert_eq!(world.memory.orders.lock().unwrap().len(), orders);
}

#[tokio::test]
async fn the_same_requests_again_change_nothing() {
    let mut world = World::with_install().await;
    world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.settle().await;
    world.action("check", "run-1").await.unwrap();
    world.settle().await;
    let (before, rows) = (world.outcome(), world.memory.rows());

    world.sync(&crate::support::app::document()).await;
    world.enrol().await;
    world.build("build-1").await;
    world.create().await;
    world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.action("check", "run-1").await.unwrap();
    world.hello("globex");
    world.settle().await;

    assert_eq!(world.outcome(), before);
    assert_eq!(world.memory.rows(), rows);
}

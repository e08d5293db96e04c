//! Running an action: alone, once for one request, and the refused requests with their messages.

use freehold_app::Kind;
use freehold_protocol::api::RunActionRequest;

use crate::support::{World, globex};

#[tokio::test]
async fn an_action_runs_alone_with_the_steps_of_its_version() {
    let mut world = World::with_install().await;
    world.runner("globex").started.clear();

    let workflow = world.action("check", "run-1").await.unwrap();
    world.settle().await;

    assert_eq!(world.node_states(&workflow).await, ["action:check succeeded"]);
    assert_eq!(world.runners["globex"].started, ["action:check"]);
}

#[tokio::test]
async fn the_same_request_again_is_the_same_run() {
    let mut world = World::with_install().await;
    let first = world.action("check", "run-1").await.unwrap();
    world.settle().await;
    let before = world.memory.rows();

    let again = world.action("check", "run-1").await.unwrap();
    world.settle().await;

    assert_eq!(again, first);
    assert_eq!(world.memory.rows(), before);
}

#[tokio::test]
async fn an_action_that_the_version_does_not_have_is_refused_by_name() {
    let world = World::with_install().await;
    let before = world.memory.rows();

    let error = world.action("chek", "run-1").await.unwrap_err();

    assert_eq!(error.kind, Kind::NotFound);
    assert!(error.message.contains("`chek`"), "{error}");
    assert_eq!(world.memory.rows(), before);
}

#[tokio::test]
async fn a_role_that_the_version_does_not_have_is_refused_by_name() {
    let world = World::with_install().await;
    let request = RunActionRequest { role: Some("nobody".to_owned()) };
    let before = world.memory.rows();

    let error = world.run_action().run(&globex(), &"check".parse().unwrap(), &request, "run-1").await.unwrap_err();

    assert!(error.message.contains("`nobody`"), "{error}");
    assert_eq!(world.memory.rows(), before);
}

#[tokio::test]
async fn without_a_runner_nothing_is_started() {
    let mut world = World::with_app().await;
    world.create().await;
    world.run().await;

    let action = world.action("check", "run-1").await.unwrap_err();

    assert_eq!(action.kind, Kind::Conflict);
    assert_eq!(action.message, "install `globex` has no runner yet; launch its install stack and start the runner");
}

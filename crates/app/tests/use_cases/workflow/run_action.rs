//! Running an action: alone, once for one request, and the refused requests with their messages.

use freehold_app::{Kind, read};
use freehold_domain::workflow::RunTrigger;
use freehold_protocol::api::{DeployComponentsRequest, RunActionRequest, WorkflowView};
use freehold_protocol::app_version::AppVersion;
use freehold_protocol::order::{Order, Work};
use freehold_protocol::{Digest, Envelope};

use crate::support::runner::Behaviour;
use crate::support::walk::At;
use crate::support::{World, app, asked_with, globex};

/// Returns the app with other steps for `check`, and with one action more.
fn next_version() -> AppVersion {
    let mut version = app::document();
    version.actions[0].steps[0].command = "echo next".into();
    let mut repair = version.actions[0].clone();
    repair.name = "repair".parse().unwrap();
    version.actions.push(repair);
    version
}

/// Returns the command of the first step of the action that was ordered last.
fn ordered(world: &World) -> String {
    let orders = world.memory.orders.lock().unwrap();
    let order = |sent: &(String, String, String, String)| {
        Envelope::parse(sent.3.as_bytes()).ok()?.peek::<Order>().ok().map(|order| order.work)
    };
    let Some(Work::Action(action)) = orders.iter().rev().find_map(order) else { panic!("no action was ordered") };
    action.steps[0].command.clone()
}

async fn version_of(world: &World, cause: &str) -> (Option<Digest>, Option<u64>) {
    let (action, request) = ("check".parse().unwrap(), RunActionRequest::default());
    let started =
        world.run_action().run(&globex(), &action, &request, (RunTrigger::Request, asked_with(cause))).await.unwrap();
    (started.version, started.number)
}

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
async fn the_list_of_workflows_names_the_action_and_what_started_it() {
    let mut world = World::with_schedule().await;
    world.action("check", "run-1").await.unwrap();
    world.settle().await;
    world.memory.advance_secs(300);
    world.handle_due_tasks().handle().await.unwrap();
    world.settle().await;

    let workflows = read::list_workflows(&*world.memory, &globex(), None).await.unwrap();

    let line = |view: &WorkflowView| {
        let action = view.action.as_ref().map_or("-", |action| action.as_str());
        format!("{} {action} {}", view.kind, view.trigger.as_deref().unwrap_or("-"))
    };
    let lines: Vec<String> = workflows.items.iter().map(line).collect();
    assert_eq!(lines[..2], ["run-action check schedule", "run-action check request"]);
    assert!(lines[2..].iter().all(|other| other.ends_with(" - -")), "{lines:?}");
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
    let request = RunActionRequest { role: Some("nobody".to_owned()), ..Default::default() };
    let before = world.memory.rows();

    let error = world
        .run_action()
        .run(&globex(), &"check".parse().unwrap(), &request, (RunTrigger::Request, asked_with("run-1")))
        .await
        .unwrap_err();

    assert_eq!(error.kind, Kind::NotFound);
    assert!(error.message.contains("`nobody`; choose one of its roles: `provision`"), "{error}");
    assert_eq!(world.memory.rows(), before);
}

#[tokio::test]
async fn a_role_that_the_contract_does_not_have_for_the_action_is_refused_with_the_way_out() {
    let world = World::with_install().await;
    let request = RunActionRequest { role: Some("provision".to_owned()), ..Default::default() };
    let before = world.memory.rows();

    let error = world
        .run_action()
        .run(&globex(), &"check".parse().unwrap(), &request, (RunTrigger::Request, asked_with("run-1")))
        .await
        .unwrap_err();

    assert_eq!(error.kind, Kind::Invalid);
    assert!(error.message.contains("may not run under role `provision`, because its contract has only"), "{error}");
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

#[tokio::test]
async fn an_action_runs_the_steps_of_the_version_that_is_deployed_and_says_which() {
    let mut world = World::with_install().await;
    world.sync(&next_version()).await;
    let deployed = app::document().digest().unwrap();

    let before = version_of(&world, "run-1").await;
    world.sync(&app::with_source("storage", "example/storage:9")).await;
    world.settle().await;
    let (ran, again) = (ordered(&world), version_of(&world, "run-1").await);
    let next = DeployComponentsRequest { version: Some(next_version().digest().unwrap()), ..Default::default() };
    world.deploy(&next, "deploy-1").await.unwrap();
    world.settle().await;
    let after = version_of(&world, "run-2").await;
    world.settle().await;

    assert_eq!((&before, &ran[..]), (&(Some(deployed), Some(1)), ""));
    assert_eq!(again, before, "a repeated request is the same run");
    assert_eq!((after.1, &ordered(&world)[..]), (Some(2), "echo next"));
}

#[tokio::test]
async fn an_action_that_the_deployed_version_lacks_is_refused_with_a_way_out() {
    let world = World::with_install().await;
    world.sync(&next_version()).await;

    let newer = world.action("repair", "run-1").await.unwrap_err();
    let typo = world.action("chek", "run-2").await.unwrap_err();
    let unlike = world.action("unlike-all-of-them", "run-3").await.unwrap_err();

    assert_eq!([newer.kind, typo.kind, unlike.kind], [Kind::NotFound; 3]);
    assert_eq!(
        newer.message,
        "there is no action `repair` in version 1 of app `demo`, the version of install `globex`; version 2 has this \
         action, so deploy version 2 with `freehold deploy globex`"
    );
    assert!(typo.message.ends_with("the version of install `globex`; did you mean `check`?"), "{typo}");
    assert!(unlike.message.ends_with("choose one of its actions: `check`, `welcome`"), "{unlike}");
}

#[tokio::test]
async fn before_anything_is_deployed_an_action_of_the_latest_version_may_look_why() {
    let mut world = World::with_app().await;
    world.create().await;
    world.run().await;
    let no = freehold_protocol::report::Outcome::Failed { reason: "no".into(), partial: false };
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::Ends(no));
    world.hello("globex");
    world.settle().await;

    let workflow = world.action("check", "run-1").await.unwrap();
    world.settle().await;

    assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"));
    assert_eq!(version_of(&world, "run-1").await.1, Some(1));
}

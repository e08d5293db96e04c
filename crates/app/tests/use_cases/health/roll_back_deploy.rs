//! Verified deploys: one that fails is followed by a deploy of what ran before, once, and says so.

use std::collections::BTreeMap;

use freehold_app::new_workflow::Asked;
use freehold_app::{Kind, read, table};
use freehold_domain::workflow::{RollBack, RolledBack, Workflow};
use freehold_protocol::api::{DeployComponentsRequest, ReasonRequest, RetryJobRequest, SetLicenceRequest};
use freehold_protocol::app_version::Reference;
use freehold_protocol::order::Order;
use freehold_protocol::report::Outcome;
use freehold_protocol::{ComponentName, Digest, Envelope, Payload as _, WorkflowId};
use serde_json::Value;

use crate::support::runner::{Behaviour, sick};
use crate::support::{World, app, globex, member, with_input};

fn verified() -> DeployComponentsRequest {
    DeployComponentsRequest { verified: true, ..with_input("days", 8) }
}

/// What a roll back has to bring back: the version, the artifacts, and the vendor's values.
#[derive(Debug, PartialEq)]
struct Ran {
    version: Option<Digest>,
    artifacts: BTreeMap<ComponentName, Digest>,
    inputs: BTreeMap<String, Value>,
    toggles: BTreeMap<ComponentName, bool>,
}

async fn ran(world: &World) -> Ran {
    let install = table::install(&*world.memory, &globex()).await.unwrap().value;
    let deployed = table::deployed(&*world.memory, &globex()).await.unwrap();
    Ran {
        version: install.version().cloned(),
        artifacts: deployed.into_iter().map(|(name, one)| (name, one.artifact)).collect(),
        inputs: install.inputs,
        toggles: install.toggles,
    }
}

/// Returns a world in which the next deploy ends at the closed gate of `storage`.
async fn gated() -> World {
    let mut world = World::with_health(true).await;
    world.runner("globex").behaviours.insert("health:storage".into(), sick());
    world
}

async fn deploy(world: &mut World) -> Workflow {
    let id = world.deploy(&verified(), "deploy-1").await.unwrap();
    world.settle().await;
    world.workflow(&id).await
}

fn orders_of(world: &World, workflow: &WorkflowId) -> Vec<Order> {
    let sent = world.memory.orders.lock().unwrap().clone();
    let envelopes = sent.iter().map(|(_, _, _, body)| Envelope::parse(body.as_bytes()).unwrap());
    let orders = envelopes.filter(|one| one.payload_type == Order::TYPE).map(|one| one.peek::<Order>().unwrap());
    orders.filter(|order| order.workflow == *workflow).collect()
}

fn refused(deploy: &Workflow) -> String {
    match &deploy.roll_back {
        RollBack::Verified { followed: Some(RolledBack::Refused { reason }), .. } => reason.clone(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_ran_before_runs_again_and_both_workflows_say_so() {
    let mut world = gated().await;
    let before = ran(&world).await;

    let failed = deploy(&mut world).await;

    assert_eq!(failed.state.as_str(), "failed");
    assert_eq!(ran(&world).await, before);
    let by = failed.roll_back_id();
    let roll_back = world.workflow(&by).await;
    assert_eq!((roll_back.state.as_str(), roll_back.asked_by.as_ref()), ("succeeded", Some(member())));
    assert_eq!(world.runners["globex"].started, ["storage", "health:storage", "storage", "info"]);
    let view = read::workflow_view(&failed);
    assert!(view.verified && view.rolled_back.is_some_and(|followed| followed.workflow == Some(by.clone())));
    assert_eq!(read::workflow_view(&roll_back).roll_back_of, Some(failed.id.clone()));
    let orders = orders_of(&world, &by);
    let why = format!("roll back of {}: `health:storage` blocked: component `storage` is not healthy", failed.id);
    let why_of = |order: &Order| order.asked_why.as_ref().is_some_and(|text| text.starts_with(&why));
    assert!(orders.len() == 2 && orders.iter().all(why_of), "{orders:#?}");
    assert!(orders.iter().all(|order| order.context["nuon"]["inputs"]["inputs"]["days"] == 7), "{orders:#?}");
}

#[tokio::test]
async fn a_deploy_that_succeeds_is_not_rolled_back_and_is_what_the_next_one_goes_back_to() {
    let mut world = World::with_health(true).await;
    let good = deploy(&mut world).await;
    assert_eq!(good.state.as_str(), "succeeded");
    let before = ran(&world).await;
    world.runner("globex").behaviours.insert("health:storage".into(), sick());

    let request = DeployComponentsRequest { verified: true, ..with_input("days", 9) };
    let failed = world.deploy(&request, "deploy-2").await.unwrap();
    world.settle().await;

    let roll_back = world.workflow(&world.workflow(&failed).await.roll_back_id()).await;
    // The gate of the version that ran before is closed too, and nothing follows that.
    assert_eq!(roll_back.state.as_str(), "failed");
    assert!(table::find_workflow(&*world.memory, &roll_back.roll_back_id()).await.unwrap().is_none());
    assert_eq!(ran(&world).await, before);
}

#[tokio::test]
async fn a_deploy_that_did_not_ask_for_it_is_not_rolled_back() {
    let mut world = gated().await;

    let failed = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.settle().await;

    let by = world.workflow(&failed).await.roll_back_id();
    assert!(table::find_workflow(&*world.memory, &by).await.unwrap().is_none());
    assert_eq!(ran(&world).await.inputs["days"], 8);
}

#[tokio::test]
async fn a_failed_apply_is_rolled_back_too() {
    let mut world = World::with_health(true).await;
    let before = ran(&world).await;
    let failed = freehold_protocol::report::Outcome::Failed { reason: "access denied".into(), partial: true };
    world.runner("globex").behaviours.insert("info".into(), Behaviour::Ends(failed));

    let deploy = deploy(&mut world).await;

    let roll_back = world.workflow(&deploy.roll_back_id()).await;
    assert_eq!(roll_back.state.as_str(), "failed", "the same error meets it");
    assert_eq!(ran(&world).await.inputs, before.inputs);
    world.runner("globex").behaviours.clear();
    world
        .deploy(&DeployComponentsRequest { version: before.version.clone(), ..Default::default() }, "2")
        .await
        .unwrap();
    world.settle().await;
    assert_eq!(ran(&world).await, before);
}

#[tokio::test]
async fn what_was_revoked_is_not_brought_back() {
    let mut world = gated().await;
    let storage: ComponentName = "storage".parse().unwrap();
    let artifact = ran(&world).await.artifacts[&storage].clone();
    let because = ReasonRequest { reason: "CVE-2026-1".into() };
    world.revoke_artifact().revoke(&artifact, &because).await.unwrap();

    let failed = deploy(&mut world).await;

    let reason = refused(&failed);
    assert!(
        reason.contains(&format!("artifact `{artifact}` of component `storage` was revoked: CVE-2026-1")),
        "{reason}"
    );
    assert!(reason.ends_with("deploy a version or a release with `freehold deploy globex`"), "{reason}");
    assert!(table::find_workflow(&*world.memory, &failed.roll_back_id()).await.unwrap().is_none());
    assert_eq!(ran(&world).await.inputs["days"], 8);
}

#[tokio::test]
async fn a_verified_deploy_needs_something_to_go_back_to() {
    let mut world = World::with_app().await;
    world.create().await;
    world.run().await;
    let failed = freehold_protocol::report::Outcome::Failed { reason: "no".into(), partial: true };
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::Ends(failed));
    world.hello("globex");
    world.settle().await;

    let nothing = world.deploy(&verified(), "deploy-1").await.unwrap_err();

    assert_eq!(nothing.kind, Kind::Conflict);
    assert!(nothing.message.starts_with("install `globex` has nothing to roll back to"), "{nothing}");
}

#[tokio::test]
async fn a_component_of_another_version_leaves_no_one_version_to_go_back_to() {
    let mut world = World::with_health(false).await;
    let only = DeployComponentsRequest { components: vec!["storage".parse().unwrap()], ..Default::default() };
    world.deploy(&only, "deploy-1").await.unwrap();
    world.settle().await;

    let mixed = world.deploy(&verified(), "deploy-2").await.unwrap_err();

    assert_eq!(mixed.kind, Kind::Conflict);
    assert!(mixed.message.starts_with("component `storage` of install `globex` does not run"), "{mixed}");
}

/// Deploys `storage` alone with `days`, after the deploy of all components had 7.
async fn deployed_alone(days: i64) -> World {
    let mut world = World::with_health(false).await;
    world.deploy(&DeployComponentsRequest::default(), "deploy-1").await.unwrap();
    world.settle().await;
    let only = vec!["storage".parse().unwrap()];
    let alone = DeployComponentsRequest { components: only, ..with_input("days", days) };
    world.deploy(&alone, "deploy-2").await.unwrap();
    world.settle().await;
    world
}

#[tokio::test]
async fn a_component_with_other_values_leaves_no_one_set_of_values_to_go_back_to() {
    let mut world = deployed_alone(9).await;

    let mixed = world.deploy(&verified(), "deploy-3").await.unwrap_err();
    world.deploy(&DeployComponentsRequest::default(), "deploy-4").await.unwrap();
    world.settle().await;
    let whole = world.deploy(&verified(), "deploy-5").await;

    assert_eq!(mixed.kind, Kind::Conflict);
    let message =
        "component `storage` of install `globex` runs with other values than the last deploy of all components had";
    assert!(mixed.message.starts_with(message), "{mixed}");
    assert!(mixed.message.ends_with("run `freehold deploy globex` without `--verified` first"), "{mixed}");
    assert!(whole.is_ok(), "{whole:?}");
}

#[tokio::test]
async fn a_component_deployed_alone_with_the_same_values_may_be_gone_back_to() {
    let world = deployed_alone(7).await;

    let deploy = world.deploy(&verified(), "deploy-3").await;

    assert!(deploy.is_ok(), "{deploy:?}");
}

#[tokio::test]
async fn a_licence_that_was_set_after_a_component_was_deployed_alone_is_not_another_value() {
    let mut world = World::with_install().await;
    let mut version = app::with_health(false);
    let storage = version.components.iter_mut().find(|one| one.name.as_str() == "storage").unwrap();
    storage.references.insert(Reference::Licence);
    world.sync(&version).await;
    world.build("build-2").await;
    world.settle().await;
    let only = DeployComponentsRequest { components: vec!["storage".parse().unwrap()], ..Default::default() };
    for (seats, request, cause) in
        [(50, DeployComponentsRequest::default(), "deploy-1"), (60, only, "deploy-2"), (70, verified(), "deploy-3")]
    {
        let facts = [("seats".to_owned(), Value::from(seats))].into();
        let licence = SetLicenceRequest { facts, ..SetLicenceRequest::default() };
        world.set_licence().set(&globex(), &licence, member()).await.unwrap();

        let deploy = world.deploy(&request, cause).await;

        assert!(deploy.is_ok(), "{cause}: {deploy:?}");
        world.settle().await;
    }
}

#[tokio::test]
async fn a_call_that_is_lost_is_made_up_for_by_the_next_sweep() {
    let mut world = gated().await;
    let before = ran(&world).await;
    world.loses_roll_backs = true;
    let failed = deploy(&mut world).await;
    assert!(failed.to_roll_back().is_some());

    world.handle_due_tasks().handle().await.unwrap();
    world.settle().await;

    assert_eq!(world.workflow(&failed.roll_back_id()).await.state.as_str(), "succeeded");
    assert_eq!(ran(&world).await, before);
}

#[tokio::test]
async fn a_roll_back_waits_for_the_jobs_of_a_deploy_whose_execution_failed() {
    let mut world = World::with_health(false).await;
    let before = ran(&world).await;
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::Hangs);
    let failed = world.deploy(&verified(), "deploy-1").await.unwrap();
    world.run().await;

    // The runner hears of the cancel only after the deploy has ended.
    world.time_out(&failed).await;
    world.runner("globex").behaviours.clear();
    world.handle_due_tasks().handle().await.unwrap();
    world.settle().await;

    let roll_back = world.workflow(&world.workflow(&failed).await.roll_back_id()).await;
    let nodes: Vec<&str> = roll_back.nodes.iter().map(|node| node.name.as_str()).collect();
    assert!(nodes.iter().any(|name| name.contains("storage")), "{nodes:?}");
    assert_eq!(roll_back.state.as_str(), "succeeded");
    assert_eq!(ran(&world).await, before);
    let storage = "storage".parse::<ComponentName>().unwrap();
    assert!(!table::deployed(&*world.memory, &globex()).await.unwrap()[&storage].partial);
}

#[tokio::test]
async fn a_roll_back_that_waits_for_long_is_tried_less_often() {
    let mut world = World::with_health(false).await;
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::Hangs);
    let deploy = world.deploy(&verified(), "deploy-1").await.unwrap();
    world.run().await;
    // The cancel of the job reaches no runner.
    world.finish_workflow().finish(&deploy, 0, Some("States.Timeout")).await.unwrap();

    let mut tried = Vec::new();
    for secs in [0, 900, 60, 660] {
        world.memory.advance_secs(secs);
        tried.push(world.handle_due_tasks().handle().await.unwrap().failed);
    }

    assert_eq!(tried, [1, 1, 0, 1]);
}

#[tokio::test]
async fn a_deploy_that_begins_while_a_job_of_the_one_before_is_open_deploys_its_part_again() {
    let mut world = World::with_health(false).await;
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::Hangs);
    let failed = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.run().await;

    // The runner hears of the cancel only after the deploy has ended, and the job may still change the part.
    world.time_out(&failed).await;
    world.runner("globex").behaviours.clear();
    let next = world.deploy(&with_input("days", 7), "deploy-2").await.unwrap();
    world.settle().await;

    let next = world.workflow(&next).await;
    let nodes: Vec<&str> = next.nodes.iter().map(|node| node.name.as_str()).collect();
    assert!(nodes.iter().any(|name| name.contains("storage")), "{nodes:?}");
    assert_eq!(next.state.as_str(), "succeeded");
    let storage = "storage".parse::<ComponentName>().unwrap();
    let record = table::deployed(&*world.memory, &globex()).await.unwrap().remove(&storage).unwrap();
    assert_eq!((record.partial, record.serial), (false, next.serial));
}

#[tokio::test]
async fn a_part_whose_job_never_started_is_whole_again_once_its_order_has_expired() {
    let mut world = World::with_health(false).await;
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::Ignores);
    let failed = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.run().await;
    let storage = "storage".parse::<ComponentName>().unwrap();
    let is_partial = async |world: &World| table::deployed(&*world.memory, &globex()).await.unwrap()[&storage].partial;

    world.time_out(&failed).await;
    let while_open = is_partial(&world).await;
    // Nobody took the order before it expired.
    let _ = world.sweep_with_runner_there(3 * 24 * 3600).await;

    assert_eq!(world.workflow(&failed).await.state.as_str(), "failed");
    assert!(while_open);
    assert!(!is_partial(&world).await, "{:?}", world.workflow(&failed).await.nodes);
}

#[tokio::test]
async fn a_part_that_an_earlier_dispatch_changed_stays_partial_when_the_retry_expires_unclaimed() {
    let mut world = World::with_health(false).await;
    let partly = Outcome::Failed { reason: "half of it".into(), partial: true };
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::Ends(partly));
    let failed = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.settle().await;
    let storage = "storage".parse::<ComponentName>().unwrap();
    let job = read::show_workflow(&*world.memory, &failed, world.now()).await.unwrap();
    let job = job.nodes.into_iter().find(|node| node.name == "storage").unwrap().job.unwrap();
    let is_partial = async |world: &World| table::deployed(&*world.memory, &globex()).await.unwrap()[&storage].partial;
    assert!(is_partial(&world).await);

    world.runner("globex").behaviours.insert("storage".into(), Behaviour::Ignores);
    let asked = Asked { by: member(), cause: "retry-1", step: None };
    world.retry_job().retry(&job, &RetryJobRequest::default(), asked).await.unwrap();
    world.run().await;
    world.time_out(&failed).await;
    let _ = world.sweep_with_runner_there(3 * 24 * 3600).await;

    assert!(world.job(&job).await.state.is_terminal());
    assert!(is_partial(&world).await);
}

#[tokio::test]
async fn a_deploy_that_came_first_is_not_undone() {
    let mut world = gated().await;
    world.loses_roll_backs = true;
    let failed = deploy(&mut world).await;
    world.runner("globex").behaviours.clear();
    world.deploy(&with_input("days", 9), "deploy-2").await.unwrap();
    world.settle().await;
    let newer = ran(&world).await;

    world.handle_due_tasks().handle().await.unwrap();
    world.settle().await;

    let reason = refused(&world.workflow(&failed.id).await);
    assert!(reason.starts_with("another workflow of install `globex` has begun since the deploy failed"), "{reason}");
    assert_eq!(ran(&world).await, newer);
}

#[tokio::test]
async fn switched_components_go_back_too() {
    let mut world = World::with_toggles().await;
    let before = ran(&world).await;
    let failed = freehold_protocol::report::Outcome::Failed { reason: "no".into(), partial: false };
    world.runner("globex").behaviours.insert("settings".into(), Behaviour::Ends(failed));
    world.switch(&[("info", false)]).await.unwrap();

    let request = DeployComponentsRequest { verified: true, ..with_input("greeting", "bonjour") };
    let id = world.deploy(&request, "deploy-1").await.unwrap();
    world.settle().await;

    assert_eq!(world.workflow(&id).await.state.as_str(), "failed");
    assert_eq!(ran(&world).await.toggles, before.toggles);
    assert_eq!(ran(&world).await.inputs, before.inputs);
}

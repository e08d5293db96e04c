//! The image that jobs run in: each order brings it, the runner may fetch it, and a workflow keeps the one it began with.

use std::collections::BTreeSet;

use freehold_protocol::api::TeardownInstallRequest;
use freehold_protocol::app_version::AppVersion;
use freehold_protocol::grant::{GrantAnswer, GrantRefusal};
use freehold_protocol::order::{Order, ToolImage, Work};
use freehold_protocol::{Digest, Envelope};

use crate::support::runner::Behaviour;
use crate::support::{World, app, with_input};

/// Returns the app whose jobs run in the image of `settings`.
fn document(source: &str) -> AppVersion {
    let mut document = app::with_source("settings", source);
    let runner = serde_json::json!({ "runner_type": "aws", "tool_image": "settings" });
    document.runner = Some(serde_json::from_value(runner).unwrap());
    document
}

async fn with_install() -> World {
    let mut world = World::with_install().await;
    sync(&mut world, "example/tools:1").await;
    world
}

async fn sync(world: &mut World, source: &str) {
    world.sync(&document(source)).await;
    world.build(source).await;
    world.settle().await;
    world.forget_orders();
}

/// Returns each order in the queues: its kind of work, and the image that it brings.
fn orders(world: &World) -> Vec<(&'static str, Option<ToolImage>)> {
    let orders = world.memory.orders.lock().unwrap();
    let order = |body: &str| Envelope::parse(body.as_bytes()).ok()?.peek::<Order>().ok();
    let found = orders.iter().filter_map(|(.., body)| order(body));
    found.map(|order| (order.work.kind(), order.tool_image.map(|image| *image))).collect()
}

fn digests(world: &World) -> BTreeSet<Digest> {
    orders(world).into_iter().filter_map(|(_, image)| Some(image?.artifact.digest)).collect()
}

#[tokio::test]
async fn each_order_of_an_install_brings_the_image_with_its_provenance() {
    let mut world = with_install().await;

    world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.settle().await;
    world.action("check", "run-1").await.unwrap();
    world.settle().await;

    let found = orders(&world);
    let kinds: BTreeSet<&str> = found.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, BTreeSet::from(["action", "cloudformation_stack", "container_image", "terraform_module"]));
    assert!(found.iter().all(|(_, image)| {
        image
            .as_ref()
            .is_some_and(|image| image.component.as_str() == "settings" && image.artifact.provenance.is_some())
    }));
    assert_eq!(digests(&world).len(), 1);
}

#[tokio::test]
async fn a_workflow_keeps_the_image_that_it_began_with() {
    let mut world = with_install().await;
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::Hangs);
    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.run().await;
    let planned = world.workflow(&workflow).await.tool_image.unwrap();

    sync(&mut world, "example/tools:2").await;

    assert_eq!(world.workflow(&workflow).await.tool_image.unwrap(), planned);
}

#[tokio::test]
async fn a_runner_may_fetch_the_image_for_a_job_without_an_artifact() {
    let mut world = with_install().await;
    world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.settle().await;
    world.runner("globex").behaviours.insert("action:check".into(), Behaviour::Hangs);
    let workflow = world.action("check", "run-1").await.unwrap();
    world.run().await;
    let job = world.workflow(&workflow).await.active_jobs().next().unwrap().clone();
    let order = world.runners["globex"].attempts[&job].order.clone();
    assert!(matches!(order.work, Work::Action(_)));
    let artifact = order.tool_image.unwrap().artifact;

    let answers = world.request_blobs(&job, &artifact).await;

    let [GrantAnswer::Granted { blobs, .. }, GrantAnswer::Refused { refusal, .. }] = &answers[..] else {
        panic!("{answers:?}")
    };
    assert_eq!((blobs.len(), *refusal), (artifact.blobs.len(), GrantRefusal::OtherDigest));
}

#[tokio::test]
async fn an_image_that_is_not_built_stops_the_plan_with_the_way_out() {
    let world = with_install().await;
    world.sync(&document("example/tools:3")).await;

    let error = world.deploy(&with_input("days", 9), "deploy-2").await.unwrap_err();

    assert_eq!(error.message, "component `settings` has no artifact; run `freehold build demo` and deploy again");
}

#[tokio::test]
async fn a_teardown_by_a_version_without_an_image_brings_none() {
    let mut world = with_install().await;

    world.teardown(&TeardownInstallRequest::default(), "teardown-1").await.unwrap();
    world.settle().await;

    let found = orders(&world);
    assert_eq!(found, [("remove", None), ("remove", None), ("remove", None), ("leftovers", None)]);
}

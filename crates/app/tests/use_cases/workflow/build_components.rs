//! Builds: each source is built once, and again when its build failed.

use std::sync::{Arc, Mutex};

use freehold_app::Kind;
use freehold_app::testing::Fault;
use freehold_app::workflow::build_components::BuildComponents;
use freehold_protocol::api::{BuildComponentsRequest, BuildStarted};
use freehold_protocol::app_version::{AppVersion, Component};
use freehold_protocol::order::{Order, Recipe, Source, Work};
use freehold_protocol::report::Outcome;
use freehold_protocol::{Digest, Envelope};
use serde_json::json;

use crate::support::runner::Behaviour;
use crate::support::walk::At;
use crate::support::{World, app, asked_with};

/// Returns a world with an app and a build runner, where nothing is built.
async fn unbuilt() -> World {
    let mut world = World::new();
    world.sync(&app::document()).await;
    world.enrol().await;
    world.hello("build");
    world.run().await;
    world
}

fn states(started: &BuildStarted) -> Vec<&str> {
    started.builds.iter().map(|build| build.state.as_str()).collect()
}

#[tokio::test]
async fn a_changed_source_alone_is_built_again() {
    let mut world = World::with_app().await;
    world.runner("build").started.clear();
    world.sync(&app::with_source("storage", "example/storage:2")).await;

    let started = world.build("build-2").await;
    world.settle().await;

    assert_eq!(states(&started), ["built", "built", "building"]);
    assert_eq!(world.runners["build"].started, ["build:storage"]);
}

#[tokio::test]
async fn a_failed_build_says_why_and_is_made_again_on_request() {
    let mut world = unbuilt().await;
    let outcome = Outcome::Failed { reason: "no such image".into(), partial: false };
    world.runner("build").behaviours.insert("build:storage".into(), Behaviour::Ends(outcome));
    let first = world.build("build-1").await.workflow.unwrap();
    world.settle().await;
    assert_eq!(world.machines[&first].at, At::Ended("failed"));

    let failed = world.build("build-1").await;
    world.runner("build").behaviours.clear();
    world.runner("build").started.clear();
    let second = world.build("build-2").await;
    world.settle().await;

    assert_eq!(states(&failed), ["built", "built", "failed"]);
    assert_eq!(failed.builds[2].reason, "no such image");
    assert_ne!(second.workflow, Some(first));
    assert_eq!(world.runners["build"].started, ["build:storage"]);
    assert_eq!(states(&world.build("build-3").await), ["built", "built", "built"]);
}

#[tokio::test]
async fn a_build_without_artifact_has_failed() {
    let mut world = unbuilt().await;
    let outcome = Outcome::Succeeded { outputs: Default::default(), sensitive: Default::default(), artifact: None };
    world.runner("build").behaviours.insert("build:storage".into(), Behaviour::Ends(outcome));

    world.build("build-1").await;
    world.settle().await;

    let again = world.build("build-1").await;
    assert_eq!(again.builds[2].reason, "the build reported no artifact");
}

#[tokio::test]
async fn a_build_that_is_under_way_is_not_started_twice() {
    let mut world = unbuilt().await;
    world.runner("build").behaviours.insert("build:storage".into(), Behaviour::Hangs);
    let first = world.build("build-1").await;
    world.run().await;

    let second = world.build("build-2").await;

    assert_eq!(second.workflow, first.workflow);
    assert_eq!(world.memory.started.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn builds_that_an_ended_workflow_left_behind_are_made_by_the_next() {
    let mut world = unbuilt().await;
    for name in ["info", "settings", "storage"] {
        world.runner("build").behaviours.insert(format!("build:{name}"), Behaviour::Ignores);
    }
    let first = world.build("build-1").await.workflow.unwrap();
    world.run().await;
    world.time_out(&first).await;
    world.runner("build").behaviours.clear();

    let second = world.build("build-2").await.workflow.unwrap();
    world.settle().await;

    assert_eq!(world.machines[&second].at, At::Ended("succeeded"));
    // The orders of the first expire; its end must not undo what the second built.
    world.memory.advance_secs(2 * 3600);
    world.sweeper().sweep().await.unwrap();
    assert_eq!(states(&world.build("build-3").await), ["built", "built", "built"]);
    assert!(world.open().is_empty());
}

#[tokio::test]
async fn the_same_request_again_starts_an_execution_that_was_not_started() {
    let mut world = unbuilt().await;
    let app = "demo".parse().unwrap();
    world.memory.faults.set(|what| (what == "start").then_some(Fault::Before));
    world.build_components().start(&app, &BuildComponentsRequest::default(), asked_with("build-1")).await.unwrap_err();
    world.memory.faults.set(|_| None);

    let again = world.build("build-1").await;
    world.run().await;

    assert_eq!(world.machines[&again.workflow.unwrap()].at, At::Ended("succeeded"));
}

#[tokio::test]
async fn without_a_runner_that_announced_itself_nothing_is_built() {
    let mut world = World::new();
    world.sync(&app::document()).await;
    let app = "demo".parse().unwrap();
    let none = world
        .build_components()
        .start(&app, &BuildComponentsRequest::default(), asked_with("build-1"))
        .await
        .unwrap_err();
    world.enrol().await;

    let silent = world
        .build_components()
        .start(&app, &BuildComponentsRequest::default(), asked_with("build-1"))
        .await
        .unwrap_err();

    assert_eq!((none.kind, silent.kind), (Kind::Conflict, Kind::Conflict));
    // A client waits for a runner that was registered, and for no other.
    assert_eq!((none.soon, silent.soon), (false, true));
    assert!(world.open().is_empty());
}

/// Returns the app with `count` more images.
fn with_images(count: usize) -> AppVersion {
    let mut document = app::document();
    let template = document.components[1].clone();
    document.components.extend((0..count).map(|at| Component {
        name: format!("image-{at:03}").parse().unwrap(),
        source: Source::Image { reference: format!("example/image:{at}") },
        ..template.clone()
    }));
    document
}

#[tokio::test]
async fn more_builds_than_one_commit_takes_are_made_by_one_workflow() {
    let mut world = unbuilt().await;
    world.sync(&with_images(250)).await;

    let started = world.build("build-1").await;
    world.settle().await;

    assert_eq!(started.builds.len(), 253);
    assert_eq!(world.machines[&started.workflow.unwrap()].at, At::Ended("succeeded"));
    assert_eq!(world.runners["build"].started.len(), 253);
    assert!(states(&world.build("build-2").await).iter().all(|word| *word == "built"));
}

#[tokio::test]
async fn a_request_that_died_between_two_commits_is_taken_up_by_itself_or_the_next() {
    for cause in ["build-1", "build-2"] {
        let mut world = unbuilt().await;
        world.sync(&with_images(250)).await;
        let mut commits = 0;
        world.memory.faults.set(move |what| {
            commits += u32::from(what == "commit");
            (what == "commit" && commits == 2).then_some(Fault::Before)
        });
        let app = "demo".parse().unwrap();
        world
            .build_components()
            .start(&app, &BuildComponentsRequest::default(), asked_with("build-1"))
            .await
            .unwrap_err();
        world.memory.faults.set(|_| None);
        assert!(world.open().is_empty());

        let started = world.build(cause).await;
        world.settle().await;

        assert_eq!(world.machines[&started.workflow.unwrap()].at, At::Ended("succeeded"), "{cause}");
        assert_eq!(world.runners["build"].started.len(), 253, "{cause}");
    }
}

#[tokio::test]
async fn an_order_carries_what_the_version_says_of_the_build_beside_its_source() {
    let mut world = unbuilt().await;
    let mut document = app::document();
    let files = Source::Directory { digest: Digest::of(b"files") };
    let long = "kind: CustomResourceDefinition\n".repeat(10_000);
    let specs = [
        (json!({ "kind": "docker_build", "dockerfile": "Dockerfile", "env_vars": { "A": "1" } }), files),
        (json!({ "kind": "kubernetes_manifest", "namespace": "n", "manifest": "kind: Namespace" }), Source::Version),
        (json!({ "kind": "kubernetes_manifest", "namespace": "n", "manifest": long }), Source::Version),
    ];
    for (component, (spec, source)) in document.components.iter_mut().zip(specs) {
        (component.spec, component.source) = (serde_json::from_value(spec).unwrap(), source);
    }
    world.sync(&document).await;

    world.build("build-1").await;
    world.settle().await;

    let orders = world.memory.orders.lock().unwrap().clone();
    let recipe = |(_, _, _, body): &(String, String, String, String)| {
        let envelope = Envelope::parse(body.as_bytes()).unwrap();
        // Answers to the builders' grants are in the same queue.
        let order: Order = envelope.open_delegated(&world.keys.public(), &world.tenant, world.now()).ok()?;
        let Work::Build(work) = order.work else { panic!("{:?}", order.work) };
        work.recipe
    };
    let recipes: Vec<Recipe> = orders.iter().filter_map(recipe).collect();
    assert_eq!(recipes.len(), 3);
    let args = [("A".to_owned(), "1".to_owned())].into();
    assert_eq!(
        recipes[0],
        Recipe::Dockerfile { dockerfile: "Dockerfile".into(), args, target: String::new(), hosts: Vec::new() }
    );
    assert_eq!(recipes[1], Recipe::Manifest { text: "kind: Namespace".into() });
    let Recipe::PackedManifest { gzip } = &recipes[2] else { panic!("{:?}", recipes[2]) };
    assert!(gzip.len() < 10_000, "{}", gzip.len());
}

#[tokio::test]
async fn the_first_build_of_a_tenant_starts_the_machine_of_its_build_runner_after_the_order() {
    let mut world = World::new();
    world.sync(&app::document()).await;
    world.enrol().await;
    let (demo, request) = ("demo".parse().unwrap(), BuildComponentsRequest::default());
    let refused = world.build_components().start(&demo, &request, asked_with("build-1")).await.unwrap_err();
    let builds = BuildComponents { has_build_machine: true, ..world.build_components() };
    let calls: Arc<Mutex<Vec<&'static str>>> = Arc::default();
    let seen = Arc::clone(&calls);
    world.memory.faults.set(move |what| {
        seen.lock().unwrap().extend(["send", "wake"].into_iter().find(|one| *one == what));
        None
    });

    builds.start(&demo, &request, asked_with("build-1")).await.unwrap();
    world.walk().await;
    let batch = world.memory.take_dispatched();
    let mut are_builds = Vec::new();
    for message in &batch {
        are_builds.push(world.dispatch_job().perform(message).await.unwrap());
    }
    world.dispatch_job().wake_builder().await;

    assert!(refused.to_string().contains("has not announced itself yet"), "{refused}");
    assert_eq!(are_builds, [true; 3]);
    assert_eq!(*calls.lock().unwrap(), ["send", "send", "send", "wake"], "once, after the orders of the batch");
}

#[tokio::test]
async fn an_order_that_is_sent_is_sent_although_the_machine_cannot_be_started() {
    let mut world = unbuilt().await;
    world.memory.faults.set(|what| (what == "wake").then_some(Fault::Before));

    world.build("build-1").await;
    world.settle().await;

    assert_eq!(states(&world.build("build-1").await), ["built", "built", "built"]);
    assert_eq!(*world.memory.woken.lock().unwrap(), Vec::<bool>::new());
}

//! Releases: a release never changes, and it is refused when its builds are not the named ones.

use freehold_app::AppError;
use freehold_app::Kind;
use freehold_app::ports::{Expect, Store as _, Write};
use freehold_app::read;
use freehold_app::table::release_key;
use freehold_protocol::api::{CreateReleaseRequest, DeployComponentsRequest, ReleaseView};
use freehold_protocol::{AppName, Digest, InstallId};
use serde_json::Value;

use crate::support::walk::At;
use crate::support::{World, app, asked_with, globex, member};

fn demo() -> AppName {
    "demo".parse().unwrap()
}

async fn release(world: &World, name: &str, version: Option<Digest>) -> Result<ReleaseView, AppError> {
    world.create_release().create(&demo(), &CreateReleaseRequest { name: name.parse().unwrap(), version }).await
}

fn of_release(name: &str) -> DeployComponentsRequest {
    DeployComponentsRequest { release: Some(name.parse().unwrap()), ..DeployComponentsRequest::default() }
}

#[tokio::test]
async fn a_release_has_the_artifact_of_every_component_and_its_own_digest() {
    let world = World::with_app().await;

    let made = release(&world, "2026.11", None).await.unwrap();

    let names: Vec<&str> = made.contents.artifacts.keys().map(|name| name.as_str()).collect();
    assert_eq!(names, ["info", "settings", "storage"]);
    assert_eq!(made.contents.version, app::document().digest().unwrap());
    assert_eq!(made.digest, made.contents.digest().unwrap());
}

#[tokio::test]
async fn the_same_again_is_the_same_release_and_other_contents_need_another_name() {
    let mut world = World::with_app().await;
    let first = release(&world, "one", None).await.unwrap();
    world.memory.advance_secs(60);
    let again = release(&world, "one", None).await.unwrap();
    world.sync(&app::with_source("storage", "example/storage:2")).await;
    world.build("build-2").await;
    world.settle().await;

    let other = release(&world, "one", None).await.unwrap_err();
    let old = release(&world, "two", Some(first.contents.version.clone())).await.unwrap();

    assert_eq!(again, first);
    assert_eq!(other.kind, Kind::Conflict);
    assert!(other.message.starts_with("release `one` of app `demo` has version 1, not 2 (sha256:"), "{other}");
    assert_eq!(old.digest, first.digest);
}

#[tokio::test]
async fn a_version_with_unbuilt_components_cannot_become_a_release() {
    let world = World::with_app().await;
    world.sync(&app::with_source("storage", "example/storage:2")).await;

    let error = release(&world, "one", None).await.unwrap_err();

    assert_eq!(error.kind, Kind::Conflict);
    assert_eq!(
        error.to_string(),
        "version 2 of app `demo` has components that are not built: `storage`; build them with `freehold build demo \
         --version 2`"
    );
}

#[tokio::test]
async fn two_installs_on_one_release_have_equal_digests() {
    let mut world = World::with_install().await;
    let fixed = release(&world, "one", None).await.unwrap();
    world.sync(&app::with_source("storage", "example/storage:2")).await;
    world.build("build-2").await;
    world.settle().await;
    // The second install is provisioned with the newer version first.
    let request = world.creation("initech");
    world.create_install().create(&request, member()).await.unwrap();
    world.run().await;
    let runner = crate::support::runner::Runner::new(
        &world.tenant,
        "initech",
        crate::support::doubles::queue_url("initech"),
        30,
    );
    world.runners.insert("initech".into(), runner);
    world.hello("initech");
    world.settle().await;

    let initech: InstallId = "initech".parse().unwrap();
    world.deploy(&of_release("one"), "deploy-1").await.unwrap();
    world.deploy_components().deploy(&initech, &of_release("one"), asked_with("deploy-2")).await.unwrap();
    world.settle().await;

    for install in [globex(), initech] {
        let view = read::show_install(&world.versions(), &install, world.now()).await.unwrap();
        let has: Vec<_> = view.components.iter().map(|one| (one.component.clone(), one.artifact.clone())).collect();
        assert_eq!(has, fixed.contents.artifacts.clone().into_iter().collect::<Vec<_>>(), "{install}");
        assert_eq!(view.version, Some(fixed.contents.version.clone()));
    }
}

#[tokio::test]
async fn the_releases_of_an_app_that_does_not_exist_are_not_an_empty_list() {
    let world = World::with_app().await;

    let none = read::list_releases(&*world.memory, &demo(), None).await.unwrap();
    let absent = read::list_releases(&*world.memory, &"dem".parse().unwrap(), None).await.unwrap_err();

    assert!(none.items.is_empty());
    assert_eq!(absent.kind, Kind::NotFound);
}

#[tokio::test]
async fn a_deploy_says_which_release_it_brings() {
    let mut world = World::with_install().await;
    release(&world, "one", None).await.unwrap();

    let workflow = world.deploy(&DeployComponentsRequest { all: true, ..of_release("one") }, "deploy-1").await.unwrap();
    world.settle().await;

    let view = read::workflow_view(&world.workflow(&workflow).await);
    assert_eq!(view.release, Some("one".parse().unwrap()));
    assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"));
}

/// Puts another artifact's digest into the release's row, as no use case ever would.
async fn bend(world: &World, name: &str) {
    let key = release_key(&demo(), &name.parse().unwrap());
    let row = world.memory.get(&key).await.unwrap().unwrap();
    let mut body: Value = serde_json::from_str(&row.body).unwrap();
    body["contents"]["artifacts"]["storage"] = Value::from(Digest::of(b"another").to_string());
    let write = Write::Put { key, body: body.to_string(), expect: Expect::Any, expires: None };
    let _ = world.memory.commit(vec![write]).await.unwrap();
}

#[tokio::test]
async fn a_build_that_is_not_the_releases_is_refused_when_asked_for_and_when_planned() {
    let mut world = World::with_install().await;
    release(&world, "one", None).await.unwrap();
    let early = world.deploy(&of_release("one"), "deploy-1").await.unwrap();
    bend(&world, "one").await;

    world.settle().await;
    let late = world.deploy(&of_release("one"), "deploy-2").await.unwrap_err();

    assert_eq!(world.machines[&early].at, At::Ended("failed"));
    assert_eq!(late.kind, Kind::Conflict);
    assert!(late.message.starts_with("component `storage` has artifact `sha256:"), "{late}");
    assert!(late.message.contains("but release `one` contains"), "{late}");
}

#[tokio::test]
async fn a_release_that_is_not_there_or_comes_with_a_version_is_refused() {
    let world = World::with_install().await;
    let made = release(&world, "one", None).await.unwrap();

    let unknown = world.deploy(&of_release("two"), "deploy-1").await.unwrap_err();
    let both = DeployComponentsRequest { version: Some(made.contents.version), ..of_release("one") };
    let both = world.deploy(&both, "deploy-2").await.unwrap_err();

    assert_eq!((unknown.kind, both.kind), (Kind::NotFound, Kind::Invalid));
}

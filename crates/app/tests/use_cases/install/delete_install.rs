//! Deleting: only an install in which nothing ran goes, and its name, its prefixes and its machine are free again.

use std::sync::{Arc, Mutex};

use freehold_app::Kind;
use freehold_app::install::delete_install::DeleteInstall;
use freehold_app::ports::Store as _;
use freehold_app::read;
use freehold_app::table::{gone_installs, prefix_key};
use freehold_app::webhook::list_webhooks::list_webhooks;
use freehold_app::workflow::accept_report::Accepted;
use freehold_domain::webhook::MAX_WEBHOOKS;
use freehold_protocol::InstallId;
use freehold_protocol::api::{AddWebhookRequest, CreateInstallRequest, WebhookTask};
use freehold_protocol::envelope::PublicKey;

use crate::support::doubles::{Meanwhile, Racing};
use crate::support::walk::At;
use crate::support::webhooks::key;
use crate::support::{World, globex, member};

async fn names(world: &World) -> Vec<String> {
    let page = read::list_installs(&*world.memory, None, world.now(), &|_| true).await.unwrap();
    page.items.into_iter().map(|view| view.install.to_string()).collect()
}

#[tokio::test]
async fn an_install_that_never_ran_is_deleted_and_its_name_is_given_again() {
    let mut world = World::with_app().await;
    let first = world.create().await;
    world.run().await;

    let deleted = world.delete_install().delete(&globex(), member()).await.unwrap();
    let gone = read::show_install(&world.versions(), &globex(), world.now()).await.unwrap_err();
    world.settle().await;
    let request = CreateInstallRequest { region: "us-east-1".into(), ..world.creation("globex") };
    let (install, second) = world.create_install().create(&request, member()).await.unwrap();
    world.run().await;
    world.runner("globex").region = "us-east-1".into();
    world.hello("globex");
    world.settle().await;

    assert_eq!((deleted.install, &deleted.region[..]), (globex(), "eu-west-1"));
    assert_eq!(gone.kind, Kind::NotFound);
    assert_eq!(world.machines[&first].at, At::Ended("cancelled"), "nothing waits for the runner any more");
    assert_ne!(first, second, "Step Functions takes no name twice");
    assert_eq!(install.region, "us-east-1");
    assert_eq!(world.machines[&second].at, At::Ended("succeeded"));
    assert!(world.open().is_empty());
}

#[tokio::test]
async fn an_install_with_the_most_webhooks_is_deleted_with_them() {
    let world = World::with_app().await;
    let longest: InstallId = "a-b-c-d-e-f-g-h-i-j".parse().unwrap();
    world.create_install().create(&world.creation(longest.as_str()), member()).await.unwrap();
    for at in 0..MAX_WEBHOOKS {
        let starts = WebhookTask::DeployComponents { install: longest.clone() };
        let key = PublicKey::from(key(u8::try_from(at).unwrap()).verifying_key());
        let request = AddWebhookRequest { webhook: format!("ci-{at}").parse().unwrap(), key, starts };
        world.add_webhook().add(&request, member()).await.unwrap();
    }

    world.delete_install().delete(&longest, member()).await.unwrap();

    assert!(list_webhooks(&*world.memory).await.unwrap().webhooks.is_empty());
    assert!(names(&world).await.is_empty());
}

#[tokio::test]
async fn an_install_whose_runner_announced_itself_is_kept() {
    let world = World::with_install().await;
    let before = world.memory.rows();

    let ran = world.delete_install().delete(&globex(), member()).await.unwrap_err();
    let unknown = world.delete_install().delete(&"initech".parse().unwrap(), member()).await.unwrap_err();
    let builds = world.delete_install().delete(&"build".parse().unwrap(), member()).await.unwrap_err();

    assert_eq!([ran.kind, unknown.kind, builds.kind], [Kind::Conflict, Kind::NotFound, Kind::Invalid]);
    assert!(ran.message.starts_with("install `globex` cannot be deleted: version `sha256:"), "{ran}");
    assert!(ran.message.contains("; remove the app with `freehold teardown globex`, let the customer delete"), "{ran}");
    assert!(ran.message.ends_with("stop serving it with `freehold install disable globex --reason TEXT`"), "{ran}");
    assert_eq!(world.memory.rows(), before);
}

#[tokio::test]
async fn a_hello_after_the_deletion_is_not_believed() {
    let mut world = World::with_app().await;
    world.create().await;
    world.run().await;
    world.delete_install().delete(&globex(), member()).await.unwrap();

    let hello = world.runners["globex"].hello(world.now());
    let rows = world.memory.rows();
    let accepted = world.accept_report().accept(&hello, world.now()).await.unwrap();

    assert!(matches!(accepted, Accepted::Refused(_)), "{accepted:?}");
    assert_eq!(world.memory.rows(), rows);
}

#[tokio::test]
async fn names_that_only_the_deleted_one_stood_in_the_way_of_are_free() {
    let world = World::with_app().await;
    for name in ["prod-east", "stage-east", "stage-west"] {
        world.create_install().create(&world.creation(name), member()).await.unwrap();
    }
    for name in ["prod-east", "stage-east"] {
        world.delete_install().delete(&name.parse().unwrap(), member()).await.unwrap();
    }

    let free = world.create_install().create(&world.creation("prod"), member()).await;
    let taken = world.create_install().create(&world.creation("stage"), member()).await.unwrap_err();

    assert!(free.is_ok());
    assert!(taken.message.contains("begin alike"), "{taken}");
    assert_eq!(names(&world).await, ["prod", "stage-west"]);
}

#[tokio::test]
async fn an_install_that_is_created_meanwhile_keeps_its_prefixes() {
    let world = World::with_app().await;
    world.create_install().create(&world.creation("stage-east"), member()).await.unwrap();
    let (installs, request) = (world.create_install(), world.creation("stage-west"));
    let meanwhile: Meanwhile = Box::pin(async move {
        installs.create(&request, member()).await.unwrap();
    });
    let store = Racing { memory: Arc::clone(&world.memory), meanwhile: Mutex::new(Some(meanwhile)) };

    DeleteInstall { store: Arc::new(store), ..world.delete_install() }
        .delete(&"stage-east".parse().unwrap(), member())
        .await
        .unwrap();

    assert_eq!(names(&world).await, ["stage-west"]);
    assert!(world.memory.get(&prefix_key("stage")).await.unwrap().is_some());
    assert!(world.memory.get(&prefix_key("stage-eas")).await.unwrap().is_none());
}

#[tokio::test]
async fn two_installs_that_are_deleted_at_the_same_moment_are_both_gone() {
    // The reports queue of `globex` has a row, and neither install is in it.
    let world = World::with_install().await;
    for name in ["prod-east", "stage-west"] {
        world.create_install().create(&world.creation(name), member()).await.unwrap();
    }
    let other = world.delete_install();
    let meanwhile: Meanwhile = Box::pin(async move {
        other.delete(&"stage-west".parse().unwrap(), member()).await.unwrap();
    });
    let store = Racing { memory: Arc::clone(&world.memory), meanwhile: Mutex::new(Some(meanwhile)) };

    DeleteInstall { store: Arc::new(store), ..world.delete_install() }
        .delete(&"prod-east".parse().unwrap(), member())
        .await
        .unwrap();

    assert_eq!(names(&world).await, ["globex"]);
    assert_eq!(gone_installs(&*world.memory).await.unwrap().0.count, 2);
}

//! What an install follows: a pin holds against every other deploy, a channel brings the install to its release.

use freehold_app::app_version::show_inputs::show_inputs;
use freehold_app::{Kind, read, table};
use freehold_domain::install::Install;
use freehold_protocol::api::{CreateInstallRequest, DeployComponentsRequest, Follows};
use freehold_protocol::{Digest, InstallId};

use crate::support::channels::{demo, follow, move_to, release, stable};
use crate::support::{World, app, globex, member};

fn pin(name: &str) -> Follows {
    Follows::Release { release: name.parse().unwrap() }
}

fn of_release(name: &str) -> DeployComponentsRequest {
    DeployComponentsRequest { release: Some(name.parse().unwrap()), ..DeployComponentsRequest::default() }
}

async fn install(world: &World) -> Install {
    table::install(&*world.memory, &globex()).await.unwrap().value
}

async fn number(world: &World, version: Option<&Digest>) -> u64 {
    world.versions().load(&demo(), version).await.unwrap().number
}

#[tokio::test]
async fn a_pinned_install_gets_its_release_and_nothing_else() {
    let mut world = World::with_releases().await;
    follow(&world, pin("two")).await.unwrap();
    let latest = world.versions().load(&demo(), None).await.unwrap().version;

    let other = world.deploy(&of_release("three"), "other").await.unwrap_err();
    let newer = DeployComponentsRequest { version: Some(latest), ..DeployComponentsRequest::default() };
    let newer = world.deploy(&newer, "newer").await.unwrap_err();
    let workflow = world.deploy(&DeployComponentsRequest::default(), "deploy-1").await.unwrap();
    world.settle().await;

    assert_eq!((other.kind, newer.kind), (Kind::Conflict, Kind::Conflict));
    assert!(
        other.message.starts_with("install `globex` follows release `two`, so only release `two` is deployed"),
        "{other}"
    );
    assert_eq!(number(&world, install(&world).await.version()).await, 2);
    assert_eq!(read::workflow_view(&world.workflow(&workflow).await).release, Some("two".parse().unwrap()));
    world.deploy(&of_release("two"), "same").await.unwrap();
}

#[tokio::test]
async fn an_install_that_begins_to_follow_a_channel_is_brought_there_and_back_to_the_latest_by_a_deploy() {
    let mut world = World::with_releases().await;
    move_to(&world, "two").await.unwrap();

    follow(&world, Follows::Channel { channel: stable() }).await.unwrap();
    world.handle_due_tasks().handle().await.unwrap();
    world.settle().await;
    let followed = number(&world, install(&world).await.version()).await;
    follow(&world, Follows::Latest).await.unwrap();
    world.deploy(&DeployComponentsRequest::default(), "deploy-1").await.unwrap();
    world.settle().await;

    assert_eq!((followed, number(&world, install(&world).await.version()).await), (2, 3));
}

#[tokio::test]
async fn an_install_that_follows_again_is_brought_there_again() {
    let mut world = World::with_releases().await;
    move_to(&world, "two").await.unwrap();
    for (follows, cause) in [(Follows::Channel { channel: stable() }, "first"), (pin("one"), "second")] {
        follow(&world, follows).await.unwrap();
        world.handle_due_tasks().handle().await.unwrap();
        world.settle().await;
        if install(&world).await.live.is_none() && cause == "second" {
            world.deploy(&DeployComponentsRequest::default(), cause).await.unwrap();
            world.settle().await;
        }
    }
    assert_eq!(number(&world, install(&world).await.version()).await, 1);
    world.memory.advance_secs(60);

    follow(&world, Follows::Channel { channel: stable() }).await.unwrap();
    world.handle_due_tasks().handle().await.unwrap();
    world.settle().await;

    assert_eq!(number(&world, install(&world).await.version()).await, 2);
}

#[tokio::test]
async fn the_same_again_writes_nothing_and_what_is_not_there_is_refused() {
    let world = World::with_releases().await;
    follow(&world, pin("one")).await.unwrap();
    let rows = world.memory.rows();

    follow(&world, pin("one")).await.unwrap();
    let release = follow(&world, pin("nine")).await.unwrap_err();
    let channel = follow(&world, Follows::Channel { channel: stable() }).await.unwrap_err();

    assert_eq!(world.memory.rows(), rows);
    assert_eq!((release.kind, channel.kind), (Kind::NotFound, Kind::NotFound));
    assert_eq!(
        channel.message,
        "channel `stable` of app `demo` does not exist; `freehold channel list demo` shows all channels, and `freehold \
         channel move demo stable RELEASE` creates it"
    );
}

#[tokio::test]
async fn a_new_install_is_provisioned_with_what_its_channel_has_when_the_runner_comes() {
    let mut world = World::with_app().await;
    release(&world, "one", None).await;
    world.sync(&app::with_source("storage", "example/storage:2")).await;
    world.build("build-2").await;
    world.settle().await;
    release(&world, "two", None).await;
    move_to(&world, "one").await.unwrap();
    let request = CreateInstallRequest { release: Follows::Channel { channel: stable() }, ..world.creation("globex") };

    world.create_install().create(&request, member()).await.unwrap();
    let other = CreateInstallRequest { release: Follows::Latest, ..request.clone() };
    let other = world.create_install().create(&other, member()).await.unwrap_err();
    let runner =
        crate::support::runner::Runner::new(&world.tenant, "globex", crate::support::doubles::queue_url("globex"), 20);
    world.runners.insert("globex".into(), runner);
    world.run().await;
    world.handle_due_tasks().handle().await.unwrap();
    world.hello("globex");
    world.settle().await;

    assert_eq!(number(&world, install(&world).await.version()).await, 1);
    assert!(
        other.message.contains("exists already, and follows channel `stable`; `freehold install release"),
        "{other}"
    );
    let view = read::show_install(&world.versions(), &globex(), world.now()).await.unwrap();
    assert_eq!(view.release, Follows::Channel { channel: stable() });
}

#[tokio::test]
async fn the_stack_and_the_inputs_are_those_of_what_the_install_follows() {
    let world = World::with_releases().await;
    follow(&world, pin("one")).await.unwrap();
    let one = app::document().digest().unwrap();

    let stack = world.render_stack().render_stack(&globex()).await.unwrap();
    let inputs = show_inputs(&world.versions(), &install(&world).await).await.unwrap();

    assert_eq!((stack.version, inputs.version), (one.clone(), one));
}

#[tokio::test]
async fn an_install_that_is_deleted_follows_nothing_any_more() {
    let world = World::with_releases().await;
    move_to(&world, "one").await.unwrap();
    let request = CreateInstallRequest { release: Follows::Channel { channel: stable() }, ..world.creation("initech") };
    let initech: InstallId = "initech".parse().unwrap();
    world.create_install().create(&request, member()).await.unwrap();
    let before = read::list_channels(&*world.memory, &demo()).await.unwrap();

    world.delete_install().delete(&initech, member()).await.unwrap();

    let after = read::list_channels(&*world.memory, &demo()).await.unwrap();
    assert_eq!((before[0].installs, after[0].installs), (1, 0));
}

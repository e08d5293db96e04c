//! Worlds with releases and a channel.

use freehold_app::AppError;
use freehold_domain::install::Install;
use freehold_protocol::api::{ChannelView, CreateReleaseRequest, Follows, MoveChannelRequest, SetReleaseRequest};
use freehold_protocol::{AppName, ChannelName, Digest};

use super::{World, app, globex, member};

pub(crate) fn demo() -> AppName {
    "demo".parse().unwrap()
}

pub(crate) fn stable() -> ChannelName {
    "stable".parse().unwrap()
}

/// Makes a release of a version, or of the latest one.
pub(crate) async fn release(world: &World, name: &str, version: Option<Digest>) {
    let request = CreateReleaseRequest { name: name.parse().unwrap(), version };
    world.create_release().create(&demo(), &request).await.unwrap();
}

/// Moves the channel.
pub(crate) async fn move_to(world: &World, release: &str) -> Result<ChannelView, AppError> {
    let request = MoveChannelRequest { release: release.parse().unwrap(), again_after: None };
    world.move_channel().move_channel(&demo(), &stable(), &request, member()).await
}

/// Sets what `globex` follows.
pub(crate) async fn follow(world: &World, release: Follows) -> Result<Install, AppError> {
    world.set_release().set(&globex(), &SetReleaseRequest { release }, member()).await
}

impl World {
    /// Returns a world with the releases `one` to `three`, of three versions, in which `globex` has the first one.
    pub(crate) async fn with_releases() -> Self {
        let mut world = Self::with_install().await;
        release(&world, "one", None).await;
        for (number, name) in [(2, "two"), (3, "three")] {
            world.sync(&app::with_source("storage", &format!("example/storage:{number}"))).await;
            world.build(&format!("build-{number}")).await;
            world.settle().await;
            release(&world, name, None).await;
        }
        world
    }

    /// Returns a world of [`Self::with_releases`] in which `globex` follows the channel, which has release `one`.
    pub(crate) async fn with_channel() -> Self {
        let mut world = Self::with_releases().await;
        move_to(&world, "one").await.unwrap();
        follow(&world, Follows::Channel { channel: stable() }).await.unwrap();
        for _ in 0..2 {
            world.handle_due_tasks().handle().await.unwrap();
        }
        world.settle().await;
        let secs = world.now().as_secs();
        world.memory.advance_secs(60 - secs % 60);
        world
    }
}

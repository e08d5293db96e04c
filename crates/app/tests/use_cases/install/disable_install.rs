//! A disabled install gets no workflow until it is enabled; the refusal shows the reason.

use freehold_app::AppError;
use freehold_app::Kind;
use freehold_app::read;
use freehold_protocol::api::{InstallView, ReasonRequest};

use crate::support::{World, globex, with_input};

fn because(reason: &str) -> ReasonRequest {
    ReasonRequest { reason: reason.into() }
}

async fn shown(world: &World) -> InstallView {
    read::show_install(&world.versions(), &globex(), world.now()).await.unwrap()
}

#[tokio::test]
async fn a_disabled_install_starts_nothing_until_it_is_enabled() {
    let mut world = World::with_install().await;
    world.disable_install().disable(&globex(), &because("contract ended")).await.unwrap();
    let view = shown(&world).await;

    let refused = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap_err();
    world.enable_install().enable(&globex()).await.unwrap();
    let started = world.deploy(&with_input("days", 8), "deploy-2").await;
    world.settle().await;

    assert_eq!((view.state.as_str(), view.disabled.as_deref()), ("disabled", Some("contract ended")));
    assert_eq!(refused.kind, Kind::Conflict);
    assert!(refused.message.contains("is disabled: contract ended"), "{refused}");
    assert!(started.is_ok());
    assert_eq!(shown(&world).await.disabled, None);
}

#[tokio::test]
async fn the_same_switch_again_changes_nothing_and_another_reason_replaces_it() {
    let world = World::with_install().await;
    world.disable_install().disable(&globex(), &because("first")).await.unwrap();
    let rows = world.memory.rows();

    world.disable_install().disable(&globex(), &because(" first ")).await.unwrap();
    assert_eq!(world.memory.rows(), rows);
    world.disable_install().disable(&globex(), &because("second")).await.unwrap();

    assert_eq!(shown(&world).await.disabled.as_deref(), Some("second"));
}

#[tokio::test]
async fn a_reason_is_one_line_that_says_something() {
    let world = World::with_install().await;
    let refused = async |reason: &str| -> AppError {
        world.disable_install().disable(&globex(), &because(reason)).await.unwrap_err()
    };

    for reason in ["", "  ", "two\nlines", &"x".repeat(501)] {
        assert_eq!(refused(reason).await.kind, Kind::Invalid, "{reason}");
    }
}

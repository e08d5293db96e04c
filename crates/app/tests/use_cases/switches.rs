//! An install that is disabled gets nothing, an artifact that was revoked goes nowhere, and both say why.

use freehold_app::AppError;
use freehold_app::Kind;
use freehold_app::read;
use freehold_protocol::Digest;
use freehold_protocol::api::{CreateReleaseRequest, InstallView, ReasonRequest};

use crate::support::{World, globex, with_input};

fn because(reason: &str) -> ReasonRequest {
    ReasonRequest { reason: reason.into() }
}

async fn shown(world: &World) -> InstallView {
    read::install(&world.versions(), &globex()).await.unwrap()
}

async fn digest(world: &World) -> Digest {
    shown(world).await.components[0].artifact.clone()
}

#[tokio::test]
async fn a_disabled_install_starts_nothing_until_it_is_enabled() {
    let mut world = World::with_install().await;
    world.switches().disable(&globex(), &because("contract ended")).await.unwrap();
    let view = shown(&world).await;

    let refused = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap_err();
    world.switches().enable(&globex()).await.unwrap();
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
    world.switches().disable(&globex(), &because("first")).await.unwrap();
    let rows = world.memory.rows();

    world.switches().disable(&globex(), &because(" first ")).await.unwrap();
    assert_eq!(world.memory.rows(), rows);
    world.switches().disable(&globex(), &because("second")).await.unwrap();

    assert_eq!(shown(&world).await.disabled.as_deref(), Some("second"));
}

#[tokio::test]
async fn a_reason_is_one_line_that_says_something() {
    let world = World::with_install().await;
    let refused =
        async |reason: &str| -> AppError { world.switches().disable(&globex(), &because(reason)).await.unwrap_err() };

    for reason in ["", "  ", "two\nlines", &"x".repeat(501)] {
        assert_eq!(refused(reason).await.kind, Kind::Invalid, "{reason}");
    }
}

#[tokio::test]
async fn a_revoked_artifact_is_told_in_its_lineage_and_makes_no_release() {
    let world = World::with_install().await;
    let digest = digest(&world).await;

    let revoked = world.switches().revoke(&digest, &because("CVE-2026-1")).await.unwrap();
    let again = world.switches().revoke(&digest, &because("CVE-2026-1")).await.unwrap();

    assert_eq!((&revoked, revoked.builds.len()), (&again, 1));
    let lineage = world.show_lineage().show(&digest, None).await.unwrap().lineage;
    assert_eq!(lineage.builds[0].revoked.as_deref(), Some("CVE-2026-1"));
    // What was proven stays proven.
    assert!(lineage.verify(&world.keys.public()).iter().all(|link| link.finding.is_ok()));
    let request = CreateReleaseRequest { name: "one".parse().unwrap(), version: None };
    let error = world.create_release().create(&"demo".parse().unwrap(), &request).await.unwrap_err();
    assert!(error.message.contains("was revoked: CVE-2026-1"), "{error}");
}

#[tokio::test]
async fn a_revoked_artifact_is_granted_to_no_install_that_lacks_it() {
    let mut world = World::with_app().await;
    let digest = world.build("build-2").await.builds[2].artifact.clone().unwrap();
    world.switches().revoke(&digest, &because("CVE-2026-1")).await.unwrap();

    world.create().await;
    world.run().await;
    world.hello("globex");
    world.settle().await;

    assert_eq!(world.runners["globex"].refused_grants.len(), 1);
    assert!(world.runners["globex"].refused_grants[0].contains("CVE-2026-1"));
}

#[tokio::test]
async fn what_nobody_made_cannot_be_revoked() {
    let world = World::with_app().await;

    let error = world.switches().revoke(&Digest::of(b"nothing"), &because("CVE-2026-1")).await.unwrap_err();

    assert_eq!(error.kind, Kind::NotFound);
}

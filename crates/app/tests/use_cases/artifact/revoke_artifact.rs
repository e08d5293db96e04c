//! A revoked artifact comes to no install that lacks it and cannot be in a release; the refusal shows the reason.

use freehold_app::{Kind, read};
use freehold_protocol::Digest;
use freehold_protocol::api::{CreateReleaseRequest, ReasonRequest};

use crate::support::{World, globex, with_input};

fn because(reason: &str) -> ReasonRequest {
    ReasonRequest { reason: reason.into() }
}

async fn digest(world: &World) -> Digest {
    read::show_install(&world.versions(), &globex(), world.now()).await.unwrap().components[0].artifact.clone()
}

#[tokio::test]
async fn a_revoked_artifact_is_marked_in_its_lineage_and_makes_no_release() {
    let world = World::with_install().await;
    let digest = digest(&world).await;

    let revoked = world.revoke_artifact().revoke(&digest, &because("CVE-2026-1")).await.unwrap();
    let again = world.revoke_artifact().revoke(&digest, &because("CVE-2026-1")).await.unwrap();

    assert_eq!((&revoked, revoked.builds.len()), (&again, 1));
    let lineage = world.show_lineage().show(&digest, None, None).await.unwrap().lineage;
    assert_eq!(lineage.builds[0].revoked.as_deref(), Some("CVE-2026-1"));
    // What was proven stays proven.
    assert!(lineage.verify(&world.keys.public()).iter().all(|link| link.finding.is_ok()));
    let request = CreateReleaseRequest { name: "one".parse().unwrap(), version: None };
    let error = world.create_release().create(&"demo".parse().unwrap(), &request).await.unwrap_err();
    assert!(error.message.contains("was revoked: CVE-2026-1"), "{error}");
}

#[tokio::test]
async fn a_revoked_artifact_comes_to_no_install_that_lacks_it() {
    let mut world = World::with_app().await;
    let digest = world.build("build-2").await.builds[2].artifact.clone().unwrap();
    world.revoke_artifact().revoke(&digest, &because("CVE-2026-1")).await.unwrap();

    world.create().await;
    world.run().await;
    world.hello("globex");
    world.settle().await;

    // Nothing runs before it is refused: a part of a version that cannot be deployed whole would be left behind.
    assert!(world.runners["globex"].started.is_empty());
    let workflow = read::list_workflows(&*world.memory, &globex(), None).await.unwrap().items.remove(0);
    assert_eq!(workflow.state, "failed");
    assert!(workflow.reason.contains("was revoked: CVE-2026-1"), "{workflow:?}");
}

#[tokio::test]
async fn an_install_that_has_a_revoked_artifact_gets_other_inputs() {
    let mut world = World::with_install().await;
    let digest = digest(&world).await;
    world.revoke_artifact().revoke(&digest, &because("CVE-2026-1")).await.unwrap();

    world.deploy(&with_input("days", 9), "deploy-2").await.unwrap();
    world.settle().await;

    let workflow = read::list_workflows(&*world.memory, &globex(), None).await.unwrap().items.remove(0);
    assert_eq!(workflow.state, "succeeded", "{workflow:?}");
}

#[tokio::test]
async fn what_nobody_made_cannot_be_revoked() {
    let world = World::with_app().await;

    let error = world.revoke_artifact().revoke(&Digest::of(b"nothing"), &because("CVE-2026-1")).await.unwrap_err();

    assert_eq!(error.kind, Kind::NotFound);
}

//! A version shows what its sources were resolved to: commits after the sync, digests after the build.

use freehold_app::app_version::show_version::show_version;
use freehold_protocol::api::ResolvedSource;
use freehold_protocol::app_version::AppVersion;
use freehold_protocol::order::Source;

use crate::support::runner::Behaviour;
use crate::support::{World, app, asked_with};

const COMMIT: &str = "1111111111111111111111111111111111111111";

async fn shown(world: &World, document: &AppVersion) -> Vec<ResolvedSource> {
    let digest = document.digest().unwrap();
    show_version(&world.versions(), &document.app, &digest).await.unwrap().resolved
}

#[tokio::test]
async fn a_branch_is_a_commit_at_once_and_a_tag_a_digest_once_built() {
    let mut world = World::new();
    let mut document = app::document();
    document.components[2].source = Source::Git {
        url: "https://git.example/storage".into(),
        commit: COMMIT.into(),
        directory: "module".into(),
        branch: "main".into(),
    };
    world.sync(&document).await;
    world.enrol().await;
    world.hello("build");
    world.run().await;

    let before = shown(&world, &document).await;
    world.runner("build").behaviours.insert("build:info".into(), Behaviour::Hangs);
    world.build("build-1").await;
    world.run().await;
    let after = shown(&world, &document).await;

    let asked: Vec<_> = before.iter().map(|one| one.asked.as_str()).collect();
    assert_eq!(asked, ["example/info:1", "example/settings:1", "https://git.example/storage at main"]);
    let resolved = |all: &[ResolvedSource]| all.iter().map(|one| one.resolved.clone()).collect::<Vec<_>>();
    assert_eq!(resolved(&before), [None, None, Some(COMMIT.to_owned())]);
    assert!(before.iter().all(|one| one.build.is_none()));
    let settings =
        world.build_components().start(&document.app, &Default::default(), asked_with("build-1")).await.unwrap();
    let digest = settings.builds[1].artifact.as_ref().unwrap().to_string();
    assert_eq!(resolved(&after), [None, Some(digest), Some(COMMIT.to_owned())]);
    assert!(after.iter().all(|one| one.build.is_some()));
}

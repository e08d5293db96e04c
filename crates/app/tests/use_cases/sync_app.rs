//! Syncing: one version for one document, and no graph that cannot be walked.

use freehold_app::Kind;
use freehold_protocol::Digest;
use freehold_protocol::api::PutSource;

use crate::support::{World, app};

#[tokio::test]
async fn the_same_document_is_the_same_version_and_the_last_synced_is_the_latest() {
    let world = World::new();
    let (one, two) = (app::document(), app::with_source("storage", "example/storage:2"));
    let put = async |document| world.sync_app().put_version(&one.app, document).await.unwrap();

    let numbers = [put(&one).await.number, put(&two).await.number, put(&two).await.number, put(&one).await.number];

    assert_eq!(numbers, [1, 2, 2, 1]);
    let latest = freehold_app::records::version(&*world.memory, &one.app, None).await.unwrap();
    assert_eq!((latest.number, latest.document), (1, one));
}

#[tokio::test]
async fn a_document_that_cannot_be_deployed_is_refused_by_name() {
    let world = World::new();
    let good = app::document();
    let mut cycle = good.clone();
    cycle.components[2].dependencies.insert("info".parse().unwrap());
    let mut missing = good.clone();
    missing.components[0].dependencies.insert("network".parse().unwrap());
    let mut twice = good.clone();
    twice.components.push(good.components[1].clone());
    let mut newer = good.clone();
    newer.format = 2;
    let mut large = good.clone();
    large.description = "x".repeat(300 * 1024);
    let cases = [
        (cycle, "depends on itself through others"),
        (missing, "component `info` depends on `network`, which does not exist"),
        (twice, "two components are called `settings`"),
        (newer, "document has format 2, expected 1"),
        (large, "bytes of config, more than the"),
    ];

    for (document, words) in cases {
        let error = world.sync_app().put_version(&document.app, &document).await.unwrap_err();

        assert_eq!(error.kind, Kind::Invalid);
        assert!(error.message.contains(words), "{error}");
    }
    let other = world.sync_app().put_version(&"other".parse().unwrap(), &good).await.unwrap_err();
    assert_eq!(other.message, "document is of app `demo`, not `other`");
    assert!(world.memory.rows().is_empty());
}

#[tokio::test]
async fn a_source_has_a_place_unless_it_is_too_large() {
    let world = World::new();
    let digest = Digest::of(b"source");

    let place = world.sync_app().put_source(&PutSource { digest: digest.clone(), size: 10 }).await.unwrap();
    let large = world.sync_app().put_source(&PutSource { digest: digest.clone(), size: 1 << 40 }).await.unwrap_err();

    assert!(place.url.contains(digest.hex()));
    assert_eq!(large.kind, Kind::Invalid);
}

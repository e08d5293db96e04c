//! Uploading a source: where it goes, and how large it may be.

use freehold_app::Kind;
use freehold_protocol::Digest;
use freehold_protocol::api::UploadSourceRequest;

use crate::support::World;

#[tokio::test]
async fn a_source_has_a_place_unless_it_is_too_large() {
    let world = World::new();
    let digest = Digest::of(b"source");

    let place = world.upload_source().upload(&UploadSourceRequest { digest: digest.clone(), size: 10 }).await.unwrap();
    let large =
        world.upload_source().upload(&UploadSourceRequest { digest: digest.clone(), size: 1 << 40 }).await.unwrap_err();

    assert!(place.url.contains(digest.hex()));
    assert_eq!(large.kind, Kind::Invalid);
}

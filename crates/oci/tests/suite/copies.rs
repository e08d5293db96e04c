//! What a copy leaves in the target, and how little it moves.

use freehold_oci::{Copied, CopyOptions, Moved, RegistryError, Repository, Version, copy, digest_tag};

use crate::faulty_registry::{Behaviour, Faulty};
use crate::image::{DOCKER, Image, OCI, Words, noise, push_images};
use crate::registry::{Registry, push_index};

async fn copied(from: &Repository, tag: &str, to: &Repository) -> Copied {
    copy(from, &Version::Tag(tag.into()), to, &CopyOptions::default()).await.unwrap()
}

fn image(architecture: &str, layers: &[(u64, usize)]) -> Image {
    let layers = layers.iter().map(|(seed, len)| noise(*seed, *len)).collect();
    Image { architecture: architecture.into(), layers }
}

#[tokio::test]
async fn an_index_is_copied_with_all_platforms_by_its_digest() {
    let (Some(one), Some(two)) = (Registry::start().await, Registry::start().await) else { return };
    let (from, to) = (one.repository("team/app"), two.repository("fh-acme"));
    let digest = push_index(&from, "v1").await;

    let first = copied(&from, "v1", &to).await;
    let again = copied(&from, "v1", &to).await;

    let artifact = &first.artifact;
    assert_eq!((artifact.digest.clone(), artifact.manifests.len(), artifact.blobs.len()), (digest.clone(), 3, 5));
    assert_eq!(artifact.manifests.last().unwrap().digest, digest);
    assert_eq!(*artifact, again.artifact);
    assert!(again.unchanged && again.moved == Moved::default());
    for version in [Version::Digest(digest.clone()), Version::Tag(digest_tag(&digest))] {
        assert_eq!(to.manifest_digest(&version).await.unwrap(), Some(digest.clone()));
    }
    for blob in &artifact.blobs {
        assert!(to.has_blob(&blob.digest).await.unwrap());
    }
}

#[tokio::test]
async fn docker_and_oci_images_arrive_byte_for_byte() {
    let (Some(one), Some(two)) = (Registry::start().await, Registry::start().await) else { return };
    for words in [DOCKER, OCI] {
        let (from, to) = (one.repository("a"), two.repository("b"));
        let index = push_images(&from, words, &[image("amd64", &[(1, 5000)]), image("arm64", &[(2, 5)])], "v1").await;

        copied(&from, "v1", &to).await;

        let there = to.manifest(&Version::Digest(index.digest.clone())).await.unwrap();
        assert_eq!((there.bytes, there.media_type.as_str()), (index.bytes, words.index));
    }
}

#[tokio::test]
async fn gzip_and_zstd_layers_are_not_touched() {
    let from = Faulty::start(Behaviour::default()).await;
    let to = Faulty::start(Behaviour::default()).await;
    for layer in ["application/vnd.oci.image.layer.v1.tar+gzip", "application/vnd.oci.image.layer.v1.tar+zstd"] {
        let words = Words { layer, ..OCI };
        let index = push_images(&from.repository("a"), words, &[image("amd64", &[(1, 900)])], "v1").await;

        let copied = copied(&from.repository("a"), "v1", &to.repository("b")).await;

        assert_eq!(copied.artifact.digest, index.digest);
        assert_eq!(copied.artifact.blobs.last().unwrap().media_type, layer);
    }
}

#[tokio::test]
async fn only_the_bytes_that_the_target_lacks_are_moved() {
    let (Some(one), Some(two)) = (Registry::start().await, Registry::start().await) else { return };
    let (from, to) = (one.repository("app"), two.repository("app"));
    push_images(&from, OCI, &[image("amd64", &[(1, 3_000_000), (2, 70_000)])], "v1").await;
    push_images(&from, OCI, &[image("amd64", &[(1, 3_000_000), (3, 80_000)])], "v2").await;

    let first = copied(&from, "v1", &to).await;
    let second = copied(&from, "v2", &to).await;

    let config = |copied: &Copied| copied.artifact.blobs[0].size;
    assert_eq!(first.moved.sent_bytes, 3_070_000 + config(&first));
    let expected = Moved { held: 1, mounted: 0, sent: 2, sent_bytes: 80_000 + config(&second) };
    assert_eq!(second.moved, expected);
}

#[tokio::test]
async fn within_one_registry_blobs_are_mounted() {
    let Some(registry) = Registry::start().await else { return };
    let (from, to) = (registry.repository("a"), registry.repository("b"));
    push_images(&from, OCI, &[image("amd64", &[(1, 2_000_000), (2, 70_000)])], "v1").await;

    let copied = copied(&from, "v1", &to).await;

    assert_eq!(copied.moved, Moved { held: 0, mounted: 3, sent: 0, sent_bytes: 0 });
    assert!(to.has_blob(&copied.artifact.blobs[1].digest).await.unwrap());
}

#[tokio::test]
async fn a_registry_that_does_not_mount_gets_the_bytes() {
    let registry = Faulty::start(Behaviour { old: true, ..Behaviour::default() }).await;
    push_images(&registry.repository("a"), OCI, &[image("amd64", &[(1, 2_000_000)])], "v1").await;

    let copied = copied(&registry.repository("a"), "v1", &registry.repository("b")).await;

    assert_eq!((copied.moved.mounted, copied.moved.sent), (0, 2));
}

#[tokio::test]
async fn an_unchanged_image_costs_one_manifest_request() {
    let (from, to) = (Faulty::start(Behaviour::default()).await, Faulty::start(Behaviour::default()).await);
    let (one, two) = (from.repository("a"), to.repository("b"));
    push_images(&one, OCI, &[image("amd64", &[(1, 900)]), image("arm64", &[(2, 900)])], "v1").await;
    copied(&one, "v1", &two).await;
    to.requests();

    let again = copied(&one, "v1", &two).await;

    assert!(again.unchanged);
    assert_eq!(to.requests(), ["HEAD /v2/b/manifests/*"]);
}

#[tokio::test]
async fn blobs_come_before_their_manifest_and_manifests_before_their_index() {
    let (from, to) = (Faulty::start(Behaviour::default()).await, Faulty::start(Behaviour::default()).await);
    let one = from.repository("a");
    let index = push_images(&one, OCI, &[image("amd64", &[(1, 900)]), image("arm64", &[(2, 900)])], "v1").await;
    from.requests();

    copied(&one, "v1", &to.repository("b")).await;

    let puts: Vec<String> = to.requests().into_iter().filter(|line| line.starts_with("PUT")).collect();
    assert_eq!(puts, [vec!["PUT /v2/b/blobs/uploads/*"; 4], vec!["PUT /v2/b/manifests/*"; 3]].concat());
    assert!(to.repository("b").manifest_digest(&Version::Digest(index.digest)).await.unwrap().is_some());
}

#[tokio::test]
async fn a_layer_from_elsewhere_stops_the_copy_before_a_byte_moves() {
    let (from, to) = (Faulty::start(Behaviour::default()).await, Faulty::start(Behaviour::default()).await);
    let words = Words { layer: "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip", ..DOCKER };
    push_images(&from.repository("a"), words, &[image("amd64", &[(1, 900)])], "v1").await;

    let error = copy(&from.repository("a"), &Version::Tag("v1".into()), &to.repository("b"), &CopyOptions::default())
        .await
        .unwrap_err();

    assert!(error.to_string().contains("is not in the registry but fetched from elsewhere"), "{error}");
    assert_eq!(to.received(), 0);
}

#[tokio::test]
async fn what_is_not_there_is_named() {
    let Some(registry) = Registry::start().await else { return };

    let error = registry.repository("none").manifest(&Version::Tag("v9".into())).await.unwrap_err();

    assert!(matches!(error, RegistryError::NotFound { .. }));
    assert!(error.to_string().contains("manifest `v9` in `none`"), "{error}");
}

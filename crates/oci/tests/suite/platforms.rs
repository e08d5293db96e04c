//! Chosen platforms of an index.

use freehold_oci::{Copied, CopyOptions, Platforms, RegistryError, Version, copy};

use crate::faulty_registry::{Behaviour, Faulty};
use crate::image::{Image, OCI, noise, push_image, push_images};

async fn with_three_platforms() -> Faulty {
    let registry = Faulty::start(Behaviour::default()).await;
    let image = |architecture: &str, seed| Image {
        architecture: architecture.into(),
        layers: vec![noise(0, 500), noise(seed, 5_000)],
    };
    let images = [image("amd64", 1), image("arm64", 2), image("s390x", 3)];
    push_images(&registry.repository("a"), OCI, &images, "v1").await;
    registry
}

async fn choose(from: &Faulty, to: &Faulty, names: &[&str]) -> Result<Copied, RegistryError> {
    let chosen = names.iter().map(|name| name.parse().unwrap()).collect();
    let options = CopyOptions { platforms: Platforms::Only(chosen), ..CopyOptions::default() };
    copy(&from.repository("a"), &Version::Tag("v1".into()), &to.repository("b"), &options).await
}

#[tokio::test]
async fn chosen_platforms_make_a_new_index_that_is_always_the_same() {
    let from = with_three_platforms().await;
    let (one, two) = (Faulty::start(Behaviour::default()).await, Faulty::start(Behaviour::default()).await);

    let first = choose(&from, &one, &["linux/amd64", "linux/arm64"]).await.unwrap();
    let second = choose(&from, &two, &["linux/arm64", "linux/amd64"]).await.unwrap();

    assert!(!first.whole);
    assert_eq!(first.artifact, second.artifact);
    assert_eq!((first.artifact.manifests.len(), first.artifact.blobs.len()), (3, 5));
    assert!(one.received() < 11_500, "only two platforms moved: {}", one.received());
}

#[tokio::test]
async fn all_platforms_chosen_by_name_are_the_index_itself() {
    let from = with_three_platforms().await;
    let to = Faulty::start(Behaviour::default()).await;
    let index = from.repository("a").manifest_digest(&Version::Tag("v1".into())).await.unwrap().unwrap();

    let copied = choose(&from, &to, &["linux/amd64", "linux/arm64", "linux/s390x"]).await.unwrap();

    assert!(copied.whole);
    assert_eq!(copied.artifact.digest, index);
}

#[tokio::test]
async fn an_image_of_another_platform_is_refused_with_what_there_is() {
    let from = with_three_platforms().await;
    let to = Faulty::start(Behaviour::default()).await;

    let missing = choose(&from, &to, &["linux/riscv64"]).await.unwrap_err();
    let single =
        push_image(&from.repository("a"), OCI, &Image { architecture: "amd64".into(), layers: vec![noise(9, 9)] })
            .await;
    from.repository("a").push_manifest(&single, &Version::Tag("v1".into())).await.unwrap();
    let other = choose(&from, &to, &["linux/arm64"]).await.unwrap_err();
    let right = choose(&from, &to, &["linux/amd64"]).await.unwrap();

    assert_eq!(
        missing.to_string(),
        "the image has no platform `linux/riscv64`; it has `linux/amd64`, `linux/arm64`, `linux/s390x`"
    );
    assert_eq!(other.to_string(), "the image has no platform `linux/arm64`; it has `linux/amd64`");
    assert!(right.whole && right.artifact.digest == single.digest);
}

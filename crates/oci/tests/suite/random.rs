//! Random images: copied twice they are the same, and the second copy moves nothing.

use freehold_oci::{CopyOptions, Moved, Version, copy};
use proptest::prelude::*;

use crate::faulty_registry::{Behaviour, Faulty};
use crate::image::{DOCKER, Image, OCI, noise, push_images};

const ARCHITECTURES: [&str; 4] = ["amd64", "arm64", "s390x", "riscv64"];

/// Layers by seed, so that images share some; sizes on both sides of what is sent in one request.
fn images() -> impl Strategy<Value = Vec<Image>> {
    let layer = (0..6_u64).prop_map(|seed| noise(seed, usize::try_from(seed * seed * 60_000).unwrap()));
    let image = proptest::collection::vec(layer, 0..5);
    proptest::collection::vec(image, 1..4).prop_map(|all| {
        let named = all.into_iter().zip(ARCHITECTURES);
        named.map(|(layers, name)| Image { architecture: name.into(), layers }).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_random_image_copied_twice_is_the_same_and_moves_once(
        images in images(), docker in any::<bool>(), old in any::<bool>()
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            let behaviour = Behaviour { old, ..Behaviour::default() };
            let (from, to) = (Faulty::start(Behaviour::default()).await, Faulty::start(behaviour).await);
            let words = if docker { DOCKER } else { OCI };
            let index = push_images(&from.repository("a"), words, &images, "v1").await;
            let version = Version::Tag("v1".into());
            let again = || async {
                copy(&from.repository("a"), &version, &to.repository("b"), &CopyOptions::default()).await.unwrap()
            };

            let first = again().await;
            let second = again().await;

            assert_eq!(first.artifact, second.artifact);
            assert_eq!(first.artifact.digest, index.digest);
            assert_eq!(first.moved.sent, first.artifact.blobs.len());
            assert_eq!(first.moved.sent_bytes, to.received());
            assert_eq!(second.moved, Moved::default());
            for manifest in &first.artifact.manifests {
                let version = Version::Digest(manifest.digest.clone());
                let one = from.repository("a").manifest(&version).await.unwrap();
                let two = to.repository("b").manifest(&version).await.unwrap();
                assert_eq!(one.bytes, two.bytes);
            }
        });
    }
}

//! Images made by hand: any layers, any platforms, OCI or Docker words.

use bytes::Bytes;
use freehold_oci::{BlobSource, Manifest, Repository, Version, push_manifests};
use freehold_protocol::Digest;
use serde_json::{Value, json};

use crate::registry::descriptor;

/// The media types of one world.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Words {
    pub(crate) index: &'static str,
    pub(crate) manifest: &'static str,
    pub(crate) config: &'static str,
    pub(crate) layer: &'static str,
}

pub(crate) const OCI: Words = Words {
    index: "application/vnd.oci.image.index.v1+json",
    manifest: "application/vnd.oci.image.manifest.v1+json",
    config: "application/vnd.oci.image.config.v1+json",
    layer: "application/vnd.oci.image.layer.v1.tar",
};
pub(crate) const DOCKER: Words = Words {
    index: "application/vnd.docker.distribution.manifest.list.v2+json",
    manifest: "application/vnd.docker.distribution.manifest.v2+json",
    config: "application/vnd.docker.container.image.v1+json",
    layer: "application/vnd.docker.image.rootfs.diff.tar",
};

/// One image: a platform and its layers.
#[derive(Debug, Clone)]
pub(crate) struct Image {
    pub(crate) architecture: String,
    pub(crate) layers: Vec<Vec<u8>>,
}

/// Pushes the blobs of `image`; returns its manifest.
pub(crate) async fn push_image(to: &Repository, words: Words, image: &Image) -> Manifest {
    let diffs: Vec<Digest> = image.layers.iter().map(|layer| Digest::of(layer)).collect();
    let config = json!({ "architecture": image.architecture, "os": "linux", "config": {},
        "rootfs": { "type": "layers", "diff_ids": diffs } });
    let config = config.to_string().into_bytes();
    let named = descriptor(words.config, &config);
    to.push_blob(&named, &BlobSource::Bytes(Bytes::from(config))).await.unwrap();
    let mut layers = Vec::new();
    for layer in &image.layers {
        let blob = descriptor(words.layer, layer);
        to.push_blob(&blob, &BlobSource::Bytes(Bytes::from(layer.clone()))).await.unwrap();
        layers.push(blob);
    }
    let document = json!({ "schemaVersion": 2, "mediaType": words.manifest, "config": named, "layers": layers });
    Manifest::new(None, Bytes::from(document.to_string())).unwrap()
}

/// Pushes images under one index with a tag; returns the index.
pub(crate) async fn push_images(to: &Repository, words: Words, images: &[Image], tag: &str) -> Manifest {
    let (mut manifests, mut list) = (Vec::new(), Vec::new());
    for image in images {
        let manifest = push_image(to, words, image).await;
        let mut entry = json!(manifest.descriptor());
        entry["platform"] = json!({ "os": "linux", "architecture": image.architecture });
        list.push(entry);
        manifests.push(manifest);
    }
    let index = index(words, &list);
    manifests.push(index.clone());
    push_manifests(to, &manifests).await.unwrap();
    to.push_manifest(&index, &Version::Tag(tag.into())).await.unwrap();
    index
}

pub(crate) fn index(words: Words, list: &[Value]) -> Manifest {
    let document = json!({ "schemaVersion": 2, "mediaType": words.index, "manifests": list });
    Manifest::new(None, Bytes::from(document.to_string())).unwrap()
}

/// Returns bytes that nothing compresses or shares; the same seed gives the same.
pub(crate) fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    fastrand::Rng::with_seed(seed).fill(&mut bytes);
    bytes
}

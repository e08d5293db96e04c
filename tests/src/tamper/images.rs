//! The original artifacts: images, image indexes and a module, with signed statements that refer to them.

use std::sync::Arc;

use bytes::Bytes;
use freehold_fuzz::Draw;
use freehold_oci::Manifest;
use freehold_protocol::Digest;
use freehold_protocol::order::{Artifact, Descriptor, MODULE_ARTIFACT, MODULE_LAYER};
use freehold_protocol::provenance::REFERRER_TYPE;
use serde_json::{Value, json};

use super::registry::Held;

const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const OCI_CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const OCI_LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
const DOCKER_CONFIG: &str = "application/vnd.docker.container.image.v1+json";
const DOCKER_LAYER: &str = "application/vnd.docker.image.rootfs.diff.tar.gzip";
const EMPTY: &str = "application/vnd.oci.empty.v1+json";

/// The tag that every artifact has at its source.
pub(super) const TAG: &str = "v1";

/// One good artifact, with all that it is made of.
#[derive(Debug, Clone)]
pub(super) struct Image {
    pub(super) held: Held,
    pub(super) artifact: Artifact,
    /// Below an index first, the top one last.
    pub(super) manifests: Vec<Manifest>,
    /// What refers to it: a manifest and its layer.
    pub(super) referrers: Vec<(Manifest, Vec<u8>)>,
}

/// What an artifact is put together from.
#[derive(Default)]
struct Parts {
    held: Held,
    manifests: Vec<Manifest>,
    blobs: Vec<Descriptor>,
}

impl Image {
    /// Returns every kind of artifact, with bytes of its own for `seed`.
    pub(super) fn all(seed: u64) -> Vec<Self> {
        let draw = &mut Draw::new(seed, u64::MAX);
        let mut plain = Parts::default();
        plain.image(draw, "amd64", &[3_000, 40_000], false);
        let mut large = Parts::default();
        // More than is sent in one request.
        large.image(draw, "arm64", &[1_300_000, 900], false);
        let mut list = Parts::default();
        let both = ["amd64", "arm64"].map(|architecture| list.image(draw, architecture, &[5_000], true));
        list.index(DOCKER_LIST, &both);
        let mut nested = Parts::default();
        let first = nested.image(draw, "amd64", &[7_000, 100], false);
        let inner = nested.index(OCI_INDEX, &[first]);
        let second = nested.image(draw, "s390x", &[1], false);
        nested.index(OCI_INDEX, &[inner, second]);
        let mut module = Parts::default();
        module.module(draw);
        [plain, large, list, nested, module].map(Parts::finish).into()
    }

    pub(super) fn top(&self) -> &Digest {
        &self.artifact.digest
    }

    /// Makes `bytes` refer to this artifact.
    pub(super) fn refer(&mut self, bytes: Vec<u8>) {
        let (config, layer) = (descriptor(EMPTY, b"{}"), descriptor(REFERRER_TYPE, &bytes));
        let subject = self.manifests.last().map(Manifest::descriptor);
        let document = json!({ "schemaVersion": 2, "mediaType": OCI_MANIFEST, "artifactType": REFERRER_TYPE,
            "config": config, "layers": [layer], "subject": subject });
        let manifest = read(&document);
        self.held.add_blob(b"{}".to_vec());
        self.held.add_blob(bytes.clone());
        self.held.add_manifest(&manifest);
        self.referrers.push((manifest, bytes));
    }
}

impl Parts {
    fn blob(&mut self, media_type: &str, bytes: Vec<u8>) -> Descriptor {
        let named = descriptor(media_type, &bytes);
        self.held.add_blob(bytes);
        if !self.blobs.iter().any(|blob| blob.digest == named.digest) {
            self.blobs.push(named.clone());
        }
        named
    }

    fn manifest(&mut self, document: &Value) -> Manifest {
        let manifest = read(document);
        self.held.add_manifest(&manifest);
        self.manifests.push(manifest.clone());
        manifest
    }

    /// Adds an image; returns how an index lists it.
    fn image(&mut self, draw: &mut Draw, architecture: &str, layers: &[usize], docker: bool) -> Value {
        let (manifest, config, layer) = match docker {
            true => (DOCKER_MANIFEST, DOCKER_CONFIG, DOCKER_LAYER),
            false => (OCI_MANIFEST, OCI_CONFIG, OCI_LAYER),
        };
        let text = json!({ "architecture": architecture, "os": "linux", "config": {} }).to_string();
        let config = self.blob(config, text.into_bytes());
        // The images of a list share a layer, as real ones do.
        let mut layers: Vec<Descriptor> = layers.iter().map(|size| self.blob(layer, noise(draw, *size))).collect();
        if docker {
            layers.push(self.blob(layer, b"a layer of all platforms".repeat(50)));
        }
        let document = json!({ "schemaVersion": 2, "mediaType": manifest, "config": config, "layers": layers });
        let mut entry = json!(self.manifest(&document).descriptor());
        entry["platform"] = json!({ "os": "linux", "architecture": architecture });
        entry
    }

    fn index(&mut self, media_type: &str, list: &[Value]) -> Value {
        let document = json!({ "schemaVersion": 2, "mediaType": media_type, "manifests": list });
        json!(self.manifest(&document).descriptor())
    }

    fn module(&mut self, draw: &mut Draw) {
        let config = self.blob(EMPTY, b"{}".to_vec());
        let layer = self.blob(MODULE_LAYER, noise(draw, 2_000));
        let document = json!({ "schemaVersion": 2, "mediaType": OCI_MANIFEST, "artifactType": MODULE_ARTIFACT,
            "config": config, "layers": [layer] });
        self.manifest(&document);
    }

    fn finish(mut self) -> Image {
        let top = self.manifests.last().expect("every artifact has a manifest").clone();
        let tagged = (top.media_type.clone(), Arc::new(top.bytes.to_vec()));
        self.held.manifests.insert(TAG.to_owned(), tagged);
        let artifact = Artifact {
            digest: top.digest,
            media_type: top.media_type,
            manifests: self.manifests.iter().map(Manifest::descriptor).collect(),
            blobs: self.blobs,
            provenance: None,
        };
        Image { held: self.held, artifact, manifests: self.manifests, referrers: Vec::new() }
    }
}

fn read(document: &Value) -> Manifest {
    Manifest::new(None, Bytes::from(document.to_string())).expect("a good manifest")
}

fn descriptor(media_type: &str, bytes: &[u8]) -> Descriptor {
    Descriptor { media_type: media_type.to_owned(), digest: Digest::of(bytes), size: bytes.len() as u64 }
}

fn noise(draw: &mut Draw, size: usize) -> Vec<u8> {
    (0..size).map(|_| draw.below(256) as u8).collect()
}

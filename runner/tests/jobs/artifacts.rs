//! Artifacts in the tenant registry, as builds leave them there: pushed, with the tenant's statement.

use bytes::Bytes;
use freehold_oci::{
    BlobSource, CopyOptions, EMPTY, EMPTY_TYPE, MANIFEST_TYPE, Manifest, Repository, Version, copy, push_manifests,
    push_referrer,
};
use freehold_protocol::Timestamp;
use freehold_protocol::order::{Artifact, BuildArtifact, Package, Source};
use freehold_protocol::provenance::{BuildFacts, Provenance, REFERRER_TYPE};
use freehold_runner::registry::ecr_repository;
use serde_json::json;

use crate::cloud::{Cloud, TENANT_REPOSITORY};
use crate::fixture::{root, statement};
use crate::registry::descriptor;

/// Makes an artifact of one layer.
pub(crate) async fn of_layer(cloud: &Cloud, package: Package, layer: Vec<u8>, types: (&str, &str)) -> Artifact {
    let repository = ecr_repository(&cloud.tenant, TENANT_REPOSITORY).await.unwrap();
    let (layer_type, artifact_type) = types;
    let blobs = vec![descriptor(EMPTY_TYPE, EMPTY), descriptor(layer_type, &layer)];
    for (blob, bytes) in blobs.iter().zip([Bytes::from_static(EMPTY), Bytes::from(layer)]) {
        repository.push_blob(blob, &BlobSource::Bytes(bytes)).await.unwrap();
    }
    let document = json!({
        "schemaVersion": 2, "mediaType": MANIFEST_TYPE, "artifactType": artifact_type,
        "config": &blobs[0], "layers": [&blobs[1]],
    });
    let manifest = Manifest::new(None, Bytes::from(document.to_string())).unwrap();
    push_manifests(&repository, std::slice::from_ref(&manifest)).await.unwrap();
    let top = manifest.descriptor();
    let artifact = Artifact {
        digest: top.digest.clone(),
        media_type: top.media_type.clone(),
        manifests: vec![top],
        blobs,
        provenance: None,
    };
    let source = Source::Directory { digest: artifact.digest.clone() };
    attested(&repository, package, source, artifact).await
}

/// Copies the image `version` with all of its platforms.
pub(crate) async fn of_image(cloud: &Cloud, from: &Repository, version: &str) -> Artifact {
    let repository = ecr_repository(&cloud.tenant, TENANT_REPOSITORY).await.unwrap();
    let version = Version::Tag(version.to_owned());
    let artifact = copy(from, &version, &repository, &CopyOptions::default()).await.unwrap().artifact;
    attested(&repository, Package::Image, Source::Image { reference: from.address() }, artifact).await
}

/// Makes an image of gzipped layers with these variables for one processor.
pub(crate) async fn of_layers(cloud: &Cloud, architecture: &str, env: &[&str], layers: &[Vec<u8>]) -> Artifact {
    let repository = ecr_repository(&cloud.tenant, TENANT_REPOSITORY).await.unwrap();
    let config = json!({ "os": "linux", "architecture": architecture, "config": { "Env": env } }).to_string();
    let mut blobs = vec![descriptor("application/vnd.oci.image.config.v1+json", config.as_bytes())];
    repository.push_blob(&blobs[0], &BlobSource::Bytes(Bytes::from(config))).await.unwrap();
    for layer in layers {
        let blob = descriptor("application/vnd.oci.image.layer.v1.tar+gzip", layer);
        repository.push_blob(&blob, &BlobSource::Bytes(Bytes::from(layer.clone()))).await.unwrap();
        blobs.push(blob);
    }
    let document =
        json!({ "schemaVersion": 2, "mediaType": MANIFEST_TYPE, "config": &blobs[0], "layers": &blobs[1..] });
    let manifest = Manifest::new(None, Bytes::from(document.to_string())).unwrap();
    push_manifests(&repository, std::slice::from_ref(&manifest)).await.unwrap();
    let top = manifest.descriptor();
    let (digest, media_type) = (top.digest.clone(), top.media_type.clone());
    let source = Source::Image { reference: "registry.example/tools:1".into() };
    let artifact = Artifact { digest, media_type, manifests: vec![top], blobs, provenance: None };
    attested(&repository, Package::Image, source, artifact).await
}

/// Makes the tenant's statement about the artifact refer to it.
async fn attested(repository: &Repository, package: Package, source: Source, artifact: Artifact) -> Artifact {
    let work = BuildArtifact {
        build: "bld_00000000000000000001".parse().unwrap(),
        component: "network".parse().unwrap(),
        package,
        source,
        recipe: None,
        repository: TENANT_REPOSITORY.into(),
    };
    let time = Timestamp::from_millis(0);
    let facts = BuildFacts { resolved: Vec::new(), versions: Default::default(), started_at: time, finished_at: time };
    let statement = statement(&root(), &work, &artifact, facts);
    let (subject, bytes) = (artifact.manifests.last().unwrap(), Bytes::from(statement.to_json().unwrap()));
    let referrer = push_referrer(repository, subject, REFERRER_TYPE, bytes).await.unwrap().digest;
    Artifact { provenance: Some(Box::new(Provenance { statement, referrer })), ..artifact }
}

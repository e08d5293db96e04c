//! Images on their way into the install registry.

use std::sync::Arc;

use freehold_oci::Version;
use freehold_protocol::order::{Artifact, Package, Source, SyncImage, Work};
use freehold_runner::kinds::execute;
use freehold_runner::registry::ecr_repository;

use crate::cloud::{Cloud, built};
use crate::fixture::{NoGrants, REPOSITORY, have, outputs, reason};
use crate::registry::{Registry, push_index};

async fn image(cloud: &Cloud, registry: &Registry) -> Artifact {
    push_index(&registry.repository("team/app"), "v1").await;
    let reference = format!("{}/team/app:v1", registry.address);
    built(cloud.build(Package::Image, Source::Image { reference }).await)
}

fn work(artifact: &Artifact) -> Work {
    Work::ContainerImage(SyncImage { component: "app".parse().unwrap(), artifact: artifact.clone() })
}

#[tokio::test]
async fn an_image_is_synced_once_and_then_needs_no_grant() {
    if !have(&["docker-registry"]) {
        return;
    }
    let Some(cloud) = Cloud::here("container_image::an_image_is_synced_once_and_then_needs_no_grant").await else {
        return;
    };
    let Some(registry) = Registry::start().await else { return };
    let artifact = image(&cloud, &registry).await;
    let mut bench = cloud.bench(work(&artifact), &artifact);

    let first = outputs(execute(&bench.job).await);
    bench.job.grants = Arc::new(NoGrants);
    let second = outputs(execute(&bench.job).await);

    assert_eq!(first, second);
    assert_eq!(first["digest"], artifact.digest.as_str());
    assert_eq!(first["image"]["repository"], first["repository"]);
    assert_eq!(first["image"]["digest"], first["digest"]);
    assert_eq!(first["reference"], format!("{}@{}", first["repository"].as_str().unwrap(), artifact.digest));
    assert!(first["repository"].as_str().unwrap().ends_with(&format!("/{REPOSITORY}")));
    let repository = ecr_repository(&cloud.customer, REPOSITORY).await.unwrap();
    let version = Version::Digest(artifact.digest.clone());
    assert_eq!(repository.manifest_digest(&version).await.unwrap(), Some(artifact.digest.clone()));
    for blob in &artifact.blobs {
        assert!(repository.has_blob(&blob.digest).await.unwrap());
    }
}

#[tokio::test]
async fn without_a_grant_nothing_is_pushed() {
    if !have(&["docker-registry"]) {
        return;
    }
    let Some(cloud) = Cloud::here("container_image::without_a_grant_nothing_is_pushed").await else { return };
    let Some(registry) = Registry::start().await else { return };
    let artifact = image(&cloud, &registry).await;
    let mut bench = cloud.bench(work(&artifact), &artifact);
    bench.job.grants = Arc::new(NoGrants);

    let (reason, partial) = reason(execute(&bench.job).await);

    assert!(reason.contains(artifact.digest.as_str()) && !partial, "{reason}");
    let repository = ecr_repository(&cloud.customer, REPOSITORY).await.unwrap();
    assert_eq!(repository.manifest_digest(&Version::Digest(artifact.digest)).await.unwrap(), None);
}

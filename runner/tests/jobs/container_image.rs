//! Images on their way into the install registry.

use std::sync::Arc;

use ed25519_dalek::SigningKey;
use freehold_oci::{Version, read_referrer, referrers};
use freehold_protocol::grant::MAX_BLOBS;
use freehold_protocol::order::{Artifact, SyncImage, Work};
use freehold_protocol::provenance::{Provenance, REFERRER_TYPE, Statement, sha256};
use freehold_protocol::{Digest, Envelope};
use freehold_runner::kinds::execute;
use freehold_runner::registry::ecr_repository;
use freehold_skips::have;

use crate::artifacts::{of_image, of_layers};
use crate::cloud::{Cloud, TENANT_REPOSITORY, storage_that_says};
use crate::fixture::{NoGrants, REPOSITORY, outputs, reason, root};
use crate::registry::{Registry, push_index};

async fn image(cloud: &Cloud, registry: &Registry) -> Artifact {
    let repository = registry.repository("team/app");
    push_index(&repository, "v1").await;
    of_image(cloud, &repository, "v1").await
}

fn work(artifact: &Artifact) -> Work {
    Work::ContainerImage(SyncImage { component: "network".parse().unwrap(), artifact: artifact.clone() })
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
    assert_eq!(first["image"]["ref"], first["reference"]);
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

#[tokio::test]
async fn urls_that_expired_lead_to_new_grants_and_not_for_ever() {
    if !have(&["docker-registry"]) {
        return;
    }
    let Some(cloud) = Cloud::here("container_image::urls_that_expired_lead_to_new_grants_and_not_for_ever").await
    else {
        return;
    };
    let Some(registry) = Registry::start().await else { return };
    let artifact = image(&cloud, &registry).await;
    let (storage, mut bench) = (storage_that_says("403 Forbidden").await, cloud.bench(work(&artifact), &artifact));
    let rounds = |grants: &crate::cloud::Tenant| {
        grants.rounds.lock().unwrap().iter().map(|(round, _)| *round).collect::<Vec<_>>()
    };

    let never = cloud.grants(&artifact, u32::MAX, &storage);
    bench.job.grants = never.clone();
    let (reason, partial) = reason(execute(&bench.job).await);
    bench.next_attempt();
    let third = cloud.grants(&artifact, 2, &storage);
    bench.job.grants = third.clone();
    let synced = outputs(execute(&bench.job).await);

    assert_eq!(rounds(&never), [0, 1, 2, 3]);
    assert!(reason.contains("has expired or is not valid") && !reason.contains("secret") && !partial, "{reason}");
    assert_eq!(rounds(&third), [0, 1, 2]);
    assert_eq!(synced["digest"], artifact.digest.as_str());
}

#[tokio::test]
async fn a_blob_that_the_vendors_registry_lacks_is_reported_with_the_way_out() {
    let test = "container_image::a_blob_that_the_vendors_registry_lacks_is_reported_with_the_way_out";
    let Some(cloud) = Cloud::here(test).await else { return };
    let artifact = of_layers(&cloud, "amd64", &[], &[b"layer".to_vec()]).await;
    let storage = storage_that_says("404 Not Found").await;
    let mut bench = cloud.bench(work(&artifact), &artifact);
    bench.job.grants = cloud.grants(&artifact, u32::MAX, &storage);

    let (reason, partial) = reason(execute(&bench.job).await);

    let digest = &artifact.digest;
    assert_eq!(
        reason,
        format!(
            "component `network`: the vendor's registry lacks a blob of `{digest}` (`127.0.0.1` returned status 404); \
             build the component again, then deploy it"
        )
    );
    assert!(!partial);
}

#[tokio::test]
async fn an_image_with_more_blobs_than_a_grant_has_is_requested_in_parts() {
    let Some(cloud) =
        Cloud::here("container_image::an_image_with_more_blobs_than_a_grant_has_is_requested_in_parts").await
    else {
        return;
    };
    let layers: Vec<Vec<u8>> = (0..MAX_BLOBS + 3).map(|number| number.to_string().into_bytes()).collect();
    let artifact = of_layers(&cloud, "amd64", &[], &layers).await;
    let mut bench = cloud.bench(work(&artifact), &artifact);
    let grants = cloud.grants(&artifact, 0, "");
    bench.job.grants = grants.clone();

    let synced = outputs(execute(&bench.job).await);

    assert_eq!(synced["digest"], artifact.digest.as_str(), "{}", bench.log());
    assert_eq!(*grants.rounds.lock().unwrap(), [(0, MAX_BLOBS), (1, 4)], "the config and three layers are left");
}

#[tokio::test]
async fn an_artifact_without_the_tenants_statement_is_not_copied() {
    if !have(&["docker-registry"]) {
        return;
    }
    let Some(cloud) = Cloud::here("container_image::an_artifact_without_the_tenants_statement_is_not_copied").await
    else {
        return;
    };
    let Some(registry) = Registry::start().await else { return };
    let artifact = image(&cloud, &registry).await;
    let provenance = artifact.provenance.clone().unwrap();
    let statement: Statement = provenance.statement.peek().unwrap();
    let signed = |key: &SigningKey, statement: &Statement| {
        Some(Box::new(Provenance { statement: Envelope::seal(statement, &[key]).unwrap(), ..(*provenance).clone() }))
    };
    let mut other_subject = statement.clone();
    other_subject.subject[0].digest = sha256(&Digest::of(b"other"));
    let mut other_component = statement.clone();
    other_component.predicate.build_definition.external_parameters.component = "other".parse().unwrap();
    let wrong = [
        ("has no provenance", None),
        ("failed verification", signed(&SigningKey::from_bytes(&[9; 32]), &statement)),
        ("names another artifact", signed(&root(), &other_subject)),
        ("names another component: `other`", signed(&root(), &other_component)),
    ];

    for (why, provenance) in wrong {
        let artifact = Artifact { provenance, ..artifact.clone() };
        let mut bench = cloud.bench(work(&artifact), &artifact);
        bench.job.grants = Arc::new(NoGrants);

        let (reason, _) = reason(execute(&bench.job).await);

        assert!(reason.contains(why), "{reason}");
    }
    let repository = ecr_repository(&cloud.customer, REPOSITORY).await.unwrap();
    assert_eq!(repository.manifest_digest(&Version::Digest(artifact.digest.clone())).await.unwrap(), None);
}

#[tokio::test]
async fn the_statement_refers_to_the_image_in_both_registries() {
    if !have(&["docker-registry"]) {
        return;
    }
    let Some(cloud) = Cloud::here("container_image::the_statement_refers_to_the_image_in_both_registries").await else {
        return;
    };
    let Some(registry) = Registry::start().await else { return };
    let artifact = image(&cloud, &registry).await;
    let provenance = artifact.provenance.clone().unwrap();

    let _ = outputs(execute(&cloud.bench(work(&artifact), &artifact).job).await);

    for (sdk, name) in [(&cloud.tenant, TENANT_REPOSITORY), (&cloud.customer, REPOSITORY)] {
        let repository = ecr_repository(sdk, name).await.unwrap();
        let found = referrers(&repository, &artifact.digest, Some(REFERRER_TYPE)).await.unwrap();
        assert_eq!(found.iter().map(|one| &one.manifest.digest).collect::<Vec<_>>(), [&provenance.referrer], "{name}");
        let bytes = read_referrer(&repository, &found[0].manifest).await.unwrap();
        assert_eq!(Envelope::parse(&bytes).unwrap(), provenance.statement);
    }
}

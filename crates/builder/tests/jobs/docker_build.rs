//! Images of Dockerfiles, made by Buildah itself.

use std::collections::BTreeMap;
use std::fs;

use freehold_oci::Version;
use freehold_protocol::order::{Artifact, Package, Recipe};
use freehold_runner::registry::ecr_repository;
use freehold_skips::have;
use serde_json::Value;

use crate::builds::built;
use crate::cloud::{Cloud, TENANT_REPOSITORY};
use crate::fixture::reason;

fn recipe(dockerfile: &str, greeting: &str, target: &str) -> Option<Recipe> {
    Some(Recipe::Dockerfile {
        dockerfile: dockerfile.into(),
        args: BTreeMap::from([("GREETING".to_owned(), greeting.to_owned())]),
        target: target.into(),
    })
}

/// Returns the image's config.
async fn config(cloud: &Cloud, artifact: &Artifact) -> Value {
    let repository = ecr_repository(&cloud.tenant, TENANT_REPOSITORY).await.unwrap();
    let manifest = repository.manifest(&Version::Digest(artifact.digest.clone())).await.unwrap();
    let manifest: Value = serde_json::from_slice(&manifest.bytes).unwrap();
    let config = artifact.blobs.iter().find(|blob| manifest["config"]["digest"] == blob.digest.as_str()).unwrap();
    serde_json::from_slice(&repository.small_blob(config).await.unwrap()).unwrap()
}

#[tokio::test]
async fn a_dockerfile_is_built_with_its_arguments_and_its_stage() {
    const TEST: &str = "docker_build::a_dockerfile_is_built_with_its_arguments_and_its_stage";
    if !have(&["buildah"]) {
        return;
    }
    let Some(cloud) = Cloud::here(TEST).await else { return };
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("docker")).unwrap();
    let text = "FROM scratch AS base\nARG GREETING=none\nCOPY hello /hello\nENV GREETING=$GREETING\n\
                FROM base AS debug\nENV DEBUG=1\nFROM base\nUSER 1000\n";
    fs::write(directory.path().join("docker/api.Dockerfile"), text).unwrap();
    fs::write(directory.path().join("hello"), "hello").unwrap();
    let dockerfile = "docker/api.Dockerfile";

    let source = cloud.upload(directory.path()).await;
    let one = built(cloud.build_by(Package::DockerImage, source, recipe(dockerfile, "hi", "")).await);
    fs::write(directory.path().join("hello"), "hello").unwrap();
    let source = cloud.upload(directory.path()).await;
    let two = built(cloud.build_by(Package::DockerImage, source.clone(), recipe(dockerfile, "hi", "")).await);
    let debug = built(cloud.build_by(Package::DockerImage, source.clone(), recipe(dockerfile, "hi", "debug")).await);
    let absent = reason(cloud.build_by(Package::DockerImage, source.clone(), recipe("Dockerfile", "hi", "")).await).0;
    let broken = reason(cloud.build_by(Package::DockerImage, source, recipe("hello", "hi", "")).await).0;

    assert_eq!(one.digest, two.digest);
    let (last, debug) = (config(&cloud, &one).await, config(&cloud, &debug).await);
    assert!(last["config"]["Env"].as_array().unwrap().contains(&"GREETING=hi".into()), "{last}");
    assert_eq!(last["config"]["User"], "1000");
    assert!(debug["config"]["Env"].as_array().unwrap().contains(&"DEBUG=1".into()), "{debug}");
    assert!(absent.contains("the source has no file `Dockerfile`"), "{absent}");
    assert!(broken.contains("the Dockerfile could not be built (exit code"), "{broken}");
}

//! Images of Dockerfiles, made by Buildah itself.

use std::collections::BTreeMap;
use std::fs;

use freehold_builder::build::execute;
use freehold_oci::{BlobSource, Manifest, Repository, Version, push_manifests};
use freehold_protocol::Digest;
use freehold_protocol::order::{Artifact, Package, Recipe};
use freehold_protocol::provenance::{Statement, sha256};
use freehold_runner::registry::ecr_repository;
use freehold_runner::sandbox::JobUser;
use freehold_skips::{have, skip};
use serde_json::{Value, json};

use crate::builds::{built, recipe_bench};
use crate::cloud::{Cloud, TENANT_REPOSITORY};
use crate::fixture::reason;
use crate::registry::{Registry, descriptor};

pub(crate) fn recipe(dockerfile: &str, greeting: &str, target: &str) -> Option<Recipe> {
    Some(Recipe::Dockerfile {
        dockerfile: dockerfile.into(),
        args: BTreeMap::from([("GREETING".to_owned(), greeting.to_owned())]),
        target: target.into(),
        hosts: Vec::new(),
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
    if !have(&["bwrap", "buildah"]) {
        return;
    }
    if !JobUser::find().can_build_images() {
        return skip("this user has no range of 65536 in /etc/subuid");
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

/// Pushes an index whose one image, of this machine's platform, has the file `base`; returns the index's digest.
pub(crate) async fn push_base(repository: &Repository, tag: &str) -> Digest {
    let mut tar = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(4);
    header.set_mode(0o644);
    tar.append_data(&mut header, "base", &b"base"[..]).unwrap();
    let layer = tar.into_inner().unwrap();
    let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    let rootfs = json!({ "type": "layers", "diff_ids": [Digest::of(&layer)] });
    let config = json!({ "architecture": architecture, "os": "linux", "config": {}, "rootfs": rootfs }).to_string();
    let layer_blob = descriptor("application/vnd.oci.image.layer.v1.tar", &layer);
    let config_blob = descriptor("application/vnd.oci.image.config.v1+json", config.as_bytes());
    for (blob, bytes) in [(&layer_blob, layer.clone()), (&config_blob, config.clone().into_bytes())] {
        repository.push_blob(blob, &BlobSource::Bytes(bytes.into())).await.unwrap();
    }
    let manifest = |media_type: &str, mut document: Value| {
        document["schemaVersion"] = json!(2);
        document["mediaType"] = json!(media_type);
        Manifest::new(None, document.to_string().into()).unwrap()
    };
    let image = json!({ "config": config_blob, "layers": [layer_blob] });
    let image = manifest("application/vnd.oci.image.manifest.v1+json", image);
    let mut entry = json!(image.descriptor());
    entry["platform"] = json!({ "os": "linux", "architecture": architecture });
    let index = manifest("application/vnd.oci.image.index.v1+json", json!({ "manifests": [entry] }));
    push_manifests(repository, &[image, index.clone()]).await.unwrap();
    repository.push_manifest(&index, &Version::Tag(tag.into())).await.unwrap();
    index.digest
}

#[tokio::test]
async fn a_base_image_is_fetched_by_digest_and_the_statement_names_it() {
    const TEST: &str = "docker_build::a_base_image_is_fetched_by_digest_and_the_statement_names_it";
    if !have(&["bwrap", "buildah"]) {
        return;
    }
    if !JobUser::find().can_build_images() {
        return skip("this user has no range of 65536 in /etc/subuid");
    }
    let Some(cloud) = Cloud::here(TEST).await else { return };
    let Some(registry) = Registry::start().await else { return };
    let digest = push_base(&registry.repository("team/base"), "3").await;
    let directory = tempfile::tempdir().unwrap();
    let text = format!(
        "ARG REPOSITORY={0}/team/base\nFROM ${{REPOSITORY}}:3 AS one\nFROM scratch\nCOPY --from=one /base /one\n\
         COPY --from={0}/team/base@{digest} /base /two\n",
        registry.address
    );
    fs::write(directory.path().join("Dockerfile"), text).unwrap();
    let source = cloud.upload(directory.path()).await;
    let bench = recipe_bench(Package::DockerImage, source, recipe("Dockerfile", "hi", ""));

    let outcome = execute(&bench.job).await;

    let log = bench.log();
    println!("{log}");
    let artifact = built(outcome);
    let address = format!("{}/team/base", registry.address);
    assert!(log.contains(&format!("`{address}:3` is {address}@{digest}\n")), "{log}");
    let statement: Statement = artifact.provenance.unwrap().statement.peek().unwrap();
    let resolved = &statement.predicate.build_definition.resolved_dependencies;
    let found = resolved.iter().filter(|one| one.uri == format!("oci://{address}") && one.digest == sha256(&digest));
    assert_eq!(found.count(), 2, "{resolved:?}");
}

#[tokio::test]
async fn a_base_image_that_its_registry_lacks_is_reported_with_the_way_out() {
    const TEST: &str = "docker_build::a_base_image_that_its_registry_lacks_is_reported_with_the_way_out";
    let Some(cloud) = Cloud::here(TEST).await else { return };
    let Some(registry) = Registry::start().await else { return };
    push_base(&registry.repository("team/base"), "3").await;
    let directory = tempfile::tempdir().unwrap();
    let host = &registry.address;
    fs::write(directory.path().join("Dockerfile"), format!("FROM {host}/team/base:4\n")).unwrap();
    let source = cloud.upload(directory.path()).await;

    let (why, partial) = reason(cloud.build_by(Package::DockerImage, source, recipe("Dockerfile", "hi", "")).await);

    assert_eq!(
        why,
        format!(
            "component `network`: base image `{host}/team/base:4`: registry `{host}` has no manifest `4` in \
             `team/base`; correct its name in the Dockerfile, then build again"
        )
    );
    assert!(!partial);
}

//! Builds: a directory, a commit, a template, an image.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use freehold_builder::build::execute;
use freehold_oci::{EMPTY_TYPE, Version, digest_tag, read_referrer};
use freehold_protocol::Envelope;
use freehold_protocol::order::{
    Artifact, MODULE_LAYER, Package, Recipe, Source, TEMPLATE_ARTIFACT, TEMPLATE_LAYER, Work,
};
use freehold_runner::registry::ecr_repository;
use freehold_skips::have;

use crate::builds::{build_bench, built};
use crate::cloud::{Cloud, TENANT_REPOSITORY};
use crate::fixture::reason;
use crate::registry::{Registry, push_index};

fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "init.defaultBranch=main"])
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[tokio::test]
async fn the_same_directory_is_built_into_the_same_artifact() {
    if !have(&["bwrap", "terraform"]) {
        return;
    }
    let Some(cloud) = Cloud::here("build::the_same_directory_is_built_into_the_same_artifact").await else { return };
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("main.tf"), "output \"a\" { value = 1 }").unwrap();
    let source = cloud.upload(directory.path()).await;

    let one = built(cloud.build(Package::TerraformModule, source.clone()).await);
    // Another upload of the same files: other times, so another archive, and still the same artifact.
    fs::write(directory.path().join("main.tf"), "output \"a\" { value = 1 }").unwrap();
    let again = cloud.upload(directory.path()).await;
    let two = built(cloud.build(Package::TerraformModule, again).await);

    assert_eq!(Artifact { provenance: None, ..two.clone() }, Artifact { provenance: None, ..one.clone() });
    assert_ne!(one.provenance, two.provenance, "each build has a statement of its own");
    assert_eq!(one.blobs.last().unwrap().media_type, MODULE_LAYER);
    let repository = ecr_repository(&cloud.tenant, TENANT_REPOSITORY).await.unwrap();
    assert_eq!(repository.manifest_digest(&Version::Digest(one.digest.clone())).await.unwrap(), Some(one.digest));
}

#[tokio::test]
async fn artifacts_of_the_same_bytes_are_built_at_once_with_a_statement_each() {
    let Some(cloud) = Cloud::here("build::artifacts_of_the_same_bytes_are_built_at_once_with_a_statement_each").await
    else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("queue.yaml"), "Resources: {}\n").unwrap();
    let source = cloud.upload(directory.path()).await;
    let benches: Vec<_> = (0..6)
        .map(|number| {
            let mut bench = build_bench(Package::CloudformationTemplate, source.clone());
            bench.change_order(|order| {
                let Work::Build(build) = &mut order.work else { panic!("build") };
                build.component = format!("c{number}").parse().unwrap();
            });
            bench
        })
        .collect();

    let outcomes = futures_util::future::join_all(benches.iter().map(|bench| execute(&bench.job))).await;

    let artifacts: Vec<_> = outcomes.into_iter().map(built).collect();
    let repository = ecr_repository(&cloud.tenant, TENANT_REPOSITORY).await.unwrap();
    let mut statements = BTreeSet::new();
    for artifact in &artifacts {
        assert_eq!(artifact.digest, artifacts[0].digest);
        let provenance = artifact.provenance.as_ref().unwrap();
        statements.insert(provenance.referrer.clone());
        let manifest = repository.manifest(&Version::Digest(provenance.referrer.clone())).await.unwrap();
        let bytes = read_referrer(&repository, &manifest.descriptor()).await.unwrap();
        assert_eq!(Envelope::parse(&bytes).unwrap(), provenance.statement);
        let tagged = repository.manifest_digest(&Version::Tag(digest_tag(&manifest.digest))).await.unwrap();
        assert_eq!(tagged, Some(manifest.digest), "a lifecycle rule would remove it");
    }
    assert_eq!(statements.len(), 6);
}

#[tokio::test]
async fn a_module_whose_providers_are_to_be_fetched_is_built_alone() {
    let Some(cloud) = Cloud::here("build::a_module_whose_providers_are_to_be_fetched_is_built_alone").await else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("main.tf"), "resource \"aws_sqs_queue\" \"jobs\" {}").unwrap();
    let source = cloud.upload(directory.path()).await;

    let artifact = built(cloud.build_by(Package::TerraformModule, source, Some(Recipe::ModuleAlone)).await);

    let types: Vec<&str> = artifact.blobs.iter().map(|blob| blob.media_type.as_str()).collect();
    assert_eq!(types, [EMPTY_TYPE, MODULE_LAYER]);
}

#[tokio::test]
async fn a_template_is_one_layer_of_its_own_bytes() {
    let Some(cloud) = Cloud::here("build::a_template_is_one_layer_of_its_own_bytes").await else { return };
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("network.yaml"), "Resources: {}\n").unwrap();
    let source = cloud.upload(directory.path()).await;

    let artifact = built(cloud.build(Package::CloudformationTemplate, source).await);

    let layer = artifact.blobs.last().unwrap();
    assert_eq!(layer.media_type, TEMPLATE_LAYER);
    assert_eq!(layer.digest, freehold_protocol::Digest::of(b"Resources: {}\n"));
    let repository = ecr_repository(&cloud.tenant, TENANT_REPOSITORY).await.unwrap();
    let manifest = repository.manifest(&Version::Digest(artifact.digest)).await.unwrap();
    assert!(String::from_utf8_lossy(&manifest.bytes).contains(TEMPLATE_ARTIFACT));
}

#[tokio::test]
async fn a_source_with_other_bytes_is_refused() {
    let Some(cloud) = Cloud::here("build::a_source_with_other_bytes_is_refused").await else { return };
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("main.tf"), "").unwrap();
    let Source::Directory { digest } = cloud.upload(directory.path()).await else { panic!("directory") };
    let key = format!("sources/{}.tar.gz", digest.hex());
    let s3 = aws_sdk_s3::config::Builder::from(&cloud.tenant).force_path_style(true).build();
    let put = aws_sdk_s3::Client::from_conf(s3).put_object().bucket(crate::cloud::TENANT_BUCKET).key(key);
    put.body(b"other".to_vec().into()).send().await.unwrap();

    let (reason, partial) = reason(cloud.build(Package::TerraformModule, Source::Directory { digest }).await);

    assert!(reason.contains("it is not used"), "{reason}");
    assert!(!partial);
}

#[tokio::test]
async fn a_commit_is_built_from_its_directory() {
    if !have(&["bwrap", "git", "terraform"]) {
        return;
    }
    let Some(_cloud) = Cloud::here("build::a_commit_is_built_from_its_directory").await else { return };
    let source = |commit: &str| Source::Git {
        branch: String::new(),
        url: "/workspace/upstream".into(),
        commit: commit.into(),
        directory: "infra".into(),
    };
    let prepare = |workspace: &Path| {
        let upstream = workspace.join("upstream");
        fs::create_dir_all(upstream.join("infra")).unwrap();
        git(&upstream, &["init", "-q"]);
        fs::write(upstream.join("infra/main.tf"), "").unwrap();
        git(&upstream, &["add", "."]);
        git(&upstream, &["commit", "-q", "-m", "one"]);
        let commit = git(&upstream, &["rev-parse", "HEAD"]);
        git(&upstream, &["commit", "-q", "--allow-empty", "-m", "two"]);
        commit
    };
    let mut bench = build_bench(Package::TerraformModule, source(&"0".repeat(40)));
    let commit = prepare(&bench.job.workspace);

    let absent = execute(&bench.job).await;
    bench.next_attempt();
    let commit_again = prepare(&bench.job.workspace);
    bench.change_order(|order| {
        let Work::Build(build) = &mut order.work else { panic!("build") };
        build.source = source(&commit_again);
    });
    let artifact = built(execute(&bench.job).await);

    assert!(reason(absent).0.contains("could not fetch commit"), "{commit}");
    assert_eq!(artifact.blobs.len(), 2);
}

#[tokio::test]
async fn an_image_is_copied_with_all_platforms_and_named_by_digest() {
    if !have(&["docker-registry"]) {
        return;
    }
    let Some(cloud) = Cloud::here("build::an_image_is_copied_with_all_platforms_and_named_by_digest").await else {
        return;
    };
    let Some(registry) = Registry::start().await else { return };
    let digest = push_index(&registry.repository("team/app"), "v1").await;
    let reference = format!("{}/team/app:v1", registry.address);

    let artifact = built(cloud.build(Package::Image, Source::Image { reference }).await);

    assert_eq!((artifact.digest, artifact.manifests.len(), artifact.blobs.len()), (digest, 3, 5));
}

/// Makes a role of the other account that may read its registry, for whoever is in the account of the builds.
async fn reader(cloud: &Cloud) -> String {
    let template = serde_json::json!({ "Resources": { "Reader": { "Type": "AWS::IAM::Role", "Properties": {
        "RoleName": "reader",
        "AssumeRolePolicyDocument": { "Version": "2012-10-17", "Statement": [{
            "Effect": "Allow",
            "Principal": { "AWS": format!("arn:aws:iam::{}:root", crate::cloud::TENANT_ACCOUNT) },
            "Action": "sts:AssumeRole",
        }] },
        "Policies": [{ "PolicyName": "read", "PolicyDocument": { "Version": "2012-10-17", "Statement": [{
            "Effect": "Allow",
            "Action": ["ecr:GetAuthorizationToken", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"],
            "Resource": "*",
        }] } }],
    } } } });
    let stacks = aws_sdk_cloudformation::Client::new(&cloud.customer);
    let named = aws_sdk_cloudformation::types::Capability::CapabilityNamedIam;
    let make = stacks.create_stack().stack_name("reader").template_body(template.to_string()).capabilities(named);
    make.send().await.unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(180);
    loop {
        let answer = stacks.describe_stacks().stack_name("reader").send().await.unwrap();
        let status = answer.stacks().first().unwrap().stack_status().unwrap().as_str().to_owned();
        if status == "CREATE_COMPLETE" {
            return format!("arn:aws:iam::{}:role/reader", crate::fixture::ACCOUNT);
        }
        assert!(status == "CREATE_IN_PROGRESS" && std::time::Instant::now() < deadline, "{status}");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn an_image_of_a_private_registry_is_read_with_its_role() {
    let Some(cloud) = Cloud::here("build::an_image_of_a_private_registry_is_read_with_its_role").await else { return };
    // The vendor's images are in another account than its builds.
    let registry = ecr_repository(&cloud.customer, crate::fixture::REPOSITORY).await.unwrap();
    let digest = push_index(&registry, "v1").await;
    let role = reader(&cloud).await;
    let host = registry.address().trim_start_matches("http://").split('/').next().unwrap().to_owned();
    let source = |host: &str, tag: &str| Source::EcrImage {
        reference: format!("{host}/{}:{tag}", crate::fixture::REPOSITORY),
        region: "eu-west-1".into(),
        role_arn: role.clone(),
    };

    let artifact = built(cloud.build(Package::Image, source(&host, "v1")).await);
    let absent = reason(cloud.build(Package::Image, source(&host, "v2")).await).0;
    let other = reason(cloud.build(Package::Image, source("registry.example.com", "v1")).await).0;

    assert_eq!((artifact.digest, artifact.manifests.len(), artifact.blobs.len()), (digest, 3, 5));
    assert_eq!(
        absent,
        format!(
            "component `network`: registry `{host}` has no manifest `v2` in `{}`; correct `image_url` and `tag` in the \
             config of the component, or push the image to this registry; then build again",
            crate::fixture::REPOSITORY
        )
    );
    assert!(other.ends_with("the image is in `registry.example.com`; correct the image or the region"), "{other}");
}

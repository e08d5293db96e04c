//! Kubernetes objects: texts of the app version, and directories for Kustomize.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use freehold_oci::{BlobSource, Repository};
use freehold_protocol::Digest;
use freehold_protocol::order::{Artifact, KUSTOMIZATION_LAYER, MANIFEST_LAYER, Package, Recipe, Source};
use freehold_runner::registry::ecr_repository;
use serde_json::json;

use crate::builds::built;
use crate::cloud::{Cloud, TENANT_REPOSITORY};
use crate::fixture::reason;

/// Pulls the one layer of an artifact.
async fn layer(repository: &Repository, artifact: &Artifact) -> Vec<u8> {
    let into = tempfile::NamedTempFile::new().unwrap();
    let blob = artifact.blobs.last().unwrap();
    freehold_oci::fetch(&BlobSource::Repository(repository.clone()), blob, into.path()).await.unwrap();
    fs::read(into.path()).unwrap()
}

#[tokio::test]
async fn a_manifest_is_one_layer_of_its_own_text_however_the_order_carries_it() {
    const TEST: &str = "manifest::a_manifest_is_one_layer_of_its_own_text_however_the_order_carries_it";
    let Some(cloud) = Cloud::here(TEST).await else { return };
    let text = "kind: Namespace\nmetadata:\n  name: \"{{ .nuon.install.id }}\"\n".to_owned();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(text.as_bytes()).unwrap();
    let packed = Recipe::PackedManifest { gzip: BASE64.encode(gzip.finish().unwrap()) };
    let plain = Recipe::Manifest { text: text.clone() };
    let empty = Recipe::Manifest { text: " \n".into() };

    let one = built(cloud.build_by(Package::KubernetesManifest, Source::Version, Some(plain)).await);
    let two = built(cloud.build_by(Package::KubernetesManifest, Source::Version, Some(packed)).await);
    let empty = reason(cloud.build_by(Package::KubernetesManifest, Source::Version, Some(empty)).await).0;
    let none = reason(cloud.build_by(Package::KubernetesManifest, Source::Version, None).await).0;

    assert_eq!(one.digest, two.digest);
    assert_eq!(one.blobs.last().unwrap().media_type, MANIFEST_LAYER);
    let repository = ecr_repository(&cloud.tenant, TENANT_REPOSITORY).await.unwrap();
    assert_eq!(layer(&repository, &one).await, text.as_bytes());
    assert_eq!(empty, "the manifest is empty");
    assert_eq!(
        none,
        "the order has no manifest or kustomization that can be built from the app version itself; update the tenant \
         with `freehold tenant deploy`, and then run `freehold build` again"
    );
}

#[tokio::test]
async fn a_kustomization_is_packed_with_what_the_config_says_of_it() {
    const TEST: &str = "manifest::a_kustomization_is_packed_with_what_the_config_says_of_it";
    let Some(cloud) = Cloud::here(TEST).await else { return };
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("prod")).unwrap();
    fs::write(directory.path().join("prod/kustomization.yaml"), "resources: [../base]\n").unwrap();
    let recipe = |path: &str| {
        Some(Recipe::Kustomization {
            options: BTreeMap::from([
                ("path".to_owned(), json!(path)),
                ("patches".to_owned(), json!([{ "patch": "{{ .nuon.install.id }}" }])),
            ]),
        })
    };
    let source = cloud.upload(directory.path()).await;

    let one = built(cloud.build_by(Package::KubernetesManifest, source.clone(), recipe("./prod")).await);
    let two = built(cloud.build_by(Package::KubernetesManifest, source.clone(), recipe("./prod")).await);
    let absent = reason(cloud.build_by(Package::KubernetesManifest, source, recipe("test")).await).0;

    assert_eq!(one.digest, two.digest);
    assert_eq!(one.blobs.last().unwrap().media_type, KUSTOMIZATION_LAYER);
    let repository = ecr_repository(&cloud.tenant, TENANT_REPOSITORY).await.unwrap();
    let bytes = layer(&repository, &one).await;
    assert_eq!(Digest::of(&bytes), one.blobs.last().unwrap().digest);
    let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(bytes.as_slice()));
    let mut texts = BTreeMap::new();
    for entry in tar.entries().unwrap() {
        let mut entry = entry.unwrap();
        let (path, mut text) = (entry.path().unwrap().display().to_string(), String::new());
        entry.read_to_string(&mut text).unwrap();
        texts.insert(path, text);
    }
    assert_eq!(texts["kustomization/prod/kustomization.yaml"], "resources: [../base]\n");
    assert_eq!(texts["options.json"], r#"{"patches":[{"patch":"{{ .nuon.install.id }}"}],"path":"./prod"}"#);
    assert_eq!(absent, "`test` of the source holds no `kustomization.yaml`; name the directory that contains it");
}

//! What the engine copied, read by another tool; and what another tool pushed, copied by the engine.

use freehold_oci::{CopyOptions, Version, copy, digest_tag};
use freehold_skips::have;
use serde_json::Value;
use tokio::process::Command;

use crate::image::{DOCKER, Image, OCI, noise, push_images};
use crate::registry::Registry;

async fn skopeo(words: &[&str]) -> String {
    let output = Command::new("skopeo").args(words).output().await.unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn images() -> [Image; 2] {
    ["amd64", "arm64"].map(|architecture| Image {
        architecture: architecture.into(),
        layers: vec![noise(1, 1_500_000), noise(architecture.len() as u64, 3_000)],
    })
}

#[tokio::test]
async fn an_image_that_was_copied_is_read_by_skopeo() {
    let (Some(one), Some(two)) = (Registry::start().await, Registry::start().await) else { return };
    if !have(&["skopeo"]) {
        return;
    }
    for (words, name) in [(OCI, "oci"), (DOCKER, "docker")] {
        let (from, to) = (one.repository(name), two.repository(name));
        let index = push_images(&from, words, &images(), "v1").await;

        copy(&from, &Version::Tag("v1".into()), &to, &CopyOptions::default()).await.unwrap();

        let image = format!("docker://{}/{name}:{}", two.address, digest_tag(&index.digest));
        let inspected = skopeo(&["inspect", "--tls-verify=false", "--override-arch=arm64", &image]).await;
        let inspected: Value = serde_json::from_str(&inspected).unwrap();
        assert_eq!((&inspected["Architecture"], &inspected["Layers"].as_array().unwrap().len()), (&"arm64".into(), &2));
        let folder = tempfile::tempdir().unwrap();
        let place = format!("oci:{}:v1", folder.path().display());
        skopeo(&["copy", "--quiet", "--all", "--src-tls-verify=false", &image, &place]).await;
        assert!(folder.path().join("index.json").is_file());
    }
}

#[tokio::test]
async fn an_index_that_skopeo_pushed_is_copied() {
    let (Some(one), Some(two)) = (Registry::start().await, Registry::start().await) else { return };
    if !have(&["skopeo"]) {
        return;
    }
    push_images(&one.repository("made"), OCI, &images(), "v1").await;
    let (from, to) = (format!("docker://{}/made:v1", one.address), format!("docker://{}/pushed:v1", one.address));
    skopeo(&["copy", "--quiet", "--all", "--src-tls-verify=false", "--dest-tls-verify=false", &from, &to]).await;

    // It compresses layers on the way, so that this is an image of its own.
    let made = one.repository("pushed").manifest(&Version::Tag("v1".into())).await.unwrap();
    let copied =
        copy(&one.repository("pushed"), &Version::Tag("v1".into()), &two.repository("b"), &CopyOptions::default())
            .await
            .unwrap();

    assert_eq!(copied.artifact.digest, made.digest);
    let image = format!("docker://{}/b@{}", two.address, made.digest);
    let raw = skopeo(&["inspect", "--raw", "--tls-verify=false", &image]).await;
    assert_eq!(raw.as_bytes(), made.bytes);
}

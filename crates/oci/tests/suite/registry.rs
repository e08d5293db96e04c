//! Real registries (Debian `docker-registry`) on loopback, each with its own directory.

use std::process::Stdio;

use bytes::Bytes;
use freehold_oci::{BlobSource, Login, Manifest, Repository, RetryPolicy, Version, client, push_manifests};
use freehold_protocol::Digest;
use freehold_protocol::order::Descriptor;
use freehold_skips::have;
use serde_json::json;
use tokio::process::{Child, Command};

/// A registry of its own.
pub(crate) struct Registry {
    _process: Child,
    pub(crate) address: String,
    _directory: tempfile::TempDir,
}

impl Registry {
    /// Returns a registry; none, and says that the test is skipped, where there is no such program.
    pub(crate) async fn start() -> Option<Self> {
        if !have(&["docker-registry"]) {
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        for _ in 0..5 {
            let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let address = format!("127.0.0.1:{port}");
            let config = directory.path().join("config.yml");
            let root = directory.path().join("data");
            let text = format!(
                "version: 0.1\nlog: {{level: error, accesslog: {{disabled: true}}}}\n\
                 storage: {{filesystem: {{rootdirectory: {}}}}}\nhttp: {{addr: '{address}', secret: test}}\n",
                root.display()
            );
            std::fs::write(&config, text).unwrap();
            let mut process = Command::new("docker-registry")
                .arg("serve")
                .arg(&config)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .kill_on_drop(true)
                .spawn()
                .unwrap();
            let answers = answers(&address, &mut process).await;
            if answers {
                return Some(Self { _process: process, address, _directory: directory });
            }
        }
        panic!("no registry came up on a free port");
    }

    pub(crate) fn repository(&self, name: &str) -> Repository {
        at(&self.address, name)
    }
}

/// Returns the repository `name` at `address`, with short waits.
pub(crate) fn at(address: &str, name: &str) -> Repository {
    let policy = RetryPolicy { pause: std::time::Duration::from_millis(20), ..RetryPolicy::default() };
    Repository::with_retry_policy(client().unwrap(), address, name, Login::Anonymous, policy).unwrap()
}

/// Returns whether the registry answers before it ends; another process may have taken its port.
async fn answers(address: &str, process: &mut Child) -> bool {
    let http = client().unwrap();
    let url = format!("http://{address}/v2/");
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(120);
    while tokio::time::Instant::now() < deadline && process.try_wait().unwrap().is_none() {
        if http.get(&url).send().await.is_ok_and(|answer| answer.status().is_success()) {
            return true;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    false
}

pub(crate) fn descriptor(media_type: &str, bytes: &[u8]) -> Descriptor {
    Descriptor { media_type: media_type.into(), digest: Digest::of(bytes), size: bytes.len() as u64 }
}

/// Pushes an index of two platforms that share a layer; returns its digest.
pub(crate) async fn push_index(repository: &Repository, tag: &str) -> Digest {
    let shared = b"shared layer".repeat(1000);
    let (mut manifests, mut list) = (Vec::new(), Vec::new());
    for platform in ["amd64", "arm64"] {
        let config = json!({ "architecture": platform, "os": "linux" }).to_string().into_bytes();
        let own = platform.as_bytes().repeat(1000);
        let layer = "application/vnd.oci.image.layer.v1.tar";
        let layers = [descriptor(layer, &shared), descriptor(layer, &own)];
        let config_blob = descriptor("application/vnd.oci.image.config.v1+json", &config);
        for (blob, bytes) in [(&config_blob, &config), (&layers[0], &shared), (&layers[1], &own)] {
            repository.push_blob(blob, &BlobSource::Bytes(Bytes::from(bytes.clone()))).await.unwrap();
        }
        let media_type = "application/vnd.oci.image.manifest.v1+json";
        let document =
            json!({ "schemaVersion": 2, "mediaType": media_type, "config": config_blob, "layers": layers }).to_string();
        let manifest = Manifest::new(None, Bytes::from(document)).unwrap();
        let mut entry = json!(manifest.descriptor());
        entry["platform"] = json!({ "os": "linux", "architecture": platform });
        list.push(entry);
        manifests.push(manifest);
    }
    let media_type = "application/vnd.oci.image.index.v1+json";
    let index = json!({ "schemaVersion": 2, "mediaType": media_type, "manifests": list }).to_string();
    let index = Manifest::new(None, Bytes::from(index)).unwrap();
    manifests.push(index.clone());
    push_manifests(repository, &manifests).await.unwrap();
    repository.push_manifest(&index, &Version::Tag(tag.into())).await.unwrap();
    index.digest
}

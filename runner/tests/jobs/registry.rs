//! Copies between real registries, and what a copy costs in memory.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use freehold_protocol::Digest;
use freehold_protocol::order::Descriptor;
use freehold_runner::registry::{
    self, BlobSource, Login, Manifest, RegistryError, Repository, Version, client, digest_tag, push_manifests,
};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};

use crate::fixture::have;

/// A registry of its own (Debian `docker-registry`).
pub(crate) struct Registry {
    _process: Child,
    pub(crate) address: String,
    _directory: tempfile::TempDir,
}

impl Registry {
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
        Repository::new(client().unwrap(), &self.address, name, Login::Anonymous).unwrap()
    }
}

/// Returns whether the registry answers before it ends; another process may have taken its port.
async fn answers(address: &str, process: &mut Child) -> bool {
    let http = client().unwrap();
    let url = format!("http://{address}/v2/");
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(20);
    while tokio::time::Instant::now() < deadline && process.try_wait().unwrap().is_none() {
        if http.get(&url).send().await.is_ok_and(|answer| answer.status().is_success()) {
            return true;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    false
}

fn descriptor(media_type: &str, bytes: &[u8]) -> Descriptor {
    Descriptor { media_type: media_type.into(), digest: Digest::of(bytes), size: bytes.len() as u64 }
}

/// Pushes an index of two platforms that share a layer; returns its digest.
pub(crate) async fn push_index(repository: &Repository, tag: &str) -> Digest {
    let shared = b"shared layer".repeat(1000);
    let mut manifests = Vec::new();
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
        manifests.push(Manifest::new(None, Bytes::from(document)).unwrap());
    }
    let list: Vec<Descriptor> = manifests.iter().map(Manifest::descriptor).collect();
    let media_type = "application/vnd.oci.image.index.v1+json";
    let index = json!({ "schemaVersion": 2, "mediaType": media_type, "manifests": list }).to_string();
    let index = Manifest::new(None, Bytes::from(index)).unwrap();
    manifests.push(index.clone());
    push_manifests(repository, &manifests).await.unwrap();
    repository.push_manifest(&index, &Version::Tag(tag.into())).await.unwrap();
    index.digest
}

#[tokio::test]
async fn an_index_is_copied_with_all_platforms_by_its_digest() {
    let (Some(one), Some(two)) = (Registry::start().await, Registry::start().await) else { return };
    let (from, to) = (one.repository("team/app"), two.repository("fh-acme"));
    let digest = push_index(&from, "v1").await;

    let artifact = registry::copy(&from, &Version::Tag("v1".into()), &to).await.unwrap();
    let again = registry::copy(&from, &Version::Tag("v1".into()), &to).await.unwrap();

    assert_eq!((artifact.digest.clone(), artifact.manifests.len(), artifact.blobs.len()), (digest.clone(), 3, 5));
    assert_eq!(artifact.manifests.last().unwrap().digest, digest);
    assert_eq!(artifact, again);
    for version in [Version::Digest(digest.clone()), Version::Tag(digest_tag(&digest))] {
        assert_eq!(to.manifest_digest(&version).await.unwrap(), Some(digest.clone()));
    }
    for blob in &artifact.blobs {
        assert!(to.has_blob(&blob.digest).await.unwrap());
    }
}

#[tokio::test]
async fn what_is_not_there_is_named() {
    let Some(registry) = Registry::start().await else { return };

    let error = registry.repository("none").manifest(&Version::Tag("v9".into())).await.unwrap_err();

    assert!(matches!(error, RegistryError::NotFound { .. }));
    assert!(error.to_string().contains("manifest `v9` in `none`"), "{error}");
}

/// Passes connections on to `target`, and cuts the first one that has carried `limit` bytes towards it.
async fn cutting_proxy(target: String, limit: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let cut = Arc::new(AtomicBool::new(false));
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let (target, cut) = (target.clone(), Arc::clone(&cut));
            tokio::spawn(async move {
                let server = TcpStream::connect(target).await.unwrap();
                let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
                    (client.into_split(), server.into_split());
                let answers = tokio::spawn(async move { tokio::io::copy(&mut from_server, &mut to_client).await });
                let (mut passed, mut chunk) = (0, vec![0; 4096]);
                while let Ok(read @ 1..) = from_client.read(&mut chunk).await {
                    passed += read;
                    if passed > limit && !cut.swap(true, Ordering::SeqCst) {
                        break;
                    }
                    if to_server.write_all(&chunk[..read]).await.is_err() {
                        break;
                    }
                }
                answers.abort();
            });
        }
    });
    address
}

#[tokio::test]
async fn a_push_that_is_cut_anywhere_is_whole_in_the_end() {
    let Some(registry) = Registry::start().await else { return };
    let total = 1_000_000;
    for tenth in 1..=9_u8 {
        let bytes = vec![tenth; total];
        let blob = descriptor("x", &bytes);
        let address = cutting_proxy(registry.address.clone(), total / 10 * usize::from(tenth)).await;
        let to = Repository::new(client().unwrap(), &address, "cut", Login::Anonymous).unwrap();

        to.push_blob(&blob, &BlobSource::Bytes(Bytes::from(bytes))).await.unwrap();

        let held = registry.repository("cut");
        assert!(held.has_blob(&blob.digest).await.unwrap());
        let copy = tempfile::NamedTempFile::new().unwrap();
        registry::fetch(&BlobSource::Repository(held), &blob, copy.path()).await.unwrap();
    }
}

#[tokio::test]
async fn a_blob_with_other_bytes_is_not_pushed() {
    let Some(registry) = Registry::start().await else { return };
    let to = registry.repository("fh-acme");
    let named = descriptor("x", b"hello");

    let error = to.push_blob(&named, &BlobSource::Bytes(Bytes::from_static(b"jello"))).await.unwrap_err();

    assert!(matches!(error, RegistryError::WrongDigest { .. }), "{error:?}");
    assert!(!to.has_blob(&named.digest).await.unwrap());
}

/// Not a test by itself, and nothing without its variables: the copy that the next test measures, in a process of its own.
#[tokio::test]
async fn a_copy_to_measure() {
    let Some(file) = std::env::var_os("FREEHOLD_TEST_COPY_FILE") else { return };
    let (from, to) =
        (std::env::var("FREEHOLD_TEST_COPY_FROM").unwrap(), std::env::var("FREEHOLD_TEST_COPY_TO").unwrap());
    let digest: Digest = std::env::var("FREEHOLD_TEST_COPY_DIGEST").unwrap().parse().unwrap();
    let size = std::fs::metadata(&file).unwrap().len();
    let blob = Descriptor { media_type: "x".into(), digest, size };
    let repository = |address: &str| Repository::new(client().unwrap(), address, "big", Login::Anonymous).unwrap();
    let source = BlobSource::File(PathBuf::from(file));
    repository(&from).push_blob(&blob, &source).await.unwrap();
    repository(&to).push_blob(&blob, &BlobSource::Repository(repository(&from))).await.unwrap();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    std::fs::write(std::env::var_os("FREEHOLD_TEST_COPY_PEAK").unwrap(), peak).unwrap();
}

#[tokio::test]
async fn a_large_copy_takes_constant_memory() {
    let (Some(one), Some(two)) = (Registry::start().await, Registry::start().await) else { return };
    let directory = tempfile::tempdir().unwrap();
    let mut peaks = Vec::new();
    for mib in [2_usize, 200] {
        let (file, peak) = (directory.path().join("blob"), directory.path().join("peak"));
        let digest = write_blob(&file, mib);
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "registry::a_copy_to_measure"])
            .env("FREEHOLD_TEST_COPY_FILE", &file)
            .env("FREEHOLD_TEST_COPY_FROM", &one.address)
            .env("FREEHOLD_TEST_COPY_TO", &two.address)
            .env("FREEHOLD_TEST_COPY_DIGEST", digest.as_str())
            .env("FREEHOLD_TEST_COPY_PEAK", &peak)
            .stdout(Stdio::null())
            .status()
            .await
            .unwrap();
        assert!(status.success());
        let text = std::fs::read_to_string(&peak).unwrap();
        peaks.push(text.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap());
    }

    println!("peak of a 2 MiB copy: {} KiB; of a 200 MiB copy: {} KiB", peaks[0], peaks[1]);
    assert!(peaks[1] < peaks[0] + 8 * 1024, "{peaks:?} KiB");
}

fn write_blob(path: &std::path::Path, mib: usize) -> Digest {
    use std::io::Write as _;
    let mut file = std::fs::File::create(path).unwrap();
    let chunk = vec![7_u8; 1024 * 1024];
    for index in 0..mib {
        file.write_all(&chunk).unwrap();
        // No two pieces alike, should anything compress or share them.
        file.write_all(&index.to_le_bytes()).unwrap();
    }
    drop(file);
    let output = std::process::Command::new("sha256sum").arg(path).output().unwrap();
    format!("sha256:{}", &String::from_utf8(output.stdout).unwrap()[..64]).parse().unwrap()
}

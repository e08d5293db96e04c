//! What a copy costs in memory: in a process of its own, whatever is copied.

use std::path::PathBuf;
use std::process::Stdio;

use freehold_oci::{BlobSource, CopyOptions, Login, Repository, Version, client, copy};
use freehold_protocol::Digest;
use freehold_protocol::order::Descriptor;
use tokio::process::Command;

use crate::image::{Image, OCI, noise, push_images};
use crate::registry::Registry;

/// The budget of the engine, in KiB.
const MOST: u64 = 24 * 1024;
/// What one run differs from another, in KiB.
const NOISE: u64 = 3 * 1024;

/// Not a test by itself, and nothing without its variables: the copy that the next tests measure.
#[tokio::test]
async fn a_copy_to_measure() {
    let Some(peak) = std::env::var_os("FREEHOLD_TEST_COPY_PEAK") else { return };
    let word = |name: &str| std::env::var(format!("FREEHOLD_TEST_COPY_{name}")).unwrap();
    let repository = |address: &str| Repository::new(client().unwrap(), address, "big", Login::Anonymous).unwrap();
    let (from, to) = (repository(&word("FROM")), repository(&word("TO")));
    match std::env::var_os("FREEHOLD_TEST_COPY_FILE") {
        Some(file) => {
            let size = std::fs::metadata(&file).unwrap().len();
            let blob = Descriptor { media_type: "x".into(), digest: word("DIGEST").parse().unwrap(), size };
            from.push_blob(&blob, &BlobSource::File(PathBuf::from(file))).await.unwrap();
            to.push_blob(&blob, &BlobSource::Repository(from)).await.unwrap();
        }
        None => {
            copy(&from, &Version::Tag("v1".into()), &to, &CopyOptions::default()).await.unwrap();
        }
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    std::fs::write(peak, status.lines().find(|line| line.starts_with("VmHWM")).unwrap()).unwrap();
}

/// Returns the peak of a copy, in KiB.
async fn peak(from: &Registry, to: &Registry, file: Option<(&std::path::Path, Digest)>) -> u64 {
    let peak = tempfile::NamedTempFile::new().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "memory::a_copy_to_measure"])
        .env("FREEHOLD_TEST_COPY_FROM", &from.address)
        .env("FREEHOLD_TEST_COPY_TO", &to.address)
        .env("FREEHOLD_TEST_COPY_PEAK", peak.path())
        .stdout(Stdio::null());
    if let Some((file, digest)) = file {
        command.env("FREEHOLD_TEST_COPY_FILE", file).env("FREEHOLD_TEST_COPY_DIGEST", digest.as_str());
    }
    assert!(command.status().await.unwrap().success());
    let text = std::fs::read_to_string(peak.path()).unwrap();
    text.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_large_copy_takes_the_memory_of_a_small_one() {
    let (Some(one), Some(two)) = (Registry::start().await, Registry::start().await) else { return };
    let directory = tempfile::tempdir().unwrap();
    let mut peaks = Vec::new();
    for mib in [4_usize, 64] {
        let file = directory.path().join("blob");
        let digest = write_blob(&file, mib);
        peaks.push(peak(&one, &two, Some((&file, digest))).await);
    }

    println!("peak of a 4 MiB copy: {} KiB; of a 64 MiB copy: {} KiB", peaks[0], peaks[1]);
    assert!(peaks[1] < peaks[0] + NOISE && peaks[1] < MOST, "{peaks:?} KiB");
}

#[tokio::test]
async fn many_layers_take_the_memory_of_few() {
    let mut peaks = Vec::new();
    for layers in [4, 300] {
        let (Some(one), Some(two)) = (Registry::start().await, Registry::start().await) else { return };
        let layers = (0..layers).map(|seed| noise(seed, 40_000)).collect();
        push_images(&one.repository("big"), OCI, &[Image { architecture: "amd64".into(), layers }], "v1").await;
        peaks.push(peak(&one, &two, None).await);
    }

    println!("peak of 4 layers: {} KiB; of 300 layers: {} KiB", peaks[0], peaks[1]);
    assert!(peaks[1] < peaks[0] + NOISE && peaks[1] < MOST, "{peaks:?} KiB");
}

fn write_blob(path: &std::path::Path, mib: usize) -> Digest {
    use std::io::Write as _;
    let mut file = std::fs::File::create(path).unwrap();
    let mut all = Vec::new();
    for index in 0..mib as u64 {
        all = noise(index, 1024 * 1024);
        file.write_all(&all).unwrap();
    }
    drop((file, all));
    let output = std::process::Command::new("sha256sum").arg(path).output().unwrap();
    format!("sha256:{}", &String::from_utf8(output.stdout).unwrap()[..64]).parse().unwrap()
}

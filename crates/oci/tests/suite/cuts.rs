//! Connections that break at every tenth of the bytes: the copy resumes where it was, and is complete at the end.

use bytes::Bytes;
use freehold_oci::{BlobSource, Repository, fetch};
use freehold_protocol::order::Descriptor;

use crate::faulty_registry::{Behaviour, Faulty};
use crate::image::noise;
use crate::proxy::{Proxy, Way};
use crate::registry::{Registry, at, descriptor};

/// More than what two sockets hold.
const SIZE: u64 = 16 * 1024 * 1024;

async fn pushed(to: &Repository) -> (Descriptor, Vec<u8>) {
    let bytes = noise(7, usize::try_from(SIZE).unwrap());
    let blob = descriptor("x", &bytes);
    to.push_blob(&blob, &BlobSource::Bytes(Bytes::from(bytes.clone()))).await.unwrap();
    (blob, bytes)
}

async fn is_whole(repository: &Repository, blob: &Descriptor) {
    let file = tempfile::NamedTempFile::new().unwrap();
    fetch(&BlobSource::Repository(repository.clone()), blob, file.path()).await.unwrap();
}

fn tenths() -> Vec<Vec<u64>> {
    let mut all: Vec<Vec<u64>> = (1..=9).map(|tenth| vec![SIZE / 10 * tenth]).collect();
    all.push((1..=9).map(|tenth| SIZE / 10 * tenth).collect());
    all
}

/// Returns `moved` as a share of the blob.
#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn share(moved: u64) -> f64 {
    moved as f64 / SIZE as f64
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_download_that_is_cut_at_any_tenth_resumes_with_a_range() {
    let (Some(source), Some(target)) = (Registry::start().await, Registry::start().await) else { return };
    let (blob, _) = pushed(&source.repository("app")).await;
    for (at_tenth, cuts) in tenths().into_iter().enumerate() {
        let proxy = Proxy::start(&source.address, Way::Down, cuts).await;
        let from = BlobSource::Repository(at(&proxy.address, "app"));
        let to = target.repository(&format!("cut-{at_tenth}"));

        to.push_blob(&blob, &from).await.unwrap();

        is_whole(&to, &blob).await;
        assert_eq!(proxy.left(), 0);
        assert!(share(proxy.passed()) < 1.3, "cut {at_tenth}: {:.2} of the bytes", share(proxy.passed()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_download_without_ranges_starts_again_and_is_right() {
    let source = Faulty::start(Behaviour { old: true, ..Behaviour::default() }).await;
    let (blob, _) = pushed(&source.repository("app")).await;
    for cut in [1, 5, 9] {
        let proxy = Proxy::start(&source.address, Way::Down, vec![SIZE / 10 * cut]).await;

        is_whole(&at(&proxy.address, "app"), &blob).await;

        assert_eq!(proxy.left(), 0);
        assert!(share(proxy.passed()) < 2.0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_that_is_cut_at_any_tenth_resumes_where_the_registry_is() {
    let source = Faulty::start(Behaviour::default()).await;
    let (blob, _) = pushed(&source.repository("app")).await;
    for (at_tenth, cuts) in tenths().into_iter().enumerate() {
        let target = Faulty::start(Behaviour::default()).await;
        let proxy = Proxy::start(&target.address, Way::Up, cuts).await;

        at(&proxy.address, "b").push_blob(&blob, &BlobSource::Repository(source.repository("app"))).await.unwrap();

        is_whole(&target.repository("b"), &blob).await;
        assert_eq!(proxy.left(), 0);
        assert!(share(proxy.passed()) < 1.3, "cut {at_tenth}: {:.2} of the bytes", share(proxy.passed()));
        assert!(share(target.received()) < 1.01, "what arrived is not sent again");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_to_a_registry_without_status_starts_again_and_is_right() {
    let Some(target) = Registry::start().await else { return };
    let bytes = noise(7, usize::try_from(SIZE).unwrap());
    let blob = descriptor("x", &bytes);
    for tenth in 1..=9 {
        let proxy = Proxy::start(&target.address, Way::Up, vec![SIZE / 10 * tenth]).await;
        let name = format!("cut-{tenth}");

        at(&proxy.address, &name).push_blob(&blob, &BlobSource::Bytes(Bytes::from(bytes.clone()))).await.unwrap();

        is_whole(&target.repository(&name), &blob).await;
        assert_eq!(proxy.left(), 0);
        assert!(share(proxy.passed()) < 2.0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn small_blobs_survive_cuts_too() {
    let Some(target) = Registry::start().await else { return };
    for tenth in 1..=9_u64 {
        let bytes = noise(tenth, 100_000);
        let blob = descriptor("x", &bytes);
        let proxy = Proxy::start(&target.address, Way::Up, vec![10_000 * tenth]).await;

        at(&proxy.address, "small").push_blob(&blob, &BlobSource::Bytes(Bytes::from(bytes))).await.unwrap();

        is_whole(&target.repository("small"), &blob).await;
        assert_eq!(proxy.left(), 0);
    }
}

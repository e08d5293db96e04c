//! Versions: large documents are in the bucket, are checked against their digest, and are loaded once.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use freehold_app::Kind;
use freehold_app::app_version::versions::Versions;
use freehold_app::ports::{Objects, PortError};
use freehold_app::testing::{Fault, Memory};
use freehold_protocol::app_version::AppVersion;
use freehold_protocol::{Digest, canonical};

use crate::support::walk::At;
use crate::support::{World, app};

/// Returns the app with this many bytes of text for people.
fn document_of(bytes: usize) -> AppVersion {
    AppVersion { readme: "x".repeat(bytes), ..app::document() }
}

/// Returns the app's document, too large for the table.
fn large() -> AppVersion {
    document_of(400 * 1024)
}

/// Counts the calls of the memory by name, from now on.
fn counted(world: &World, name: &'static str) -> Arc<AtomicU32> {
    let count = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&count);
    world.memory.faults.set(move |what| {
        counter.fetch_add(u32::from(what == name), Ordering::Relaxed);
        None
    });
    count
}

#[tokio::test]
async fn a_large_document_is_in_the_bucket_and_its_row_is_small() {
    let world = World::new();
    let document = large();

    world.sync(&document).await;

    let version = document.digest().unwrap();
    assert_eq!(world.memory.versions.lock().unwrap()[&version], canonical::to_vec(&document).unwrap());
    assert!(world.memory.rows().iter().all(|row| row.body.len() < 1000));
    let loaded = world.versions().load(&document.app, None).await.unwrap();
    assert_eq!((loaded.version, loaded.number, &*loaded.document), (version, 1, &document));
}

#[tokio::test]
async fn a_small_document_needs_no_bucket() {
    let world = World::new();

    world.sync(&app::document()).await;

    assert!(world.memory.versions.lock().unwrap().is_empty());
    assert_eq!(*world.versions().load(&"demo".parse().unwrap(), None).await.unwrap().document, app::document());
}

#[tokio::test]
async fn a_row_never_names_a_document_that_is_not_there() {
    let world = World::new();
    let document = large();
    world.memory.faults.set(|what| (what == "put_version").then_some(Fault::Before));

    let error = world.sync_app().sync(&document.app, &document).await.unwrap_err();

    assert_eq!(error.kind, Kind::Transient);
    assert!(world.memory.rows().is_empty());
}

#[tokio::test]
async fn an_install_of_a_large_version_is_provisioned() {
    let mut world = World::new();
    world.sync(&large()).await;
    world.enrol().await;
    world.hello("build");
    world.settle().await;
    world.build("build-1").await;
    world.settle().await;

    let workflow = world.create().await;
    world.run().await;
    world.hello("globex");
    world.settle().await;

    assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"));
}

#[tokio::test]
async fn a_document_that_was_changed_or_lost_is_not_believed_and_a_sync_repairs_it() {
    let world = World::new();
    let document = large();
    world.sync(&document).await;
    let version = document.digest().unwrap();
    let refused = async || world.versions().load(&document.app, None).await.unwrap_err();
    let mut changed = canonical::to_vec(&document).unwrap();
    changed[1000] ^= 1;

    world.memory.versions.lock().unwrap().insert(version.clone(), changed);
    let tampered = refused().await;
    world.memory.versions.lock().unwrap().insert(version.clone(), b"{}".to_vec());
    let cut = refused().await;
    world.memory.versions.lock().unwrap().clear();
    let lost = refused().await;
    world.sync(&document).await;

    for (error, words) in
        [(tampered, "was changed after it was stored"), (cut, "was changed after it was stored"), (lost, "is missing")]
    {
        assert_eq!(error.kind, Kind::Internal);
        assert!(error.message.starts_with(&format!("version `{version}` of app `demo`: ")), "{error}");
        assert!(error.message.contains(words), "{error}");
    }
    assert_eq!(*world.versions().load(&document.app, None).await.unwrap().document, document);
}

#[tokio::test]
async fn a_bucket_that_does_not_answer_is_asked_again_later() {
    let world = World::new();
    world.sync(&large()).await;
    world.memory.faults.set(|what| (what == "get_version").then_some(Fault::Before));

    let error = world.versions().load(&"demo".parse().unwrap(), None).await.unwrap_err();

    assert_eq!(error.kind, Kind::Transient);
}

#[tokio::test]
async fn a_warm_function_reads_a_version_once() {
    let world = World::new();
    let document = large();
    world.sync(&document).await;
    let version = document.digest().unwrap();
    let warm = world.versions();
    warm.load(&document.app, Some(&version)).await.unwrap();
    let reads = counted(&world, "get");

    let again = warm.load(&document.app, Some(&version)).await.unwrap();

    assert_eq!(*again.document, document);
    assert_eq!(reads.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_warm_function_keeps_a_bounded_number_of_bytes() {
    let world = World::new();
    let versions: Vec<Digest> = (0..3).map(|at| document_of((3 << 20) + at).digest().unwrap()).collect();
    for at in 0..3 {
        world.sync(&document_of((3 << 20) + at)).await;
    }
    let warm = world.versions();
    let app = "demo".parse().unwrap();
    for version in &versions {
        warm.load(&app, Some(version)).await.unwrap();
    }
    let reads = counted(&world, "get_version");

    for version in [&versions[2], &versions[0]] {
        warm.load(&app, Some(version)).await.unwrap();
    }

    assert_eq!(reads.load(Ordering::Relaxed), 1);
}

/// A bucket of which this function may list nothing: S3 answers 403 for what is not there.
struct Secretive(Mutex<u32>);

#[async_trait]
impl Objects for Secretive {
    async fn source_url(&self, _: &Digest, _: u64) -> Result<String, PortError> {
        unreachable!("no source is read here")
    }

    async fn presign_source(&self, _: &Digest, _: u64, _: u64) -> Result<String, PortError> {
        Ok(String::new())
    }

    async fn put_version(&self, _: &Digest, _: &[u8]) -> Result<(), PortError> {
        Ok(())
    }

    async fn get_version(&self, _: &Digest) -> Result<Option<Vec<u8>>, PortError> {
        *self.0.lock().unwrap() += 1;
        Err(PortError::Denied { what: "tenant bucket".into(), reason: "S3 answered 403".into() })
    }
}

#[tokio::test]
async fn a_missing_document_is_named_for_a_function_that_may_not_list() {
    let world = World::new();
    let document = large();
    world.sync(&document).await;
    let bucket = Arc::new(Secretive(Mutex::default()));
    let store: Arc<Memory> = Arc::clone(&world.memory);

    let error = Versions::new(store, bucket.clone()).load(&document.app, None).await.unwrap_err();

    assert_eq!((error.kind, *bucket.0.lock().unwrap()), (Kind::Internal, 1));
    assert!(error.message.contains("is missing, or this function may not read it; restore it there"), "{error}");
}

//! Registries that lie, stall and refuse: each is named, and nothing wrong is ever whole in the target.

use std::time::{Duration, Instant};

use freehold_oci::{
    BlobSource, Copied, CopyOptions, Login, RegistryError, Repository, RetryPolicy, Version, client, copy, fetch,
};

use crate::faulty_registry::{Behaviour, Fault, Faulty};
use crate::image::{Image, OCI, noise, push_images};
use crate::registry::descriptor;

const LAYER: usize = 200_000;

/// Returns a registry with the image `a:v1`, which misbehaves from now on, and a good one.
async fn pair(fault: Fault) -> (Faulty, Faulty) {
    let (from, to) = (Faulty::start(Behaviour::default()).await, Faulty::start(Behaviour::default()).await);
    let image = Image { architecture: "amd64".into(), layers: vec![noise(1, LAYER)] };
    push_images(&from.repository("a"), OCI, &[image], "v1").await;
    from.behave(Behaviour { fault: Some(fault), ..Behaviour::default() });
    (from, to)
}

/// The idle time of a registry that does not stall: a busy machine may be silent for seconds.
const PATIENT: Duration = Duration::from_secs(30);
/// The idle time of a registry that stalls, which is over in a moment.
const SHORT: Duration = Duration::from_secs(1);

/// Hardly any pause between the attempts.
fn hasty(registry: &Faulty, name: &str, idle: Duration) -> Repository {
    let policy = RetryPolicy { idle, attempts: 2, pause: Duration::from_millis(1), ..RetryPolicy::default() };
    Repository::with_retry_policy(client().unwrap(), &registry.address, name, Login::Anonymous, policy).unwrap()
}

async fn try_copy(from: &Faulty, to: &Faulty) -> Result<Copied, RegistryError> {
    try_copy_within(from, to, PATIENT).await
}

async fn try_copy_within(from: &Faulty, to: &Faulty, idle: Duration) -> Result<Copied, RegistryError> {
    let (from, to) = (hasty(from, "a", idle), hasty(to, "b", idle));
    copy(&from, &Version::Tag("v1".into()), &to, &CopyOptions::default()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_bytes_of_a_blob_are_refused_by_name_and_never_whole() {
    for (fault, expected) in [
        (Fault::BlobBit, "returned bytes with digest"),
        (Fault::BlobShort, "instead of"),
        (Fault::BlobLong, "instead of"),
        (Fault::BlobShortUnannounced, "closed the connection after"),
        (Fault::BlobLongUnannounced, "gave bytes"),
    ] {
        let (from, to) = pair(fault).await;

        let error = try_copy(&from, &to).await.unwrap_err();

        let text = error.to_string();
        assert!(text.contains(&from.address), "{fault:?}: {text}");
        let long = fault == Fault::BlobLongUnannounced;
        assert!(text.contains(expected) || long && text.contains("instead of"), "{fault:?}: {text}");
        assert!(!to.requests().iter().any(|line| line == "PUT /v2/b/manifests/*"), "{fault:?}");
        for seed in [1] {
            let layer = descriptor("x", &noise(seed, LAYER));
            assert!(!to.repository("b").has_blob(&layer.digest).await.unwrap(), "{fault:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_that_ends_stalls_or_drips_is_given_up() {
    for (fault, stalled) in [(Fault::BlobEnds, false), (Fault::BlobHangs, true), (Fault::BlobDrips, true)] {
        let (from, to) = pair(fault).await;
        let started = Instant::now();

        let error = try_copy_within(&from, &to, if stalled { SHORT } else { PATIENT }).await.unwrap_err();

        assert!(error.is_transient() && error.to_string().contains(&from.address), "{fault:?}: {error}");
        assert_eq!(matches!(error, RegistryError::Stalled { .. }), stalled, "{fault:?}: {error}");
        assert!(started.elapsed() < Duration::from_secs(60), "{fault:?}: {:?}", started.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_stalls_is_given_up() {
    let (from, to) = pair(Fault::BlobBit).await;
    from.behave(Behaviour::default());
    to.behave(Behaviour { fault: Some(Fault::UploadHangs), ..Behaviour::default() });
    let bytes = noise(3, 16 * 1024 * 1024);
    let blob = descriptor("x", &bytes);

    let error = hasty(&to, "b", SHORT).push_blob(&blob, &BlobSource::Bytes(bytes.into())).await.unwrap_err();

    assert!(matches!(error, RegistryError::Stalled { .. }) && error.to_string().contains("127.0.0.1"), "{error}");
}

#[tokio::test]
async fn a_wrong_manifest_is_refused_by_name() {
    for fault in [Fault::ManifestByte, Fault::ManifestHeader] {
        let (from, to) = pair(fault).await;
        let digest = {
            from.behave(Behaviour::default());
            let digest = from.repository("a").manifest_digest(&Version::Tag("v1".into())).await.unwrap().unwrap();
            from.behave(Behaviour { fault: Some(fault), ..Behaviour::default() });
            digest
        };
        let version = if fault == Fault::ManifestByte { Version::Digest(digest) } else { Version::Tag("v1".into()) };
        let (source, target) = (hasty(&from, "a", PATIENT), hasty(&to, "b", PATIENT));

        let error = copy(&source, &version, &target, &CopyOptions::default()).await.unwrap_err();

        assert!(matches!(error, RegistryError::WrongDigest { .. }), "{fault:?}: {error}");
        assert!(error.to_string().contains(&from.address), "{fault:?}: {error}");
        assert_eq!(to.received(), 0);
    }
}

#[tokio::test]
async fn a_target_that_stores_something_else_is_refused_by_name() {
    for fault in [Fault::StoredHeader, Fault::StoresManifestBit] {
        let (from, to) = pair(Fault::BlobBit).await;
        from.behave(Behaviour::default());
        to.behave(Behaviour { fault: Some(fault), ..Behaviour::default() });

        let error = try_copy(&from, &to).await.unwrap_err();

        assert!(matches!(error, RegistryError::WrongDigest { .. }), "{fault:?}: {error}");
        assert!(error.to_string().contains(&to.address), "{fault:?}: {error}");
    }
}

#[tokio::test]
async fn a_digest_header_with_another_manifest_is_not_taken_for_there() {
    let (from, _) = pair(Fault::ManifestHeader).await;
    let digest = descriptor("x", b"some manifest").digest;
    from.behave(Behaviour::default());
    let known = from.repository("a").manifest_digest(&Version::Tag("v1".into())).await.unwrap().unwrap();
    from.behave(Behaviour { fault: Some(Fault::ManifestHeader), ..Behaviour::default() });

    let error = from.repository("a").manifest_digest(&Version::Digest(known)).await.unwrap_err();

    assert!(matches!(error, RegistryError::WrongDigest { .. }), "{error}");
    assert_eq!(from.repository("a").manifest_digest(&Version::Digest(digest)).await.unwrap(), None);
}

#[tokio::test]
async fn too_many_requests_and_server_errors_are_waited_out() {
    let (from, to) = pair(Fault::BlobBit).await;
    from.behave(Behaviour {
        refuse: vec![
            ("GET", "/manifests/", 503, None),
            ("GET", "/blobs/", 429, Some(1)),
            ("GET", "/blobs/", 500, None),
        ],
        ..Behaviour::default()
    });
    to.behave(Behaviour {
        refuse: vec![
            ("HEAD", "/blobs/", 502, None),
            ("POST", "/uploads/", 429, Some(0)),
            ("PUT", "/uploads/", 500, None),
            ("PUT", "/manifests/", 503, Some(0)),
        ],
        ..Behaviour::default()
    });
    let started = Instant::now();

    let copied = copy(&from.repository("a"), &Version::Tag("v1".into()), &to.repository("b"), &CopyOptions::default())
        .await
        .unwrap();

    assert!(started.elapsed() >= Duration::from_secs(1), "`Retry-After` was one second");
    assert_eq!(copied.moved.sent, 2);
}

#[tokio::test]
async fn a_registry_that_always_refuses_is_given_up() {
    let (from, to) = pair(Fault::BlobBit).await;
    for (status, after, requests) in [(500, None, 2), (429, Some(3_600), 1), (400, None, 1), (403, None, 1)] {
        from.behave(Behaviour { refuse: vec![("GET", "/manifests/", status, after); 9], ..Behaviour::default() });
        from.requests();

        let error = try_copy(&from, &to).await.unwrap_err();

        assert!(error.to_string().contains(&status.to_string()), "{error}");
        assert_eq!(from.requests().len(), requests, "{status}");
    }
}

#[tokio::test]
async fn a_blob_with_other_bytes_is_not_pushed() {
    let to = Faulty::start(Behaviour::default()).await;
    let named = descriptor("x", b"hello");

    let given = BlobSource::Bytes(bytes::Bytes::from_static(b"jello"));
    let error = to.repository("b").push_blob(&named, &given).await.unwrap_err();

    assert!(matches!(error, RegistryError::WrongDigest { .. }), "{error:?}");
    assert!(!to.repository("b").has_blob(&named.digest).await.unwrap());
}

#[tokio::test]
async fn a_granted_url_that_expired_says_so_and_does_not_appear() {
    let (from, _) = pair(Fault::BlobBit).await;
    from.behave(Behaviour { refuse: vec![("GET", "/blobs/", 403, None)], ..Behaviour::default() });
    let blob = descriptor("x", &noise(1, LAYER));
    let url = format!("http://{}/v2/a/blobs/{}?signature=secret", from.address, blob.digest);
    let source = BlobSource::Url { http: client().unwrap(), url };
    let file = tempfile::NamedTempFile::new().unwrap();

    let refused = fetch(&source, &blob, file.path()).await.unwrap_err();
    fetch(&source, &blob, file.path()).await.unwrap();

    let text = format!("{refused} {refused:?} {source:?}");
    assert!(text.contains("expired") && !text.contains("secret"), "{text}");
    assert_eq!(std::fs::read(file.path()).unwrap(), noise(1, LAYER));
}

#[tokio::test]
async fn a_list_of_referrers_without_an_end_is_an_error_and_not_a_shorter_list() {
    let (from, to) = pair(Fault::EndlessReferrers).await;

    let error = try_copy(&from, &to).await.unwrap_err();

    assert!(error.to_string().contains("the registry lists them on more than 50 pages"), "{error}");
}

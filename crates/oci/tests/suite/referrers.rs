//! Signatures and statements beside an image: pushed, listed and copied along, with the API and without.

use bytes::Bytes;
use freehold_oci::{
    Copied, CopyOptions, Repository, Version, copy, digest_tag, push_referrer, read_referrer, referrers,
};
use freehold_protocol::order::Descriptor;

use crate::faulty_registry::{Behaviour, Faulty};
use crate::image::{Image, OCI, index, noise, push_images};
use crate::registry::Registry;

const STATEMENT: &str = "application/vnd.in-toto+json";

async fn subject(repository: &Repository) -> Descriptor {
    let image = Image { architecture: "amd64".into(), layers: vec![noise(1, 500)] };
    push_images(repository, OCI, &[image], "v1").await.descriptor()
}

async fn copied(from: &Repository, to: &Repository) -> Copied {
    copy(from, &Version::Tag("v1".into()), to, &CopyOptions::default()).await.unwrap()
}

/// Pushes two referrers, copies the image, and checks that both are listed and readable at the target.
async fn check(from: &Repository, to: &Repository) {
    let subject = subject(from).await;
    let one = push_referrer(from, &subject, STATEMENT, Bytes::from_static(b"{\"a\":1}")).await.unwrap();
    let again = push_referrer(from, &subject, STATEMENT, Bytes::from_static(b"{\"a\":1}")).await.unwrap();
    let two = push_referrer(from, &subject, "application/x", Bytes::from_static(b"x")).await.unwrap();

    let first = copied(from, to).await;
    let second = copied(from, to).await;

    assert_eq!(one, again);
    assert_eq!((first.referrers.len(), second.referrers.len()), (2, 2));
    assert_eq!((second.moved.sent, second.unchanged), (0, true));
    for repository in [from, to] {
        let statements = referrers(repository, &subject.digest, Some(STATEMENT)).await.unwrap();
        assert_eq!(statements.iter().map(|s| &s.manifest).collect::<Vec<_>>(), [&one]);
        assert_eq!(statements[0].artifact_type, STATEMENT);
        assert_eq!(referrers(repository, &subject.digest, None).await.unwrap().len(), 2);
        assert_eq!(read_referrer(repository, &one).await.unwrap(), "{\"a\":1}");
        assert_eq!(read_referrer(repository, &two).await.unwrap(), "x");
    }
}

#[tokio::test]
async fn between_registries_with_the_api() {
    let (from, to) = (Faulty::start(Behaviour::default()).await, Faulty::start(Behaviour::default()).await);

    check(&from.repository("a"), &to.repository("b")).await;

    assert!(!to.requests().contains(&"PUT /v2/b/manifests/sha256-*".to_owned()));
}

#[tokio::test]
async fn between_registries_without_the_api() {
    let (Some(one), Some(two)) = (Registry::start().await, Registry::start().await) else { return };

    check(&one.repository("a"), &two.repository("b")).await;
}

#[tokio::test]
async fn from_one_with_the_api_to_one_without_and_back() {
    let new = Faulty::start(Behaviour::default()).await;
    let Some(old) = Registry::start().await else { return };

    check(&new.repository("a"), &old.repository("b")).await;
    check(&old.repository("a"), &new.repository("b")).await;
}

#[tokio::test]
async fn referrers_stay_where_they_are_when_nobody_wants_them() {
    let (from, to) = (Faulty::start(Behaviour::default()).await, Faulty::start(Behaviour::default()).await);
    let subject = subject(&from.repository("a")).await;
    push_referrer(&from.repository("a"), &subject, STATEMENT, Bytes::from_static(b"x")).await.unwrap();
    let options = CopyOptions { without_referrers: true, ..CopyOptions::default() };

    copy(&from.repository("a"), &Version::Tag("v1".into()), &to.repository("b"), &options).await.unwrap();

    assert!(referrers(&to.repository("b"), &subject.digest, None).await.unwrap().is_empty());
}

#[tokio::test]
async fn what_is_listed_but_refers_to_something_else_is_refused_by_name() {
    let old = Behaviour { old: true, ..Behaviour::default() };
    let (from, to) = (Faulty::start(old).await, Faulty::start(Behaviour::default()).await);
    let source = from.repository("a");
    let other = subject(&source).await;
    let image = Image { architecture: "arm64".into(), layers: vec![noise(2, 500)] };
    let top = push_images(&source, OCI, &[image], "v2").await;
    let foreign = push_referrer(&source, &other, STATEMENT, Bytes::from_static(b"x")).await.unwrap();
    let mut error = Vec::new();

    for entry in [foreign, other] {
        let list = index(OCI, &[serde_json::json!(entry)]);
        source.push_manifest(&list, &Version::Tag(format!("sha256-{}", top.digest.hex()))).await.unwrap();
        let version = Version::Digest(top.digest.clone());
        error
            .push(copy(&source, &version, &to.repository("b"), &CopyOptions::default()).await.unwrap_err().to_string());
        assert_eq!(to.repository("b").manifest_digest(&Version::Digest(entry.digest)).await.unwrap(), None);
    }

    assert!(
        error[0]
            .contains(&format!("is in the list of manifests that refer to `{}`, but refers to `sha256:", top.digest)),
        "{error:?}"
    );
    assert!(error[1].contains("but refers to nothing"), "{error:?}");
}

/// Pushes `writers` statements about one artifact at once: each finds no list of referrers yet. Returns them.
async fn push_at_once(registry: &Faulty, writers: usize) -> (Descriptor, Vec<Descriptor>) {
    let repository = registry.repository("a");
    let subject = subject(&repository).await;
    let pushes = (0..writers).map(|number| {
        let (repository, subject) = (repository.clone(), subject.clone());
        tokio::spawn(async move {
            push_referrer(&repository, &subject, STATEMENT, Bytes::from(format!("{number}"))).await.unwrap()
        })
    });
    let mut pushed = Vec::new();
    for push in pushes.collect::<Vec<_>>() {
        pushed.push(push.await.unwrap());
    }
    (subject, pushed)
}

#[tokio::test]
async fn statements_that_are_pushed_at_once_are_all_kept_where_tags_are_immutable() {
    for writers in 2..=6 {
        for old in [false, true] {
            let meeting = if old { writers } else { 0 };
            let registry = Faulty::start(Behaviour { old, immutable: true, meeting, ..Behaviour::default() }).await;

            let (subject, pushed) = push_at_once(&registry, writers).await;

            let repository = registry.repository("a");
            for (number, one) in pushed.iter().enumerate() {
                let tagged = repository.manifest_digest(&Version::Tag(digest_tag(&one.digest))).await.unwrap();
                assert_eq!(tagged.as_ref(), Some(&one.digest));
                assert_eq!(read_referrer(&repository, one).await.unwrap(), format!("{number}"));
            }
            // Without the API, the list is that of the first writer.
            let statements = referrers(&repository, &subject.digest, Some(STATEMENT)).await.unwrap();
            assert_eq!(statements.len(), if old { 1 } else { writers });
            assert!(statements.iter().all(|one| pushed.contains(&one.manifest)));
        }
    }
}

#[tokio::test]
async fn a_copy_lists_all_referrers_where_tags_are_immutable() {
    let target = Behaviour { old: true, immutable: true, ..Behaviour::default() };
    let (from, to) = (Faulty::start(Behaviour::default()).await, Faulty::start(target).await);

    check(&from.repository("a"), &to.repository("b")).await;
}

#[tokio::test]
async fn a_list_that_cannot_be_written_at_all_is_an_error() {
    let refuse = vec![("PUT", "/manifests/sha256-", 201, None), ("PUT", "/manifests/sha256-", 400, None)];
    let registry = Faulty::start(Behaviour { old: true, ..Behaviour::default() }).await;
    let repository = registry.repository("a");
    let subject = subject(&repository).await;
    registry.behave(Behaviour { old: true, refuse, ..Behaviour::default() });

    let error = push_referrer(&repository, &subject, STATEMENT, Bytes::from_static(b"x")).await.unwrap_err();

    assert!(error.to_string().contains("returned status 400 for the push of manifest"), "{error}");
}

#[tokio::test]
async fn nothing_refers_to_what_is_not_there() {
    let Some(registry) = Registry::start().await else { return };
    let digest = freehold_protocol::Digest::of(b"none");

    assert!(referrers(&registry.repository("a"), &digest, None).await.unwrap().is_empty());
}

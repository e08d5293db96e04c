//! Signatures of an image: found under their tag and among its referrers, and never more of them than anybody has.

use bytes::Bytes;
use freehold_oci::{
    BUNDLE_TYPE, BlobSource, Form, Manifest, Repository, SIGNATURE_ANNOTATION, SIGNATURE_LAYER, Version, push_referrer,
    referring_signatures, signature_tag, tagged_signatures,
};
use freehold_protocol::Digest;
use serde_json::{Value, json};

use crate::registry::{Registry, descriptor, push_index};

/// Puts a manifest with one layer per document and annotations under the tag for signatures of `image`.
async fn tag(repository: &Repository, image: &Digest, layers: &[(&str, &[u8], Value)]) {
    let config = descriptor("application/vnd.oci.image.config.v1+json", b"{}");
    repository.push_blob(&config, &BlobSource::Bytes(Bytes::from_static(b"{}"))).await.unwrap();
    let mut all = Vec::new();
    for (media_type, bytes, annotations) in layers {
        let blob = descriptor(media_type, bytes);
        repository.push_blob(&blob, &BlobSource::Bytes(Bytes::copy_from_slice(bytes))).await.unwrap();
        let mut layer = json!(blob);
        layer["annotations"] = annotations.clone();
        all.push(layer);
    }
    let media_type = "application/vnd.oci.image.manifest.v1+json";
    let document = json!({ "schemaVersion": 2, "mediaType": media_type, "config": config, "layers": all }).to_string();
    let manifest = Manifest::new(None, Bytes::from(document)).unwrap();
    repository.push_manifest(&manifest, &Version::Tag(signature_tag(image))).await.unwrap();
}

fn signature(text: &str) -> Value {
    json!({ SIGNATURE_ANNOTATION: text, "other": "x" })
}

#[tokio::test]
async fn signatures_are_the_layers_that_have_one_the_newest_first() {
    let Some(registry) = Registry::start().await else { return };
    let repository = registry.repository("a");
    let image = push_index(&repository, "v1").await;
    let absent = tagged_signatures(&repository, &image).await.unwrap();
    let other = "application/vnd.oci.image.layer.v1.tar";
    let layers: [(&str, &[u8], Value); 4] = [
        (SIGNATURE_LAYER, b"one", signature("MQ==")),
        (SIGNATURE_LAYER, b"two", signature("Mg==")),
        (SIGNATURE_LAYER, b"three", json!({})),
        (other, b"four", signature("NA==")),
    ];
    tag(&repository, &image, &layers).await;

    let found = tagged_signatures(&repository, &image).await.unwrap();

    assert_eq!(absent, []);
    let form = |text: &str| Form::SimpleSigning { signature: text.into() };
    assert_eq!(found.iter().map(|one| one.form.clone()).collect::<Vec<_>>(), [form("Mg=="), form("MQ==")]);
    assert_eq!(found[1].document(&repository).await.unwrap(), "one");
}

#[tokio::test]
async fn more_or_larger_signatures_than_anybody_has_are_refused() {
    let Some(registry) = Registry::start().await else { return };
    let [many, large] = ["many", "large"].map(|name| registry.repository(name));
    let image = push_index(&many, "v1").await;
    push_index(&large, "v1").await;
    let one: (&str, &[u8], Value) = (SIGNATURE_LAYER, b"one", signature("MQ=="));
    tag(&many, &image, &vec![one; 251]).await;
    tag(&large, &image, &[(SIGNATURE_LAYER, &vec![b' '; 64 * 1024 + 1], signature("MQ=="))]).await;

    let many = tagged_signatures(&many, &image).await.unwrap_err().to_string();
    let large = tagged_signatures(&large, &image).await.unwrap_err().to_string();

    assert!(many.ends_with("there are 251, more than 250"), "{many}");
    assert!(large.ends_with("it contains a signature of a document of more than 65536 bytes"), "{large}");
}

#[tokio::test]
async fn a_bundle_is_found_among_the_referrers_and_a_large_one_is_about_something_else() {
    let Some(registry) = Registry::start().await else { return };
    let repository = registry.repository("a");
    let image = push_index(&repository, "v1").await;
    let subject = repository.manifest(&Version::Digest(image.clone())).await.unwrap().descriptor();
    let push = async |kind: &str, bytes: Vec<u8>| {
        push_referrer(&repository, &subject, kind, Bytes::from(bytes)).await.unwrap();
    };
    push(BUNDLE_TYPE, b"{}".to_vec()).await;
    push(BUNDLE_TYPE, vec![b' '; 64 * 1024 + 1]).await;
    push("application/vnd.in-toto+json", b"{}".to_vec()).await;

    let found = referring_signatures(&repository, &image).await.unwrap();

    assert_eq!(found.iter().map(|one| &one.form).collect::<Vec<_>>(), [&Form::Bundle]);
    assert_eq!(found[0].document(&repository).await.unwrap(), "{}");
}

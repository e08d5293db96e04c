//! Images whose signatures a build checks before it copies them, with a registry and keys of the test's own.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use freehold_builder::build::execute;
use freehold_oci::{
    BUNDLE_TYPE, BlobSource, Manifest, Repository, SIGNATURE_ANNOTATION, SIGNATURE_ARTIFACT, SIGNATURE_LAYER, Version,
    push_referrer, signature_tag,
};
use freehold_protocol::Digest;
use freehold_protocol::envelope::pae;
use freehold_protocol::order::{Package, Recipe, Signer, Source};
use freehold_protocol::provenance::{Statement, sha256};
use freehold_runner::registry::ecr_repository;
use freehold_skips::have;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::json;

use crate::builds::{built, recipe_bench};
use crate::cloud::{Cloud, TENANT_REPOSITORY};
use crate::fixture::reason;
use crate::registry::{Registry, descriptor, push_index};

/// What comes before the point in the `SubjectPublicKeyInfo` of a key on P-256, as 26 bytes in base64.
const P256_HEAD: &str = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgA=";

struct Key(EcdsaKeyPair);

impl Key {
    fn new() -> Self {
        let (random, algorithm) = (SystemRandom::new(), &ECDSA_P256_SHA256_ASN1_SIGNING);
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        Self(EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap())
    }

    fn der(&self) -> Vec<u8> {
        [&STANDARD.decode(P256_HEAD).unwrap(), self.0.public_key().as_ref()].concat()
    }

    fn signer(&self) -> Signer {
        let body = STANDARD.encode(self.der());
        Signer::Key { public_key: format!("-----BEGIN PUBLIC KEY-----\n{body}\n-----END PUBLIC KEY-----\n") }
    }

    fn sign(&self, message: &[u8]) -> String {
        STANDARD.encode(self.0.sign(&SystemRandom::new(), message).unwrap())
    }

    /// Pushes a manifest with signatures about `image`, one by each key, as cosign before 3.0 does.
    async fn attach(keys: &[&Self], repository: &Repository, image: &Digest, more: serde_json::Value) -> Manifest {
        let critical = json!({
            "identity": { "docker-reference": "registry.example/team/app" },
            "image": { "docker-manifest-digest": image },
            "type": "cosign container image signature",
        });
        let payload = json!({ "critical": critical, "optional": null }).to_string().into_bytes();
        let config = descriptor("application/vnd.oci.image.config.v1+json", b"{}");
        let layer = descriptor(SIGNATURE_LAYER, &payload);
        let layers: Vec<_> = keys
            .iter()
            .map(|key| {
                let mut one = json!(layer);
                one["annotations"] = json!({ SIGNATURE_ANNOTATION: key.sign(&payload) });
                one
            })
            .collect();
        for (blob, bytes) in [(&config, b"{}".to_vec()), (&layer, payload)] {
            repository.push_blob(blob, &BlobSource::Bytes(Bytes::from(bytes))).await.unwrap();
        }
        let media_type = "application/vnd.oci.image.manifest.v1+json";
        let mut document = json!({ "schemaVersion": 2, "mediaType": media_type, "config": config, "layers": layers });
        document.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Manifest::new(None, Bytes::from(document.to_string())).unwrap()
    }

    async fn tag(keys: &[&Self], repository: &Repository, at: &Digest, image: &Digest) {
        let manifest = Self::attach(keys, repository, image, json!({})).await;
        repository.push_manifest(&manifest, &Version::Tag(signature_tag(at))).await.unwrap();
    }
}

fn source(registry: &Registry, name: &str) -> Source {
    Source::Image { reference: format!("{}/{name}:v1", registry.address) }
}

fn signed_by(signers: Vec<Signer>) -> Option<Recipe> {
    Some(Recipe::SignedImage { signers })
}

fn keyless() -> Signer {
    let text = String::from;
    Signer::Keyless { issuer: text("https://accounts.example"), subject: text("a"), subject_regexp: String::new() }
}

#[tokio::test]
async fn an_image_that_a_named_key_signed_is_copied_and_the_statement_names_the_key() {
    if !have(&["docker-registry"]) {
        return;
    }
    let test = "signed_image::an_image_that_a_named_key_signed_is_copied_and_the_statement_names_the_key";
    let Some(cloud) = Cloud::here(test).await else { return };
    let Some(registry) = Registry::start().await else { return };
    let repository = registry.repository("team/app");
    let digest = push_index(&repository, "v1").await;
    let (one, two, stranger) = (Key::new(), Key::new(), Key::new());
    Key::tag(&[&stranger, &two, &stranger], &repository, &digest, &digest).await;
    let recipe = signed_by(vec![keyless(), one.signer(), two.signer()]);
    let bench = recipe_bench(Package::Image, source(&registry, "team/app"), recipe);

    let artifact = built(execute(&bench.job).await);

    assert_eq!((&artifact.digest, artifact.manifests.len(), artifact.blobs.len()), (&digest, 3, 5));
    let key = Digest::of(&two.der());
    assert!(bench.log().contains(&format!("/team/app@{digest} is signed by key {key}")), "{}", bench.log());
    let statement: Statement = artifact.provenance.unwrap().statement.peek().unwrap();
    let resolved = &statement.predicate.build_definition.resolved_dependencies;
    assert_eq!(resolved.iter().map(|one| &one.digest).collect::<Vec<_>>(), [&sha256(&digest), &sha256(&key)]);
    assert_eq!(resolved[1].uri, "urn:freehold:cosign-key");
    let _ = cloud;
}

#[tokio::test]
async fn an_image_that_no_named_key_signed_is_refused_and_not_copied() {
    if !have(&["docker-registry"]) {
        return;
    }
    let test = "signed_image::an_image_that_no_named_key_signed_is_refused_and_not_copied";
    let Some(cloud) = Cloud::here(test).await else { return };
    let Some(registry) = Registry::start().await else { return };
    let (key, stranger) = (Key::new(), Key::new());
    let [bare, other, moved] = ["team/bare", "team/other", "team/moved"].map(|name| registry.repository(name));
    let digest = push_index(&bare, "v1").await;
    push_index(&other, "v1").await;
    Key::tag(&[&stranger], &other, &digest, &digest).await;
    push_index(&moved, "v1").await;
    Key::tag(&[&stranger, &key], &moved, &digest, &Digest::of(b"another image")).await;

    let mut found = Vec::new();
    for name in ["team/bare", "team/other", "team/moved"] {
        let recipe = signed_by(vec![key.signer()]);
        found.push(reason(cloud.build_by(Package::Image, source(&registry, name), recipe).await));
    }
    for signers in [vec![keyless()], Vec::new(), vec![key.signer(), Signer::Key { public_key: "KEY".into() }]] {
        found.push(reason(cloud.build_by(Package::Image, source(&registry, "team/bare"), signed_by(signers)).await));
    }

    let expected = [
        format!("/team/bare@{digest}` has no signature; sign it with `cosign sign --key"),
        format!(
            "/team/other@{digest}` has 1 signature, but none by a key that the config names (`{}`)",
            Digest::of(&key.der())
        ),
        format!("by key `{}`, but it is for another image, `{}`", Digest::of(&key.der()), Digest::of(b"another image")),
        "only keyless signatures are accepted for the image, and builds cannot check them".to_owned(),
        "the config does not name the key".to_owned(),
        "authority 2 of `verification` cannot be used".to_owned(),
    ];
    for ((reason, partial), expected) in found.iter().zip(&expected) {
        assert!(reason.contains(expected) && !partial, "{reason}");
    }
    let tenant = ecr_repository(&cloud.tenant, TENANT_REPOSITORY).await.unwrap();
    assert_eq!(tenant.manifest_digest(&Version::Digest(digest)).await.unwrap(), None);
}

#[tokio::test]
async fn an_image_on_disk_has_no_signature_to_check() {
    let source = Source::Directory { digest: Digest::of(b"layout") };
    let bench = recipe_bench(Package::Image, source, signed_by(vec![Key::new().signer()]));

    let (reason, partial) = reason(execute(&bench.job).await);

    assert!(reason.starts_with("the signatures of an image on disk cannot be checked") && !partial, "{reason}");
}

#[tokio::test]
async fn signatures_that_refer_to_the_image_count_too() {
    if !have(&["docker-registry"]) {
        return;
    }
    let test = "signed_image::signatures_that_refer_to_the_image_count_too";
    let Some(cloud) = Cloud::here(test).await else { return };
    let Some(registry) = Registry::start().await else { return };
    let (key, stranger) = (Key::new(), Key::new());
    let [bundled, referred, attested] = ["a/bundled", "a/referred", "a/attested"].map(|name| registry.repository(name));
    let digest = push_index(&bundled, "v1").await;
    push_index(&referred, "v1").await;
    push_index(&attested, "v1").await;
    let subject = bundled.manifest(&Version::Digest(digest.clone())).await.unwrap().descriptor();
    let bundle = |predicate: &str| {
        let subject = json!([{ "digest": { "sha256": digest.hex() } }]);
        let kind = "https://in-toto.io/Statement/v1";
        let statement = json!({ "_type": kind, "subject": subject, "predicateType": predicate, "predicate": {} });
        let (kind, payload) = ("application/vnd.in-toto+json", statement.to_string().into_bytes());
        let signatures = json!([{ "sig": key.sign(&pae(kind, &payload)) }]);
        let envelope = json!({ "payload": STANDARD.encode(payload), "payloadType": kind, "signatures": signatures });
        Bytes::from(json!({ "mediaType": BUNDLE_TYPE, "dsseEnvelope": envelope }).to_string())
    };
    push_referrer(&bundled, &subject, BUNDLE_TYPE, bundle("https://sigstore.dev/cosign/sign/v1")).await.unwrap();
    push_referrer(&attested, &subject, BUNDLE_TYPE, bundle("https://slsa.dev/provenance/v1")).await.unwrap();
    // This registry has no list of referrers; the tag that stands for it is written as cosign writes it.
    let more = json!({ "artifactType": SIGNATURE_ARTIFACT, "subject": subject });
    let manifest = Key::attach(&[&stranger, &key], &referred, &digest, more).await;
    referred.push_manifest(&manifest, &Version::Digest(manifest.digest.clone())).await.unwrap();
    let mut descriptor = json!(manifest.descriptor());
    descriptor["artifactType"] = json!(SIGNATURE_ARTIFACT);
    let media_type = "application/vnd.oci.image.index.v1+json";
    let list = json!({ "schemaVersion": 2, "mediaType": media_type, "manifests": [descriptor] }).to_string();
    let list = Manifest::new(None, Bytes::from(list)).unwrap();
    referred.push_manifest(&list, &Version::Tag(format!("sha256-{}", digest.hex()))).await.unwrap();
    let build =
        async |name: &str| cloud.build_by(Package::Image, source(&registry, name), signed_by(vec![key.signer()])).await;

    let refused = reason(build("a/attested").await).0;
    let (one, two) = (built(build("a/bundled").await), built(build("a/referred").await));

    assert!(refused.contains("is of kind `https://slsa.dev/provenance/v1`"), "{refused}");
    assert_eq!((&one.digest, &two.digest), (&digest, &digest));
}

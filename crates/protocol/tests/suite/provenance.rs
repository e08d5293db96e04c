//! Provenance: a statement is believed when the root key signed it and it says what the reader expects, and only then.

use std::collections::BTreeMap;

use ed25519_dalek::SigningKey;
use freehold_protocol::envelope::{Delegate, PublicKey};
use freehold_protocol::order::{Package, Source};
use freehold_protocol::provenance::{
    BuildFacts, Expected, ExternalParameters, InternalParameters, Provenance, ProvenanceError, ResourceDescriptor,
    Statement, Subject, sha256,
};
use freehold_protocol::{
    BuildId, ComponentName, Digest, Envelope, EnvelopeError, JobId, KeyUse, TenantName, Timestamp, WorkflowId,
};
use proptest::prelude::*;

fn key(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

fn root() -> PublicKey {
    key(1).verifying_key().into()
}

fn tenant() -> TenantName {
    "acme".parse().unwrap()
}

fn component() -> ComponentName {
    "web".parse().unwrap()
}

fn artifact() -> Digest {
    Digest::of(b"artifact")
}

fn statement() -> Statement {
    let source = Source::Image { reference: "docker.io/library/nginx:1.27".into() };
    let workflow = WorkflowId::derive("acme", "provenance");
    let app = "shop".parse().unwrap();
    Statement::new(
        &artifact(),
        ExternalParameters { app, component: component(), package: Package::Image, source },
        InternalParameters {
            tenant: tenant(),
            build: BuildId::derive(&"shop".parse().unwrap(), &Digest::of(b"source"), &component()),
            job: JobId::derive(&workflow, "build"),
            source_digest: Digest::of(b"source"),
        },
        BuildFacts {
            resolved: vec![ResourceDescriptor {
                uri: "docker.io/library/nginx:1.27".into(),
                digest: sha256(&Digest::of(b"upstream")),
            }],
            versions: BTreeMap::from([("freehold-runner".into(), "0.1.0".into())]),
            started_at: Timestamp::from_millis(1_795_250_000_000),
            finished_at: Timestamp::from_millis(1_795_250_060_000),
        },
    )
}

fn signed(statement: &Statement, key: &SigningKey) -> Provenance {
    Provenance { statement: Envelope::seal(statement, &[key]).unwrap(), referrer: Digest::of(b"referrer") }
}

/// Verifies as a reader who knows everything does.
fn verify(provenance: &Provenance) -> Result<Statement, ProvenanceError> {
    let (tenant, artifact, component) = (tenant(), artifact(), component());
    let app = Some("shop");
    provenance.verify(&root(), &Expected { tenant: &tenant, artifact: &artifact, app, component: &component })
}

/// Returns what the refusal of a statement that was changed by `change` and signed again is about.
fn refused(change: impl FnOnce(&mut Statement)) -> &'static str {
    let mut statement = statement();
    change(&mut statement);
    match verify(&signed(&statement, &key(1))) {
        Err(ProvenanceError::Other { what, .. }) => what,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_statement_is_read_back_as_it_was_signed() {
    let provenance = signed(&statement(), &key(1));

    let text = serde_json::to_string(&provenance).unwrap();
    let read: Provenance = serde_json::from_str(&text).unwrap();

    assert_eq!(read, provenance);
    assert_eq!(verify(&read), Ok(statement()));
}

#[test]
fn a_statement_is_written_in_the_words_of_its_specifications() {
    let value = serde_json::to_value(statement()).unwrap();

    assert_eq!(value["_type"], "https://in-toto.io/Statement/v1");
    assert_eq!(value["predicateType"], "https://slsa.dev/provenance/v1");
    assert_eq!(value["subject"][0]["name"], "shop/web");
    assert_eq!(value["subject"][0]["digest"]["sha256"], artifact().hex());
    let predicate = &value["predicate"];
    assert_eq!(predicate["buildDefinition"]["buildType"], "urn:freehold:build:v1");
    assert_eq!(predicate["buildDefinition"]["externalParameters"]["source"]["from"], "image");
    assert_eq!(predicate["buildDefinition"]["internalParameters"]["tenant"], "acme");
    assert_eq!(
        predicate["buildDefinition"]["resolvedDependencies"][0]["digest"]["sha256"],
        Digest::of(b"upstream").hex()
    );
    assert_eq!(predicate["runDetails"]["builder"]["id"], "urn:freehold:tenant:acme:build-runner");
    assert_eq!(predicate["runDetails"]["metadata"]["startedOn"], "2026-11-21T08:33:20.000Z");
}

#[test]
fn a_reader_who_does_not_know_the_app_takes_any() {
    let (tenant, artifact, component) = (tenant(), artifact(), component());
    let expected = Expected { tenant: &tenant, artifact: &artifact, app: None, component: &component };

    assert!(signed(&statement(), &key(1)).verify(&root(), &expected).is_ok());
}

#[test]
fn a_statement_about_anything_else_is_refused_by_what_differs() {
    let provenance = signed(&statement(), &key(1));
    let (tenant, artifact, component) = (tenant(), artifact(), component());
    let good = Expected { tenant: &tenant, artifact: &artifact, app: Some("shop"), component: &component };
    let (other_tenant, other_artifact) = ("globex".parse().unwrap(), Digest::of(b"other"));
    let other_component = "api".parse().unwrap();
    for (expected, about, found) in [
        (Expected { tenant: &other_tenant, ..good }, "tenant", "acme"),
        (Expected { artifact: &other_artifact, ..good }, "artifact", artifact.hex()),
        (Expected { app: Some("blog"), ..good }, "app", "shop"),
        (Expected { component: &other_component, ..good }, "component", "web"),
    ] {
        let error = provenance.verify(&root(), &expected).unwrap_err();

        let wanted = expected.artifact.clone();
        assert_eq!(error, ProvenanceError::Other { artifact: wanted, what: about, found: found.into() });
    }
}

#[test]
fn a_signed_statement_of_another_form_is_refused() {
    assert_eq!(refused(|s| s.statement_type = "https://in-toto.io/Statement/v0.1".into()), "type");
    assert_eq!(refused(|s| s.predicate_type = "https://slsa.dev/provenance/v0.2".into()), "predicate");
    assert_eq!(refused(|s| s.predicate.build_definition.build_type = "urn:other".into()), "build type");
}

#[test]
fn a_signed_statement_with_any_other_subjects_is_refused() {
    let other = Subject { name: "shop/api".into(), digest: sha256(&Digest::of(b"other")) };
    let hex = artifact().hex().to_owned();

    assert_eq!(refused(|s| s.subject.clear()), "artifact");
    assert_eq!(refused(|s| s.subject.push(other.clone())), "artifact");
    assert_eq!(refused(|s| s.subject.insert(0, other)), "artifact");
    assert_eq!(refused(|s| s.subject[0].digest.clear()), "artifact");
    assert_eq!(refused(|s| drop(s.subject[0].digest.insert("sha512".into(), "ab".into()))), "artifact");
    assert_eq!(refused(|s| drop(s.subject[0].digest.insert("sha256".into(), hex[..63].into()))), "artifact");
    assert_eq!(refused(|s| drop(s.subject[0].digest.insert("sha256".into(), hex.to_uppercase()))), "artifact");
    assert_eq!(refused(|s| s.subject[0].digest = BTreeMap::from([("sha512".into(), hex.clone())])), "artifact");
}

#[test]
fn what_is_found_is_cut_for_people() {
    let mut statement = statement();
    statement.predicate_type = "x".repeat(10_000);

    let Err(ProvenanceError::Other { found, .. }) = verify(&signed(&statement, &key(1))) else { panic!("accepted") };

    assert_eq!(found.len(), 120);
}

#[test]
fn a_statement_that_the_root_key_did_not_sign_itself_is_refused() {
    let good = signed(&statement(), &key(1));
    let stranger = signed(&statement(), &key(9));
    let mut named_as_root = stranger.clone();
    named_as_root.statement.signatures[0].keyid = root().key_id();
    let cert = Delegate {
        tenant: tenant(),
        public_key: key(2).verifying_key().into(),
        not_before: Timestamp::from_millis(0),
        not_after: Timestamp::from_millis(u64::MAX),
        send_until: None,
        uses: KeyUse::ALL.into(),
    };
    let cert = Envelope::seal(&cert, &[&key(1)]).unwrap();
    let delegated = Provenance {
        statement: Envelope::seal_delegated(&statement(), &key(2), &cert).unwrap(),
        referrer: Digest::of(b"referrer"),
    };
    let mut bare = good.clone();
    bare.statement.signatures.clear();
    let mut other = statement();
    other.predicate.run_details.builder.id = "urn:freehold:tenant:acme:someone".into();
    let mut swapped = good;
    swapped.statement.payload = signed(&other, &key(1)).statement.payload;

    let envelope = |provenance: &Provenance| match verify(provenance) {
        Err(ProvenanceError::Envelope { source, .. }) => source,
        other => panic!("{other:?}"),
    };

    assert_eq!(envelope(&stranger), EnvelopeError::Unsigned(root().key_id()));
    assert_eq!(envelope(&named_as_root), EnvelopeError::BadSignature(root().key_id()));
    assert_eq!(envelope(&delegated), EnvelopeError::Unsigned(root().key_id()));
    assert_eq!(envelope(&bare), EnvelopeError::Unsigned(root().key_id()));
    assert_eq!(envelope(&swapped), EnvelopeError::BadSignature(root().key_id()));
}

#[test]
fn a_message_of_another_kind_is_not_a_statement() {
    let cert = Delegate {
        tenant: tenant(),
        public_key: key(2).verifying_key().into(),
        not_before: Timestamp::from_millis(0),
        not_after: Timestamp::from_millis(1),
        send_until: None,
        uses: KeyUse::ALL.into(),
    };
    let statement = Envelope::seal(&cert, &[&key(1)]).unwrap();

    let error = verify(&Provenance { statement, referrer: Digest::of(b"referrer") }).unwrap_err();

    assert!(matches!(error, ProvenanceError::Envelope { source: EnvelopeError::WrongType { .. }, .. }), "{error}");
}

#[test]
fn refusals_name_the_artifact_and_the_way_out() {
    let missing = ProvenanceError::Missing(artifact());

    assert_eq!(missing.to_string(), format!("artifact `{}` has no provenance; build its component again", artifact()));
}

proptest! {
    #[test]
    fn any_changed_byte_of_a_signed_statement_is_refused(at in any::<prop::sample::Index>(), bit in 0_u8..8) {
        let good = signed(&statement(), &key(1));
        let mut text = good.statement.to_json().unwrap().into_bytes();
        let at = at.index(text.len());
        text[at] ^= 1 << bit;

        let read = Envelope::parse(&text).ok();
        let verified = read.and_then(|statement| verify(&Provenance { statement, ..good.clone() }).ok());

        prop_assert_eq!(verified, None);
    }

    #[test]
    fn any_facts_of_a_build_survive_the_signature(
        uris in prop::collection::vec(".{0,40}", 0..4),
        versions in prop::collection::btree_map(".{1,20}", ".{0,20}", 0..4),
        started in 0..253_402_300_800_000u64,
        finished in 0..253_402_300_800_000u64,
    ) {
        let mut statement = statement();
        let definition = &mut statement.predicate.build_definition;
        definition.resolved_dependencies = uris
            .into_iter()
            .map(|uri| ResourceDescriptor { digest: sha256(&Digest::of(uri.as_bytes())), uri })
            .collect();
        statement.predicate.run_details.builder.version = versions;
        statement.predicate.run_details.metadata.started_on = Timestamp::from_millis(started);
        statement.predicate.run_details.metadata.finished_on = Timestamp::from_millis(finished);

        prop_assert_eq!(verify(&signed(&statement, &key(1))), Ok(statement));
    }
}

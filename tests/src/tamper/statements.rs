//! Tampered statements, parsed as an envelope and verified by the protocol's own `Provenance::verify`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::SigningKey;
use freehold_fuzz::Draw;
use freehold_protocol::envelope::{Delegate, EnvelopeSignature, PublicKey, decode_base64};
use freehold_protocol::order::{Package, Source};
use freehold_protocol::provenance::{
    BuildFacts, Expected, ExternalParameters, InternalParameters, Provenance, ProvenanceError, ResourceDescriptor,
    Statement, sha256,
};
use freehold_protocol::{
    AppName, BuildId, ComponentName, Digest, Envelope, JobId, KeyId, KeyUse, TenantName, Timestamp, WorkflowId,
};
use serde_json::{Value, json};

use super::bytes::change;

/// A good statement and what its reader expects.
#[derive(Debug, Clone)]
pub(super) struct Signed {
    pub(super) tenant: TenantName,
    pub(super) artifact: Digest,
    app: AppName,
    /// Whether the reader knows the app.
    app_is_known: bool,
    component: ComponentName,
    root: SigningKey,
    statement: Statement,
    pub(super) envelope: Envelope,
}

/// An envelope's text, and the statement in whose place it is.
pub(super) struct StatementCase {
    pub(super) what: String,
    pub(super) of: usize,
    pub(super) text: Vec<u8>,
}

/// Returns the root key of a tenant.
pub(super) fn root_of(tenant: &str) -> SigningKey {
    SigningKey::from_bytes(&[if tenant == "acme" { 1 } else { 3 }; 32])
}

/// A key that nobody believes.
pub(super) fn stranger() -> SigningKey {
    SigningKey::from_bytes(&[9; 32])
}

impl Signed {
    pub(super) fn new(number: usize, tenant: &str, artifact: &Digest, package: Package, source: Source) -> Self {
        let app: AppName = ["shop", "blog"][number % 2].parse().expect("an app name");
        let component: ComponentName = ["web", "db", "module"][number % 3].parse().expect("a component name");
        let tenant: TenantName = tenant.parse().expect("a tenant name");
        let root = root_of(tenant.as_str());
        let source_digest = Digest::of(format!("source {number}").as_bytes());
        let workflow = WorkflowId::derive(tenant.as_str(), &number.to_string());
        let statement = Statement::new(
            artifact,
            ExternalParameters { app: app.clone(), component: component.clone(), package, source },
            InternalParameters {
                tenant: tenant.clone(),
                build: BuildId::derive(&app, &source_digest, &component),
                job: JobId::derive(&workflow, component.as_str()),
                source_digest: source_digest.clone(),
            },
            BuildFacts {
                resolved: vec![ResourceDescriptor {
                    uri: "git+https://example.com/a".into(),
                    digest: sha256(&source_digest),
                }],
                versions: [("freehold-runner".to_owned(), "0.1.0".to_owned())].into(),
                started_at: Timestamp::from_millis(1_795_250_000_000),
                finished_at: Timestamp::from_millis(1_795_250_060_000),
            },
        );
        let envelope = Envelope::seal(&statement, &[&root]).expect("a statement");
        let artifact = artifact.clone();
        Self { tenant, artifact, app, app_is_known: !number.is_multiple_of(4), component, root, statement, envelope }
    }

    /// Reads an envelope as a reader of this statement does.
    ///
    /// # Errors
    /// Why it is not believed, in few words.
    pub(super) fn read(&self, text: &[u8]) -> Result<Statement, String> {
        let statement = Envelope::parse(text).map_err(|_| "not an envelope".to_owned())?;
        let provenance = Provenance { statement, referrer: Digest::of(b"referrer") };
        let app = self.app_is_known.then(|| self.app.as_str());
        let expected = Expected { tenant: &self.tenant, artifact: &self.artifact, app, component: &self.component };
        provenance.verify(&PublicKey::from(self.root.verifying_key()), &expected).map_err(|error| match error {
            ProvenanceError::Missing(_) => "missing".to_owned(),
            ProvenanceError::Envelope { source, .. } => beginning(&source.to_string()),
            ProvenanceError::Other { what, .. } => format!("about another {what}"),
        })
    }

    fn text(&self) -> Vec<u8> {
        text(&self.envelope)
    }
}

/// Returns what a message begins with, without what it names.
fn beginning(message: &str) -> String {
    let begins = message.split(['`', ':']).next().unwrap_or_default();
    begins.trim().to_owned()
}

/// Returns the untampered cases.
pub(super) fn originals(all: &[Signed]) -> Vec<StatementCase> {
    let case = |(of, signed): (usize, &Signed)| StatementCase { what: "nothing".into(), of, text: signed.text() };
    all.iter().enumerate().map(case).collect()
}

/// Returns a tampered statement. What reads the same is none: another one is drawn then.
pub(super) fn draw(draw: &mut Draw, all: &[Signed]) -> StatementCase {
    loop {
        let of = draw.below(all.len());
        let (what, text) = one(draw, all, of);
        if meaning(&text) != meaning(&all[of].text()) {
            return StatementCase { what, of, text };
        }
    }
}

/// What an envelope says: its type, its payload's bytes and its signatures. A JSON text that says the same with other
/// spaces or in another order is not tampering; one whose base64 has other bytes is.
pub(super) type Meaning = (String, Vec<u8>, Vec<(String, Vec<u8>, Option<Box<(String, Vec<u8>, Vec<u8>)>>)>);

/// Returns what an envelope says; none when it cannot be read.
pub(super) fn meaning(text: &[u8]) -> Option<Meaning> {
    let envelope = Envelope::parse(text).ok()?;
    let signatures = envelope.signatures.iter().map(|signature| {
        let cert = match &signature.cert {
            Some(cert) => {
                let signed = cert.signatures.iter().map(|one| decode_base64(&one.sig).ok());
                let signed = signed.collect::<Option<Vec<_>>>()?.concat();
                let names: Vec<&str> = cert.signatures.iter().map(|one| one.keyid.as_str()).collect();
                let head = format!("{} {}", cert.payload_type, names.join(" "));
                Some(Box::new((head, decode_base64(&cert.payload).ok()?, signed)))
            }
            None => None,
        };
        Some((signature.keyid.to_string(), decode_base64(&signature.sig).ok()?, cert))
    });
    Some((envelope.payload_type.clone(), decode_base64(&envelope.payload).ok()?, signatures.collect::<Option<_>>()?))
}

pub(super) fn text(envelope: &Envelope) -> Vec<u8> {
    envelope.to_json().expect("an envelope").into_bytes()
}

fn one(draw: &mut Draw, all: &[Signed], of: usize) -> (String, Vec<u8>) {
    let own = &all[of];
    let other = &all[(of + 1 + draw.below(all.len() - 1)) % all.len()];
    let mut envelope = own.envelope.clone();
    let what = match draw.below(12) {
        0..=2 => {
            let (text, what) = change(draw, &own.text(), &[other.text()]);
            return (format!("text: {what}"), text);
        }
        3 | 4 => {
            let payload = decode_base64(&envelope.payload).expect("base64");
            let (payload, what) = change(draw, &payload, &[decode_base64(&other.envelope.payload).expect("base64")]);
            envelope.payload = STANDARD.encode(payload);
            format!("payload: {what}")
        }
        5 => {
            let (field, payload) = edited(draw, own, other);
            envelope.payload = STANDARD.encode(payload);
            format!("payload: another {field}")
        }
        6 => {
            envelope.signatures.clone_from(&other.envelope.signatures);
            "the signatures of another statement".to_owned()
        }
        7 => signature(draw, &mut envelope, own),
        8 => {
            envelope = other.envelope.clone();
            "another statement that is signed".to_owned()
        }
        9 => {
            let (what, statement) = about(draw, own, other);
            envelope = seal(&statement, &own.root);
            format!("signed, about {what}")
        }
        10 => by_another(draw, own, &mut envelope),
        _ => relabelled(draw, own, &mut envelope),
    };
    (what, text(&envelope))
}

fn seal(statement: &Statement, key: &SigningKey) -> Envelope {
    Envelope::seal(statement, &[key]).expect("a statement")
}

/// Changes one field of what is said; the signature stays.
fn edited(draw: &mut Draw, own: &Signed, other: &Signed) -> (&'static str, Vec<u8>) {
    let mut value = serde_json::to_value(&own.statement).expect("a statement");
    let changes: [(&'static str, &str, Value); 8] = [
        ("artifact", "/subject/0/digest/sha256", json!(other.artifact.hex())),
        ("name", "/subject/0/name", json!("shop/other")),
        ("source", "/predicate/buildDefinition/resolvedDependencies/0/uri", json!("git+https://example.com/b")),
        (
            "source digest",
            "/predicate/buildDefinition/resolvedDependencies/0/digest/sha256",
            json!(Digest::of(b"b").hex()),
        ),
        ("tenant", "/predicate/buildDefinition/internalParameters/tenant", json!("another")),
        ("job", "/predicate/buildDefinition/internalParameters/job", json!("job_0123456789abcdef0123")),
        ("builder", "/predicate/runDetails/builder/id", json!("urn:freehold:tenant:acme:someone")),
        ("time", "/predicate/runDetails/metadata/finishedOn", json!(1)),
    ];
    let (field, pointer, new) = draw.pick(&changes);
    *value.pointer_mut(pointer).expect("a field of every statement") = new.clone();
    (field, serde_json::to_vec(&value).expect("JSON"))
}

/// Returns a statement that is about something else than the reader expects, for the right key to sign.
fn about(draw: &mut Draw, own: &Signed, other: &Signed) -> (&'static str, Statement) {
    let mut statement = own.statement.clone();
    let definition = &mut statement.predicate.build_definition;
    let what = match draw.below(9) {
        0 => {
            definition.internal_parameters.tenant = "another".parse().expect("a tenant name");
            "another tenant"
        }
        1 => {
            definition.external_parameters.component = "another".parse().expect("a component name");
            "another component"
        }
        2 if own.app_is_known => {
            definition.external_parameters.app = "another".parse().expect("an app name");
            "another app"
        }
        3 => {
            definition.build_type = "https://example.com/build".into();
            "another build"
        }
        4 => {
            statement.predicate_type = "https://slsa.dev/provenance/v0.2".into();
            "another predicate"
        }
        5 => {
            statement.statement_type = "https://in-toto.io/Statement/v0.1".into();
            "another type"
        }
        6 => {
            statement.subject.push(other.statement.subject[0].clone());
            "two artifacts"
        }
        7 => {
            statement.subject.clear();
            "nothing"
        }
        _ => {
            let digests = &mut statement.subject[0].digest;
            match draw.below(3) {
                0 => drop(digests.insert("sha256".into(), other.artifact.hex().into())),
                1 => drop(digests.insert("sha512".into(), own.artifact.hex().into())),
                _ => digests.values_mut().for_each(|hex| hex.truncate(8 + draw.below(55))),
            }
            "another digest"
        }
    };
    (what, statement)
}

fn signature(draw: &mut Draw, envelope: &mut Envelope, own: &Signed) -> String {
    let only = &mut envelope.signatures[0];
    let raw = decode_base64(&only.sig).expect("base64");
    match draw.below(5) {
        0 | 1 => {
            let (raw, what) = change(draw, &raw, &[vec![0; 64]]);
            only.sig = STANDARD.encode(raw);
            format!("signature: {what}")
        }
        2 => {
            only.sig = STANDARD.encode(plus_order(&raw));
            "signature: the same point with the group's order added to its number".to_owned()
        }
        3 => {
            only.keyid = KeyId::of(&stranger().verifying_key());
            "signature: named as a stranger's".to_owned()
        }
        _ => {
            let kept = draw.below(2);
            envelope.signatures.truncate(0);
            if kept == 1 {
                envelope.signatures = seal(&own.statement, &stranger()).signatures;
            }
            "no signature of the root key".to_owned()
        }
    }
}

/// Adds the order of Ed25519's group to the signature's number (RFC 8032 section 8.4, malleability).
fn plus_order(signature: &[u8]) -> Vec<u8> {
    const ORDER: [u8; 32] = [
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
    ];
    let mut sum = signature.to_vec();
    let mut carry = 0;
    for (byte, order) in sum[32..].iter_mut().zip(ORDER) {
        let total = u16::from(*byte) + u16::from(order) + carry;
        *byte = total.to_le_bytes()[0];
        carry = total >> 8;
    }
    sum
}

/// Has the statement, as it is or about what the forger likes, signed by a key that is not the root's.
fn by_another(draw: &mut Draw, own: &Signed, envelope: &mut Envelope) -> String {
    let delegate = SigningKey::from_bytes(&[2; 32]);
    let (what, mut forged) = match draw.below(4) {
        0 => ("signed by a stranger", seal(&own.statement, &stranger())),
        1 => ("signed by a stranger in the root key's name", seal(&own.statement, &stranger())),
        2 => {
            let others = if own.tenant.as_str() == "acme" { "globex" } else { "acme" };
            ("signed by another tenant's root key in this one's name", seal(&own.statement, &root_of(others)))
        }
        _ => {
            let cert = Delegate {
                tenant: own.tenant.clone(),
                public_key: delegate.verifying_key().into(),
                not_before: Timestamp::from_millis(0),
                not_after: Timestamp::from_millis(u64::MAX),
                send_until: None,
                uses: KeyUse::ALL.into(),
            };
            let cert = Envelope::seal(&cert, &[&own.root]).expect("a certificate");
            let sealed = Envelope::seal_delegated(&own.statement, &delegate, &cert).expect("a statement");
            ("signed by a delegate of the root key", sealed)
        }
    };
    if what.contains("name") || draw.one_in(4) {
        forged.signatures[0].keyid = KeyId::of(&own.root.verifying_key());
    }
    *envelope = forged;
    what.to_owned()
}

/// Something else that the root key signed, under a statement's type; or the statement under another type.
fn relabelled(draw: &mut Draw, own: &Signed, envelope: &mut Envelope) -> String {
    let kind = envelope.payload_type.clone();
    match draw.below(3) {
        0 => {
            let types = ["", "application/json", "application/vnd.freehold.order.v1+json", "application/vnd.in-toto"];
            envelope.payload_type = (*draw.pick(&types)).into();
            format!("named `{}`", envelope.payload_type)
        }
        1 => {
            let cert = Delegate {
                tenant: own.tenant.clone(),
                public_key: stranger().verifying_key().into(),
                not_before: Timestamp::from_millis(0),
                not_after: Timestamp::from_millis(draw.below(1_000) as u64),
                send_until: None,
                uses: KeyUse::ALL.into(),
            };
            *envelope = Envelope::seal(&cert, &[&own.root]).expect("a certificate");
            envelope.payload_type = kind;
            "a certificate that is named a statement".to_owned()
        }
        _ => {
            let cert = Delegate {
                tenant: own.tenant.clone(),
                public_key: stranger().verifying_key().into(),
                not_before: Timestamp::from_millis(0),
                not_after: Timestamp::from_millis(draw.below(1_000) as u64),
                send_until: None,
                uses: KeyUse::ALL.into(),
            };
            // The statement's bytes with the signature of something else that the key signed.
            let signatures: Vec<EnvelopeSignature> =
                Envelope::seal(&cert, &[&own.root]).expect("a certificate").signatures;
            envelope.signatures = signatures;
            "the signature of a certificate".to_owned()
        }
    }
}

//! Tampered grants and grants for another runner, verified by the code that the runner uses for every message.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::SigningKey;
use freehold_fuzz::Draw;
use freehold_protocol::envelope::{Delegate, decode_base64};
use freehold_protocol::grant::{ArtifactGrant, GrantAnswer, ManifestBytes};
use freehold_protocol::order::{Artifact, Order, Work};
use freehold_protocol::report::Fence;
use freehold_protocol::succession::Roots;
use freehold_protocol::{Digest, Envelope, GrantId, KeyUse, Payload as _, Timestamp};
use freehold_runner::config::Role;
use freehold_runner::keys::known_roots::KnownRoots;
use freehold_runner::kinds::granted_manifests;
use freehold_runner::wire::grants::check;
use freehold_runner::wire::verify::{Arrival, Message, Trust};
use serde_json::{Value, json};

use super::bytes::change;
use super::images::Image;
use super::statements::{meaning, root_of, stranger, text};

/// A real order and a real grant of the wire format's golden files.
const ORDER: &str = include_str!("../../../crates/protocol/golden/order-container-image.json");
const GRANT: &str = include_str!("../../../crates/protocol/golden/grant.json");

const DELEGATE: [u8; 32] = [2; 32];
const OTHER_DELEGATE: [u8; 32] = [4; 32];

/// An attempt that waits for a grant, and the grant that is meant for it.
#[derive(Debug, Clone)]
pub(super) struct Waiting {
    trust: Trust,
    order: Order,
    fence: Fence,
    grant: ArtifactGrant,
    body: String,
}

/// A message, and the attempt that it is given to.
pub(super) struct GrantCase {
    pub(super) what: String,
    pub(super) of: usize,
    pub(super) body: Vec<u8>,
}

/// What a grant holds for an artifact.
pub(super) struct ManifestsCase {
    pub(super) what: String,
    pub(super) of: usize,
    pub(super) granted: Vec<ManifestBytes>,
}

impl Waiting {
    /// Returns attempts of two tenants, some installs, jobs and attempts, for each artifact.
    pub(super) fn all(images: &[Image]) -> Vec<Self> {
        let places =
            [("acme", "globex", 1, 1), ("acme", "globex", 1, 2), ("acme", "initech", 2, 1), ("globex", "own", 1, 1)];
        let new = |(at, image): (usize, &Image)| {
            let artifact = image.artifact.clone();
            let manifests = granted(image);
            places.map(|(tenant, install, dispatch, receive)| {
                Self::new(tenant, install, at, Fence { dispatch, receive }, &artifact, &manifests)
            })
        };
        images.iter().enumerate().flat_map(new).collect()
    }

    fn new(
        tenant: &str,
        install: &str,
        job: usize,
        fence: Fence,
        artifact: &Artifact,
        granted: &[ManifestBytes],
    ) -> Self {
        let mut order: Order = serde_json::from_str(ORDER).expect("the golden order");
        order.tenant = tenant.parse().expect("a tenant name");
        order.install = install.parse().expect("an install name");
        order.job = format!("job_{job:020x}").parse().expect("a job id");
        order.dispatch = fence.dispatch;
        if let Work::ContainerImage(work) = &mut order.work {
            work.artifact = artifact.clone();
        }
        let mut grant: ArtifactGrant = serde_json::from_str(GRANT).expect("the golden grant");
        grant.tenant = order.tenant.clone();
        grant.install = order.install.clone();
        grant.grant = GrantId::derive(&order.job, fence.dispatch, fence.receive, &artifact.digest);
        grant.job = order.job.clone();
        grant.fence = fence;
        grant.artifact = artifact.digest.clone();
        if let GrantAnswer::Granted { manifests, .. } = &mut grant.answer {
            *manifests = granted.to_vec();
        }
        let trust = Trust {
            role: Role::Install,
            tenant: order.tenant.clone(),
            install: order.install.clone(),
            roots: KnownRoots::given(Roots::given(order.tenant.clone(), root_of(tenant).verifying_key().into(), None)),
        };
        let body = sealed(&grant, &SigningKey::from_bytes(&DELEGATE), &certificate(&grant, |_| {}, &root_of(tenant)));
        Self { trust, order, fence, grant, body: body.to_json().expect("an envelope") }
    }

    fn now(&self) -> Timestamp {
        self.grant.issued_at
    }

    /// Does with a message what the runner does.
    ///
    /// # Errors
    /// Why it is not believed, in few words.
    pub(super) fn take(&self, body: &[u8]) -> Result<(), String> {
        let body = String::from_utf8_lossy(body);
        let arrival = Arrival { receive: 1, sent_at: self.now(), now: self.now() };
        let message = self.trust.verify(&body, arrival).map_err(|refusal| format!("{:?}", refusal.reason))?;
        match message {
            Message::Grant(grant) => match check(&self.order, self.fence, &self.grant.artifact, *grant) {
                GrantAnswer::Granted { .. } | GrantAnswer::Attested { .. } => Ok(()),
                GrantAnswer::Refused { reason, .. } => Err(reason),
            },
            Message::Order(_) | Message::Cancel(_) | Message::Retired(_) => Err("no grant".to_owned()),
        }
    }
}

/// Returns what the control plane grants of an artifact.
fn granted(image: &Image) -> Vec<ManifestBytes> {
    let bytes = |manifest: &freehold_oci::Manifest| ManifestBytes {
        media_type: manifest.media_type.clone(),
        digest: manifest.digest.clone(),
        bytes: STANDARD.encode(&manifest.bytes),
    };
    image.manifests.iter().map(bytes).collect()
}

fn certificate(grant: &ArtifactGrant, alter: impl FnOnce(&mut Delegate), root: &SigningKey) -> Envelope {
    let mut cert = Delegate {
        tenant: grant.tenant.clone(),
        public_key: SigningKey::from_bytes(&DELEGATE).verifying_key().into(),
        not_before: Timestamp::from_millis(grant.issued_at.as_millis() - 3_600_000),
        not_after: grant.issued_at.plus_secs(3_600),
        send_until: None,
        uses: [KeyUse::Grants].into(),
    };
    alter(&mut cert);
    Envelope::seal(&cert, &[root]).expect("a certificate")
}

fn sealed(grant: &ArtifactGrant, key: &SigningKey, cert: &Envelope) -> Envelope {
    Envelope::seal_delegated(grant, key, cert).expect("a grant")
}

/// Returns the untampered cases.
pub(super) fn originals(all: &[Waiting]) -> Vec<GrantCase> {
    let case = |(of, waiting): (usize, &Waiting)| {
        let body = waiting.body.clone().into_bytes();
        GrantCase { what: "nothing".into(), of, body }
    };
    all.iter().enumerate().map(case).collect()
}

/// Returns a message that is not the grant which the attempt asked for.
pub(super) fn draw(draw: &mut Draw, all: &[Waiting]) -> GrantCase {
    loop {
        let of = draw.below(all.len());
        let (what, body) = one(draw, all, of);
        if meaning(&body) != meaning(all[of].body.as_bytes()) {
            return GrantCase { what, of, body };
        }
    }
}

fn one(draw: &mut Draw, all: &[Waiting], of: usize) -> (String, Vec<u8>) {
    let own = &all[of];
    let other = &all[(of + 1 + draw.below(all.len() - 1)) % all.len()];
    let mut envelope = Envelope::parse(own.body.as_bytes()).expect("an envelope");
    match draw.below(10) {
        0 | 1 => {
            let (body, what) = change(draw, own.body.as_bytes(), &[other.body.clone().into_bytes()]);
            (format!("text: {what}"), body)
        }
        2 => {
            let (payload, what) = change(draw, &decode_base64(&envelope.payload).expect("base64"), &[]);
            envelope.payload = STANDARD.encode(payload);
            (format!("payload: {what}"), text(&envelope))
        }
        3 => {
            let (field, payload) = edited(draw, own, other);
            envelope.payload = STANDARD.encode(payload);
            (format!("payload: another {field}"), text(&envelope))
        }
        4 | 5 => ("the grant of another attempt".to_owned(), other.body.clone().into_bytes()),
        6 | 7 => replayed(draw, own, other),
        8 => (certified(draw, own, &mut envelope), text(&envelope)),
        _ => {
            let signed = Envelope::parse(other.body.as_bytes()).expect("an envelope");
            let what = match draw.below(3) {
                0 => {
                    envelope.signatures = signed.signatures;
                    "the signatures of another grant"
                }
                1 => {
                    envelope.payload = signed.payload;
                    "the payload of another grant"
                }
                _ => {
                    // An order of the same control plane, whole and signed, but no grant.
                    let cert = certificate(&own.grant, |_| {}, &root_of(own.grant.tenant.as_str()));
                    let order = Envelope::seal_delegated(&own.order, &SigningKey::from_bytes(&DELEGATE), &cert);
                    envelope = order.expect("an order");
                    envelope.payload_type = ArtifactGrant::TYPE.to_owned();
                    "an order that is named a grant"
                }
            };
            (what.to_owned(), text(&envelope))
        }
    }
}

/// Changes one field of what is said; the signature stays.
fn edited(draw: &mut Draw, own: &Waiting, other: &Waiting) -> (&'static str, Vec<u8>) {
    let mut value = serde_json::to_value(&own.grant).expect("a grant");
    let changes: [(&'static str, &str, Value); 6] = [
        ("artifact", "/artifact", json!(Digest::of(other.body.as_bytes()))),
        ("attempt", "/fence/receive", json!(own.fence.receive + 1)),
        ("end", "/not_after", json!(u64::MAX)),
        ("URL", "/answer/blobs/0/url", json!("https://example.com/another")),
        ("manifest", "/answer/manifests/0/bytes", json!(STANDARD.encode(b"{}"))),
        ("size", "/answer/blobs/0/size", json!(1_000_000)),
    ];
    let (field, pointer, new) = draw.pick(&changes);
    *value.pointer_mut(pointer).expect("a field of every grant") = new.clone();
    (field, serde_json::to_vec(&value).expect("JSON"))
}

/// A grant that the control plane signed, for something else in one respect.
fn replayed(draw: &mut Draw, own: &Waiting, other: &Waiting) -> (String, Vec<u8>) {
    let mut grant = own.grant.clone();
    let what = match draw.below(7) {
        0 => {
            grant.install = "another".parse().expect("an install name");
            "install"
        }
        1 => {
            grant.tenant = "another".parse().expect("a tenant name");
            "tenant"
        }
        2 => {
            grant.job = "job_ffffffffffffffffffff".parse().expect("a job id");
            "job"
        }
        3 => {
            grant.fence.dispatch += 1 + draw.below(5) as u32;
            "dispatch"
        }
        4 => {
            grant.fence.receive += 1 + draw.below(5) as u32;
            "attempt"
        }
        5 => {
            grant.artifact = Digest::of(other.body.as_bytes());
            "artifact"
        }
        _ => {
            grant.not_after = Timestamp::from_millis(own.now().as_millis() - 1 - draw.below(1_000_000) as u64);
            "time, which is over"
        }
    };
    let cert = certificate(&own.grant, |_| {}, &root_of(own.grant.tenant.as_str()));
    (format!("signed for another {what}"), text(&sealed(&grant, &SigningKey::from_bytes(&DELEGATE), &cert)))
}

/// The same grant, signed by someone who may not.
fn certified(draw: &mut Draw, own: &Waiting, envelope: &mut Envelope) -> String {
    let (delegate, grant) = (SigningKey::from_bytes(&DELEGATE), &own.grant);
    let root = root_of(grant.tenant.as_str());
    let (what, forged) = match draw.below(8) {
        0 => ("certified by a stranger", sealed(grant, &delegate, &certificate(grant, |_| {}, &stranger()))),
        1 => {
            let cert = certificate(grant, |cert| cert.tenant = "another".parse().expect("a tenant name"), &root);
            ("certified for another tenant", sealed(grant, &delegate, &cert))
        }
        2 => {
            let ended = Timestamp::from_millis(own.now().as_millis() - 1);
            ("certified until before", sealed(grant, &delegate, &certificate(grant, |c| c.not_after = ended, &root)))
        }
        3 => {
            let begins = own.now().plus_secs(61);
            ("certified from after", sealed(grant, &delegate, &certificate(grant, |c| c.not_before = begins, &root)))
        }
        4 => {
            let cert = certificate(grant, |_| {}, &root);
            ("signed by another key than is certified", sealed(grant, &SigningKey::from_bytes(&OTHER_DELEGATE), &cert))
        }
        5 => {
            let others = [KeyUse::Orders, KeyUse::Cancels, KeyUse::Notices, KeyUse::Contracts];
            let cert = certificate(grant, |cert| cert.uses = others.into(), &root);
            ("certified for all but grants", sealed(grant, &delegate, &cert))
        }
        6 => ("signed by a stranger", Envelope::seal(grant, &[&stranger()]).expect("a grant")),
        _ => {
            let mut bare = envelope.clone();
            bare.signatures[0].cert = None;
            ("not certified", bare)
        }
    };
    *envelope = forged;
    what.to_owned()
}

/// Returns the untampered cases.
pub(super) fn original_manifests(images: &[Image]) -> Vec<ManifestsCase> {
    let case = |(of, image): (usize, &Image)| ManifestsCase { what: "nothing".into(), of, granted: granted(image) };
    images.iter().enumerate().map(case).collect()
}

/// Returns granted manifests of which at least one is not what the order names.
pub(super) fn draw_manifests(draw: &mut Draw, images: &[Image]) -> ManifestsCase {
    loop {
        let of = draw.below(images.len());
        let mut all = granted(&images[of]);
        let other = granted(&images[(of + 1 + draw.below(images.len() - 1)) % images.len()]);
        let at = draw.below(all.len());
        let raw = decode_base64(&all[at].bytes).expect("base64");
        let what = match draw.below(6) {
            0..=2 => {
                let (raw, what) = change(draw, &raw, &[decode_base64(&other[0].bytes).expect("base64")]);
                all[at].bytes = STANDARD.encode(raw);
                what
            }
            3 => {
                let (text, what) = change(draw, all[at].bytes.as_bytes(), &[]);
                all[at].bytes = String::from_utf8_lossy(&text).into_owned();
                format!("base64: {what}")
            }
            4 => {
                all.remove(at);
                "left out".to_owned()
            }
            _ => {
                all[at].bytes.clone_from(&other[draw.below(other.len())].bytes);
                "a manifest of another artifact".to_owned()
            }
        };
        if !is_whole(&images[of], &all) {
            return ManifestsCase { what: format!("manifest {at}: {what}"), of, granted: all };
        }
    }
}

/// Returns whether all that the order names is there, and all can be read: names and sequence do not count, since the
/// runner goes by what the bytes are.
fn is_whole(image: &Image, granted: &[ManifestBytes]) -> bool {
    let decoded: Option<Vec<Vec<u8>>> = granted.iter().map(|one| decode_base64(&one.bytes).ok()).collect();
    decoded.is_some_and(|all| image.manifests.iter().all(|wanted| all.iter().any(|one| *one == wanted.bytes)))
}

/// Does with granted manifests what the runner does.
///
/// # Errors
/// Why they are not believed.
pub(super) fn take_manifests(image: &Image, granted: &[ManifestBytes]) -> Result<(), String> {
    granted_manifests(&image.artifact, granted).map(|_| ()).map_err(|reason| {
        let word = ["not base64", "or other bytes"].into_iter().find(|word| reason.contains(word));
        word.map_or(reason.clone(), str::to_owned)
    })
}

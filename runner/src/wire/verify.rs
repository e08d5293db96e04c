//! Verifies messages of the control plane: size, signature, addressee and expiry. This module does not read a clock:
//! the caller passes the time.

use freehold_protocol::audit::Receipt;
use freehold_protocol::grant::ArtifactGrant;
use freehold_protocol::order::{Cancel, CancelHead, Demands, Order, OrderHead, Retired, Work};
use freehold_protocol::report::{Fence, Refusal, RefusalReason};
use freehold_protocol::{
    Delegated, Digest, Envelope, EnvelopeError, InstallId, JobId, Payload as _, TenantName, Timestamp,
};

use crate::config::{Config, Role};
use crate::keys::known_roots::{KnownRoots, RootsError};
use crate::wire::report::shortened;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The way out for the reader of a refusal.
const UPDATE: &str = "update the runner, then start the job again";

/// The root keys that this runner trusts, and the names by which messages address the runner.
#[derive(Debug, Clone)]
pub struct Trust {
    pub role: Role,
    pub tenant: TenantName,
    pub install: InstallId,
    pub roots: KnownRoots,
}

/// One delivery of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// The number of deliveries of this message so far.
    pub receive: u32,
    /// The time at which the queue took the message. Its sender cannot set it.
    pub sent_at: Timestamp,
    pub now: Timestamp,
}

/// A verified message of the control plane.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    Order(Box<Order>),
    Cancel(Cancel),
    Grant(Box<ArtifactGrant>),
    Retired(Retired),
}

impl Trust {
    /// Returns the trust settings of the runner with `config`.
    ///
    /// # Errors
    /// A [`RootsError`] when the roots that replaced the root of `config` cannot be read.
    pub fn open(config: &Config) -> Result<Self, RootsError> {
        Ok(Self {
            role: config.role,
            tenant: config.tenant.clone(),
            install: config.install.clone(),
            roots: KnownRoots::open(config)?,
        })
    }

    /// Returns the message in `body` if it is valid at this delivery. An order is returned also after it has expired,
    /// because it may have waited for this runner: an attempt decides about it.
    ///
    /// # Errors
    /// The refusal to report.
    pub fn verify(&self, body: &str, Arrival { receive, sent_at, now }: Arrival) -> Result<Message, Refusal> {
        let check = Check { trust: self, body, sent_at, now };
        let envelope = Envelope::parse(body.as_bytes()).map_err(|error| check.refuse_envelope(&error))?;
        self.roots.learn(&envelope).map_err(|error| check.refuse_envelope(&error))?;
        match envelope.payload_type.as_str() {
            Order::TYPE => check.order(&envelope, receive),
            Cancel::TYPE => check.cancel(&envelope),
            ArtifactGrant::TYPE => check.grant(&envelope),
            Retired::TYPE => check.retired(&envelope),
            other => {
                let shown: String = other.chars().take(80).collect();
                Err(check
                    .refuse(RefusalReason::Malformed, format!("a runner does not take messages of type `{shown}`")))
            }
        }
    }
}

impl Trust {
    /// Returns the receipt that an order carries, if the control plane signed it for this install.
    ///
    /// # Errors
    /// The reason why the receipt proves nothing, for people.
    pub fn receipt(&self, envelope: &Envelope) -> Result<Receipt, String> {
        let claimed: Receipt = envelope.peek().map_err(|error| error.to_string())?;
        if claimed.tenant != self.tenant || claimed.install != self.install {
            return Err(format!("it belongs to install `{}` of tenant `{}`", claimed.install, claimed.tenant));
        }
        let opened = self.roots.now().open_delegated(envelope, claimed.issued_at);
        opened.map_err(|error| error.to_string())
    }
}

/// The verification of one message.
struct Check<'a> {
    trust: &'a Trust,
    body: &'a str,
    sent_at: Timestamp,
    now: Timestamp,
}

impl Check<'_> {
    fn order(&self, envelope: &Envelope, receive: u32) -> Result<Message, Refusal> {
        let waited = self.as_of_certificate(envelope);
        let head: OrderHead = waited.open(envelope)?;
        let job = (head.job, Fence { dispatch: head.dispatch, receive });
        let about_job = |refusal: Refusal| Refusal { job: Some(job.clone()), ..refusal };
        self.addressee(&head.tenant, &head.install)?;
        if waited.now < self.now && self.now <= head.not_after {
            // The control plane never makes an order that is valid for longer than the certificate of its key.
            self.open::<OrderHead>(envelope)?;
        }
        self.understood("order", &head.must_understand).map_err(about_job)?;
        // The head was read from the same bytes, and its signature was verified. Each verification delays the job.
        let order: Order = envelope.peek().map_err(|error| about_job(self.unreadable(&error.to_string())))?;
        self.for_role(&order.work).map_err(about_job)?;
        Ok(Message::Order(Box::new(order)))
    }

    /// Returns this check; if the envelope's certificate has ended, as of the end that the certificate claims. So the
    /// runner can still read an order that waited for too long. Such an order starts nothing, and the runner gives it
    /// back. A certificate that limits only when messages may be sent does not need this.
    fn as_of_certificate(&self, envelope: &Envelope) -> Check<'_> {
        let end = envelope.claimed_not_after().unwrap_or(self.now);
        Check { now: self.now.min(end), ..*self }
    }

    fn cancel(&self, envelope: &Envelope) -> Result<Message, Refusal> {
        let head: CancelHead = self.open(envelope)?;
        self.addressee(&head.tenant, &head.install)?;
        self.understood("cancel", &head.must_understand)?;
        let cancel: Cancel = envelope.peek().map_err(|error| self.refuse_envelope(&error))?;
        self.alive(cancel.not_after)?;
        Ok(Message::Cancel(cancel))
    }

    fn grant(&self, envelope: &Envelope) -> Result<Message, Refusal> {
        let grant: ArtifactGrant = self.open(envelope)?;
        self.addressee(&grant.tenant, &grant.install)?;
        self.alive(grant.not_after)?;
        Ok(Message::Grant(Box::new(grant)))
    }

    fn retired(&self, envelope: &Envelope) -> Result<Message, Refusal> {
        let retired: Retired = self.open(envelope)?;
        self.addressee(&retired.tenant, &retired.install)?;
        self.alive(retired.not_after)?;
        Ok(Message::Retired(retired))
    }

    fn open<P: Delegated>(&self, envelope: &Envelope) -> Result<P, Refusal> {
        let opened = self.trust.roots.now().open_sent::<P>(envelope, self.sent_at, self.now);
        opened.map_err(|error| self.refuse_envelope(&error))
    }

    fn addressee(&self, tenant: &TenantName, install: &InstallId) -> Result<(), Refusal> {
        if *tenant == self.trust.tenant && *install == self.trust.install {
            return Ok(());
        }
        let detail = format!("the message is for install `{install}` of tenant `{tenant}`");
        Err(self.refuse(RefusalReason::OtherInstall, detail))
    }

    fn alive(&self, not_after: Timestamp) -> Result<(), Refusal> {
        if self.now <= not_after {
            return Ok(());
        }
        let secs = self.now.since(not_after) / 1000;
        Err(self.refuse(RefusalReason::Expired, format!("the message came {secs} s after it expired")))
    }

    /// Refuses a message that demands a feature which this version does not know.
    fn understood(&self, what: &str, demands: &Demands) -> Result<(), Refusal> {
        let unknown = demands.unknown();
        if unknown.is_empty() {
            return Ok(());
        }
        let names = unknown.join("`, `");
        let detail = format!("the {what} needs `{names}`, which a runner of version {VERSION} does not know; {UPDATE}");
        Err(self.refuse(RefusalReason::NotUnderstood, detail))
    }

    /// Refuses an order whose head was read but whose rest was not, such as one with work of a later version.
    fn unreadable(&self, why: &str) -> Refusal {
        let detail = format!("a runner of version {VERSION} cannot read the order: {why}; {UPDATE}");
        self.refuse(RefusalReason::NotUnderstood, detail)
    }

    fn for_role(&self, work: &Work) -> Result<(), Refusal> {
        let build = matches!(work, Work::Build(_));
        match (self.trust.role, build) {
            (Role::Build, true) | (Role::Install, false) => Ok(()),
            (Role::Build, false) => {
                let detail = format!("a build runner does not do `{}` jobs", work.kind());
                Err(self.refuse(RefusalReason::Malformed, detail))
            }
            (Role::Install, true) => {
                Err(self.refuse(RefusalReason::Malformed, "an install runner does not build".to_owned()))
            }
        }
    }

    fn refuse_envelope(&self, error: &EnvelopeError) -> Refusal {
        let reason = match error {
            EnvelopeError::TooLarge(_) => RefusalReason::TooLarge,
            EnvelopeError::Malformed(_) | EnvelopeError::WrongType { .. } | EnvelopeError::Unwritable(_) => {
                RefusalReason::Malformed
            }
            EnvelopeError::Unsigned(_)
            | EnvelopeError::BadSignature(_)
            | EnvelopeError::NoCertificate
            | EnvelopeError::OtherTenant(_)
            | EnvelopeError::CertificateExpired(_)
            | EnvelopeError::SentLate { .. }
            | EnvelopeError::NotPermitted { .. }
            | EnvelopeError::RootEnded { .. }
            | EnvelopeError::Succession(_)
            | EnvelopeError::Key => RefusalReason::BadSignature,
        };
        self.refuse(reason, error.to_string())
    }

    fn refuse(&self, reason: RefusalReason, detail: String) -> Refusal {
        Refused { reason, detail }.of(message_digest(self.body), None)
    }
}

/// Returns the digest that identifies a message: that of [`bare_message`].
pub fn message_digest(body: &str) -> Digest {
    Digest::of(bare_message(body).as_bytes())
}

/// Returns the message without the attached texts: the signature does not cover these texts, and the control plane,
/// lineages and the customer's bucket keep messages without them.
pub fn bare_message(body: &str) -> String {
    let bare = Envelope::parse(body.as_bytes()).ok().filter(|envelope| !envelope.attached.is_empty());
    let bare = bare.and_then(|envelope| Envelope { attached: Vec::new(), ..envelope }.to_json().ok());
    bare.unwrap_or_else(|| body.to_owned())
}

/// The reason why a message is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub reason: RefusalReason,
    /// The reason as a sentence for people.
    pub detail: String,
}

impl Refused {
    /// Returns the refusal of the message with digest `message`.
    pub fn of(self, message: Digest, job: Option<(JobId, Fence)>) -> Refusal {
        let detail = shortened(self.detail);
        Refusal { reason: self.reason, detail, message, job, given_back: false, until: None }
    }
}

#[cfg(test)]
mod tests {
    use ed25519_dalek::SigningKey;
    use freehold_protocol::limits::MAX_ENVELOPE_BYTES;
    use freehold_protocol::order::{BuildArtifact, Package, Source};
    use freehold_protocol::succession::Roots;
    use freehold_protocol::{AppName, BuildId, KeyUse, Payload};
    use serde_json::json;

    use super::*;
    use crate::testing::{job_id, order, root, sealed, sealed_by, sealed_with};

    const NOW: Timestamp = Timestamp::from_millis(2_000_000);

    fn trust() -> Trust {
        Trust {
            role: Role::Install,
            tenant: "acme".parse().unwrap(),
            install: "globex-prod".parse().unwrap(),
            roots: KnownRoots::given(Roots::given("acme".parse().unwrap(), root().verifying_key().into(), None)),
        }
    }

    fn arrived(receive: u32, now: Timestamp) -> Arrival {
        Arrival { receive, sent_at: now, now }
    }

    fn with(change: impl FnOnce(&mut Order)) -> String {
        let mut order = order(1, 7);
        change(&mut order);
        sealed(&order)
    }

    fn build() -> Work {
        let app: AppName = "shop".parse().unwrap();
        let component = "api".parse().unwrap();
        Work::Build(BuildArtifact {
            build: BuildId::derive(&app, &Digest::of(b""), &component),
            component,
            package: Package::Image,
            recipe: None,
            source: Source::Image { reference: "docker.io/library/nginx:1".into() },
            repository: "fh-acme".into(),
        })
    }

    #[test]
    fn a_good_order_is_accepted() {
        let message = trust().verify(&sealed(&order(1, 7)), arrived(1, NOW)).unwrap();

        assert_eq!(message, Message::Order(Box::new(order(1, 7))));
    }

    #[test]
    fn every_forgery_is_refused_for_its_reason() {
        let stranger = SigningKey::from_bytes(&[9; 32]);
        let own_signature = Envelope::seal(&order(1, 7), &[&stranger]).unwrap().to_json().unwrap();
        let good = sealed(&order(1, 7));
        let mut swapped: Envelope = serde_json::from_str(&good).unwrap();
        let other: Envelope = serde_json::from_str(&with(|order| order.serial = 8)).unwrap();
        swapped.payload = other.payload;
        let mut relabelled: Envelope = serde_json::from_str(&good).unwrap();
        relabelled.payload_type = "application/vnd.freehold.report.v1+json".into();
        let cases = [
            ("not JSON", "hello".to_owned(), RefusalReason::Malformed),
            ("too large", "x".repeat(MAX_ENVELOPE_BYTES + 1), RefusalReason::TooLarge),
            ("signed by a stranger", own_signature, RefusalReason::BadSignature),
            ("certified by a stranger", sealed_by(&stranger, "acme", &order(1, 7)), RefusalReason::BadSignature),
            ("certified for another tenant", sealed_by(&root(), "other", &order(1, 7)), RefusalReason::BadSignature),
            ("payload exchanged", swapped.to_json().unwrap(), RefusalReason::BadSignature),
            ("type exchanged", relabelled.to_json().unwrap(), RefusalReason::Malformed),
            ("another install", with(|o| o.install = "other".parse().unwrap()), RefusalReason::OtherInstall),
            ("another tenant", with(|o| o.tenant = "other".parse().unwrap()), RefusalReason::OtherInstall),
            ("not this role's", with(|o| o.work = build()), RefusalReason::Malformed),
        ];
        for (what, body, reason) in cases {
            let refusal = trust().verify(&body, arrived(1, NOW)).unwrap_err();

            assert_eq!(refusal.reason, reason, "{what}: {}", refusal.detail);
            assert_eq!(refusal.message, Digest::of(body.as_bytes()), "{what}");
        }
    }

    #[test]
    fn each_kind_of_message_needs_its_own_use_in_the_certificate_of_its_key() {
        fn check<P: Delegated + serde::de::DeserializeOwned>(golden: &str) {
            let text = golden.replace("\"globex\"", "\"globex-prod\"");
            let mut fields: serde_json::Value = serde_json::from_str(&text).unwrap();
            fields["issued_at"] = json!(1_000_000);
            fields["not_after"] = json!(5_000_000);
            let message: P = serde_json::from_value(fields).unwrap();
            for one in KeyUse::ALL {
                let body = sealed_with(&root(), "acme", [one].into(), &message);
                let verified = trust().verify(&body, arrived(1, NOW));
                if one == P::USE {
                    assert!(verified.is_ok(), "{one}: {verified:?}");
                    continue;
                }
                let refusal = verified.unwrap_err();
                assert_eq!((refusal.reason, refusal.job), (RefusalReason::BadSignature, None), "{one}");
                let says = format!("may not sign {}: its certificate is for {one}", P::USE);
                assert!(refusal.detail.ends_with(&says), "{}", refusal.detail);
            }
        }

        check::<Order>(include_str!("../../../crates/protocol/golden/order-container-image.json"));
        check::<Cancel>(include_str!("../../../crates/protocol/golden/cancel.json"));
        check::<Retired>(include_str!("../../../crates/protocol/golden/retired.json"));
        check::<ArtifactGrant>(include_str!("../../../crates/protocol/golden/grant.json"));
    }

    /// A message as a later version of the control plane may write it.
    #[derive(serde::Serialize, serde::Deserialize)]
    #[serde(transparent)]
    struct Later<const ORDER: bool>(serde_json::Value);

    impl<const ORDER: bool> Payload for Later<ORDER> {
        const TYPE: &'static str = if ORDER { Order::TYPE } else { Cancel::TYPE };
    }

    impl<const ORDER: bool> Delegated for Later<ORDER> {
        const USE: KeyUse = if ORDER { Order::USE } else { Cancel::USE };
    }

    fn later_order(change: impl FnOnce(&mut serde_json::Value)) -> Result<Message, Refusal> {
        let mut fields = serde_json::to_value(order(1, 7)).unwrap();
        change(&mut fields);
        trust().verify(&sealed(&Later::<true>(fields)), arrived(2, NOW))
    }

    fn later_cancel(change: impl FnOnce(&mut serde_json::Value)) -> Result<Message, Refusal> {
        let cancel = Cancel {
            tenant: "acme".parse().unwrap(),
            install: "globex-prod".parse().unwrap(),
            job: job_id(1),
            dispatch: 1,
            receive: None,
            runner: None,
            asked_by: None,
            asker: None,
            asked_why: None,
            issued_at: Timestamp::from_millis(1_000_000),
            not_after: Timestamp::from_millis(5_000_000),
        };
        let mut fields = serde_json::to_value(cancel).unwrap();
        change(&mut fields);
        trust().verify(&sealed(&Later::<false>(fields)), arrived(2, NOW))
    }

    #[test]
    fn an_order_that_demands_an_unknown_feature_is_refused_with_its_job_and_the_way_out() {
        let of_job = Some((job_id(1), Fence { dispatch: 1, receive: 2 }));
        let demanding = later_order(|order| order["must_understand"] = json!(["plan_only", "approval"])).unwrap_err();
        let other_work = later_order(|order| order["work"] = json!({"kind": "teleport"})).unwrap_err();
        let other_mode = later_order(|order| order["mode"] = json!("dry_run")).unwrap_err();

        for refusal in [&demanding, &other_work, &other_mode] {
            assert_eq!((refusal.reason, &refusal.job), (RefusalReason::NotUnderstood, &of_job), "{}", refusal.detail);
            assert!(refusal.detail.ends_with("; update the runner, then start the job again"), "{}", refusal.detail);
        }
        assert!(demanding.detail.starts_with("the order needs `approval`, `plan_only`, which a runner of version "));
        assert!(other_work.detail.contains("teleport"), "{}", other_work.detail);
    }

    #[test]
    fn a_cancel_that_demands_an_unknown_feature_is_refused_and_names_no_job() {
        let refusal = later_cancel(|cancel| cancel["must_understand"] = json!(["only_when_idle"])).unwrap_err();

        assert_eq!((refusal.reason, refusal.job), (RefusalReason::NotUnderstood, None));
        assert!(refusal.detail.starts_with("the cancel needs `only_when_idle`"), "{}", refusal.detail);
    }

    #[test]
    fn what_need_not_be_understood_is_ignored() {
        let order = later_order(|order| order["colour"] = json!("red"));
        let order_without_demands = later_order(|order| order["must_understand"] = json!([]));
        let cancel = later_cancel(|cancel| cancel["colour"] = json!("red"));

        assert!(matches!(order, Ok(Message::Order(_))), "{order:?}");
        assert!(matches!(order_without_demands, Ok(Message::Order(_))), "{order_without_demands:?}");
        assert!(matches!(cancel, Ok(Message::Cancel(_))), "{cancel:?}");
    }

    #[test]
    fn demands_of_another_form_and_demands_of_others_orders_are_refused_before_they_count() {
        let no_list = later_order(|order| order["must_understand"] = json!("plan_only")).unwrap_err();
        let foreign = later_order(|order| {
            order["must_understand"] = json!(["plan_only"]);
            order["install"] = json!("other");
        });
        let expired = later_order(|order| {
            order["must_understand"] = json!(["plan_only"]);
            order["not_after"] = json!(1_999_999);
        });

        assert_eq!((no_list.reason, no_list.job), (RefusalReason::Malformed, None));
        assert_eq!(foreign.unwrap_err().reason, RefusalReason::OtherInstall);
        assert_eq!(expired.unwrap_err().reason, RefusalReason::NotUnderstood);
    }

    #[test]
    fn a_refusal_names_the_job_only_when_the_message_is_ours() {
        let unfit = with(|order| order.work = build());
        let foreign = with(|order| order.install = "other".parse().unwrap());

        let unfit = trust().verify(&unfit, arrived(3, NOW)).unwrap_err();
        let foreign = trust().verify(&foreign, arrived(3, NOW)).unwrap_err();

        assert_eq!(unfit.job, Some((job_id(1), Fence { dispatch: 1, receive: 3 })));
        assert_eq!(foreign.job, None);
    }

    /// The certificate of the order's key ended long before the runner came back.
    #[test]
    fn an_order_that_waited_is_handed_on_and_one_that_outlives_its_certificate_is_refused() {
        let days = Timestamp::from_millis(9_000_000).plus_secs(3 * 24 * 3600);
        let waited = with(|order| order.not_after = Timestamp::from_millis(8_000_000));
        let forged = with(|order| order.not_after = days.plus_secs(1));

        let handed_on = trust().verify(&waited, arrived(1, days)).unwrap();

        assert!(matches!(handed_on, Message::Order(order) if order.job == job_id(1)));
        assert_eq!(trust().verify(&forged, arrived(1, days)).unwrap_err().reason, RefusalReason::BadSignature);
    }

    #[test]
    fn a_certificate_may_begin_a_moment_after_our_clock_but_not_end_before_it() {
        let early = Timestamp::from_millis(899_000);
        let late = Timestamp::from_millis(9_000_001);
        let lasting = with(|order| order.not_after = Timestamp::from_millis(99_000_000));

        assert!(trust().verify(&lasting, arrived(1, early)).is_ok());
        assert_eq!(trust().verify(&lasting, arrived(1, late)).unwrap_err().reason, RefusalReason::BadSignature);
    }
}

//! The messages beside the records: reports of machines, and the receipts and orders of the control plane.

use std::sync::{Arc, Mutex, PoisonError};

use ed25519_dalek::SigningKey;
use freehold_protocol::audit::{AuditEvent, ChainHead, ORDERS, RECEIPTS, REPORTS, Receipt, message_name, record_name};
use freehold_protocol::envelope::Delegate;
use freehold_protocol::order::Order;
use freehold_protocol::report::{Report, ReportBody};
use freehold_protocol::succession::Roots;
use freehold_protocol::{Digest, Envelope, EnvelopeError, InstallId, KeyId, KeyUse, TenantName, Timestamp};
use freehold_runner::record::audit::{Audit, AuditError, BUCKET_LIMIT};

/// The seeds of the vendor's root key, of its delegate key, and of a key that is not the vendor's.
pub(super) const ROOT: u8 = 0xA0;
const DELEGATE: u8 = 0xA1;
pub(super) const STRANGER: u8 = 0xA2;
/// An order that is signed anew for each install.
const ORDER: &str = include_str!("../../../crates/protocol/golden/order-container-image.json");

/// A record that a report named, as the control plane knows it.
#[derive(Debug, Clone)]
pub(super) struct Reported {
    pub(super) install: InstallId,
    pub(super) head: ChainHead,
    pub(super) runner: KeyId,
    pub(super) at: Timestamp,
}

/// The latest record that the control plane knows of.
pub(super) type ControlPlane = Arc<Mutex<Option<Reported>>>;

/// The messages that a machine exchanges with the control plane after an event.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) control_plane: ControlPlane,
    pub(super) install: InstallId,
    pub(super) key: SigningKey,
    pub(super) at: Timestamp,
    /// Whether the machine sends a report, and whether the record of the report is in the bucket before its text.
    pub(super) reports: bool,
    pub(super) is_recorded_first: bool,
    /// Whether an order arrives, which brings the receipt for the latest record.
    pub(super) gets_order: bool,
}

impl Exchange {
    /// Exchanges the messages through the runner's own code.
    pub(super) async fn run(&self, audit: &Audit) -> Result<(), AuditError> {
        if let (true, Some(head)) = (self.reports, audit.latest_head().get()) {
            self.report(audit, head).await?;
        }
        let latest = self.control_plane.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let (true, Some(latest)) = (self.gets_order, latest) {
            let receipt = receipt(&latest, ROOT)?;
            let (name, text) = (record_name(latest.head.seq), receipt.to_json()?.into_bytes());
            let order = order(&self.install, receipt)?;
            let order_name = format!("{ORDERS}/{}", message_name(&Digest::of(&order)));
            let receipt_name = format!("{RECEIPTS}/{name}");
            let order = audit.keep(&order_name, order, BUCKET_LIMIT);
            let (order, receipt) = tokio::join!(order, audit.keep(&receipt_name, text, BUCKET_LIMIT));
            order.and(receipt)?;
        }
        Ok(())
    }

    async fn report(&self, audit: &Audit, head: ChainHead) -> Result<(), AuditError> {
        let text = report(&self.install, &self.key, (head.clone(), self.at))?;
        let digest = Digest::of(&text);
        let name = format!("{REPORTS}/{}", message_name(&digest));
        audit.conclude(AuditEvent::Sent { reports: vec![digest] })?;
        let (install, runner) = (self.install.clone(), KeyId::of(&self.key.verifying_key()));
        {
            let mut latest = self.control_plane.lock().unwrap_or_else(PoisonError::into_inner);
            if latest.as_ref().is_none_or(|latest| latest.head.seq < head.seq) {
                *latest = Some(Reported { install, head, runner, at: self.at });
            }
        }
        if self.is_recorded_first {
            audit.flush(BUCKET_LIMIT).await?;
        }
        audit.keep(&name, text, BUCKET_LIMIT).await
    }
}

/// Returns the vendor's key of this seed.
fn vendor(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

fn tenant() -> TenantName {
    "acme".parse().expect("a name")
}

/// Returns the vendor's root key.
pub(super) fn roots() -> Roots {
    Roots::given(tenant(), vendor(ROOT).verifying_key().into(), None)
}

/// Returns the receipt for a record, certified by the key `root`.
pub(super) fn receipt(reported: &Reported, root: u8) -> Result<Envelope, EnvelopeError> {
    let Reported { install, head, runner, at } = reported.clone();
    let receipt = Receipt { tenant: tenant(), install, head, runner, received_at: at, issued_at: at };
    Envelope::seal_delegated(&receipt, &vendor(DELEGATE), &certificate(root, at)?)
}

/// Returns an order that brings a receipt.
pub(super) fn order(install: &InstallId, receipt: Envelope) -> Result<Vec<u8>, EnvelopeError> {
    let mut order: Order = serde_json::from_str(ORDER).expect("an order");
    (order.tenant, order.install, order.receipt) = (tenant(), install.clone(), Some(Box::new(receipt)));
    let signed = Envelope::seal_delegated(&order, &vendor(DELEGATE), &certificate(ROOT, order.issued_at)?)?;
    Ok(signed.to_json()?.into_bytes())
}

/// Returns a report that names a record, signed with the key of a runner.
pub(super) fn report(
    install: &InstallId,
    key: &SigningKey,
    (head, at): (ChainHead, Timestamp),
) -> Result<Vec<u8>, EnvelopeError> {
    report_of(KeyId::of(&key.verifying_key()), install, key, (head, at))
}

/// Returns a report in the name of `runner`, signed with `key`.
pub(super) fn report_of(
    runner: KeyId,
    install: &InstallId,
    key: &SigningKey,
    (head, at): (ChainHead, Timestamp),
) -> Result<Vec<u8>, EnvelopeError> {
    let body = ReportBody::Heartbeat;
    let report = Report { tenant: tenant(), install: install.clone(), runner, at, head: Some(head), body };
    Ok(Envelope::seal(&report, &[key])?.to_json()?.into_bytes())
}

fn certificate(root: u8, from: Timestamp) -> Result<Envelope, EnvelopeError> {
    let delegate = Delegate {
        send_until: None,
        tenant: tenant(),
        public_key: vendor(DELEGATE).verifying_key().into(),
        not_before: from,
        not_after: from.plus_secs(3600),
        uses: [KeyUse::Orders, KeyUse::Receipts].into(),
    };
    Envelope::seal(&delegate, &[&vendor(root)])
}

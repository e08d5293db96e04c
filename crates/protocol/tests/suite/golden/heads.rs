//! The wire format of heads and receipts of the audit chain, and of orders that carry a receipt or policies.

use freehold_protocol::audit::{ChainHead, Receipt};

use super::*;

fn head() -> ChainHead {
    ChainHead { seq: 44, digest: Digest::of(b"record") }
}

#[test]
fn heads_and_receipts() {
    golden("report-head", &Report { head: Some(head()), ..report(ReportBody::Heartbeat) });
    let receipt = Receipt {
        tenant: "acme".parse().unwrap(),
        install: "globex".parse().unwrap(),
        head: head(),
        runner: KeyId::of(&key(2).verifying_key()),
        received_at: AT,
        issued_at: AT.plus_secs(60),
    };
    golden("receipt", &receipt);
    let envelope = Envelope::seal(&receipt, &[&key(2)]).unwrap();
    let image = order(Work::ContainerImage(SyncImage { component: name("web"), artifact: artifact() }));
    golden("order-receipt", &Order { receipt: Some(Box::new(envelope)), ..image.clone() });
    let policy = OrderPolicy::new("no-eip", PolicyEngine::Opa, "package freehold\n").unwrap();
    golden("order-policies", &Order { policies: vec![policy], ..image });
}

//! The newest audit record that a runner names in its reports is confirmed by a receipt in the next order.

use freehold_protocol::audit::{ChainHead, Receipt};
use freehold_protocol::order::Order;
use freehold_protocol::report::{Report, ReportBody};
use freehold_protocol::{Digest, Envelope, Payload as _};

use crate::support::{World, globex, with_input};

fn head(seq: u64) -> ChainHead {
    ChainHead { seq, digest: Digest::of(&seq.to_be_bytes()) }
}

/// Lets the runner send a heartbeat that names this record.
async fn name(world: &World, seq: u64) {
    let runner = &world.runners["globex"];
    let report = Report { head: Some(head(seq)), ..runner.report(ReportBody::Heartbeat, world.now()) };
    world.accept_report().accept(&runner.sign(&report), world.now()).await.unwrap();
}

/// Deploys, and returns the receipts of its orders.
async fn receipts(world: &mut World, cause: &str, days: u32) -> Vec<Option<Receipt>> {
    world.forget_orders();
    world.deploy(&with_input("days", days), cause).await.unwrap();
    world.settle().await;
    let sent = world.memory.orders.lock().unwrap().clone();
    let envelopes = sent.iter().map(|(_, _, _, body)| Envelope::parse(body.as_bytes()).unwrap());
    let orders = envelopes.filter(|one| one.payload_type == Order::TYPE).map(|one| one.peek::<Order>().unwrap());
    let (root, tenant) = (world.keys.public(), world.tenant.clone());
    let open = |envelope: Box<Envelope>| {
        let claimed: Receipt = envelope.peek().unwrap();
        envelope.open_delegated::<Receipt>(&root, &tenant, claimed.issued_at).unwrap()
    };
    orders.map(|order| order.receipt.map(open)).collect()
}

#[tokio::test]
async fn an_order_brings_the_receipt_for_the_newest_record_that_was_reported() {
    let mut world = World::with_install().await;

    let before = receipts(&mut world, "deploy-1", 8).await;
    for seq in [44, 41] {
        world.memory.advance_secs(60);
        name(&world, seq).await;
    }
    let after = receipts(&mut world, "deploy-2", 9).await;

    assert!(!before.is_empty() && before.iter().all(Option::is_none), "{before:?}");
    assert!(!after.is_empty());
    for receipt in after {
        let receipt = receipt.unwrap();
        assert_eq!((receipt.head, receipt.install, receipt.tenant), (head(44), globex(), world.tenant.clone()));
    }
}

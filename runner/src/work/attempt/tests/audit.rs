//! What starts, and what is recorded, when the customer's bucket does not take the records.

use freehold_iam_proxy::{Change, Recorder as _, Stage};

use super::*;
use crate::record::audit;
use crate::record::audit::memory::{Fate, Memory};

const PATIENCE: Duration = audit::BUCKET_LIMIT;

fn held(world: &World) -> Arc<HeldOrder> {
    world.queue.send(sealed(&order(1, 7)));
    Arc::new(HeldOrder::new(order(1, 7), &world.queue.take().remove(0)))
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_stopped_while_its_start_waits_for_the_bucket_goes_back_at_once() {
    let bucket = Arc::new(Memory::default());
    *bucket.always.lock().unwrap() = Fate::Hangs;
    let world = World::new(Play::Succeed).with_bucket(&bucket);
    let held = held(&world);
    let attempt = Attempt { agent: &world.agent, held: &held };
    let begun = Instant::now();

    let (message, ()) = tokio::join!(attempt.start(false), async {
        tokio::time::sleep(PATIENCE / 2).await;
        held.stop(StopReason::Draining);
    });
    let waited = begun.elapsed();
    *bucket.always.lock().unwrap() = Fate::Works;
    world.agent.audit.flush(PATIENCE).await.unwrap();

    assert_eq!((message, world.begun()), (Message::GiveBack, 0));
    assert!(waited < PATIENCE, "{waited:?}");
    assert_eq!(bucket.events(), ["i-3", "started", "put back before the start"]);
}

#[tokio::test(start_paused = true)]
async fn a_job_whose_start_the_bucket_refuses_does_not_run_and_its_records_follow() {
    let bucket = Arc::new(Memory::default());
    *bucket.always.lock().unwrap() = Fate::Fails;
    let world = World::new(Play::Succeed).with_bucket(&bucket);
    world.queue.send(sealed(&order(1, 7)));

    world.until_deleted().await;
    *bucket.always.lock().unwrap() = Fate::Works;
    world.agent.audit.flush(PATIENCE).await.unwrap();

    assert_eq!(world.begun(), 0);
    assert_eq!(world.sent(), ["1.1 failed"]);
    assert_eq!(bucket.events(), ["i-3", "started", "failed"]);
}

#[tokio::test(start_paused = true)]
async fn a_change_of_iam_that_was_announced_and_not_sent_has_an_end() {
    let bucket = Arc::new(Memory::default());
    *bucket.always.lock().unwrap() = Fate::Fails;
    let world = World::new(Play::Succeed).with_bucket(&bucket);
    let iam = IamAudit::new(&world.agent, &job_id(1), Fence { dispatch: 1, receive: 1 });
    let change = |stage| Change { action: "CreateRole".into(), resource: "a".into(), stage };

    let refused = iam.record(change(Stage::Announced)).await;
    *bucket.always.lock().unwrap() = Fate::Works;
    iam.record(change(Stage::Announced)).await.unwrap();
    iam.record(change(Stage::Made)).await.unwrap();
    world.agent.audit.flush(PATIENCE).await.unwrap();

    assert!(refused.unwrap_err().contains("cannot write the audit record"));
    let stages = ["announced ", "failed NotSent", "announced ", "made "].map(|stage| format!("CreateRole {stage}"));
    assert_eq!(bucket.events()[1..], stages);
}

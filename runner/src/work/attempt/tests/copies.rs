//! Orders that somebody kept and sends again, to a machine that was not there when they were made, and to an old one.

use freehold_protocol::KeyId;
use freehold_protocol::audit::{AuditEvent, record_name};

use super::*;
use crate::operate::start;
use crate::process::watchdog::Beat;
use crate::record::audit::memory::{Memory, author};

pub(super) const FIRST: u8 = 3;
pub(super) const SECOND: u8 = 4;
/// The time at which the queue takes a copy. Other messages are sent a minute earlier.
pub(super) const COPIED_AT: Timestamp = Timestamp::from_millis(2_060_000);

pub(super) fn key(seed: u8) -> KeyId {
    author(seed).identity.id().clone()
}

/// An order that was made for the runner with the key of `seed`.
pub(super) fn made_for(seed: u8, order: Order) -> Order {
    Order { runner: Some(key(seed)), ..order }
}

/// A machine of the install with an empty disk, after `first` was lost.
pub(super) fn next(first: &World, bucket: &Arc<Memory>) -> World {
    first.beside().with_bucket(bucket)
}

pub(super) async fn first_machine(play: Play) -> (World, Arc<Memory>) {
    let bucket = Arc::new(Memory::default());
    (World::new(play).with_bucket(&bucket), bucket)
}

#[tokio::test(start_paused = true)]
async fn a_copy_of_an_order_that_another_machine_did_is_refused_on_an_empty_disk() {
    for runner in [Some(key(FIRST)), None] {
        let (first, bucket) = first_machine(Play::Succeed).await;
        let kept = sealed(&Order { runner, ..order(1, 7) });
        first.queue.send(kept.clone());
        first.until_deleted().await;

        let second = next(&first, &bucket);
        second.queue.send(kept);
        second.until_deleted().await;

        assert_eq!(second.begun(), 1);
        let Some(ReportBody::Refused(refusal)) = second.reports().pop() else { panic!("{:?}", second.sent()) };
        assert_eq!(refusal.reason, RefusalReason::Replayed);
        assert!(refusal.detail.starts_with("the order is a copy: its delivery 1 was handled by another runner"));
        assert_eq!(refusal.job, Some((job_id(1), Fence { dispatch: 1, receive: 1 })));
    }
}

/// A killed machine has an open request to the queue, which takes the first delivery of the copy along.
#[tokio::test(start_paused = true)]
async fn a_copy_is_refused_at_its_second_delivery_too() {
    for runner in [Some(key(FIRST)), None] {
        let (first, bucket) = first_machine(Play::Succeed).await;
        let kept = sealed(&Order { runner, ..order(1, 7) });
        first.queue.send(kept.clone());
        first.until_deleted().await;

        let second = next(&first, &bucket);
        second.queue.send_at(kept, COPIED_AT);
        let lost = second.queue.take();
        second.until_deleted().await;

        assert_eq!((lost.len(), second.begun()), (1, 1));
        let Some(ReportBody::Refused(refusal)) = second.reports().pop() else { panic!("{:?}", second.sent()) };
        assert_eq!(refusal.reason, RefusalReason::Replayed);
        assert!(
            refusal.detail.starts_with("the order is a copy: another message with it was handled by another runner")
        );
        assert_eq!(refusal.job, Some((job_id(1), Fence { dispatch: 1, receive: 2 })));
    }
}

/// In the message group of the order, SQS would deliver the copy only after the order has left the queue.
#[tokio::test(start_paused = true)]
async fn a_copy_in_another_message_group_starts_nothing_and_its_refusal_is_not_about_the_job() {
    let (world, bucket) = first_machine(Play::Succeed).await;
    let order = made_for(FIRST, order(1, 7));
    let kept = sealed(&order);
    world.queue.send_in("somebody", kept.clone(), COPIED_AT);
    world.until_deleted().await;
    let begun = world.begun();
    world.queue.send_in(order.group.as_str(), kept.clone(), COPIED_AT);
    world.until_deleted().await;

    assert_eq!(
        (begun, world.sent()),
        (0, vec!["refused replayed".into(), "1.1 started".into(), "1.1 succeeded".into()])
    );
    let Some(ReportBody::Refused(refusal)) = world.reports().into_iter().next() else { panic!("{:?}", world.sent()) };
    assert_eq!((refusal.job, refusal.message), (None, Digest::of(kept.as_bytes())));
    assert!(refusal.detail.contains("its message group in the orders queue is `somebody`"), "{}", refusal.detail);
    assert_eq!(bucket.results(), ["succeeded"]);
}

#[tokio::test(start_paused = true)]
async fn a_copy_that_comes_first_does_not_keep_the_order_of_a_lost_machine_from_being_resumed() {
    let (first, bucket) = first_machine(Play::Wait).await;
    let kept = sealed(&made_for(FIRST, order(1, 7)));
    first.queue.send(kept.clone());
    first.until("the start", |world| world.begun() == 1).await;
    first.agent.in_flight.stop_all(StopReason::LeaseLost);
    first.until("the stop", |world| !world.stage.stopped.lock().unwrap().is_empty()).await;

    *first.stage.play.lock().unwrap() = Play::Succeed;
    let second = next(&first, &bucket);
    second.queue.send_at(kept, COPIED_AT);
    second.until_deleted().await;

    assert_eq!(second.begun(), 2);
    assert_eq!(second.sent_by(&key(SECOND)), ["refused replayed", "1.2 started", "1.2 succeeded"]);
}

/// The copy waits for another job of the action when the order of the lost machine comes back.
#[tokio::test(start_paused = true)]
async fn an_order_that_comes_back_while_a_copy_of_it_waits_is_resumed_after_the_copy_was_refused() {
    let (first, bucket) = first_machine(Play::Wait).await;
    let kept = sealed(&made_for(FIRST, order(1, 7)));
    first.queue.send(kept.clone());
    first.until("the start", |world| world.begun() == 1).await;
    first.agent.in_flight.stop_all(StopReason::LeaseLost);
    first.until("the stop", |world| !world.stage.stopped.lock().unwrap().is_empty()).await;

    let second = next(&first, &bucket);
    let beside = Order { group: "action:check.1".parse().unwrap(), ..order(2, 7) };
    second.queue.send(sealed(&made_for(SECOND, beside)));
    second.until("another job of the action", |world| world.begun() == 2).await;
    second.queue.send_at(kept, COPIED_AT);
    let is_back = |world: &World| world.queue.messages.lock().unwrap().values().any(|one| one.receive > 1);
    second.until("the return of the order", is_back).await;
    *first.stage.play.lock().unwrap() = Play::Succeed;
    second.agent.in_flight.cancel(&job_id(2), 1, None);
    second.until_deleted().await;

    let sent = ["1.1 started", "1.1 cancelled", "refused replayed", "1.3 started", "1.3 succeeded"];
    assert_eq!((second.begun(), second.sent_by(&key(SECOND))), (3, sent.map(str::to_owned).to_vec()));
}

#[tokio::test(start_paused = true)]
async fn a_copy_of_an_action_that_another_machine_works_on_does_not_end_it_as_interrupted() {
    let (first, bucket) = first_machine(Play::Wait).await;
    let kept = sealed(&made_for(SECOND, action()));
    first.queue.send(kept.clone());
    first.until("the start", |world| world.begun() == 1).await;

    let second = next(&first, &bucket);
    second.queue.send_at(kept, COPIED_AT);
    let lost = second.queue.take();
    second.until("the refusal", |world| world.queue.len() == 1).await;

    assert_eq!((lost.len(), second.begun()), (1, 1));
    assert_eq!(second.sent_by(&key(SECOND)), ["refused replayed"]);
}

/// The copy waits for another job of the action when the cancel comes. If the order were refused as cancelled, the job
/// would be cancelled for the control plane, which the first machine does not know yet.
#[tokio::test(start_paused = true)]
async fn a_copy_that_waits_when_the_job_is_cancelled_is_refused_as_a_copy_while_another_machine_works_on_it() {
    for runner in [FIRST, SECOND] {
        let (first, bucket) = first_machine(Play::Wait).await;
        let kept = sealed(&made_for(runner, order(1, 7)));
        first.queue.send(kept.clone());
        first.until("the start", |world| world.begun() == 1).await;

        let second = next(&first, &bucket);
        let beside = Order { group: "action:check.1".parse().unwrap(), ..order(2, 7) };
        second.queue.send(sealed(&made_for(SECOND, beside)));
        second.until("another job of the action", |world| world.begun() == 2).await;
        second.queue.send_at(kept, COPIED_AT);
        let is_taken = |world: &World| world.queue.messages.lock().unwrap().values().all(|one| one.receive > 0);
        second.until("the copy", is_taken).await;
        second.queue.send(cancel(None));
        second.until("the refusal", |world| world.queue.len() == 2).await;

        assert_eq!(second.sent_by(&key(SECOND)), ["1.1 started", "refused replayed"], "made for {runner}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_copy_that_comes_after_the_cancel_is_refused_as_a_copy_while_another_machine_works_on_it() {
    let (old, bucket) = first_machine(Play::Wait).await;
    let kept = sealed(&made_for(FIRST, order(1, 7)));
    let new = next(&old, &bucket);
    new.queue.send(kept.clone());
    new.until("the start", |world| world.begun() == 1).await;
    old.queue.send(cancel(None));
    old.until("the cancel", |world| world.queue.len() == 1).await;

    old.queue.send_at(kept, COPIED_AT);
    old.until("the refusal", |world| world.queue.len() == 1).await;

    assert_eq!(new.sent_by(&key(FIRST)), ["refused replayed"]);
}

/// The order left the queue after its machine had put it back. Then another machine started a copy, and was lost.
#[tokio::test(start_paused = true)]
async fn an_action_that_was_put_back_is_not_started_again_from_a_copy_that_a_lost_machine_started() {
    let (first, bucket) = first_machine(Play::Wait).await;
    let kept = sealed(&made_for(FIRST, action()));
    first.queue.send(kept.clone());
    let deliveries = first.queue.take();
    // The order waits for its turn when the machine puts it back.
    let turn = first.agent.admission.ticket(&action().group).admitted().await;
    deliveries.into_iter().for_each(|delivery| poll::take(&first.agent, delivery));
    first.agent.in_flight.stop_all(StopReason::Draining);
    first.agent.in_flight.emptied().await;
    drop(turn);
    first.queue.messages.lock().unwrap().clear();

    let second = next(&first, &bucket);
    second.queue.send_at(kept, COPIED_AT);
    second.until("the start", |world| world.begun() == 1).await;
    second.agent.in_flight.stop_all(StopReason::LeaseLost);
    second.until("the stop", |world| !world.stage.stopped.lock().unwrap().is_empty()).await;
    first.until_deleted().await;

    assert_eq!((first.begun(), second.sent_by(&key(FIRST))), (1, vec!["1.2 interrupted".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn an_order_for_a_lost_machine_that_nobody_began_is_done_by_the_next_one() {
    let (first, bucket) = first_machine(Play::Succeed).await;
    first.queue.send(sealed(&made_for(FIRST, action())));

    let second = next(&first, &bucket);
    second.until_deleted().await;

    assert_eq!((second.begun(), second.sent_by(&key(SECOND))), (1, vec!["1.1 started".into(), "1.1 succeeded".into()]));
}

#[tokio::test(start_paused = true)]
async fn an_order_that_comes_back_after_its_machine_was_lost_is_resumed_by_the_next_one() {
    let (first, bucket) = first_machine(Play::Wait).await;
    first.queue.send(sealed(&made_for(FIRST, order(1, 7))));
    first.until("the start", |world| world.begun() == 1).await;
    first.agent.in_flight.stop_all(StopReason::LeaseLost);
    first.until("the stop", |world| !world.stage.stopped.lock().unwrap().is_empty()).await;

    *first.stage.play.lock().unwrap() = Play::Succeed;
    let second = next(&first, &bucket);
    second.until_deleted().await;

    assert_eq!(second.begun(), 2);
    assert_eq!(second.sent_by(&key(SECOND)), ["1.2 started", "1.2 succeeded"]);
}

#[tokio::test(start_paused = true)]
async fn an_older_order_of_a_group_and_an_older_dispatch_are_refused_though_nobody_began_them() {
    let (first, bucket) = first_machine(Play::Succeed).await;
    first.queue.send(sealed(&made_for(FIRST, order(2, 8))));
    first.queue.send(sealed(&Order {
        group: "component:web".parse().unwrap(),
        dispatch: 3,
        ..made_for(FIRST, order(3, 8))
    }));
    first.until_deleted().await;

    let second = next(&first, &bucket);
    for older in [order(1, 7), Order { group: "component:web".parse().unwrap(), dispatch: 2, ..order(3, 8) }] {
        second.queue.send(sealed(&made_for(FIRST, older)));
        second.until_deleted().await;
    }

    assert_eq!(
        (second.begun(), second.sent_by(&key(SECOND))),
        (2, vec!["refused replayed".into(), "refused replayed".into()])
    );
}

#[tokio::test(start_paused = true)]
async fn a_copy_of_an_order_whose_cancel_another_machine_took_is_refused() {
    for (receive, sent) in [(None, vec!["refused cancelled"]), (Some(1), vec!["refused cancelled"])] {
        let (first, bucket) = first_machine(Play::Succeed).await;
        first.queue.send(cancel(receive));
        first.until_deleted().await;
        first.agent.audit.flush(Duration::from_secs(1)).await.unwrap();

        let second = next(&first, &bucket);
        second.queue.send(sealed(&made_for(FIRST, order(1, 7))));
        second.until_deleted().await;

        assert_eq!((second.begun(), second.sent_by(&key(SECOND))), (0, sent.into_iter().map(str::to_owned).collect()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_of_an_earlier_attempt_stops_no_later_one() {
    let (first, bucket) = first_machine(Play::Succeed).await;
    first.queue.send(cancel(Some(2)));
    first.until_deleted().await;
    first.agent.audit.flush(Duration::from_secs(1)).await.unwrap();

    let second = next(&first, &bucket);
    second.queue.send(sealed(&made_for(FIRST, order(1, 7))));
    second.until_deleted().await;

    assert_eq!(second.sent_by(&key(SECOND)), ["1.1 started", "1.1 succeeded"]);
}

#[tokio::test(start_paused = true)]
async fn an_order_for_another_key_waits_until_the_chain_can_be_read() {
    let (first, bucket) = first_machine(Play::Succeed).await;
    first.queue.send(sealed(&made_for(FIRST, action())));
    let second = next(&first, &bucket);
    bucket.objects.lock().unwrap().insert(record_name(1), b"nonsense".to_vec());

    let begun = Instant::now();
    second.until("some tries", |world| world.queue.messages.lock().unwrap().values().any(|one| one.receive > 2)).await;
    let (before, waited) = (second.begun(), begun.elapsed());
    bucket.objects.lock().unwrap().clear();
    second.until_deleted().await;

    assert_eq!((before, second.begun()), (0, 1));
    assert!(waited > Duration::from_secs(limits::LEASE_SECS), "{waited:?}");
    assert_eq!(second.sent_by(&key(SECOND)).last().map(|one| one.split_once(' ').unwrap().1), Some("succeeded"));
}

/// The machine that is lost had a newer version, which recorded something about job 1.
#[tokio::test(start_paused = true)]
async fn an_order_goes_back_if_an_event_of_a_newer_version_is_about_it_and_the_other_orders_are_done() {
    let (first, bucket) = first_machine(Play::Succeed).await;
    let event = serde_json::json!({ "event": "resumed", "job": job_id(1) });
    first.agent.audit.record(serde_json::from_value(event).unwrap()).unwrap();
    first.agent.audit.flush(Duration::from_secs(1)).await.unwrap();
    let second = next(&first, &bucket);
    second.queue.send(sealed(&made_for(FIRST, order(2, 7))));
    second.until_deleted().await;

    second.queue.send(sealed(&made_for(FIRST, order(1, 8))));
    second.until("some tries", |world| world.queue.messages.lock().unwrap().values().any(|one| one.receive > 2)).await;

    assert_eq!((second.begun(), second.sent_by(&key(SECOND))), (1, vec!["1.1 started".into(), "1.1 succeeded".into()]));
    let newer: Vec<_> = bucket.verified().newer_events.into_iter().collect();
    assert_eq!(newer, [("resumed".to_owned(), vec![2])]);
}

/// The journal of the old machine does not show that the new one carried out the order, which was made for the key of
/// the old one.
#[tokio::test(start_paused = true)]
async fn a_copy_of_an_order_that_the_new_machine_did_is_refused_by_the_old_one_that_still_lives() {
    // Whether the old machine notices the new one by another record, or only by that of the start.
    for notices in [false, true] {
        let (old, bucket) = first_machine(Play::Succeed).await;
        old.queue.send(sealed(&made_for(FIRST, order(2, 6))));
        old.until_deleted().await;
        let kept = sealed(&made_for(FIRST, order(1, 7)));
        let new = next(&old, &bucket);
        new.queue.send(kept.clone());
        new.until_deleted().await;
        if notices {
            old.agent.audit.record(AuditEvent::Sent { reports: Vec::new() }).unwrap();
            old.agent.audit.flush(Duration::from_secs(1)).await.unwrap();
        }

        old.queue.send_at(kept, COPIED_AT);
        old.until_deleted().await;

        assert_eq!((old.begun(), new.sent_by(&key(FIRST)).last().map(String::as_str)), (2, Some("refused replayed")));
        old.agent.audit.flush(Duration::from_secs(1)).await.unwrap();
        let announced = bucket.results().contains(&"refused before the start".to_owned());
        assert_eq!(announced, !notices, "the record of the start shows that the chain has grown");
    }
}

#[tokio::test(start_paused = true)]
async fn an_order_that_another_machine_put_back_is_done_by_the_machine_for_whose_key_it_was_made() {
    let (first, bucket) = first_machine(Play::Wait).await;
    let second = next(&first, &bucket);
    second.queue.send(sealed(&made_for(FIRST, order(1, 7))));
    second.until("the start", |world| world.begun() == 1).await;
    second.agent.in_flight.stop_all(StopReason::LeaseLost);
    second.until("the stop", |world| !world.stage.stopped.lock().unwrap().is_empty()).await;

    *first.stage.play.lock().unwrap() = Play::Succeed;
    first.until_deleted().await;

    assert_eq!((first.begun(), second.sent_by(&key(FIRST))), (2, vec!["1.2 started".into(), "1.2 succeeded".into()]));
}

/// Somebody copied the disk of a machine, and both machines work.
#[tokio::test(start_paused = true)]
async fn of_two_machines_with_one_key_the_second_one_starts_nothing_and_gives_up() {
    let (first, bucket) = first_machine(Play::Succeed).await;
    first.queue.send(sealed(&made_for(FIRST, order(1, 7))));
    first.until_deleted().await;
    let second = first.copied().with_bucket(&bucket);
    first.queue.send(sealed(&made_for(FIRST, order(2, 8))));
    first.until_deleted().await;

    second.queue.send(sealed(&made_for(FIRST, order(3, 9))));
    second.until("two tries", |world| world.queue.messages.lock().unwrap().values().any(|one| one.receive > 1)).await;
    start::carry_audit(second.agent.clone(), Beat::default()).await;
    let begun = second.begun();
    first.until_deleted().await;

    assert_eq!((begun, first.begun()), (2, 3));
    let why = second.agent.fatal.get().map(String::as_str).unwrap_or_default();
    assert!(why.contains("which is the key of this machine"), "{why}");
    assert_eq!(second.agent.drain.phase(), Phase::Draining);
}

#[tokio::test(start_paused = true)]
async fn an_order_for_this_runners_key_costs_no_look_at_the_chain() {
    let calls = |runner: u8| async move {
        let (first, bucket) = first_machine(Play::Succeed).await;
        first.queue.send(sealed(&made_for(runner, order(1, 7))));
        first.until_deleted().await;
        bucket.calls.load(Ordering::Relaxed)
    };

    let (own, other) = (calls(FIRST).await, calls(SECOND).await);

    assert!(own < other, "{own} and {other}");
}

//! Orders that a machine gives back while other machines may have them, from the same message or from a copy.

use freehold_protocol::audit::AuditEvent;

use super::copies::{COPIED_AT, FIRST, SECOND, first_machine, key, made_for, next};
use super::*;
use crate::identity::denial::StackState;

#[tokio::test(start_paused = true)]
async fn a_copy_of_an_order_that_was_given_back_is_given_back_at_its_second_delivery_too() {
    let (first, bucket) = first_machine(Play::Succeed).await;
    let late = made_for(FIRST, Order { start_by: Some(Timestamp::from_millis(1_999_999)), ..order(1, 7) });
    first.queue.send(sealed(&late));
    first.until_deleted().await;
    first.agent.audit.flush(Duration::from_secs(1)).await.unwrap();

    let second = next(&first, &bucket);
    second.queue.send_at(sealed(&late), COPIED_AT);
    let lost = second.queue.take();
    second.until_deleted().await;

    assert_eq!((lost.len(), second.begun()), (1, 0));
    assert_eq!(second.sent().first().map(String::as_str), Some("given back expired"));
    assert_eq!(second.sent_by(&key(SECOND)), ["given back outside_window"]);
}

/// The control plane orders the work again when a copy of its order was given back, so the order itself must not start
/// it.
#[tokio::test(start_paused = true)]
async fn an_order_is_given_back_after_another_machine_has_given_a_copy_of_it_back() {
    let (first, bucket) = first_machine(Play::Succeed).await;
    let start_by = Some(COPIED_AT);
    let kept = sealed(&made_for(FIRST, Order { start_by, ..order(1, 7) }));
    first.queue.send_at(kept.clone(), COPIED_AT.plus_secs(1));
    first.until_deleted().await;

    let second = next(&first, &bucket);
    second.queue.send(kept);
    second.until_deleted().await;

    assert_eq!(second.begun(), 0);
    assert_eq!(second.sent(), ["given back expired", "given back outside_window"]);
}

/// The first machine starts the order after the second one has looked into the chain for what others did.
#[tokio::test(start_paused = true)]
async fn a_copy_is_not_given_back_if_another_machine_started_the_order_after_the_look() {
    let (first, bucket) = first_machine(Play::Wait).await;
    let kept = made_for(FIRST, order(1, 7));
    let second = next(&first, &bucket);
    second.agent.audit.record(AuditEvent::Sent { reports: Vec::new() }).unwrap();
    second.agent.audit.flush(Duration::from_secs(1)).await.unwrap();
    second.queue.send_at(sealed(&kept), COPIED_AT);
    let held = Arc::new(HeldOrder::new(kept.clone(), &second.queue.take().remove(0)));
    let attempt = Attempt { agent: &second.agent, held: &held };
    let others = second.agent.audit.others();
    let looked = attempt.end_if_others_have_it().await;
    first.queue.send(sealed(&kept));
    first.until("the start", |world| world.begun() == 1).await;

    let refusal = attempt.given_back(RefusalReason::Expired, "too late", None);
    let message = attempt.refuse_unstarted(refusal, others).await;

    assert_eq!((looked, message), (None, Message::Done));
    assert_eq!(second.sent_by(&key(SECOND)), ["refused replayed"]);
    assert!(!second.agent.journal().state().is_given_back(&kept), "this machine may resume the order");
}

#[tokio::test(start_paused = true)]
async fn a_copy_that_came_too_late_to_be_started_is_refused_if_another_machine_has_done_the_order() {
    let (first, bucket) = first_machine(Play::Succeed).await;
    let kept = made_for(FIRST, order(1, 7));
    first.queue.send(sealed(&kept));
    first.until_deleted().await;

    let second = next(&first, &bucket);
    second.queue.send(sealed(&Order { not_after: Timestamp::from_millis(1_999_999), ..kept }));
    second.until_deleted().await;

    assert_eq!((second.begun(), second.sent_by(&key(SECOND))), (1, vec!["refused replayed".to_owned()]));
}

/// If the copy were given back, the control plane would order the work again while the first machine does it.
#[tokio::test(start_paused = true)]
async fn a_copy_of_an_order_that_another_machine_works_on_is_not_given_back() {
    let start_by = Some(COPIED_AT);
    for (sent_at, windows, is_second) in [
        // Too late to be started, which the time of the message shows.
        (COPIED_AT.plus_secs(1), "", false),
        // While the customer lets no change start. Only a later delivery is newer than the attempt that runs.
        (COPIED_AT, "UTC: Thu 01:00-02:00", true),
    ] {
        for runner in [FIRST, SECOND] {
            let (first, bucket) = first_machine(Play::Wait).await;
            let kept = sealed(&made_for(runner, Order { start_by, ..order(1, 7) }));
            first.queue.send(kept.clone());
            first.until("the start", |world| world.begun() == 1).await;

            let second = next(&first, &bucket);
            second.agent.clock.observe(sent_at, Instant::now());
            let parameters = [("ChangeWindows".to_owned(), windows.to_owned())];
            second.account.become_stack(StackState::Launched(parameters.into()));
            second.queue.send_at(kept, sent_at);
            let lost = if is_second { second.queue.take().len() } else { 0 };
            second.until("the refusal", |world| world.queue.len() == 1).await;

            assert_eq!((lost, second.begun()), (usize::from(is_second), 1));
            assert_eq!(second.sent_by(&key(SECOND)), ["refused replayed"], "windows `{windows}`, made for {runner}");
        }
    }
}

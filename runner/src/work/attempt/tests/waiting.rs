//! Orders that have waited for their runner, and what a runner says of its own absence.

use std::sync::atomic::Ordering;
use std::time::Duration;

use freehold_protocol::Timestamp;
use freehold_protocol::order::Order;
use freehold_protocol::report::ReportBody;
use tokio::time::Instant;

use super::world::{Play, World, action};
use crate::testing::{order, sealed};
use crate::work::poll;

/// An order that may not be started any more; its attempt could still run.
fn late(order: Order) -> Order {
    Order { start_by: Some(Timestamp::from_millis(1_999_999)), ..order }
}

fn expired(order: Order) -> Order {
    Order { not_after: Timestamp::from_millis(1_999_999), ..late(order) }
}

#[tokio::test(start_paused = true)]
async fn an_order_that_waited_too_long_is_given_back_and_the_next_one_is_done_once() {
    for waited in [late(action()), expired(action())] {
        let world = World::new(Play::Succeed);
        world.queue.send(sealed(&waited));
        world.until_deleted().await;
        let given_back = (world.begun(), world.sent());

        world.queue.send(sealed(&Order { dispatch: 2, ..action() }));
        world.until_deleted().await;

        assert_eq!(given_back, (0, vec!["given back expired".to_owned()]));
        assert_eq!(world.begun(), 1);
        assert_eq!(world.sent()[1..], ["2.1 started", "2.1 succeeded"]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_order_that_is_delivered_again_before_its_return_was_heard_is_given_back_again() {
    let world = World::new(Play::Succeed);
    world.taken.deaf.store(true, Ordering::Relaxed);
    world.queue.send(sealed(&expired(action())));
    world.until("the first return", |world| world.sent() == ["given back expired"]).await;

    // The machine loses the lease before the reports queue has anything, and another one gets the order.
    world.queue.deaf.store(true, Ordering::Relaxed);
    world.agent.in_flight.emptied().await;
    world.queue.deaf.store(false, Ordering::Relaxed);
    let other = world.beside();
    drop(world);
    other.taken.deaf.store(false, Ordering::Relaxed);
    other.until_deleted().await;

    assert_eq!((other.begun(), other.sent()), (0, vec!["given back expired".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn an_action_that_may_have_begun_before_the_pause_is_interrupted_and_not_given_back() {
    let world = World::new(Play::Succeed);
    world.queue.send(sealed(&expired(action())));
    for message in world.queue.messages.lock().unwrap().values_mut() {
        message.receive = 1;
    }

    world.until_deleted().await;

    assert_eq!((world.begun(), world.sent()), (0, vec!["1.2 interrupted".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn a_job_that_can_be_resumed_is_given_back_after_the_pause_and_resumed_in_time_before_its_order_expires() {
    for (waited, expected) in [(late(order(1, 7)), "1.2 started"), (expired(order(1, 7)), "given back expired")] {
        let world = World::new(Play::Succeed);
        world.queue.send(sealed(&waited));
        for message in world.queue.messages.lock().unwrap().values_mut() {
            message.receive = 1;
        }

        world.until_deleted().await;

        assert_eq!(world.sent()[0], expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_ended_before_the_pause_is_reported_again() {
    let world = World::new(Play::Succeed);
    world.queue.send(sealed(&action()));
    world.until_deleted().await;

    world.queue.send(sealed(&expired(action())));
    world.until_deleted().await;

    assert_eq!(world.begun(), 1);
    assert_eq!(world.sent(), ["1.1 started", "1.1 succeeded", "1.1 succeeded"]);
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_is_switched_off_says_so_once_and_announces_itself_when_it_is_on_again() {
    let world = World::new(Play::Succeed);
    world.switch(false);
    let off = Instant::now();
    world.until("an hour", |_| off.elapsed() > Duration::from_secs(3_000)).await;
    let sent = world.sent();
    let away = world.agent.presence.is_away();

    world.switch(true);
    world.queue.send(sealed(&order(1, 7)));
    world.until_deleted().await;

    assert_eq!((sent, away), (vec!["away SwitchedOff".to_owned()], true));
    assert!(!world.agent.presence.is_away());
    let back = tokio::time::timeout(Duration::from_secs(1), world.agent.presence.is_back()).await;
    assert!(back.is_ok(), "the loop that announces the runner is woken");
}

#[tokio::test(start_paused = true)]
async fn a_runner_whose_stack_is_deleted_says_so_before_it_ends() {
    let world = World::new(Play::Succeed);
    world.account.delete_stack();
    world.queue.closed.store(true, Ordering::Relaxed);

    world.until("the report", |world| !world.sent().is_empty()).await;

    let [ReportBody::Away(away)] = &world.reports()[..] else { panic!("{:?}", world.sent()) };
    assert_eq!(world.sent(), ["away StackDeleted"]);
    assert!(away.detail.starts_with("install stack `freehold-acme--globex-prod` is being deleted"), "{}", away.detail);
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_loses_its_queue_for_no_known_reason_says_so_when_it_gives_up() {
    let world = World::new(Play::Succeed);
    world.queue.closed.store(true, Ordering::Relaxed);
    let closed = Instant::now();

    poll::run(world.agent.clone(), Default::default()).await;

    assert_eq!(world.sent(), ["away NoOrders"]);
    assert!(closed.elapsed() >= Duration::from_secs(15 * 60));
}

//! The customer's change windows, which this runner reads from the install stack: what is not started outside them, and what
//! a vendor that sends anyway gains.

use freehold_protocol::Timestamp;
use freehold_protocol::order::{AskedBy, Mode, Order};
use freehold_protocol::report::{RefusalReason, ReportBody};
use tokio::time::Instant;

use super::world::{Play, World, action};
use crate::identity::denial::StackState;
use crate::testing::{order, sealed};

/// The time of these tests, which is that of the orders: Thursday, 1 January 1970, 00:33:20 UTC.
const NOW: Timestamp = Timestamp::from_millis(2_000_000);
const CLOSED: &str = "UTC: Thu 01:00-02:00";
const ANA: &str = "arn:aws:sts::111111111111:assumed-role/deployer/ana";

/// A runner whose install stack has these parameters.
fn with(parameters: &[(&str, &str)]) -> World {
    let world = World::new(Play::Succeed);
    world.agent.clock.observe(NOW, Instant::now());
    launch(&world, parameters);
    world
}

fn launch(world: &World, parameters: &[(&str, &str)]) {
    let owned = parameters.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    world.account.become_stack(StackState::Launched(owned));
}

fn asked_now(order: Order) -> Order {
    Order { now: true, asked_by: Some(AskedBy::Caller { arn: ANA.parse().unwrap() }), ..order }
}

/// Returns the reason and the time of the last refusal.
fn refusal(world: &World) -> (RefusalReason, String, Option<Timestamp>) {
    let refused = world.reports().into_iter().rev().find_map(|body| match body {
        ReportBody::Refused(refusal) => Some((refusal.reason, refusal.detail, refusal.until)),
        _ => None,
    });
    refused.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_change_outside_the_window_is_given_back_with_the_time_of_the_next_opening() {
    let world = with(&[("ChangeWindows", CLOSED)]);

    world.queue.send(sealed(&order(1, 7)));
    world.until_deleted().await;

    assert_eq!((world.begun(), world.sent()), (0, vec!["given back outside_window".to_owned()]));
    let (reason, detail, until) = refusal(&world);
    assert_eq!((reason, until), (RefusalReason::OutsideWindow, Some(Timestamp::from_millis(3_600_000))));
    assert!(detail.ends_with("until Thu 1970-01-01 01:00 UTC"), "{detail}");
}

#[tokio::test(start_paused = true)]
async fn the_next_order_of_the_job_is_done_when_the_window_is_open() {
    let world = with(&[("ChangeWindows", CLOSED)]);
    world.queue.send(sealed(&order(1, 7)));
    world.until_deleted().await;

    launch(&world, &[("ChangeWindows", "UTC: Thu 00:00-02:00")]);
    tokio::time::sleep(std::time::Duration::from_secs(61)).await;
    world.queue.send(sealed(&Order { dispatch: 2, ..order(1, 7) }));
    world.until_deleted().await;

    assert_eq!((world.begun(), world.sent()[1..].to_vec()), (1, vec!["2.1 started".into(), "2.1 succeeded".into()]));
}

#[tokio::test(start_paused = true)]
async fn a_vendor_that_sends_anyway_gains_nothing_by_times_deliveries_or_words() {
    let later = Timestamp::from_millis(3_700_000);
    let lies = [
        (
            "it was issued within the window",
            Order { issued_at: later, not_after: later.plus_secs(600), ..order(1, 7) },
            0,
        ),
        ("another machine had begun it", order(1, 7), 1),
        ("somebody asks for it now", asked_now(order(1, 7)), 0),
        ("it is an action that nobody named", action(), 0),
    ];
    for (what, lie, deliveries) in lies {
        let world = with(&[("ChangeWindows", CLOSED), ("ActionsAnyTime", "health")]);
        world.queue.send(sealed(&lie));
        for message in world.queue.messages.lock().unwrap().values_mut() {
            message.receive = deliveries;
        }

        world.until_deleted().await;

        assert_eq!((world.begun(), world.sent()), (0, vec!["given back outside_window".to_owned()]), "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn whom_the_customer_names_passes_with_now_and_nobody_passes_a_hold() {
    for (held, begun) in [("false", 1), ("true", 0)] {
        let world = with(&[("ChangeWindows", CLOSED), ("ChangesNowBy", ANA), ("ChangesHeld", held)]);

        world.queue.send(sealed(&asked_now(order(1, 7))));
        world.until_deleted().await;

        assert_eq!(world.begun(), begun, "held {held}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_asks_for_now_without_being_named_is_told_the_parameter() {
    let world = with(&[("ChangeWindows", CLOSED)]);

    world.queue.send(sealed(&asked_now(order(1, 7))));
    world.until_deleted().await;

    let (_, detail, _) = refusal(&world);
    assert!(detail.contains(ANA) && detail.contains("`ChangesNowBy`"), "{detail}");
}

#[tokio::test(start_paused = true)]
async fn emergencies_run_under_break_glass_which_only_the_customer_switches_on() {
    let world = with(&[("ChangeWindows", CLOSED), ("ChangesHeld", "true")]);

    world.queue.send(sealed(&Order { mode: Mode::BreakGlass, ..order(1, 7) }));
    world.until_deleted().await;

    assert!(!world.sent().iter().any(|word| word.contains("outside_window")), "{:?}", world.sent());
}

#[tokio::test(start_paused = true)]
async fn the_word_break_glass_with_another_role_passes_nothing() {
    let world = with(&[("ChangeWindows", CLOSED)]);

    let role = Some("custom-support".parse().unwrap());
    world.queue.send(sealed(&Order { mode: Mode::BreakGlass, role, ..order(1, 7) }));
    world.until_deleted().await;

    assert_eq!(world.sent(), vec!["given back outside_window".to_owned()]);
}

#[tokio::test(start_paused = true)]
async fn a_text_that_cannot_be_read_lets_no_change_start_and_names_the_place() {
    let world = with(&[("ChangeWindows", "Mars/Base: Mon 22:00-23:00")]);

    world.queue.send(sealed(&order(1, 7)));
    world.until_deleted().await;

    let (reason, detail, until) = refusal(&world);
    assert_eq!((world.begun(), reason, until), (0, RefusalReason::OutsideWindow, None));
    assert!(detail.contains("parameter `ChangeWindows`, column 1: `Mars/Base` is not a time zone"), "{detail}");
}

/// Checks that a change is delivered again and does not start before a stack without rules is there.
async fn waits_for_a_stack(world: &World) {
    world
        .until("two deliveries", |world| world.queue.messages.lock().unwrap().values().any(|one| one.receive > 1))
        .await;
    let before = world.begun();
    launch(world, &[]);
    world.until_deleted().await;

    assert_eq!((before, world.begun()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn while_the_stack_cannot_be_read_a_change_stays_in_the_queue() {
    let world = with(&[]);
    world.account.become_stack(StackState::Unreadable("throttled".into()));
    world.queue.send(sealed(&order(1, 7)));

    waits_for_a_stack(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_stack_of_an_earlier_version_restricts_nothing() {
    let world = with(&[("EnableRunner", "true")]);

    world.queue.send(sealed(&order(1, 7)));
    world.until_deleted().await;

    assert_eq!(world.begun(), 1);
}

#[tokio::test(start_paused = true)]
async fn while_the_stack_is_gone_and_its_roles_are_not_a_change_stays_in_the_queue() {
    let world = with(&[]);
    world.account.delete_stack();
    world.queue.send(sealed(&order(1, 7)));

    waits_for_a_stack(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_delivery_of_an_order_that_was_given_back_starts_nothing_although_the_window_is_open() {
    let world = with(&[("ChangeWindows", CLOSED)]);
    let action = action();
    world.queue.send(sealed(&action));
    world.until_deleted().await;
    launch(&world, &[]);
    tokio::time::sleep(std::time::Duration::from_secs(61)).await;

    // The runner was killed before it deleted the order, whose report had been sent.
    world.queue.send(sealed(&action));
    world.until_deleted().await;
    let (again, sent) = (world.begun(), world.sent());
    world.queue.send(sealed(&Order { dispatch: 2, ..action }));
    world.until_deleted().await;

    assert_eq!((again, sent), (0, vec!["given back outside_window".to_owned(); 2]));
    assert_eq!(world.begun(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_time_is_that_of_the_answers_of_aws() {
    let world = with(&[("ChangeWindows", CLOSED)]);
    world.agent.clock.observe(NOW.plus_secs(3_000), Instant::now());

    world.queue.send(sealed(&order(1, 7)));
    world.until_deleted().await;

    assert_eq!(world.begun(), 1);
}

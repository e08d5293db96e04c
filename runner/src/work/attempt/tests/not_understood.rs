//! Orders that demand a feature which this version does not know.

use freehold_protocol::audit::AuditEvent;
use freehold_protocol::order::Demands;

use super::copies::{FIRST, SECOND, first_machine, key, made_for, next};
use super::*;
use crate::record::audit::memory::Memory;

/// The time at which a test begins, by the clock of the queue.
const BEGIN: Timestamp = Timestamp::from_millis(2_000_000);
/// How long the orders may be started, in seconds from the beginning.
const START: u64 = 600;
/// How long their attempts may run, in seconds from the beginning.
const END: u64 = 1_200;

/// An order of a later version, made for the runner with the key of `seed`.
fn later(seed: u8) -> Order {
    let start_by = Some(BEGIN.plus_secs(START));
    let not_after = BEGIN.plus_secs(END);
    made_for(seed, Order { start_by, not_after, must_understand: Demands::feature("teleport"), ..order(1, 7) })
}

/// Records an event by the machine beside `first`.
async fn record_by_other(first: &World, bucket: &Arc<Memory>, event: AuditEvent) {
    let second = next(first, bucket);
    second.agent.audit.record(event).unwrap();
    second.agent.audit.flush(Duration::from_secs(1)).await.unwrap();
}

/// Returns after how many seconds the first machine has refused the order.
async fn refused_after(first: &World, order: &Order) -> u64 {
    first.agent.clock.observe(BEGIN, Instant::now());
    let begun = Instant::now();
    first.queue.send(sealed(order));
    first.until_deleted().await;
    assert_eq!((first.begun(), first.sent()), (0, vec!["refused not_understood".to_owned()]));
    let Some(ReportBody::Refused(refusal)) = first.reports().pop() else { panic!("{:?}", first.sent()) };
    assert_eq!(refusal.job.map(|(job, _)| job), Some(job_id(1)));
    begun.elapsed().as_secs()
}

fn sent() -> AuditEvent {
    AuditEvent::Sent { reports: Vec::new() }
}

fn newer(event: serde_json::Value) -> AuditEvent {
    serde_json::from_value(event).unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_order_that_no_machine_understands_is_refused_at_once() {
    for (runner, other) in [(FIRST, false), (SECOND, false), (FIRST, true)] {
        let (first, bucket) = first_machine(Play::Succeed).await;
        if other {
            record_by_other(&first, &bucket, sent()).await;
        }

        assert_eq!(
            refused_after(&first, &later(runner)).await,
            0,
            "made for {runner}, beside another machine: {other}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_order_is_left_to_a_machine_that_may_understand_it_until_it_may_not_be_started_any_more() {
    let joined = AuditEvent::Joined { host: "i-9".into(), version: "99.0.0".into() };
    let unknown = newer(serde_json::json!({ "event": "resumed", "job": null }));
    for (runner, event) in [(SECOND, sent()), (FIRST, joined), (FIRST, unknown)] {
        let (first, bucket) = first_machine(Play::Succeed).await;
        record_by_other(&first, &bucket, event.clone()).await;

        let secs = refused_after(&first, &later(runner)).await;

        assert!((START..START + 60).contains(&secs), "made for {runner}, {event:?}: {secs} s");
    }
}

/// The order may be that of an action, which this version cannot read.
#[tokio::test(start_paused = true)]
async fn each_delivery_that_is_left_to_another_machine_has_a_note_that_it_started_nothing() {
    let (first, bucket) = first_machine(Play::Succeed).await;
    record_by_other(&first, &bucket, sent()).await;
    first.queue.send(sealed(&later(SECOND)));

    first.until("the third delivery", |world| world.queue.notes.lock().unwrap().len() == 3).await;

    let notes: Vec<String> = first.queue.notes.lock().unwrap().keys().cloned().collect();
    let expected = [1, 2, 3].map(|receive| format!("logs/{}/1.{receive}.2000000.unstarted", job_id(1)));
    assert_eq!(notes, expected);
}

#[tokio::test(start_paused = true)]
async fn an_order_that_another_machine_has_started_is_not_refused_before_its_attempts_have_ended() {
    let (first, bucket) = first_machine(Play::Succeed).await;
    first.queue.send(sealed(&order(1, 7)));
    let started = HeldOrder::new(order(1, 7), &first.queue.take().remove(0)).announcement();
    first.queue.messages.lock().unwrap().clear();
    record_by_other(&first, &bucket, started).await;

    let secs = refused_after(&first, &later(FIRST)).await;

    assert!((END..END + 60).contains(&secs), "{secs} s");
    assert!(first.queue.notes.lock().unwrap().is_empty(), "a job that must not start twice may have begun");
}

#[tokio::test(start_paused = true)]
async fn what_this_machine_recorded_itself_and_a_machine_of_an_earlier_version_are_no_reason_to_wait() {
    let (first, bucket) = first_machine(Play::Succeed).await;
    first.agent.audit.record(newer(serde_json::json!({ "event": "resumed", "job": null }))).unwrap();
    first.agent.audit.flush(Duration::from_secs(1)).await.unwrap();
    let earlier = AuditEvent::Joined { host: "i-9".into(), version: "0.0.1".into() };
    record_by_other(&first, &bucket, earlier).await;

    assert_eq!(refused_after(&first, &later(FIRST)).await, 0);
    assert_eq!(first.key.key_id(), key(FIRST));
}

//! Cancels and grants that a machine receives although they are for another machine of the install.

use freehold_protocol::order::Cancel;

use super::copies::{FIRST, SECOND, first_machine, key, next};
use super::*;
use crate::record::audit::memory::Memory;

/// A cancel that names the runner with the key of `seed`.
fn cancel_for(seed: u8, receive: Option<u32>) -> String {
    let cancel: Cancel = Envelope::parse(cancel(receive).as_bytes()).unwrap().peek().unwrap();
    sealed(&Cancel { runner: Some(key(seed)), ..cancel })
}

/// Returns the number of audit records about a cancel.
fn recorded(bucket: &Memory) -> usize {
    let objects = bucket.objects.lock().unwrap();
    let records = objects.iter().filter(|(name, _)| name.ends_with(".json") && !name.contains('/'));
    let events = records.map(|(_, bytes)| Envelope::parse(bytes).unwrap().peek::<AuditRecord>().unwrap().event);
    events.filter(|event| matches!(event, AuditEvent::Cancelled { .. })).count()
}

#[tokio::test(start_paused = true)]
async fn a_cancel_that_another_machine_receives_first_stops_the_attempt() {
    for receive in [None, Some(1)] {
        let (first, bucket) = first_machine(Play::Wait).await;
        first.queue.send(sealed(&order(1, 7)));
        first.until("the start", |world| world.begun() == 1).await;
        let second = next(&first, &bucket);
        first.queue.send(cancel_for(FIRST, receive));

        // The order is leased, so this machine receives only the cancel.
        let received = |world: &World| world.queue.messages.lock().unwrap()[&1].receive == 3;
        second.until("three deliveries", received).await;
        first.until_deleted().await;
        first.agent.audit.flush(Duration::from_secs(1)).await.unwrap();

        assert_eq!(first.sent(), ["1.1 started", "1.1 cancelled"], "{receive:?}");
        assert_eq!(recorded(&bucket), 1, "{receive:?}");
        let is_known = second.agent.journal().state().is_cancelled(&job_id(1), 1, 2);
        assert_eq!(is_known, receive.is_none(), "a cancel of the whole job keeps each machine from starting it");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_for_a_machine_that_is_lost_is_deleted_and_keeps_the_job_from_being_resumed() {
    let (first, bucket) = first_machine(Play::Succeed).await;
    first.queue.send(cancel_for(SECOND, None));
    let begun = Instant::now();
    first.until_deleted().await;
    let elapsed = begun.elapsed();

    first.queue.send(sealed(&order(1, 7)));
    first.until_deleted().await;
    first.agent.audit.flush(Duration::from_secs(1)).await.unwrap();

    assert_eq!((first.begun(), first.sent()), (0, vec!["refused cancelled".to_owned()]));
    assert!(elapsed < Duration::from_secs(limits::LEASE_SECS), "other cancels wait for {elapsed:?}");
    assert_eq!(recorded(&bucket), 1);
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_another_machine_receives_first_reaches_the_job() {
    let (first, bucket) = first_machine(Play::Ask).await;
    first.queue.send(sealed(&order(1, 7)));
    first.until("the request", |world| world.sent().len() == 2).await;
    let second = next(&first, &bucket);
    first.queue.send(sealed(&grant()));

    let received = |world: &World| world.queue.messages.lock().unwrap()[&1].receive == 3;
    second.until("three deliveries", received).await;
    first.until_deleted().await;

    assert_eq!(first.sent(), ["1.1 started", "grant request", "1.1 succeeded"]);
}

#[tokio::test(start_paused = true)]
async fn a_grant_for_an_attempt_that_has_ended_here_is_deleted_at_once() {
    let world = World::new(Play::Succeed);
    world.queue.send(sealed(&order(1, 7)));
    world.until_deleted().await;
    let begun = Instant::now();

    world.queue.send(sealed(&grant()));
    world.until_deleted().await;

    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
}

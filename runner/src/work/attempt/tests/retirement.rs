//! A runner is told that its key was replaced: it hands back its orders, makes a new key and continues.

use ed25519_dalek::SigningKey;
use freehold_protocol::KeyId;
use freehold_protocol::order::Retired;
use serde_json::json;

use super::*;
use crate::testing::{root, sealed_by};
use crate::wire::spool;

fn notice(runner: &KeyId) -> Retired {
    Retired {
        tenant: "acme".parse().unwrap(),
        install: "globex-prod".parse().unwrap(),
        runner: runner.clone(),
        replaced_by: KeyId::of(&SigningKey::from_bytes(&[7; 32]).verifying_key()),
        replaced_at: Timestamp::from_millis(1_900_000),
        issued_at: Timestamp::from_millis(2_000_000),
        not_after: Timestamp::from_millis(5_600_000),
    }
}

impl World {
    fn tell(&self) {
        self.queue.send(sealed(&notice(&self.key.key_id())));
    }

    /// Runs the runner until it has drained, as a shutdown does.
    async fn drained(&self) {
        let beat = Default::default();
        let drain = async {
            poll::run(self.agent.clone(), Default::default()).await;
            self.agent.in_flight.rested().await;
            self.agent.in_flight.stop_all(StopReason::Draining);
            self.agent.in_flight.emptied().await;
        };
        let limit = tokio::time::sleep(Duration::from_secs(3_600));
        tokio::select! {
            () = drain => {}
            () = spool::sender::run(&self.spool, self.taken.as_ref(), &beat) => panic!("the sender ended"),
            () = limit => panic!("it did not drain; reports: {:?}", self.sent()),
        }
    }

    /// Returns the words of the reports that `key` signed.
    pub(super) fn sent_by(&self, key: &KeyId) -> Vec<String> {
        let signers = self.signed_reports().into_iter();
        let signers = signers.filter(|report| {
            !matches!(&report.body, ReportBody::Attempt(attempt)
            if matches!(attempt.event, AttemptEvent::Progress { .. }))
        });
        let mine: Vec<bool> = signers.map(|report| report.runner == *key).collect();
        self.sent().into_iter().zip(mine).filter(|(_, mine)| *mine).map(|(word, _)| word).collect()
    }

    /// Returns the numbers and the signers of the audit records, whose chain must be whole.
    fn audited(&self) -> Vec<(u64, KeyId)> {
        let text = std::fs::read_to_string(self.state.path().join("audit.jsonl")).unwrap();
        let mut head = Digest::of(b"");
        let mut records = Vec::new();
        for line in text.lines() {
            let record: AuditRecord = Envelope::parse(line.as_bytes()).unwrap().peek().unwrap();
            assert_eq!(record.previous, head);
            head = Digest::of(line.as_bytes());
            records.push((record.seq, record.runner));
        }
        records
    }
}

#[tokio::test(start_paused = true)]
async fn it_hands_back_what_the_next_runner_can_resume_and_continues_under_a_new_key() {
    let world = World::new(Play::Wait);
    let old = world.key.key_id();
    world.queue.send(sealed(&order(1, 7)));
    world.until("the start", |world| world.begun() == 1).await;

    world.tell();
    world.drained().await;
    let left = world.queue.messages.lock().unwrap().len();
    let sent = world.sent();
    let world = world.restarted();
    *world.stage.play.lock().unwrap() = Play::Succeed;
    world.until_deleted().await;

    assert_eq!((left, sent), (1, vec!["1.1 started".to_owned()]), "the order is left, the notice is not");
    let new = world.key.key_id();
    assert_ne!(old, new);
    assert_eq!(world.sent_by(&new), ["1.2 started", "1.2 succeeded"]);
    assert_eq!(world.sent_by(&old), ["1.1 started"]);
    let signers = world.audited();
    let change = signers.iter().position(|(_, signer)| *signer == new).expect("the new key signed no record");
    assert_eq!(signers.iter().map(|(seq, _)| *seq).collect::<Vec<_>>(), (1..=signers.len() as u64).collect::<Vec<_>>());
    assert!(signers[..change].iter().all(|(_, signer)| *signer == old) && change >= 2, "{signers:?}");
}

#[tokio::test(start_paused = true)]
async fn an_action_ends_and_its_outcome_is_reported_under_the_new_key_without_a_second_run() {
    let world = World::new(Play::Minute);
    let old = world.key.key_id();
    world.queue.send(sealed(&action()));
    world.until("the start", |world| world.begun() == 1).await;

    world.tell();
    world.drained().await;
    let sent = world.sent();
    let world = world.restarted();
    world.until_deleted().await;

    assert_eq!(sent, ["1.1 started"], "an end under the old key would be refused");
    assert_eq!((world.begun(), world.sent_by(&world.key.key_id())), (1, vec!["1.2 succeeded".to_owned()]));
    assert_ne!(old, world.key.key_id());
}

#[tokio::test(start_paused = true)]
async fn an_outcome_whose_kept_outputs_were_not_copied_is_not_reported_at_a_later_delivery() {
    let world = World::new(Play::Keep);
    let artifact = json!({ "media_type": "", "digest": Digest::of(b"a"), "manifests": [], "blobs": [] });
    let image = json!({ "kind": "container_image", "component": "net", "artifact": artifact });
    world.queue.send(sealed(&Order { work: serde_json::from_value(image).unwrap(), ..order(1, 7) }));
    world.until("the start", |world| world.begun() == 1).await;
    world.tell();
    world.drained().await;

    // This machine has no bucket, so the copy fails. Orders would name outputs of delivery 1.2, which do not exist.
    let world = world.restarted();
    world.until("four deliveries", |world| world.queue.messages.lock().unwrap()[&0].receive == 4).await;

    assert_eq!((world.begun(), world.sent()), (1, vec!["1.1 started".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn it_starts_no_order_after_the_notice() {
    let world = World::new(Play::Succeed);
    world.tell();
    world.queue.send(sealed(&order(1, 7)));
    world.queue.send(sealed(&Order { job: job_id(2), group: "action:other".parse().unwrap(), ..action() }));

    world.drained().await;

    assert_eq!((world.begun(), world.sent()), (0, Vec::new()));
    assert_eq!(world.queue.messages.lock().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_action_that_it_hands_back_unstarted_is_started_once_by_the_other_machine() {
    let first = World::new(Play::Succeed);
    first.tell();
    first.queue.send(sealed(&action()));
    first.drained().await;

    let second = first.beside();
    second.until_deleted().await;

    assert_eq!((second.begun(), second.sent()), (1, vec!["1.2 started".to_owned(), "1.2 succeeded".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn an_action_goes_through_several_machines_unstarted() {
    let mut world = World::new(Play::Succeed);
    world.queue.send(sealed(&action()));
    for _ in 0..3 {
        world.agent.drain.advance(Phase::Draining);
        let deliveries = world.queue.take();
        // The order waits for its turn when the runner stops.
        let turn = world.agent.admission.ticket(&action().group);
        let _held = turn.admitted().await;
        deliveries.into_iter().for_each(|delivery| poll::take(&world.agent, delivery));
        world.agent.in_flight.stop_all(StopReason::Draining);
        world.agent.in_flight.emptied().await;
        world = world.beside();
    }

    world.until_deleted().await;

    assert_eq!(world.begun(), 1);
    assert_eq!(world.sent(), ["1.4 started", "1.4 succeeded"]);
}

#[tokio::test(start_paused = true)]
async fn without_a_note_of_the_last_delivery_an_action_ends_as_interrupted() {
    for noted in ["", "logs/job_00000000000000000001/1.2.unstarted", "logs/job_00000000000000000001/2.1.unstarted"] {
        let first = World::new(Play::Succeed);
        first.queue.notes_closed.store(true, Ordering::Relaxed);
        first.queue.notes.lock().unwrap().insert(noted.to_owned(), "some text".to_owned());
        first.tell();
        first.queue.send(sealed(&action()));
        first.drained().await;

        let second = first.beside();
        second.until_deleted().await;

        assert_eq!((second.begun(), second.sent()), (0, vec!["1.2 interrupted".to_owned()]), "{noted}");
    }
}

/// A runner of an earlier version names no message in its note.
#[tokio::test(start_paused = true)]
async fn a_note_about_another_message_with_the_order_starts_nothing() {
    for (name, message, end) in [
        (".2000000", " of the message sent at 2000000", "1.2 succeeded"),
        (".1999999", " of the message sent at 1999999", "1.2 interrupted"),
        ("", "", "1.2 succeeded"),
    ] {
        let job = job_id(1);
        let note =
            format!("No attempt at job {job} had started when its delivery 1.1{message} went back to the queue.\n");
        let first = World::new(Play::Succeed);
        first.queue.notes_closed.store(true, Ordering::Relaxed);
        first.queue.notes.lock().unwrap().insert(format!("logs/{job}/1.1{name}.unstarted"), note);
        first.tell();
        first.queue.send(sealed(&action()));
        first.drained().await;

        let second = first.beside();
        second.until_deleted().await;

        assert_eq!(second.sent().last().map(String::as_str), Some(end), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_note_of_a_delivery_before_the_last_one_starts_nothing() {
    let first = World::new(Play::Wait);
    first.tell();
    first.queue.send(sealed(&action()));
    first.drained().await;
    let second = first.beside();
    second.until("the start", |world| world.begun() == 1).await;
    second.agent.in_flight.stop_all(StopReason::LeaseLost);
    second.until("the stop", |world| !world.stage.stopped.lock().unwrap().is_empty()).await;

    let third = second.beside();
    third.until_deleted().await;

    assert_eq!((third.begun(), third.sent()), (1, vec!["1.2 started".to_owned(), "1.3 interrupted".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn a_notice_that_is_forged_foreign_stale_or_for_another_key_changes_nothing() {
    let world = World::new(Play::Succeed);
    let own = notice(&world.key.key_id());
    let stranger = SigningKey::from_bytes(&[9; 32]);
    let other = KeyId::of(&stranger.verifying_key());
    let before = std::fs::read(world.state.path().join("runner.key")).unwrap();

    let notices = [
        sealed_by(&stranger, "acme", &own),
        sealed_by(&root(), "other", &own),
        Envelope::seal(&own, &[&stranger]).unwrap().to_json().unwrap(),
        sealed(&Retired { install: "other".parse().unwrap(), ..own.clone() }),
        sealed(&Retired { tenant: "other".parse().unwrap(), ..own.clone() }),
        sealed(&Retired { not_after: Timestamp::from_millis(1_999_999), ..own.clone() }),
        sealed(&notice(&other)),
    ];
    notices.into_iter().for_each(|notice| world.queue.send(notice));
    world.queue.send(sealed(&order(1, 7)));
    world.until("all but the notice for another key", |world| world.queue.len() == 1).await;

    assert!(!world.agent.is_retired() && world.begun() == 1);
    assert_eq!(std::fs::read(world.state.path().join("runner.key")).unwrap(), before);
    assert!(!world.state.path().join("retired.json").exists());
    assert_eq!(world.restarted().key.key_id(), own.runner);
}

#[tokio::test(start_paused = true)]
async fn a_notice_for_another_runner_is_left_to_it_until_it_expires() {
    let world = World::new(Play::Succeed);
    let other = KeyId::of(&SigningKey::from_bytes(&[9; 32]).verifying_key());
    let notice = notice(&other);
    world.agent.clock.observe(notice.issued_at, Instant::now());
    let begun = Instant::now();
    world.queue.send_in(Retired::MESSAGE_GROUP, sealed(&notice), notice.issued_at);

    world.until("nine deliveries", |world| world.queue.messages.lock().unwrap()[&0].receive == 9).await;
    world.until_deleted().await;

    let left = Duration::from_millis(notice.not_after.since(notice.issued_at)).checked_sub(begun.elapsed()).unwrap();
    assert!((1..=60).contains(&left.as_secs()), "{left:?} before its end");
    assert_eq!(world.sent(), Vec::<String>::new(), "an expired message would be refused");
}

/// Somebody sends a notice again where cancels or orders would wait behind it.
#[tokio::test(start_paused = true)]
async fn a_notice_for_another_runner_in_another_message_group_is_deleted_at_once() {
    let world = World::new(Play::Succeed);
    let other = KeyId::of(&SigningKey::from_bytes(&[9; 32]).verifying_key());
    let begun = Instant::now();
    world.queue.send_in("control", sealed(&notice(&other)), Timestamp::from_millis(2_000_000));

    world.until_deleted().await;

    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn the_notice_that_a_former_key_got_means_nothing_to_the_new_key() {
    let world = World::new(Play::Succeed);
    let replayed = sealed(&notice(&world.key.key_id()));
    world.tell();
    world.drained().await;

    let world = world.restarted();
    let second = world.key.key_id();
    world.queue.send(replayed);
    let is_received = |world: &World| world.queue.messages.lock().unwrap().values().all(|one| one.receive > 1);
    world.until("two deliveries", is_received).await;

    assert!(!world.agent.is_retired());
    assert_eq!(world.restarted().key.key_id(), second);
}

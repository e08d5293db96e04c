//! What starts, and what is recorded, when the customer's bucket does not take the records.

use freehold_iam_proxy::{Change, Recorder as _, Stage};

use super::*;
use crate::operate::start;
use crate::record::audit;
use crate::record::audit::memory::{Fate, Memory};
use crate::wire::inbox::Outbox as _;
use crate::wire::sent_reports::{RecordedOutbox, Texts};
use crate::wire::spool::Class;

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

    let (message, ()) = tokio::join!(attempt.start(false, None), async {
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

#[tokio::test(start_paused = true)]
async fn the_signed_order_of_a_job_that_starts_is_in_the_bucket_and_without_it_no_job_starts() {
    let (taking, refusing) = (Arc::new(Memory::default()), Arc::new(Memory::default()));
    *refusing.messages.lock().unwrap() = Fate::Fails;
    let text = sealed(&order(1, 7));
    let mut begun = Vec::new();

    for bucket in [&taking, &refusing] {
        let world = World::new(Play::Succeed).with_bucket(bucket);
        world.queue.send(text.clone());
        world.until_deleted().await;
        begun.push(world.begun());
    }

    let name = format!("orders/{}.json", Digest::of(text.as_bytes()).hex());
    assert_eq!(taking.objects.lock().unwrap().get(&name), Some(&text.into_bytes()));
    assert_eq!(begun, [1, 0]);
    assert_eq!(refusing.events(), ["i-3", "failed"], "a record names an order that is not in the bucket");
}

/// Anybody who may send to the queue can send this, without a signature.
#[tokio::test(start_paused = true)]
async fn a_message_with_a_name_as_long_as_itself_does_not_stop_the_chain() {
    let bucket = Arc::new(Memory::default());
    let world = World::new(Play::Succeed).with_bucket(&bucket);

    world.queue.send(format!("{{\"{}\":1}}", "x".repeat(1_000_000)));
    world.until_deleted().await;
    world.queue.send(sealed(&order(1, 7)));
    world.until_deleted().await;

    assert_eq!((world.begun(), world.sent()[1..].to_vec()), (1, vec!["1.1 started".into(), "1.1 succeeded".into()]));
    let Some(ReportBody::Refused(refusal)) = world.reports().into_iter().next() else { panic!("{:?}", world.sent()) };
    assert!((4_000..5_000).contains(&refusal.detail.len()), "{}", refusal.detail.len());
}

#[tokio::test(start_paused = true)]
async fn no_record_states_the_start_of_a_job_that_is_stopped_while_its_order_waits_for_the_bucket() {
    let bucket = Arc::new(Memory::default());
    *bucket.messages.lock().unwrap() = Fate::Hangs;
    let world = World::new(Play::Succeed).with_bucket(&bucket);
    let held = held(&world);
    let attempt = Attempt { agent: &world.agent, held: &held };

    let (message, ()) = tokio::join!(attempt.start(false, None), async {
        tokio::time::sleep(PATIENCE / 2).await;
        held.stop(StopReason::Draining);
    });
    world.agent.audit.flush(PATIENCE).await.unwrap();

    assert_eq!((message, world.begun()), (Message::GiveBack, 0));
    assert_eq!(bucket.events(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_report_is_recorded_once_before_it_leaves_and_its_text_follows_into_the_bucket() {
    let bucket = Arc::new(Memory::default());
    let world = World::new(Play::Succeed).with_bucket(&bucket);
    let folder = world.state.path().join("sent");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("1.json.new"), "of a crash").unwrap();
    let texts = Arc::new(Texts::open(world.state.path()).unwrap());
    assert!(!folder.join("1.json.new").exists());
    let outbox = RecordedOutbox::new(world.taken.clone(), world.agent.audit.clone(), texts.clone());
    let report = sealed(&order(1, 7));
    let being_written = folder.join("2.json.new");
    std::fs::write(&being_written, "half").unwrap();

    world.taken.deaf.store(true, Ordering::Relaxed);
    let lost = outbox.send(std::slice::from_ref(&report)).await;
    world.taken.deaf.store(false, Ordering::Relaxed);
    outbox.send(std::slice::from_ref(&report)).await.unwrap();
    world.agent.audit.flush(PATIENCE).await.unwrap();
    texts.flush(&world.agent.audit, &Default::default()).await.unwrap();

    assert!(lost.is_err());
    let name = format!("reports/{}.json", Digest::of(report.as_bytes()).hex());
    let objects = bucket.objects.lock().unwrap().clone();
    assert_eq!(objects.get(&name), Some(&report.into_bytes()));
    let sent = objects.iter().filter(|(name, _)| freehold_protocol::audit::record_number(name).is_some());
    let events = sent.map(|(_, bytes)| Envelope::parse(bytes).unwrap().peek::<AuditRecord>().unwrap().event);
    let named: Vec<AuditEvent> = events.filter(|event| matches!(event, AuditEvent::Sent { .. })).collect();
    assert_eq!(named.len(), 1, "{named:?}");
    let left: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(left, [being_written], "what is being written is left alone");
}

#[tokio::test(start_paused = true)]
async fn reports_texts_and_records_that_cannot_be_sent_hold_a_drained_runner_for_20_seconds_together() {
    let bucket = Arc::new(Memory::default());
    *bucket.always.lock().unwrap() = Fate::Hangs;
    let world = World::new(Play::Succeed).with_bucket(&bucket);
    let texts = Texts::open(world.state.path()).unwrap();
    world.agent.audit.record(AuditEvent::Sent { reports: Vec::new() }).unwrap();
    world.spool.add("a report", Class::Keep, true).unwrap();
    let begun = Instant::now();

    start::flush(&world.agent, (&world.spool, &texts)).await;

    assert_eq!(begun.elapsed(), Duration::from_secs(20));
}

#[tokio::test(start_paused = true)]
async fn the_signed_order_of_a_job_that_did_not_start_is_in_the_bucket_and_the_record_of_its_end_names_it() {
    let bucket = Arc::new(Memory::default());
    let world = World::new(Play::Succeed).with_bucket(&bucket);
    let text = sealed(&action());
    world.queue.send(text.clone());
    // An earlier delivery may have begun on a machine that is lost: this one ends as interrupted.
    world.queue.messages.lock().unwrap().values_mut().for_each(|message| message.receive = 1);

    world.until_deleted().await;

    let objects = bucket.objects.lock().unwrap().clone();
    let records = objects.iter().filter(|(name, _)| freehold_protocol::audit::record_number(name).is_some());
    let events = records.map(|(_, bytes)| Envelope::parse(bytes).unwrap().peek::<AuditRecord>().unwrap().event);
    let ended: Vec<_> = events
        .filter_map(|event| match event {
            AuditEvent::Ended { result, order, .. } => Some((result, order)),
            other => {
                assert!(!matches!(other, AuditEvent::Started { .. }), "{other:?}");
                None
            }
        })
        .collect();
    let digest = Digest::of(text.as_bytes());
    assert_eq!(ended, [("interrupted".to_owned(), Some(digest.clone()))]);
    assert_eq!(objects.get(&format!("orders/{}.json", digest.hex())), Some(&text.into_bytes()));
}

#[tokio::test(start_paused = true)]
async fn the_audit_says_who_cancelled_a_job_and_why_as_the_signed_cancel_does() {
    let world = World::new(Play::Succeed);

    world.queue.send(cancel(None));
    world.until_deleted().await;

    let trail = std::fs::read_to_string(world.state.path().join("audit.jsonl")).unwrap();
    let records = trail.lines().map(|line| Envelope::parse(line.as_bytes()).unwrap().peek::<AuditRecord>().unwrap());
    let cancelled = records.filter_map(|record| match record.event {
        AuditEvent::Cancelled { asked_by, asked_why, .. } => Some((asked_by, asked_why)),
        _ => None,
    });
    let expected = (Some(AskedBy::Sweep), Some("the wrong week".to_owned()));
    assert_eq!(cancelled.collect::<Vec<_>>(), [expected]);
}

//! Whole attempts against a queue in memory that leases as SQS does, with the real journal, spool and audit trail.

mod audit;
mod change_windows;
mod copies;
mod enrolment;
mod full_disk;
mod given_back;
mod missing_values;
mod not_understood;
mod other_machine;
mod queues;
mod retirement;
mod revocation;
mod standby;
mod strangers;
mod waiting;
mod world;

use std::sync::atomic::Ordering;

use freehold_protocol::audit::{AuditEvent, AuditRecord};
use freehold_protocol::grant::{ArtifactGrant, GrantAnswer};
use freehold_protocol::order::{AskedBy, Order};
use freehold_protocol::report::{AttemptEvent, Fence, ReportBody};
use freehold_protocol::{Digest, Envelope, GrantId, Timestamp};
use tokio::time::Instant;

use super::*;
use crate::config::{Config, Role};
use crate::job::StopReason;
use crate::testing::{config, job_id, order, sealed};
use crate::work::poll;
use world::{Play, World, action, cancel};

#[tokio::test(start_paused = true)]
async fn an_order_is_kept_until_the_queue_has_the_end_of_its_job() {
    let world = World::new(Play::Succeed);
    world.taken.deaf.store(true, Ordering::Relaxed);
    world.queue.send(sealed(&order(1, 7)));

    world.until("the end of the job", |world| world.sent().contains(&"1.1 succeeded".to_owned())).await;
    let kept = !world.queue.is_empty();
    world.taken.deaf.store(false, Ordering::Relaxed);
    world.until_deleted().await;

    assert!(kept, "a machine lost now would have taken the outcome along");
    assert_eq!((world.begun(), world.spool.len()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn an_order_is_done_reported_and_deleted() {
    let world = World::new(Play::Succeed);
    world.queue.send(sealed(&order(1, 7)));

    world.until_deleted().await;

    assert_eq!(world.sent(), ["1.1 started", "1.1 succeeded"]);
    assert_eq!(std::fs::read_dir(world.state.path().join("work")).unwrap().count(), 0);
    let last = world.reports().pop();
    assert!(matches!(last, Some(ReportBody::Attempt(report)) if report.seq == 2
        && matches!(&report.event, AttemptEvent::Finished { log, .. } if log == "working\n")));
}

#[tokio::test(start_paused = true)]
async fn a_job_whose_message_was_not_deleted_is_reported_again_and_not_done_again() {
    let world = World::new(Play::Succeed);
    world.queue.send(sealed(&action()));
    world.until_deleted().await;

    let world = world.restarted();
    world.queue.send(sealed(&action()));
    world.until_deleted().await;

    assert_eq!(world.begun(), 1);
    assert_eq!(world.sent().last().unwrap(), "1.1 succeeded");
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_cannot_renew_stops_its_job_before_the_lease_ends_and_says_nothing() {
    let world = World::new(Play::Wait);
    world.queue.send(sealed(&order(1, 7)));
    world.until("the start", |world| world.begun() == 1).await;
    let started = Instant::now();

    world.queue.deaf.store(true, Ordering::Relaxed);
    world.until("the stop", |world| !world.stage.stopped.lock().unwrap().is_empty()).await;

    assert!(started.elapsed() < Duration::from_secs(limits::LEASE_SECS));
    assert_eq!(*world.stage.stopped.lock().unwrap(), [StopReason::LeaseLost]);
    assert_eq!(world.sent(), ["1.1 started"]);
    assert!(!world.queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_is_switched_off_stops_its_job_and_resumes_the_order_when_it_is_on_again() {
    let world = World::new(Play::Wait);
    world.queue.send(sealed(&order(1, 7)));
    world.until("the start", |world| world.begun() == 1).await;

    world.switch(false);
    world.queue.send(sealed(&order(2, 8)));
    world.until("the stop", |world| !world.stage.stopped.lock().unwrap().is_empty()).await;
    let day = Instant::now() + Duration::from_secs(50 * 60);
    world.until("most of an hour", |_| Instant::now() > day).await;
    let (begun, waiting) = (world.begun(), world.queue.len());
    *world.stage.play.lock().unwrap() = Play::Succeed;
    world.switch(true);
    world.until_deleted().await;

    assert_eq!(*world.stage.stopped.lock().unwrap(), [StopReason::SwitchedOff]);
    assert_eq!((begun, waiting, world.agent.fatal.get()), (1, 2, None));
    let sent = world.sent();
    assert_eq!(sent[..1], ["1.1 started"]);
    assert!(sent.contains(&"1.2 succeeded".to_owned()) && sent.contains(&"1.1 succeeded".to_owned()), "{sent:?}");
}

#[tokio::test(start_paused = true)]
async fn a_job_that_fails_because_the_runner_is_off_has_not_failed() {
    let world = World::new(Play::Fail);
    world.account.set("EnableRunner", "false");
    world.queue.send(sealed(&order(1, 7)));
    world.until("the start", |world| world.begun() == 1).await;

    world.account.set("EnableRunner", "true");
    *world.stage.play.lock().unwrap() = Play::Succeed;
    world.until_deleted().await;

    assert_eq!(world.sent(), ["1.1 started", "1.2 started", "1.2 succeeded"]);
}

#[tokio::test(start_paused = true)]
async fn an_action_that_the_kill_switch_ends_is_reported_as_interrupted_and_not_done_again() {
    let world = World::new(Play::Wait);
    world.queue.send(sealed(&action()));
    world.until("the start", |world| world.begun() == 1).await;

    world.switch(false);
    world.until("the end", |world| world.sent().len() == 3).await;
    world.switch(true);
    world.until_deleted().await;

    assert_eq!(world.begun(), 1);
    assert_eq!(world.sent()[..3], ["1.1 started", "away SwitchedOff", "1.1 interrupted"]);
}

#[tokio::test(start_paused = true)]
async fn an_action_that_waited_for_its_turn_when_the_runner_was_switched_off_is_done_later() {
    let world = World::new(Play::Wait);
    world.queue.send(sealed(&order(1, 7)));
    world.queue.send(sealed(&Order { redelivery: Redelivery::Interrupted, ..order(2, 8) }));
    world.until("the start", |world| world.begun() == 1).await;

    world.switch(false);
    world.until("the stop", |world| !world.stage.stopped.lock().unwrap().is_empty()).await;
    *world.stage.play.lock().unwrap() = Play::Succeed;
    world.switch(true);
    world.until_deleted().await;

    let mut sent = world.sent();
    sent.sort_unstable();
    assert_eq!(
        sent,
        ["1.1 started", "1.2 started", "1.2 started", "1.2 succeeded", "1.2 succeeded", "away SwitchedOff"]
    );
}

#[tokio::test(start_paused = true)]
async fn after_a_lost_lease_a_restartable_job_resumes_with_the_higher_fence() {
    let world = World::new(Play::Wait);
    world.queue.send(sealed(&order(1, 7)));
    world.until("the start", |world| world.begun() == 1).await;
    world.queue.deaf.store(true, Ordering::Relaxed);
    world.until("the stop", |world| !world.stage.stopped.lock().unwrap().is_empty()).await;

    world.queue.deaf.store(false, Ordering::Relaxed);
    *world.stage.play.lock().unwrap() = Play::Succeed;
    world.until_deleted().await;

    assert_eq!(world.sent(), ["1.1 started", "1.2 started", "1.2 succeeded"]);
}

#[tokio::test(start_paused = true)]
async fn an_action_whose_runner_was_killed_ends_interrupted_and_is_not_started_again() {
    let world = World::new(Play::Wait);
    world.queue.send(sealed(&action()));
    world.until("the start", |world| world.begun() == 1).await;
    world.agent.in_flight.stop_all(StopReason::LeaseLost);
    world.until("the stop", |world| !world.stage.stopped.lock().unwrap().is_empty()).await;

    let world = world.restarted();
    world.until_deleted().await;

    assert_eq!(world.begun(), 1);
    assert_eq!(world.sent(), ["1.1 started", "1.2 interrupted"]);
}

#[tokio::test(start_paused = true)]
async fn a_running_job_is_cancelled_at_once() {
    let world = World::new(Play::Wait);
    world.queue.send(sealed(&order(1, 7)));
    world.until("the start", |world| world.begun() == 1).await;

    world.queue.send(cancel(None));
    world.until_deleted().await;

    assert_eq!(world.sent(), ["1.1 started", "1.1 cancelled"]);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_that_comes_first_keeps_the_order_from_starting_even_after_a_restart() {
    let world = World::new(Play::Succeed);
    world.queue.send(cancel(None));
    world.until_deleted().await;

    let world = world.restarted();
    world.queue.send(sealed(&order(1, 7)));
    world.until_deleted().await;

    assert_eq!(world.begun(), 0);
    assert_eq!(world.sent(), ["refused cancelled"]);
}

#[tokio::test(start_paused = true)]
async fn forged_expired_and_replayed_orders_are_refused_reported_and_deleted_and_only_the_expired_one_is_given_back() {
    let world = World::new(Play::Succeed);
    world.queue.send(sealed(&order(2, 8)));
    world.until_deleted().await;
    let expired = Order { not_after: Timestamp::from_millis(1_999_999), ..order(3, 9) };

    for body in ["nonsense".to_owned(), sealed(&expired), sealed(&order(1, 7))] {
        world.queue.send(body);
        world.until_deleted().await;
    }

    assert_eq!(world.begun(), 1);
    assert_eq!(world.sent()[2..], ["refused malformed", "given back expired", "refused replayed"]);
}

#[tokio::test(start_paused = true)]
async fn orders_of_one_group_run_one_after_the_other() {
    let world = World::new(Play::Wait);
    world.queue.send(sealed(&order(1, 7)));
    world.queue.send(sealed(&order(2, 8)));
    world.until("the start", |world| world.begun() == 1).await;
    let begun = Instant::now();
    world.until("a minute", |_| begun.elapsed() > Duration::from_secs(60)).await;
    assert_eq!(world.begun(), 1);

    *world.stage.play.lock().unwrap() = Play::Succeed;
    world.agent.in_flight.cancel(&job_id(1), 1, None);
    world.until_deleted().await;

    assert_eq!(world.sent(), ["1.1 started", "1.1 cancelled", "1.1 started", "1.1 succeeded"]);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_takes_too_long_is_stopped_as_failed() {
    let world = World::new(Play::Wait);
    world.queue.send(sealed(&order(1, 7)));
    let started = Instant::now();

    world.until_deleted().await;

    assert!(started.elapsed() >= Duration::from_secs(600) && started.elapsed() < Duration::from_secs(605));
    assert_eq!(world.sent(), ["1.1 started", "1.1 failed (partial)"]);
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_job_ends_that_job_only() {
    let world = World::new(Play::Panic);
    world.queue.send(sealed(&order(1, 7)));

    world.until_deleted().await;

    assert_eq!(world.sent(), ["1.1 started", "1.1 failed (partial)"]);
}

/// Returns the answer to the request of the first attempt at job 1.
fn grant() -> ArtifactGrant {
    let (artifact, fence) = (Digest::of(b"artifact"), Fence { dispatch: 1, receive: 1 });
    ArtifactGrant {
        tenant: "acme".parse().unwrap(),
        install: "globex-prod".parse().unwrap(),
        grant: GrantId::derive(&job_id(1), 1, 1, &artifact),
        job: job_id(1),
        fence,
        artifact,
        issued_at: Timestamp::from_millis(2_000_000),
        not_after: Timestamp::from_millis(3_000_000),
        answer: GrantAnswer::Granted { manifests: Vec::new(), blobs: Vec::new() },
    }
}

#[tokio::test(start_paused = true)]
async fn an_artifact_is_asked_for_and_the_answer_reaches_the_job() {
    let world = World::new(Play::Ask);
    world.queue.send(sealed(&order(1, 7)));
    world.until("the request", |world| world.sent().len() == 2).await;

    world.queue.send(sealed(&grant()));
    world.until_deleted().await;

    assert_eq!(world.sent(), ["1.1 started", "grant request", "1.1 succeeded"]);
}

#[tokio::test(start_paused = true)]
async fn a_release_that_the_customer_has_not_agreed_to_ends_blocked_and_is_written_down() {
    let mut world = World::new(Play::Succeed);
    let agent = Arc::get_mut(&mut world.agent).unwrap();
    let consent = Some(Digest::of(b"agreed to"));
    // The refusal comes before credentials are asked for: this runner has a role for no mode.
    agent.config = Arc::new(Config { accepted_contract: consent, ..config("/state", Role::Install) });
    world.queue.send(sealed(&order(1, 7)));

    world.until_deleted().await;

    assert_eq!((world.begun(), world.sent()), (0, vec!["1.1 blocked".to_owned()]));
    let Some(ReportBody::Attempt(report)) = world.reports().pop() else { panic!("no report") };
    let AttemptEvent::Finished { outcome: Outcome::Blocked { block, reason }, .. } = report.event else {
        panic!("{report:?}")
    };
    assert_eq!(block, freehold_protocol::report::Block::ContractNotAccepted);
    assert!(reason.contains("does not name the contract"), "{reason}");
    let audit = std::fs::read_to_string(world.state.path().join("audit.jsonl")).unwrap();
    assert_eq!(audit.lines().count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_runner_going_down_leaves_what_waits_to_the_next_one() {
    let world = World::new(Play::Succeed);
    world.agent.drain.advance(Phase::Draining);
    world.queue.send(sealed(&order(1, 7)));
    for delivery in world.queue.take() {
        poll::take(&world.agent, delivery);
    }

    tokio::time::sleep(Duration::from_secs(60)).await;
    world.agent.in_flight.stop_all(StopReason::Draining);
    world.agent.in_flight.emptied().await;

    assert_eq!(world.begun(), 0);
    assert_eq!(world.queue.take().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_job_without_output_shows_every_minute_that_it_is_at_work() {
    let world = World::new(Play::Wait);
    world.queue.send(sealed(&order(1, 7)));

    world.until_deleted().await;

    let progress = |body: &ReportBody| matches!(body, ReportBody::Attempt(report) if matches!(report.event, AttemptEvent::Progress { .. }));
    let count = world.reports().iter().filter(|body| progress(body)).count();
    assert!((9..=12).contains(&count), "{count}");
}

/// Returns the events of the audit records, in few words.
fn audited(world: &World) -> Vec<String> {
    let text = std::fs::read_to_string(world.state.path().join("audit.jsonl")).unwrap_or_default();
    let records = text.lines().map(|line| Envelope::parse(line.as_bytes()).unwrap().peek::<AuditRecord>().unwrap());
    let word = |record: AuditRecord| match record.event {
        AuditEvent::Started { fence, .. } => format!("{fence} started"),
        AuditEvent::Ended { fence, result, .. } => format!("{fence} {result}"),
        other => format!("{other:?}"),
    };
    records.map(word).collect()
}

#[tokio::test(start_paused = true)]
async fn the_audit_says_of_no_job_that_it_started_when_it_was_stopped_before() {
    let world = World::new(Play::Succeed);
    world.queue.send(sealed(&order(1, 7)));
    let held = Arc::new(HeldOrder::new(order(1, 7), &world.queue.take().remove(0)));
    held.stop(StopReason::Draining);
    let attempt = Attempt { agent: &world.agent, held: &held };

    let before = (attempt.start(false, None).await, audited(&world));
    // The stop comes while the record is written to the customer's bucket.
    world.agent.audit.record(attempt.held.announcement()).unwrap();
    let after = (attempt.stopped_after_announcement(StopReason::Draining).await, audited(&world));

    assert_eq!(before, (Message::GiveBack, Vec::new()));
    assert_eq!(after, (Message::GiveBack, vec!["1.1 started".into(), "1.1 put back before the start".into()]));
    assert_eq!(world.begun(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_audit_names_an_order_by_the_digest_of_what_was_signed_whatever_is_attached() {
    let bare = sealed(&order(1, 7));
    let mut envelope = Envelope::parse(bare.as_bytes()).unwrap();
    envelope.attached = vec!["a sealed value".to_owned()];
    let expired = Order { not_after: Timestamp::from_millis(1_500_000), ..order(2, 8) };
    let mut late = Envelope::parse(sealed(&expired).as_bytes()).unwrap();
    let late_bare = late.to_json().unwrap();
    late.attached = vec!["a sealed value".to_owned()];
    let world = World::new(Play::Succeed);
    world.queue.send(envelope.to_json().unwrap());
    world.queue.send(late.to_json().unwrap());

    world.until_deleted().await;

    let trail = std::fs::read_to_string(world.state.path().join("audit.jsonl")).unwrap();
    let records = trail.lines().map(|line| Envelope::parse(line.as_bytes()).unwrap().peek::<AuditRecord>().unwrap());
    let (mut started, mut refused) = (Vec::new(), Vec::new());
    for record in records {
        match record.event {
            AuditEvent::Started { order, .. } => started.push(order),
            AuditEvent::Refused { refusal, .. } => refused.push(refusal.message),
            _ => {}
        }
    }
    assert_eq!((started, refused), (vec![Digest::of(bare.as_bytes())], vec![Digest::of(late_bare.as_bytes())]));
}

#[tokio::test(start_paused = true)]
async fn the_audit_says_who_asked_for_a_job_as_its_signed_order_does() {
    let ana = AskedBy::Caller { arn: "arn:aws:sts::111111111111:assumed-role/deployer/ana".parse().unwrap() };
    let world = World::new(Play::Succeed);
    world.queue.send(sealed(&Order { asked_by: Some(ana.clone()), ..order(1, 7) }));
    // An order of an earlier control plane.
    world.queue.send(sealed(&order(2, 8)));

    world.until_deleted().await;

    let trail = std::fs::read_to_string(world.state.path().join("audit.jsonl")).unwrap();
    let records = trail.lines().map(|line| Envelope::parse(line.as_bytes()).unwrap().peek::<AuditRecord>().unwrap());
    let started = records.filter_map(|record| match record.event {
        AuditEvent::Started { job, asked_by, .. } => Some((job, asked_by)),
        _ => None,
    });
    assert_eq!(started.collect::<Vec<_>>(), [(job_id(1), Some(ana)), (job_id(2), None)]);
}

//! Reports of a runner whose key another runner's key replaced.

use super::*;

#[tokio::test]
async fn reports_of_a_replaced_runner_are_refused() {
    let (world, _, job) = deploying(Behaviour::Hangs).await;
    let old = world.runners["globex"].clone();
    let new = Runner::new(&world.tenant, "globex", queue_url("globex"), 21);
    accept(&world, &new.hello(world.now())).await.unwrap();
    let before = world.believed();

    let late = accept(&world, &old.says(&job, FIRST, 9, finished(success()), world.now())).await.unwrap();
    let back = accept(&world, &old.hello(world.now())).await.unwrap();

    assert!(matches!((late, back), (Accepted::Refused(_), Accepted::Refused(_))));
    assert_eq!(world.believed(), before);
    assert_eq!(world.refusals().len(), 2);
    let key: PublicKey = old.key.verifying_key().into();
    let notice = DispatchMessage::Retired { install: globex(), runner: key.key_id(), at: world.now() };
    assert_eq!(
        world.memory.take_dispatched(),
        [notice.clone(), notice],
        "the second one has the same deduplication id"
    );
    accept(&world, &new.says(&job, SECOND, 1, finished(success()), world.now())).await.unwrap();
    assert!(matches!(world.job(&job).await.state, JobState::Succeeded { fence: SECOND, .. }));
}

#[tokio::test]
async fn a_late_hello_of_a_dead_machine_does_not_retire_the_living_runner() {
    let (world, _, job) = deploying(Behaviour::Hangs).await;
    let (dead, living) = [21, 22].map(|seed| Runner::new(&world.tenant, "globex", queue_url("globex"), seed)).into();
    let (sent_by_dead, late) = (world.now(), dead.hello(world.now()));
    world.memory.advance_secs(60);
    accept(&world, &living.hello(world.now())).await.unwrap();

    let refused = world.accept_report().accept(&late, sent_by_dead).await.unwrap();
    let word = accept(&world, &dead.says(&job, SECOND, 1, finished(success()), world.now())).await.unwrap();
    let end = accept(&world, &living.says(&job, SECOND, 1, finished(success()), world.now())).await.unwrap();

    assert!(matches!((refused, word), (Accepted::Refused(_), Accepted::Refused(_))));
    assert_eq!(world.refusals().len(), 2);
    assert_eq!(end, Accepted::Taken);
    assert!(matches!(world.job(&job).await.state, JobState::Succeeded { fence: SECOND, .. }));
}

#[tokio::test]
async fn a_report_that_the_queue_took_before_the_key_was_replaced_counts() {
    let (world, _, job) = deploying(Behaviour::Hangs).await;
    let old = world.runners["globex"].clone();
    let (end, sent_at) = (old.says(&job, FIRST, 2, finished(success()), world.now()), world.now());
    let new = Runner::new(&world.tenant, "globex", queue_url("globex"), 21);
    world.memory.advance_secs(60);
    accept(&world, &new.hello(world.now())).await.unwrap();

    let late = accept(&world, &end).await.unwrap();
    let unchanged = world.job(&job).await.state;
    let taken = world.accept_report().accept(&end, sent_at).await.unwrap();

    assert!(matches!(late, Accepted::Refused(_)), "the queue took it after the key was replaced");
    assert!(matches!(unchanged, JobState::Running { .. }));
    assert_eq!(taken, Accepted::Taken);
    assert!(matches!(world.job(&job).await.state, JobState::Succeeded { fence: FIRST, .. }));
}

/// A runner is back after days with more reports than are handled at once. Its machine is replaced while `sweep` puts
/// the further ones back.
#[tokio::test]
async fn a_report_that_was_set_aside_before_the_key_was_replaced_counts_when_it_is_put_back() {
    let (world, _, job) = deploying(Behaviour::Hangs).await;
    let old = world.runners["globex"].clone();
    let (end, sent_at) = (old.says(&job, FIRST, 2, finished(success()), world.now()), world.now());
    world.memory.advance_secs(60);
    let new = Runner::new(&world.tenant, "globex", queue_url("globex"), 21);
    accept(&world, &new.hello(world.now())).await.unwrap();
    world.memory.advance_secs(5 * 3600);

    let put_back = Arrival { taken_at: world.now(), ..Arrival::from(sent_at) };
    let taken = world.accept_report().accept(&end, put_back).await.unwrap();

    assert_eq!((taken, world.refusals().len()), (Accepted::Taken, 0));
    assert!(matches!(world.job(&job).await.state, JobState::Succeeded { fence: FIRST, .. }));
}

#[tokio::test]
async fn a_runner_whose_key_was_replaced_is_told_so_once_an_hour() {
    let (mut world, _, job) = deploying(Behaviour::Hangs).await;
    let old = world.runners["globex"].clone();
    let new = Runner::new(&world.tenant, "globex", queue_url("globex"), 21);
    accept(&world, &new.hello(world.now())).await.unwrap();
    let replaced_at = world.now();
    let ids = [&old, &new].map(|runner| PublicKey::from(runner.key.verifying_key()).key_id());

    let mut minutes = Vec::new();
    for minute in 0..130 {
        world.memory.advance_secs(60);
        accept(&world, &old.says(&job, FIRST, minute, progress("x"), world.now())).await.unwrap();
        let asked = world.memory.take_dispatched();
        let mut first = asked.clone();
        first.retain(|message| matches!(message, DispatchMessage::Retired { at, .. } if *at == world.now()));
        minutes.extend(first.iter().map(|_| minute));
        for message in asked {
            world.dispatch_job().perform(&message).await.unwrap();
        }
    }
    world.run().await;

    assert_eq!(minutes, [0, 60, 120]);
    let notice = &world.runners["globex"].notices[0];
    assert_eq!((&notice.runner, &notice.replaced_by, notice.replaced_at), (&ids[0], &ids[1], replaced_at));
    let orders = world.memory.orders.lock().unwrap().clone();
    let mut sent: Vec<_> = orders.iter().filter(|(_, group, ..)| group == "retired").map(|(_, _, id, _)| id).collect();
    sent.dedup();
    assert_eq!(sent.len(), 3, "a copy has the deduplication id of the first one");
}

#[tokio::test]
async fn a_notice_that_was_not_sent_is_asked_for_again_with_the_next_report() {
    let (world, _, job) = deploying(Behaviour::Hangs).await;
    let old = world.runners["globex"].clone();
    accept(&world, &Runner::new(&world.tenant, "globex", queue_url("globex"), 21).hello(world.now())).await.unwrap();
    let late = old.says(&job, FIRST, 9, progress("x"), world.now());
    world.memory.faults.set(|what| (what == "dispatch").then_some(freehold_app::testing::Fault::Before));
    let failed = accept(&world, &late).await.unwrap_err();
    world.memory.faults.set(|_| None);

    accept(&world, &late).await.unwrap();

    assert!(failed.is_transient());
    assert!(matches!(&world.memory.take_dispatched()[..], [DispatchMessage::Retired { .. }]));
}

#[tokio::test]
async fn a_report_that_only_claims_a_retired_key_is_neither_recorded_nor_answered() {
    let (world, _, job) = deploying(Behaviour::Hangs).await;
    let old = world.runners["globex"].clone();
    let new = Runner::new(&world.tenant, "globex", queue_url("globex"), 21);
    accept(&world, &new.hello(world.now())).await.unwrap();
    let mut forger = old.clone();
    forger.key = ed25519_dalek::SigningKey::from_bytes(&[99; 32]);
    let claimed = AttemptReport { job: job.clone(), fence: FIRST, seq: 9, event: finished(success()) };
    let forged = forger.sign(&old.report(ReportBody::Attempt(claimed), world.now()));
    let before = world.memory.rows();

    let error = accept(&world, &forged).await.unwrap_err();

    assert_eq!(error.kind, Kind::Invalid);
    assert_eq!(world.memory.rows(), before);
    assert!(world.memory.take_dispatched().is_empty());
}

//! A runner whose session the customer revoked, and one that AWS refuses while it is asked to end.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_runner_whose_session_was_revoked_ends_its_job_at_once_and_continues_with_a_new_session() {
    let world = World::new(Play::Wait);
    world.queue.send(sealed(&order(1, 7)));
    world.until("the start", |world| world.begun() == 1).await;

    world.account.revoke();
    world.queue.closed.store(true, Ordering::Relaxed);
    let revoked = Instant::now();
    poll::run(world.agent.clone(), Default::default()).await;
    let (took, agent) = (revoked.elapsed(), world.agent.clone());
    // The process continues with another session.
    let world = world.restarted();
    world.queue.closed.store(false, Ordering::Relaxed);
    *world.stage.play.lock().unwrap() = Play::Succeed;
    world.until_deleted().await;

    assert!(agent.is_revoked() && agent.fatal.get().is_none() && took < Duration::from_secs(60), "{took:?}");
    assert_eq!(*world.stage.stopped.lock().unwrap(), [StopReason::LeaseLost]);
    assert_eq!(world.sent(), ["1.1 started", "1.2 started", "1.2 succeeded"]);
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_the_queue_refuses_drains_as_soon_as_it_is_asked() {
    let world = World::new(Play::Wait);
    world.queue.closed.store(true, Ordering::Relaxed);
    let asked = async {
        // The pauses between two calls have grown up to half a minute.
        tokio::time::sleep(Duration::from_secs(10 * 60)).await;
        world.agent.drain.ask();
        Instant::now()
    };

    let ((), asked) = tokio::join!(poll::run(world.agent.clone(), Default::default()), asked);

    assert_eq!((asked.elapsed(), world.agent.fatal.get()), (Duration::ZERO, None));
}

//! A runner takes no order before the reports queue has the hello of its key.

use super::*;
use crate::config::Enrolment;
use crate::identity::enrol;
use crate::identity::enrolment_marker::Enrolled;
use crate::wire::spool;

const HOUR: Duration = Duration::from_secs(3_600);

impl World {
    /// A machine whose key is new, and which can read the enrolment secret.
    fn with_secret(play: Play) -> Self {
        let mut world = Self::unannounced(play);
        let secret = world.state.path().join("secret");
        std::fs::write(&secret, "a secret of the install stack").unwrap();
        let agent = Arc::get_mut(&mut world.agent).unwrap();
        agent.config = Arc::new(Config { enrolment: Enrolment::File(secret), ..(*agent.config).clone() });
        world
    }

    /// Runs all loops of the runner until `done`, or for `limit`. Returns whether it was done.
    async fn at_work(&self, limit: Duration, done: impl Fn(&Self) -> bool) -> bool {
        let sdk = aws_config::SdkConfig::builder().behavior_version(aws_config::BehaviorVersion::latest()).build();
        let secrets = aws_sdk_secretsmanager::Client::new(&sdk);
        let watch = async {
            while !done(self) {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        let beat = Default::default();
        tokio::select! {
            () = poll::run(self.agent.clone(), Default::default()) => panic!("the poll loop ended"),
            () = spool::sender::run(&self.spool, self.taken.as_ref(), &beat) => panic!("the sender ended"),
            () = enrol::run(self.agent.clone(), secrets, self.key.clone(), Default::default()) => panic!("enrol ended"),
            done = tokio::time::timeout(limit, watch) => done.is_ok(),
        }
    }

    fn is_marked(&self) -> bool {
        Enrolled::open(self.state.path(), self.key.key_id()).is_set()
    }
}

#[tokio::test(start_paused = true)]
async fn an_order_waits_until_the_reports_queue_has_the_hello() {
    let world = World::with_secret(Play::Succeed);
    world.taken.deaf.store(true, Ordering::Relaxed);
    world.queue.send(sealed(&order(1, 7)));

    world.at_work(HOUR, |_| false).await;
    let waited = (world.queue.messages.lock().unwrap()[&0].receive, world.sent(), world.is_marked());
    world.taken.deaf.store(false, Ordering::Relaxed);
    let done = world.at_work(HOUR, |world| world.queue.is_empty()).await;

    assert_eq!(waited, (0, vec!["hello".to_owned()], false), "the order was received, or the key counts as announced");
    assert!(done && world.is_marked());
    // Each start of the loops says hello.
    let mut said = world.sent();
    said.dedup();
    assert_eq!(said, ["hello", "1.1 started", "1.1 succeeded"]);
}

#[tokio::test(start_paused = true)]
async fn an_enrolled_runner_takes_orders_at_a_start_while_the_reports_queue_does_not_answer() {
    let world = World::with_secret(Play::Succeed);
    assert!(world.at_work(HOUR, |world| world.is_marked()).await);

    let world = world.killed();
    world.taken.deaf.store(true, Ordering::Relaxed);
    world.queue.send(sealed(&order(1, 7)));

    assert!(world.at_work(HOUR, |world| world.begun() == 1).await);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_that_came_while_the_runner_was_not_enrolled_stops_its_job() {
    let world = World::with_secret(Play::Wait);
    world.taken.deaf.store(true, Ordering::Relaxed);
    world.queue.send(sealed(&order(1, 7)));
    world.queue.send(cancel(None));

    world.at_work(HOUR, |_| false).await;
    world.taken.deaf.store(false, Ordering::Relaxed);
    let done = world.at_work(HOUR, |world| world.queue.is_empty()).await;

    assert!(done && world.sent().last().unwrap().ends_with("cancelled"), "{:?}", world.sent());
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_is_switched_off_before_it_is_enrolled_waits_until_it_is_on() {
    let world = World::with_secret(Play::Succeed);
    world.taken.closed.store(true, Ordering::Relaxed);
    world.switch(false);
    world.queue.send(sealed(&order(1, 7)));

    world.at_work(HOUR, |_| false).await;
    let (fatal, begun) = (world.agent.fatal.get().cloned(), world.begun());
    world.taken.closed.store(false, Ordering::Relaxed);
    world.switch(true);

    assert_eq!((fatal, begun), (None, 0));
    assert!(world.at_work(HOUR, |world| world.queue.is_empty()).await);
    assert_eq!(world.begun(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_the_reports_queue_refuses_for_long_ends_and_says_why() {
    let world = World::with_secret(Play::Succeed);
    world.taken.closed.store(true, Ordering::Relaxed);
    let sdk = aws_config::SdkConfig::builder().behavior_version(aws_config::BehaviorVersion::latest()).build();
    let secrets = aws_sdk_secretsmanager::Client::new(&sdk);
    let beat = Default::default();
    let begun = Instant::now();

    // The poll loop ends because the runner drains.
    tokio::select! {
        () = poll::run(world.agent.clone(), Default::default()) => {}
        () = spool::sender::run(&world.spool, world.taken.as_ref(), &beat) => panic!("the sender ended"),
        () = enrol::run(world.agent.clone(), secrets, world.key.clone(), Default::default()) => panic!("enrol ended"),
    }

    let why = world.agent.fatal.get().unwrap();
    assert!(why.starts_with("cannot enrol: the reports queue has refused this runner for 15 minutes:"), "{why}");
    assert!(begun.elapsed() < Duration::from_secs(20 * 60), "{:?}", begun.elapsed());
}

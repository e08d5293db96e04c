//! A runner takes no order before the reports queue has the hello of its key.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use freehold_protocol::RoleKey;

use super::*;
use crate::identity::denial::StackState;
use crate::identity::role_proof::RoleProver;
use crate::keys::enrolment_marker::Enrolled;
use crate::operate::enrol;
use crate::wire::spool;

const HOUR: Duration = Duration::from_secs(3_600);

impl World {
    /// A machine whose key is new.
    fn new_key(play: Play) -> Self {
        Self::unannounced(play)
    }

    /// Proves with credentials of a role.
    fn prover(&self) -> RoleProver {
        let credentials = Credentials::new("ASIA0123456789ABCDEF", "secret", Some("token".to_owned()), None, "test");
        let sdk = aws_config::SdkConfig::builder()
            .behavior_version(aws_config::BehaviorVersion::latest())
            .credentials_provider(SharedCredentialsProvider::new(credentials))
            .build();
        RoleProver::new(&self.agent.config, &sdk)
    }

    /// Runs all loops of the runner until `done`, or for `limit`. Returns whether it was done.
    async fn at_work(&self, limit: Duration, done: impl Fn(&Self) -> bool) -> bool {
        let watch = async {
            while !done(self) {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        let beat = Default::default();
        tokio::select! {
            () = poll::run(self.agent.clone(), Default::default()) => panic!("the poll loop ended"),
            () = spool::sender::run(&self.spool, self.taken.as_ref(), &beat) => panic!("the sender ended"),
            () = enrol::run(self.agent.clone(), self.prover(), self.key.clone(), Default::default()) => panic!("enrol ended"),
            done = tokio::time::timeout(limit, watch) => done.is_ok(),
        }
    }

    fn is_marked(&self) -> bool {
        Enrolled::open(self.state.path(), self.key.key_id()).is_set()
    }
}

#[tokio::test(start_paused = true)]
async fn an_order_waits_until_the_reports_queue_has_the_hello() {
    let world = World::new_key(Play::Succeed);
    world.taken.deaf.store(true, Ordering::Relaxed);
    world.queue.send(sealed(&order(1, 7)));

    world.at_work(HOUR, |_| false).await;
    let waited = (world.queue.messages.lock().unwrap()[&0].receive, world.sent(), world.is_marked());
    world.taken.deaf.store(false, Ordering::Relaxed);
    let done = world.at_work(HOUR, |world| world.queue.is_empty()).await;

    assert_eq!(waited, (0, vec!["hello".to_owned()], false), "the order was received, or the key counts as announced");
    assert!(done && world.is_marked());
    // Each start of the loops says hello.
    let mut sent = world.sent();
    sent.dedup();
    assert_eq!(sent, ["hello", "1.1 started", "1.1 succeeded"]);
}

#[tokio::test(start_paused = true)]
async fn an_enrolled_runner_takes_orders_at_a_start_while_the_reports_queue_does_not_answer() {
    let world = World::new_key(Play::Succeed);
    assert!(world.at_work(HOUR, |world| world.is_marked()).await);

    let world = world.killed();
    world.taken.deaf.store(true, Ordering::Relaxed);
    world.queue.send(sealed(&order(1, 7)));

    assert!(world.at_work(HOUR, |world| world.begun() == 1).await);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_that_came_while_the_runner_was_not_enrolled_stops_its_job() {
    let world = World::new_key(Play::Wait);
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
    let world = World::new_key(Play::Succeed);
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
    let world = World::new_key(Play::Succeed);
    world.taken.closed.store(true, Ordering::Relaxed);
    let beat = Default::default();
    let begun = Instant::now();

    // The poll loop ends because the runner drains.
    tokio::select! {
        () = poll::run(world.agent.clone(), Default::default()) => {}
        () = spool::sender::run(&world.spool, world.taken.as_ref(), &beat) => panic!("the sender ended"),
        () = enrol::run(world.agent.clone(), world.prover(), world.key.clone(), Default::default()) => panic!("enrol ended"),
    }

    let why = world.agent.fatal.get().unwrap();
    assert!(why.starts_with("cannot enrol: the reports queue has refused this runner for 15 minutes:"), "{why}");
    assert!(begun.elapsed() < Duration::from_secs(20 * 60), "{:?}", begun.elapsed());
}

/// Returns the times of the proofs that the reports queue has taken.
fn hellos(world: &World) -> usize {
    world.sent().iter().filter(|report| *report == "hello").count()
}

#[tokio::test(start_paused = true)]
async fn a_hello_is_repeated_with_growing_pauses_up_to_an_hour() {
    let mut counts = Vec::new();
    for minutes in [2, 4, 8, 62, 64, 600] {
        let world = World::new_key(Play::Succeed);
        world.at_work(Duration::from_secs(minutes * 60), |_| false).await;
        counts.push(hellos(&world));
    }

    // After 0, 1, 3, 7, 15, 31 and 63 minutes, and then each hour.
    assert_eq!(counts, [2, 3, 4, 6, 7, 7 + 8]);
}

#[tokio::test(start_paused = true)]
async fn a_hello_that_waits_for_the_reports_queue_is_replaced_by_one_with_a_new_proof() {
    let world = World::new_key(Play::Succeed);
    world.taken.deaf.store(true, Ordering::Relaxed);
    let waiting = |minutes: u64| {
        let world = &world;
        async move {
            world.at_work(Duration::from_secs(minutes * 60), |_| false).await;
            let files: Vec<_> = std::fs::read_dir(world.state.path().join("spool")).unwrap().collect();
            let name = files[0].as_ref().unwrap().file_name().into_string().unwrap();
            (files.len(), name[..20].parse::<u64>().unwrap())
        }
    };

    // Each start says hello once.
    let (first, second, third) = (waiting(1).await, waiting(4).await, waiting(16).await);

    assert_eq!((first.0, second.0, third.0), (1, 1, 1));
    assert_eq!((second.1 - first.1, third.1 - second.1), (1, 1 + 3));
}

#[tokio::test(start_paused = true)]
async fn a_repeated_hello_of_an_enrolled_runner_does_not_grow_old_in_the_spool_either() {
    let ways: [fn(&World) -> &AtomicBool; 2] = [|world| &world.taken.deaf, |world| &world.taken.closed];
    for shut in ways {
        let (world, begun) = (World::new(Play::Succeed), Instant::now());
        let minutes = |count: u64| Duration::from_secs(count * 60);

        // The eighth hello comes after 123 minutes, and the ninth would come an hour later.
        let shut_for_half_an_hour = |world: &World| {
            shut(world).store(begun.elapsed() > minutes(120), Ordering::Relaxed);
            begun.elapsed() > minutes(150)
        };
        assert!(world.at_work(minutes(160), shut_for_half_an_hour).await);

        let files: Vec<_> = std::fs::read_dir(world.state.path().join("spool")).unwrap().collect();
        let name = files[0].as_ref().unwrap().file_name().into_string().unwrap();
        assert_eq!((hellos(&world), files.len(), world.agent.fatal.get()), (8, 1, None));
        assert!(name[..20].parse::<u64>().unwrap() >= 7 + 4, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_runner_without_a_role_ends_and_names_the_role() {
    let world = World::new_key(Play::Succeed);
    let sdk = aws_config::SdkConfig::builder().behavior_version(aws_config::BehaviorVersion::latest()).build();
    let prover = RoleProver::new(&world.agent.config, &sdk);

    tokio::select! {
        () = poll::run(world.agent.clone(), Default::default()) => {}
        () = enrol::run(world.agent.clone(), prover, world.key.clone(), Default::default()) => panic!("enrol ended"),
    }

    let why = world.agent.fatal.get().unwrap();
    assert!(
        why.starts_with("cannot enrol: no AWS credentials were found; give this runner credentials of role"),
        "{why}"
    );
}

/// Gives the install stack a switch of mode `maintenance`.
fn switch_maintenance(world: &World, on: bool, state: fn(BTreeMap<String, String>) -> StackState) {
    let parameters = [("EnableMaintenance".to_owned(), on.to_string())].into();
    world.account.become_stack(state(parameters));
}

/// Returns whether mode `maintenance` is on, as the hellos say, without repetitions.
fn announced(world: &World) -> Vec<Option<bool>> {
    let maintenance: RoleKey = "maintenance".parse().unwrap();
    let of_hello = |body: ReportBody| match body {
        ReportBody::Hello(hello) => Some(hello.roles.and_then(|roles| roles.get(&maintenance).copied())),
        _ => None,
    };
    let mut announced: Vec<_> = world.reports().into_iter().filter_map(of_hello).collect();
    announced.dedup();
    announced
}

#[tokio::test(start_paused = true)]
async fn a_role_that_the_customer_switches_off_is_announced_before_the_next_repeated_hello() {
    let (world, begun) = (World::new(Play::Succeed), Instant::now());
    let minutes = |count: u64| Duration::from_secs(count * 60);

    // Hellos come after 0, 1, 3, 7, 15 and 31 minutes, and the next one would come after 63.
    let switches_off = |world: &World| {
        switch_maintenance(world, begun.elapsed() < minutes(32), StackState::Launched);
        false
    };
    world.at_work(minutes(45), switches_off).await;

    // The first hello does not wait until the runner has read the stack, so it may lack the switches.
    let known: Vec<bool> = announced(&world).into_iter().flatten().collect();
    assert_eq!(known, [true, false]);
}

#[tokio::test(start_paused = true)]
async fn a_switch_is_announced_after_the_change_of_the_stack_and_not_during_the_change() {
    let world = World::new(Play::Succeed);
    let (begun, minutes) = (Instant::now(), |count: u64| Duration::from_secs(count * 60));
    switch_maintenance(&world, true, StackState::Launched);

    let begins_to_change = |world: &World| {
        if begun.elapsed() > minutes(20) {
            switch_maintenance(world, false, StackState::Changing);
        }
        false
    };
    world.at_work(minutes(49), begins_to_change).await;
    let during = announced(&world);
    switch_maintenance(&world, false, StackState::Launched);
    world.at_work(minutes(2), |_| false).await;
    let starting = World::new(Play::Succeed);
    switch_maintenance(&starting, false, StackState::Changing);
    starting.at_work(minutes(2), |_| false).await;

    assert_eq!((during, announced(&world)), (vec![Some(true)], vec![Some(true), Some(false)]));
    assert_eq!(announced(&starting), [None]);
}

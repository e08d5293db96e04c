//! A build runner whose machine exists only for work: it ends when there is none, and never with work in hand.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use super::world::{Play, World};
use crate::process::drain::Phase;
use crate::testing::{order, sealed};
use crate::wire::spool;
use crate::work::poll;
use crate::work::standby::{MachineGroup, Membership};

/// A group that records what it is told, and when.
#[derive(Debug)]
struct Group {
    start: Instant,
    reports: Mutex<Vec<(u64, u8)>>,
    /// While set, no call has an effect.
    closed: AtomicBool,
}

#[async_trait]
impl MachineGroup for Group {
    async fn set(&self, machines: u8) -> Result<(), String> {
        if self.closed.load(Ordering::Relaxed) {
            return Err("not for you (AccessDenied)".to_owned());
        }
        self.reports.lock().unwrap().push((self.start.elapsed().as_secs(), machines));
        Ok(())
    }
}

fn grouped(play: Play) -> (World, std::sync::Arc<Group>) {
    in_group(World::new(play))
}

fn in_group(world: World) -> (World, std::sync::Arc<Group>) {
    let group = Group { start: Instant::now(), reports: Mutex::default(), closed: AtomicBool::default() };
    let group = std::sync::Arc::new(group);
    let membership = Membership { group: group.clone(), idle: Duration::from_secs(600) };
    (world.in_group(membership), group)
}

/// Polls and sends reports until the runner ends.
async fn ends(world: &World) {
    let beat = Default::default();
    tokio::select! {
        () = poll::run(world.agent.clone(), Default::default()) => {}
        () = spool::sender::run(&world.spool, world.taken.as_ref(), &beat) => panic!("the sender ended"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_runner_without_work_ends_after_a_last_look() {
    let (world, group) = grouped(Play::Succeed);

    ends(&world).await;

    assert_eq!(*group.reports.lock().unwrap(), [(600, 0)]);
    assert_eq!(group.start.elapsed().as_secs(), 620);
    assert_eq!((world.agent.drain.phase(), world.agent.drain.is_asked()), (Phase::Draining, false));
    assert!(world.agent.unneeded.load(Ordering::Relaxed));
}

#[tokio::test(start_paused = true)]
async fn an_order_that_arrives_during_the_last_look_is_done_before_the_runner_ends() {
    let (world, group) = grouped(Play::Minute);
    let send = async {
        tokio::time::sleep(Duration::from_secs(610)).await;
        world.queue.send(sealed(&order(1, 7)));
    };

    tokio::join!(ends(&world), send);

    let reports: Vec<u8> = group.reports.lock().unwrap().iter().map(|(_, machines)| *machines).collect();
    assert_eq!(reports, [0, 1, 0]);
    assert_eq!(world.sent(), ["1.1 started", "1.1 succeeded"]);
    assert!(world.queue.is_empty() && world.spool.is_empty());
    assert!(group.start.elapsed().as_secs() >= 610 + 60 + 600 + 20);
}

#[tokio::test(start_paused = true)]
async fn a_runner_whose_reports_are_not_taken_stays() {
    let (world, group) = grouped(Play::Succeed);
    world.taken.deaf.store(true, Ordering::Relaxed);
    world.queue.send(sealed(&order(1, 7)));

    let ended = tokio::time::timeout(Duration::from_secs(3_600), ends(&world)).await;
    let reports = group.reports.lock().unwrap().clone();
    world.taken.deaf.store(false, Ordering::Relaxed);
    ends(&world).await;

    assert!(ended.is_err());
    assert_eq!(reports.iter().map(|(_, machines)| *machines).collect::<Vec<_>>(), [1]);
    assert_eq!(world.sent(), ["1.1 started", "1.1 succeeded"]);
}

/// Runs the loops for up to a day until the runner ends. Returns the minutes that it took, and why it gave up.
async fn gives_up(world: &World) -> (u64, String) {
    let begun = Instant::now();
    let ended = tokio::time::timeout(Duration::from_secs(24 * 3_600), ends(world)).await;
    assert!(ended.is_ok(), "the machine is billed for ever");
    (begun.elapsed().as_secs() / 60, world.agent.fatal.get().cloned().unwrap_or_default())
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_cannot_enrol_ends_after_an_hour() {
    let (world, _) = in_group(World::unannounced(Play::Succeed));

    let (minutes, why) = gives_up(&world).await;

    assert_eq!(minutes, 60);
    assert_eq!(why, "this machine could not enrol for 60 minutes, so it ends; the messages before this one state why");
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_reaches_no_queue_ends_after_an_hour_and_one_that_reaches_it_again_works() {
    let (world, group) = grouped(Play::Succeed);
    group.closed.store(true, Ordering::Relaxed);
    world.queue.unreachable.store(true, Ordering::Relaxed);
    let short = tokio::time::timeout(Duration::from_secs(3_000), ends(&world)).await;
    assert!(short.is_err());
    world.queue.unreachable.store(false, Ordering::Relaxed);
    group.closed.store(false, Ordering::Relaxed);
    world.queue.send(sealed(&order(1, 7)));
    ends(&world).await;
    assert_eq!(world.sent(), ["1.1 started", "1.1 succeeded"]);
    assert_eq!(world.agent.fatal.get(), None);

    let (world, _) = grouped(Play::Succeed);
    world.queue.unreachable.store(true, Ordering::Relaxed);
    let (minutes, why) = gives_up(&world).await;

    assert_eq!(minutes, 60);
    assert!(why.starts_with("this machine could not look at the orders queue for 60 minutes"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_cannot_leave_its_group_ends_an_hour_after_its_work() {
    let (world, group) = grouped(Play::Minute);
    group.closed.store(true, Ordering::Relaxed);
    world.queue.send(sealed(&order(1, 7)));

    let (minutes, why) = gives_up(&world).await;

    assert_eq!(world.sent(), ["1.1 started", "1.1 succeeded"]);
    // The calls have failed since the order was taken.
    assert!((60..=62).contains(&minutes), "{minutes}");
    assert!(why.starts_with("this machine could not set the capacity of its group for 60 minutes"), "{why}");
}

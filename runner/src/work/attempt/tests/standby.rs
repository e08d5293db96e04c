//! A build runner whose machine exists only for work: it ends when there is none, and never with work in hand.

use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use super::world::{Play, World};
use crate::operate::drain::Phase;
use crate::testing::{order, sealed};
use crate::wire::spool;
use crate::work::poll;
use crate::work::standby::{MachineGroup, Membership};

/// A group that records what it is told, and when.
#[derive(Debug)]
struct Group {
    start: Instant,
    told: Mutex<Vec<(u64, u8)>>,
}

#[async_trait]
impl MachineGroup for Group {
    async fn set(&self, machines: u8) -> Result<(), String> {
        self.told.lock().unwrap().push((self.start.elapsed().as_secs(), machines));
        Ok(())
    }
}

fn grouped(play: Play) -> (World, std::sync::Arc<Group>) {
    let group = std::sync::Arc::new(Group { start: Instant::now(), told: Mutex::default() });
    let membership = Membership { group: group.clone(), idle: Duration::from_secs(600) };
    (World::new(play).in_group(membership), group)
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

    assert_eq!(*group.told.lock().unwrap(), [(600, 0)]);
    assert_eq!(group.start.elapsed().as_secs(), 620);
    assert_eq!((world.agent.drain.phase(), world.agent.drain.is_asked()), (Phase::Draining, false));
    assert!(world.agent.unneeded.load(std::sync::atomic::Ordering::Relaxed));
}

#[tokio::test(start_paused = true)]
async fn an_order_that_arrives_during_the_last_look_is_done_before_the_runner_ends() {
    let (world, group) = grouped(Play::Minute);
    let send = async {
        tokio::time::sleep(Duration::from_secs(610)).await;
        world.queue.send(sealed(&order(1, 7)));
    };

    tokio::join!(ends(&world), send);

    let told: Vec<u8> = group.told.lock().unwrap().iter().map(|(_, machines)| *machines).collect();
    assert_eq!(told, [0, 1, 0]);
    assert_eq!(world.sent(), ["1.1 started", "1.1 succeeded"]);
    assert!(world.queue.is_empty() && world.spool.is_empty());
    assert!(group.start.elapsed().as_secs() >= 610 + 60 + 600 + 20);
}

#[tokio::test(start_paused = true)]
async fn a_runner_whose_reports_are_not_taken_stays() {
    let (world, group) = grouped(Play::Succeed);
    world.taken.deaf.store(true, std::sync::atomic::Ordering::Relaxed);
    world.queue.send(sealed(&order(1, 7)));

    let ended = tokio::time::timeout(Duration::from_secs(3_600), ends(&world)).await;
    let told = group.told.lock().unwrap().clone();
    world.taken.deaf.store(false, std::sync::atomic::Ordering::Relaxed);
    ends(&world).await;

    assert!(ended.is_err());
    assert_eq!(told.iter().map(|(_, machines)| *machines).collect::<Vec<_>>(), [1]);
    assert_eq!(world.sent(), ["1.1 started", "1.1 succeeded"]);
}

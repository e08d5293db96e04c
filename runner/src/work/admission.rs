//! Who may start: one order of a group at a time, in order, and as many together as there are slots.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use freehold_protocol::Group;
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};

/// The slots and the groups of one runner.
#[derive(Debug)]
pub struct Admission {
    slots: Arc<Semaphore>,
    groups: Mutex<HashMap<Group, Arc<Queue>>>,
}

#[derive(Debug, Default)]
struct Queue {
    turn: Arc<tokio::sync::Mutex<()>>,
    /// Rises when an order of the group went back to the queue: what came after it must go back too.
    broken: AtomicU64,
}

/// A place in the queue of a group.
#[derive(Debug)]
pub struct Ticket {
    slots: Arc<Semaphore>,
    queue: Arc<Queue>,
    broken: u64,
}

/// The right to start, for as long as it lives.
#[derive(Debug)]
pub struct Turn {
    _group: OwnedMutexGuard<()>,
    _slot: OwnedSemaphorePermit,
}

impl Admission {
    /// Returns the turns of a runner with `slots` slots.
    pub fn new(slots: u32) -> Self {
        let slots = Semaphore::new(usize::try_from(slots).unwrap_or(1));
        Self { slots: Arc::new(slots), groups: Mutex::default() }
    }

    /// Returns a place in the queue of `group`.
    pub fn ticket(&self, group: &Group) -> Ticket {
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        let queue = groups.entry(group.clone()).or_default().clone();
        let broken = queue.broken.load(Ordering::Relaxed);
        Ticket { slots: self.slots.clone(), queue, broken }
    }
}

impl Ticket {
    /// Waits for the turn; nothing when an earlier order of the group went back, so that this one must too.
    pub async fn turn(&self) -> Option<Turn> {
        let group = self.queue.turn.clone().lock_owned().await;
        if self.queue.broken.load(Ordering::Relaxed) != self.broken {
            return None;
        }
        let slot = self.slots.clone().acquire_owned().await.ok()?;
        Some(Turn { _group: group, _slot: slot })
    }

    /// Makes everything that waits behind this place go back to the queue.
    pub fn went_back(&self) {
        self.queue.broken.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    async fn waits(ticket: &Ticket) -> bool {
        tokio::time::timeout(Duration::from_secs(1), ticket.turn()).await.is_err()
    }

    #[tokio::test(start_paused = true)]
    async fn one_group_takes_turns_and_slots_limit_all() {
        let turns = Admission::new(2);
        let [a1, a2, b, c] = ["a", "a", "b", "c"].map(|group| turns.ticket(&group.parse().unwrap()));

        let first = a1.turn().await.unwrap();
        assert!(waits(&a2).await);
        let second = b.turn().await.unwrap();
        assert!(waits(&c).await);
        drop(first);

        assert!(a2.turn().await.is_some());
        drop(second);
        assert!(c.turn().await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_behind_an_order_that_went_back_goes_back_too() {
        let turns = Admission::new(2);
        let [first, second] = ["a", "a"].map(|group| turns.ticket(&group.parse().unwrap()));

        first.went_back();

        assert!(second.turn().await.is_none());
        assert!(turns.ticket(&"a".parse().unwrap()).turn().await.is_some());
    }
}

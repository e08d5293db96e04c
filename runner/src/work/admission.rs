//! Decides which orders may start: one order of a group at a time, in their order, and as many orders together as there
//! are slots.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use freehold_protocol::Group;
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};

/// The slots of one runner, and for each group its line of waiting orders.
#[derive(Debug)]
pub struct Admission {
    slots: Arc<Semaphore>,
    /// The line of waiting orders of each group. A group is named by the thing that its orders change, such as a
    /// component.
    things: Mutex<HashMap<String, Arc<Line>>>,
}

#[derive(Debug, Default)]
struct Line {
    order: Arc<tokio::sync::Mutex<()>>,
    /// The number of times that an order of this line went back to the queue. All orders behind it must go back too.
    broken: AtomicU64,
}

/// The place of an order in its line.
#[derive(Debug)]
pub struct Ticket {
    slots: Arc<Semaphore>,
    line: Arc<Line>,
    broken: u64,
}

/// The permission to run an order. Dropping it admits the next order.
#[derive(Debug)]
pub struct Permit {
    _group: OwnedMutexGuard<()>,
    _slot: OwnedSemaphorePermit,
}

impl Admission {
    /// Returns the admission for a runner with `slots` slots.
    pub fn new(slots: u32) -> Self {
        let slots = Semaphore::new(usize::try_from(slots).unwrap_or(1));
        Self { slots: Arc::new(slots), things: Mutex::default() }
    }

    /// Adds an order to the end of the line of the thing that `group` changes, and returns its place.
    pub fn ticket(&self, group: &Group) -> Ticket {
        let mut things = self.things.lock().unwrap_or_else(PoisonError::into_inner);
        let line = things.entry(group.thing().to_owned()).or_default().clone();
        let broken = line.broken.load(Ordering::Relaxed);
        Ticket { slots: self.slots.clone(), line, broken }
    }
}

impl Ticket {
    /// Waits until the order may start. Returns `None` when an earlier order of the line went back to the queue; this
    /// order must then go back too.
    pub async fn admitted(&self) -> Option<Permit> {
        let group = self.line.order.clone().lock_owned().await;
        if self.line.broken.load(Ordering::Relaxed) != self.broken {
            return None;
        }
        let slot = self.slots.clone().acquire_owned().await.ok()?;
        Some(Permit { _group: group, _slot: slot })
    }

    /// Sends the later orders of this line back to the queue. Call it when this order is sent back.
    pub fn went_back(&self) {
        self.line.broken.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    async fn waits(ticket: &Ticket) -> bool {
        tokio::time::timeout(Duration::from_secs(1), ticket.admitted()).await.is_err()
    }

    #[tokio::test(start_paused = true)]
    async fn one_group_takes_turns_and_slots_limit_all() {
        let admission = Admission::new(2);
        let [a1, a2, b, c] = ["a", "a.1", "b", "c"].map(|group| admission.ticket(&group.parse().unwrap()));

        let first = a1.admitted().await.unwrap();
        assert!(waits(&a2).await);
        let second = b.admitted().await.unwrap();
        assert!(waits(&c).await);
        drop(first);

        assert!(a2.admitted().await.is_some());
        drop(second);
        assert!(c.admitted().await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn orders_behind_one_that_went_back_go_back_too() {
        let admission = Admission::new(2);
        let [first, second] = ["a", "a"].map(|group| admission.ticket(&group.parse().unwrap()));

        first.went_back();

        assert!(second.admitted().await.is_none());
        assert!(admission.ticket(&"a".parse().unwrap()).admitted().await.is_some());
    }
}

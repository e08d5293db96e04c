//! The orders that this runner has in hand: waiting or running, each with its lease and its stop signal.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use freehold_protocol::order::{Order, Redelivery};
use freehold_protocol::report::Fence;
use freehold_protocol::{Digest, JobId};
use tokio::sync::{Notify, watch};

use crate::wire::inbox::Delivery;
use crate::work::job::{Stop, StopReason};
use crate::work::lease::HeldLease;

/// One order in hand.
#[derive(Debug)]
pub struct HeldOrder {
    pub order: Arc<Order>,
    pub fence: Fence,
    /// The digest of the message as it came.
    pub message: Digest,
    pub lease: HeldLease,
    pub signal: Stop,
    stop: watch::Sender<Option<StopReason>>,
    running: AtomicBool,
}

impl HeldOrder {
    /// Returns `order` as it was handed out in `delivery`.
    pub fn new(order: Order, delivery: &Delivery) -> Self {
        let (stop, signal) = Stop::channel();
        Self {
            fence: Fence { dispatch: order.dispatch, receive: delivery.receive },
            order: Arc::new(order),
            message: Digest::of(delivery.body.as_bytes()),
            lease: HeldLease::new(delivery.handle.clone(), delivery.leased_at),
            signal,
            stop,
            running: AtomicBool::new(false),
        }
    }

    /// Tells the attempt to stop. The first reason stays, but a lost lease outdoes all others.
    pub fn stop(&self, reason: StopReason) {
        self.stop.send_if_modified(|now| {
            let news = now.is_none() || (reason == StopReason::LeaseLost && *now != Some(StopReason::LeaseLost));
            if news {
                *now = Some(reason);
            }
            news
        });
    }

    /// Marks that the job is being done.
    pub fn begin(&self) {
        self.running.store(true, Ordering::Relaxed);
    }

    /// Returns whether it does no harm to leave the order to the next runner. What may not be started twice would end
    /// as interrupted there: a second delivery does not tell whether the first one started.
    pub fn can_be_left(&self) -> bool {
        self.order.redelivery == Redelivery::Resume || self.fence.receive > 1
    }

    fn key(&self) -> (JobId, u32) {
        (self.order.job.clone(), self.fence.dispatch)
    }
}

/// All orders in hand.
#[derive(Debug, Default)]
pub struct InFlight {
    inner: Mutex<HashMap<(JobId, u32), Arc<HeldOrder>>>,
    changed: Notify,
}

/// What became of a delivery.
#[derive(Debug)]
pub enum Taken {
    /// It is in hand now, and was not before.
    New(Arc<HeldOrder>),
    /// The same order is in hand already, and goes on under the newer delivery's lease.
    Adopted,
    /// The same order is in hand and being stopped: this delivery must come back later.
    Stopping,
}

impl InFlight {
    /// Takes `order` in hand, or recognises it.
    pub fn take(&self, order: Order, delivery: &Delivery) -> Taken {
        let hand = HeldOrder::new(order, delivery);
        let mut inner = self.lock();
        if let Some(known) = inner.get(&hand.key()) {
            if known.signal.reason().is_some() {
                return Taken::Stopping;
            }
            known.lease.adopt(delivery.handle.clone(), delivery.leased_at);
            return Taken::Adopted;
        }
        let hand = Arc::new(hand);
        inner.insert(hand.key(), hand.clone());
        Taken::New(hand)
    }

    /// Lets go of an order.
    pub fn release(&self, hand: &HeldOrder) {
        self.lock().remove(&hand.key());
        self.changed.notify_waiters();
    }

    /// Tells the attempt at `job` to stop, when it is the one meant; returns whether there is one.
    pub fn cancel(&self, job: &JobId, dispatch: u32, receive: Option<u32>) -> bool {
        let inner = self.lock();
        let hand = inner.get(&(job.clone(), dispatch));
        match hand.filter(|hand| receive.is_none_or(|receive| receive == hand.fence.receive)) {
            Some(hand) => {
                hand.stop(StopReason::Cancelled);
                true
            }
            None => false,
        }
    }

    /// Tells every attempt to stop.
    pub fn stop_all(&self, reason: StopReason) {
        self.lock().values().for_each(|hand| hand.stop(reason));
    }

    /// Returns whether a job is being done, or must be begun before the runner may end.
    pub fn is_busy(&self) -> bool {
        self.lock().values().any(|hand| hand.running.load(Ordering::Relaxed) || !hand.can_be_left())
    }

    /// Waits until nothing is in hand.
    pub async fn emptied(&self) {
        loop {
            let changed = self.changed.notified();
            if self.lock().is_empty() {
                return;
            }
            changed.await;
        }
    }

    /// Waits until no job is being done.
    pub async fn rested(&self) {
        loop {
            let changed = self.changed.notified();
            if !self.is_busy() {
                return;
            }
            changed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(JobId, u32), Arc<HeldOrder>>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use freehold_protocol::Timestamp;
    use tokio::time::Instant;

    use super::*;
    use crate::testing::{job_id, order};

    fn delivery(receive: u32) -> Delivery {
        Delivery {
            body: "x".into(),
            handle: format!("handle-{receive}"),
            receive,
            sent_at: Timestamp::default(),
            leased_at: Instant::now(),
        }
    }

    #[test]
    fn the_same_order_again_goes_on_under_the_newer_lease() {
        let hands = InFlight::default();
        let Taken::New(hand) = hands.take(order(1, 7), &delivery(1)) else { panic!("not new") };

        let again = hands.take(order(1, 7), &delivery(2));

        assert!(matches!(again, Taken::Adopted));
        assert_eq!(hand.lease.handle(), "handle-2");
        assert_eq!(hand.fence.receive, 1);
    }

    #[test]
    fn a_delivery_during_the_stop_of_the_one_before_waits() {
        let hands = InFlight::default();
        let Taken::New(hand) = hands.take(order(1, 7), &delivery(1)) else { panic!("not new") };
        hand.stop(StopReason::LeaseLost);

        assert!(matches!(hands.take(order(1, 7), &delivery(2)), Taken::Stopping));
    }

    #[test]
    fn a_cancel_reaches_only_the_attempt_that_is_meant() {
        let hands = InFlight::default();
        let Taken::New(hand) = hands.take(order(1, 7), &delivery(2)) else { panic!("not new") };

        assert!(!hands.cancel(&job_id(1), 2, None));
        assert!(!hands.cancel(&job_id(1), 1, Some(1)));
        assert_eq!(hand.signal.reason(), None);
        assert!(hands.cancel(&job_id(1), 1, Some(2)));
        assert_eq!(hand.signal.reason(), Some(StopReason::Cancelled));
    }

    #[test]
    fn a_lost_lease_outdoes_an_earlier_reason() {
        let hand = HeldOrder::new(order(1, 7), &delivery(1));

        hand.stop(StopReason::Cancelled);
        hand.stop(StopReason::LeaseLost);
        hand.stop(StopReason::TimedOut);

        assert_eq!(hand.signal.reason(), Some(StopReason::LeaseLost));
    }
}

//! The orders in flight on this runner, waiting or running, each with its lease and its stop signal.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use freehold_protocol::audit::AuditEvent;
use freehold_protocol::order::{Order, Redelivery};
use freehold_protocol::report::Fence;
use freehold_protocol::{Digest, Envelope, JobId, Timestamp};
use tokio::sync::{Notify, watch};

use crate::job::{Stop, StopReason};
use crate::wire::inbox::Delivery;
use crate::wire::verify::bare_message;
use crate::work::lease::HeldLease;

/// An order in flight on this runner.
#[derive(Debug)]
pub struct HeldOrder {
    pub order: Arc<Order>,
    pub fence: Fence,
    /// The time at which the queue took the message. Each delivery of the message has the same time.
    pub sent_at: Option<Timestamp>,
    /// The order's message, without the attached texts.
    pub text: String,
    /// The digest of `text`.
    pub message: Digest,
    /// The texts that came with the message. The order names by digest each text that it needs.
    pub attached: Vec<String>,
    pub lease: HeldLease,
    pub signal: Stop,
    stop: watch::Sender<Option<StopReason>>,
    running: AtomicBool,
    started: AtomicBool,
    /// The number of the last delivery of the message to this runner.
    last_receive: AtomicU32,
}

impl HeldOrder {
    /// Returns the audit event for the start of the attempt.
    pub fn announcement(&self) -> AuditEvent {
        let order = &self.order;
        AuditEvent::Started {
            workflow: order.workflow.clone(),
            job: order.job.clone(),
            fence: self.fence,
            work: order.work.kind().to_owned(),
            mode: order.mode,
            group: Some(order.group.clone()),
            serial: Some(order.serial),
            role: order.role.clone(),
            asked_by: order.asked_by().cloned(),
            order: self.message.clone(),
            sent_at: self.sent_at,
        }
    }

    /// Returns `order`, held under the lease of `delivery`.
    pub fn new(order: Order, delivery: &Delivery) -> Self {
        let (stop, signal) = Stop::channel();
        let lease = HeldLease::new(delivery.handle.clone(), delivery.leased_at);
        let text = bare_message(&delivery.body);
        Self {
            fence: Fence { dispatch: order.dispatch, receive: delivery.receive },
            sent_at: delivery.known_sent_at(),
            order: Arc::new(order),
            message: Digest::of(text.as_bytes()),
            text,
            attached: Envelope::parse(delivery.body.as_bytes()).map(|envelope| envelope.attached).unwrap_or_default(),
            signal: signal.bounded_by(lease.until()),
            lease,
            stop,
            running: AtomicBool::new(false),
            started: AtomicBool::new(false),
            last_receive: AtomicU32::new(delivery.receive),
        }
    }

    /// Notes a further delivery of the message. Returns whether another machine may have had one in between, and may
    /// have started the job.
    fn was_elsewhere(&self, receive: u32) -> bool {
        receive > self.last_receive.fetch_max(receive, Ordering::Relaxed).saturating_add(1)
    }

    /// Asks the attempt to stop. The first reason remains, but a lost lease replaces any other reason.
    pub fn stop(&self, reason: StopReason) {
        self.stop.send_if_modified(|now| {
            let news = now.is_none() || (reason == StopReason::LeaseLost && *now != Some(StopReason::LeaseLost));
            if news {
                *now = Some(reason);
            }
            news
        });
    }

    /// Marks the job as running.
    pub fn begin(&self) {
        self.running.store(true, Ordering::Relaxed);
    }

    /// Marks the job as started: nothing that other machines did excludes it.
    pub fn mark_started(&self) {
        self.started.store(true, Ordering::Relaxed);
    }

    /// Marks the job as one that waits for the end of this process.
    pub fn rest(&self) {
        self.running.store(false, Ordering::Relaxed);
    }

    /// Returns whether the order can be left to the next runner. The first delivery of a job that must not start twice
    /// cannot: the next runner sees that its own delivery is not the first one, and starts the job only if it finds the
    /// note that no attempt has started (`record/unstarted_notes.rs`). If the note could not be written, the job ends
    /// as interrupted.
    pub fn can_be_left(&self) -> bool {
        self.order.redelivery == Redelivery::Resume || self.fence.receive > 1
    }

    fn key(&self) -> (JobId, u32) {
        (self.order.job.clone(), self.fence.dispatch)
    }
}

/// All orders in flight on this runner.
#[derive(Debug, Default)]
pub struct InFlight {
    inner: Mutex<HashMap<(JobId, u32), Arc<HeldOrder>>>,
    changed: Notify,
}

/// The result of putting a delivered order in flight.
#[derive(Debug)]
pub enum Taken {
    /// The order is new, and is now in flight.
    New(Arc<HeldOrder>),
    /// The order was already in flight. It continues under the lease of the newer delivery.
    Adopted,
    /// The order is in flight and is being stopped. The message must be redelivered later.
    Stopping,
    /// The job was started from another message, so this one is a copy, which must not take over its lease.
    Copy(Arc<HeldOrder>),
    /// The order is in flight by another message, which may still be refused. This message must be redelivered later: if
    /// both were refused, nobody would do the order.
    Undecided,
}

impl InFlight {
    /// Puts `order` in flight, unless it is in flight already.
    pub fn take(&self, order: Order, delivery: &Delivery) -> Taken {
        let held = HeldOrder::new(order, delivery);
        let mut inner = self.lock();
        if let Some(known) = inner.get(&held.key()) {
            if known.signal.reason().is_some() {
                return Taken::Stopping;
            }
            if known.sent_at.zip(held.sent_at).is_some_and(|(known, own)| known != own) {
                let has_started = known.started.load(Ordering::Relaxed);
                return if has_started { Taken::Copy(Arc::new(held)) } else { Taken::Undecided };
            }
            if known.was_elsewhere(delivery.receive) {
                known.stop(StopReason::LeaseLost);
                return Taken::Stopping;
            }
            known.lease.adopt(delivery.handle.clone(), delivery.leased_at);
            return Taken::Adopted;
        }
        let held = Arc::new(held);
        inner.insert(held.key(), held.clone());
        Taken::New(held)
    }

    /// Removes an order that is no longer in flight.
    pub fn release(&self, held: &HeldOrder) {
        self.lock().remove(&held.key());
        self.changed.notify_waiters();
    }

    /// Stops the attempt that a cancel message names. Returns whether this runner has such an attempt.
    pub fn cancel(&self, job: &JobId, dispatch: u32, receive: Option<u32>) -> bool {
        let inner = self.lock();
        let held = inner.get(&(job.clone(), dispatch));
        match held.filter(|held| receive.is_none_or(|receive| receive == held.fence.receive)) {
            Some(held) => {
                held.stop(StopReason::Cancelled);
                true
            }
            None => false,
        }
    }

    /// Stops all attempts.
    pub fn stop_all(&self, reason: StopReason) {
        self.lock().values().for_each(|held| held.stop(reason));
    }

    /// Stops the attempts whose jobs the next runner can resume.
    pub fn stop_resumable(&self, reason: StopReason) {
        let inner = self.lock();
        inner.values().filter(|held| held.order.redelivery == Redelivery::Resume).for_each(|held| held.stop(reason));
    }

    /// Returns whether a job runs, or an order must run before the runner may end.
    pub fn is_busy(&self) -> bool {
        self.lock().values().any(|held| held.running.load(Ordering::Relaxed) || !held.can_be_left())
    }

    /// Returns whether no order is in flight.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Waits until no order is in flight.
    pub async fn emptied(&self) {
        loop {
            let changed = self.changed.notified();
            if self.lock().is_empty() {
                return;
            }
            changed.await;
        }
    }

    /// Wakes all tasks that wait for a change.
    pub fn look_again(&self) {
        self.changed.notify_waiters();
    }

    /// Waits until the runner is not busy ([`Self::is_busy`]).
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
            group: None,
            leased_at: Instant::now(),
        }
    }

    #[test]
    fn the_same_order_again_continues_under_the_newer_lease() {
        let in_flight = InFlight::default();
        let Taken::New(held) = in_flight.take(order(1, 7), &delivery(1)) else { panic!("not new") };

        let again = in_flight.take(order(1, 7), &delivery(2));

        assert!(matches!(again, Taken::Adopted));
        assert_eq!(held.lease.handle(), "handle-2");
        assert_eq!(held.fence.receive, 1);
    }

    /// The lease had ended twice, and this runner did not know it.
    #[test]
    fn an_order_that_another_machine_had_in_between_does_not_continue() {
        let in_flight = InFlight::default();
        let Taken::New(held) = in_flight.take(order(1, 7), &delivery(1)) else { panic!("not new") };
        let second = in_flight.take(order(1, 7), &delivery(2));

        let fourth = in_flight.take(order(1, 7), &delivery(4));

        assert!(matches!((second, fourth), (Taken::Adopted, Taken::Stopping)));
        assert_eq!((held.signal.reason(), held.lease.handle().as_str()), (Some(StopReason::LeaseLost), "handle-2"));
    }

    fn sent_at(millis: u64) -> Delivery {
        Delivery { sent_at: Timestamp::from_millis(millis), ..delivery(1) }
    }

    /// The message in flight may be the copy, or the one that was copied.
    #[test]
    fn another_message_with_an_order_in_flight_waits_until_the_job_has_started() {
        for other in [50, 70] {
            let in_flight = InFlight::default();
            let Taken::New(held) = in_flight.take(order(1, 7), &sent_at(60)) else { panic!("not new") };

            let before = in_flight.take(order(1, 7), &Delivery { handle: "other".into(), ..sent_at(other) });
            held.mark_started();
            let after = in_flight.take(order(1, 7), &Delivery { handle: "other".into(), ..sent_at(other) });

            assert!(matches!(before, Taken::Undecided), "{before:?}");
            assert!(matches!(after, Taken::Copy(_)), "{after:?}");
            assert_eq!(held.lease.handle(), "handle-1");
        }
    }

    #[test]
    fn another_message_with_an_order_in_flight_is_a_copy_and_takes_over_no_lease() {
        let in_flight = InFlight::default();
        let Taken::New(held) = in_flight.take(order(1, 7), &sent_at(50)) else { panic!("not new") };
        held.mark_started();

        let copy = Delivery { handle: "copy".into(), ..sent_at(60) };
        let Taken::Copy(copy) = in_flight.take(order(1, 7), &copy) else { panic!("not a copy") };

        assert_eq!((held.lease.handle().as_str(), copy.lease.handle().as_str()), ("handle-1", "copy"));
    }

    #[test]
    fn a_delivery_during_the_stop_of_the_one_before_waits() {
        let in_flight = InFlight::default();
        let Taken::New(held) = in_flight.take(order(1, 7), &delivery(1)) else { panic!("not new") };
        held.stop(StopReason::LeaseLost);

        assert!(matches!(in_flight.take(order(1, 7), &delivery(2)), Taken::Stopping));
    }

    #[test]
    fn a_cancel_reaches_only_the_attempt_that_it_names() {
        let in_flight = InFlight::default();
        let Taken::New(held) = in_flight.take(order(1, 7), &delivery(2)) else { panic!("not new") };

        assert!(!in_flight.cancel(&job_id(1), 2, None));
        assert!(!in_flight.cancel(&job_id(1), 1, Some(1)));
        assert_eq!(held.signal.reason(), None);
        assert!(in_flight.cancel(&job_id(1), 1, Some(2)));
        assert_eq!(held.signal.reason(), Some(StopReason::Cancelled));
    }

    #[test]
    fn a_lost_lease_replaces_an_earlier_reason() {
        let held = HeldOrder::new(order(1, 7), &delivery(1));

        held.stop(StopReason::Cancelled);
        held.stop(StopReason::LeaseLost);
        held.stop(StopReason::TimedOut);

        assert_eq!(held.signal.reason(), Some(StopReason::LeaseLost));
    }
}

//! The lease on one order. It is renewed while the order is in flight, and given up before its end if it cannot be
//! renewed.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use freehold_protocol::limits;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tracing::warn;

use crate::process::clock::{self, Pauses};
use crate::repeat::Repeat;
use crate::wire::inbox::{Inbox, InboxError};

const LENGTH: Duration = Duration::from_secs(limits::LEASE_SECS);
const RENEW_AFTER: Duration = Duration::from_secs(limits::LEASE_RENEW_SECS);
/// A lease counts as lost this long before its end, because ending the job's processes takes time.
const MARGIN: Duration = Duration::from_secs(8);
/// The pause after a failed renewal.
const RETRY: Duration = Duration::from_secs(1);
/// The time limit of one renewal.
const CALL: Duration = Duration::from_secs(5);
/// A job's processes end by themselves this long before the lease ends, if the runner has not ended them.
const LAST_MOMENT: Duration = Duration::from_secs(1);
/// The interval at which the machine's clocks are compared while an order is held.
const COMPARE: Duration = Duration::from_secs(1);
/// A machine that was suspended for longer than this has lost its leases. Corrections of a wall clock are smaller.
const STOOD_STILL: Duration = Duration::from_secs(5);

/// The time for which a lease is certain to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    ends: Instant,
    renew_at: Instant,
}

/// The next step to hold a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Step {
    /// Nothing needs to be done before this time.
    Wait(Instant),
    /// The lease must be renewed now.
    Renew,
    /// The lease must be given up: the job must end before the lease does.
    Lost,
}

impl Lease {
    /// Returns a lease that began at `begun` or later.
    pub fn begun(begun: Instant) -> Self {
        Self { ends: begun + LENGTH, renew_at: begun + RENEW_AFTER }
    }

    /// Records a successful renewal. Its request was sent at `asked_at` or later.
    pub fn renewed(&mut self, asked_at: Instant) {
        *self = Self::begun(asked_at);
    }

    /// Records a renewal that failed at `now` with a transient error.
    pub fn failed(&mut self, now: Instant) {
        self.renew_at = (now + RETRY).min(self.ends - MARGIN);
    }

    /// Returns the next step at `now`.
    pub fn step(&self, now: Instant) -> Step {
        if now >= self.ends - MARGIN {
            Step::Lost
        } else if now >= self.renew_at {
            Step::Renew
        } else {
            Step::Wait(self.renew_at)
        }
    }

    /// Returns the time at which the lease ends. From then on, another runner may get the order.
    pub const fn ends(&self) -> Instant {
        self.ends
    }
}

/// The lease on an order in flight, with the handle that renews it.
#[derive(Debug)]
pub struct HeldLease {
    held: Mutex<Held>,
    changed: Notify,
    /// The time until which the job's processes may run (`CLOCK_BOOTTIME`, in nanoseconds).
    until: watch::Sender<u64>,
}

#[derive(Debug, Clone)]
struct Held {
    handle: String,
    lease: Lease,
    pauses: Pauses,
}

impl Held {
    fn new(handle: String, begun: Instant) -> Self {
        Self { handle, lease: Lease::begun(begun), pauses: Pauses::now() }
    }

    fn until(&self) -> u64 {
        let ends = self.lease.ends();
        clock::boot_nanos(ends.checked_sub(LAST_MOMENT).unwrap_or(ends))
    }
}

impl HeldLease {
    /// Returns the lease of the delivery `handle` that began at `begun` or later.
    pub fn new(handle: String, begun: Instant) -> Self {
        let held = Held::new(handle, begun);
        let until = watch::Sender::new(held.until());
        Self { held: Mutex::new(held), changed: Notify::new(), until }
    }

    /// Continues under a newer delivery of the same message.
    pub fn adopt(&self, handle: String, begun: Instant) {
        let held = Held::new(handle, begun);
        self.until.send_replace(held.until());
        *self.lock() = held;
        self.changed.notify_one();
    }

    /// Returns the handle that renews and deletes the message.
    pub fn handle(&self) -> String {
        self.lock().handle.clone()
    }

    /// Returns the time at which the lease ends. From then on, another runner may get the order.
    pub fn ends(&self) -> Instant {
        self.lock().lease.ends()
    }

    /// Returns a receiver of the time until which the job's processes may run (`CLOCK_BOOTTIME`, in nanoseconds).
    pub fn until(&self) -> watch::Receiver<u64> {
        self.until.subscribe()
    }

    /// Renews the lease again and again. Returns when the lease is lost.
    pub async fn keep(&self, inbox: &dyn Inbox) {
        let mut warned = Repeat::default();
        loop {
            let held = self.lock().clone();
            let jump = held.pauses.jump();
            if jump > STOOD_STILL {
                warn!("Lost a lease: this machine was suspended for {} s, or its clock was set", jump.as_secs());
                return;
            }
            match held.lease.step(Instant::now()) {
                Step::Lost => return,
                Step::Wait(until) => {
                    tokio::select! {
                        () = tokio::time::sleep_until(until.min(Instant::now() + COMPARE)) => {}
                        () = self.changed.notified() => {}
                    }
                }
                Step::Renew => {
                    if self.renew(inbox, &held, &mut warned).await.is_err() {
                        return;
                    }
                }
            }
        }
    }

    async fn renew(&self, inbox: &dyn Inbox, held: &Held, warned: &mut Repeat) -> Result<(), ()> {
        let (asked_at, pauses) = (Instant::now(), Pauses::now());
        let limit = CALL.min(held.lease.ends().saturating_duration_since(asked_at + MARGIN));
        let answer = tokio::time::timeout(limit, inbox.lease(&held.handle, limits::LEASE_SECS)).await;
        let mut now_held = self.lock();
        if now_held.handle != held.handle {
            return Ok(());
        }
        match answer {
            Ok(Ok(())) => {
                now_held.lease.renewed(asked_at);
                now_held.pauses = pauses;
                warned.is_over();
                self.until.send_replace(now_held.until());
            }
            Ok(Err(error @ InboxError::Gone(_))) => {
                warn!("Lost a lease: {error}");
                return Err(());
            }
            Ok(Err(error)) => {
                if warned.is_due("refused", Instant::now()) {
                    warn!("A lease was not renewed: {error}");
                }
                now_held.lease.failed(Instant::now());
            }
            Err(_) => {
                if warned.is_due("no answer", Instant::now()) {
                    warn!("A lease was not renewed: the queue did not answer in time");
                }
                now_held.lease.failed(Instant::now());
            }
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use async_trait::async_trait;

    use super::*;
    use crate::wire::inbox::Delivery;

    /// What the queue does with each renewal: answer (after a while) or fail.
    #[derive(Debug)]
    struct Renewals(Mutex<VecDeque<(Duration, Result<(), InboxError>)>>);

    #[async_trait]
    impl Inbox for Renewals {
        async fn receive(&self, _: u64) -> Result<Vec<Delivery>, InboxError> {
            Ok(Vec::new())
        }

        async fn lease(&self, _: &str, _: u64) -> Result<(), InboxError> {
            let next = self.0.lock().unwrap().pop_front();
            let (delay, answer) = next.unwrap_or((Duration::from_secs(3_600), Ok(())));
            tokio::time::sleep(delay).await;
            answer
        }

        async fn delete(&self, _: &str) -> Result<(), InboxError> {
            Ok(())
        }
    }

    async fn lost_after(answers: Vec<(u64, Result<(), InboxError>)>) -> Duration {
        let answers = answers.into_iter().map(|(secs, answer)| (Duration::from_secs(secs), answer)).collect();
        let start = Instant::now();
        let lease = HeldLease::new("handle".into(), start);
        lease.keep(&Renewals(Mutex::new(answers))).await;
        start.elapsed()
    }

    fn transient() -> Result<(), InboxError> {
        Err(InboxError::Transient("no".into()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_queue_that_never_answers_costs_the_lease_eight_seconds_before_its_end() {
        assert_eq!(lost_after(vec![]).await.as_secs(), 22);
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewal_counts_from_before_it_was_sent() {
        // Sent at 10 s and answered at 14 s: good until 40 s, so given up at 32 s.
        assert_eq!(lost_after(vec![(4, Ok(()))]).await.as_secs(), 32);
    }

    #[tokio::test(start_paused = true)]
    async fn failures_are_retried_until_one_works() {
        let lost = lost_after(vec![(0, transient()), (0, transient()), (0, Ok(()))]).await;

        assert_eq!(lost.as_secs(), 12 + 22);
    }

    #[tokio::test(start_paused = true)]
    async fn a_delivery_that_is_another_runners_now_is_given_up_at_once() {
        assert_eq!(lost_after(vec![(0, Err(InboxError::Gone("taken".into())))]).await.as_secs(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn a_newer_delivery_of_the_same_message_carries_the_lease_on() {
        let start = Instant::now();
        let lease = HeldLease::new("first".into(), start);
        let inbox = Renewals(Mutex::new(VecDeque::new()));
        let adopt = async {
            tokio::time::sleep(Duration::from_secs(12)).await;
            lease.adopt("second".into(), Instant::now());
        };

        let ((), ()) = tokio::join!(lease.keep(&inbox), adopt);

        assert_eq!(start.elapsed().as_secs(), 12 + 22);
        assert_eq!(lease.handle(), "second");
    }

    #[tokio::test(start_paused = true)]
    async fn a_machine_that_stood_still_has_lost_its_lease_though_its_own_clock_says_nothing() {
        let start = Instant::now();
        let lease = HeldLease::new("handle".into(), start);
        let suspend = async {
            tokio::time::sleep(Duration::from_secs(3)).await;
            lease.lock().pauses = Pauses::before_a_suspension_of(Duration::from_secs(60));
        };

        let inbox = Renewals(Mutex::new(VecDeque::new()));
        tokio::join!(lease.keep(&inbox), suspend);

        assert!(start.elapsed() < Duration::from_secs(6), "{:?}", start.elapsed());
    }

    #[test]
    fn a_lease_found_to_have_lapsed_is_lost_and_not_renewed() {
        let begun = Instant::now();

        assert_eq!(Lease::begun(begun).step(begun + Duration::from_secs(60)), Step::Lost);
    }
}

//! Ends a build runner whose machine exists only while there is work, without losing an order.
//!
//! The control plane sends an order and then asks the machine's group for a machine. The runner gives up its place in
//! the group and then looks at its queue once more. In whatever order these four steps happen, the runner sees the
//! order, or the group starts another machine after this one.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;
use tracing::{info, warn};

use crate::repeat::Repeat;

/// The time after which a machine that cannot do its work ends, whatever the reason is.
pub(crate) const USELESS: Duration = Duration::from_secs(60 * 60);
/// The time limit of one call to the group.
const ANSWER: Duration = Duration::from_secs(30);

/// The Auto Scaling group of this machine. It has one machine or none.
#[async_trait]
pub trait MachineGroup: Send + Sync + std::fmt::Debug {
    /// Sets the number of machines that the group should have: 0 or 1. This does not end an existing machine.
    async fn set(&self, machines: u8) -> Result<(), String>;
}

/// The group that this machine belongs to, and how long the runner waits for work before it ends.
#[derive(Debug, Clone)]
pub struct Membership {
    pub group: Arc<dyn MachineGroup>,
    pub idle: Duration,
}

/// Decides when the runner ends.
#[derive(Debug)]
pub(crate) struct Standby {
    member: Membership,
    /// The time since which there has been no work; `None` while there is work.
    idle_since: Option<Instant>,
    /// The number of machines that the group was last set to; `None` before the first call, and after a call that
    /// failed.
    last_sent: Option<u8>,
    /// The time since which all calls to the group have failed; `None` after a call that succeeded.
    unsent_since: Option<Instant>,
    /// The time of the last successful poll of the queue, or of the start.
    looked_at: Instant,
    warned: Repeat,
}

impl Standby {
    /// Returns the state of a runner that has just started.
    pub(crate) fn new(member: Membership) -> Self {
        let looked_at = Instant::now();
        Self { member, idle_since: None, last_sent: None, unsent_since: None, looked_at, warned: Repeat::default() }
    }

    /// Gives up the place in the group when there was no work for long enough, and takes it back when there is work.
    /// The queue must be polled after this.
    pub(crate) async fn before_look(&mut self, has_work: bool) {
        if has_work {
            self.idle_since = None;
            self.tell(1).await;
            return;
        }
        let since = *self.idle_since.get_or_insert_with(Instant::now);
        if since.elapsed() >= self.member.idle {
            self.tell(0).await;
        }
    }

    /// Returns whether the runner may end: it gave up its place, and the poll of the queue after that brought no work.
    pub(crate) fn may_end(&self, has_work: bool) -> bool {
        self.last_sent == Some(0) && !has_work
    }

    /// Records that a poll of the queue succeeded.
    pub(crate) fn looked(&mut self) {
        self.looked_at = Instant::now();
    }

    /// Returns the reason why this machine must end without the last poll of the queue, if it could not poll the queue
    /// or could not set the capacity of its group for [`USELESS`]. The machine would cost money and do nothing.
    pub(crate) fn useless(&self) -> Option<String> {
        let is_over = |since: Instant| since.elapsed() >= USELESS;
        if is_over(self.looked_at) {
            return Some(useless("look at the orders queue"));
        }
        self.unsent_since.is_some_and(is_over).then(|| useless("set the capacity of its group"))
    }

    async fn tell(&mut self, machines: u8) {
        if self.last_sent == Some(machines) {
            return;
        }
        // After an error, this machine does not know the capacity of its group.
        self.last_sent = None;
        let answer = tokio::time::timeout(ANSWER, self.member.group.set(machines)).await;
        match answer.unwrap_or_else(|_| Err(format!("no answer within {} s", ANSWER.as_secs()))) {
            Ok(()) => {
                self.last_sent = Some(machines);
                self.unsent_since = None;
                self.warned.is_over();
                if machines == 0 {
                    info!("No work for {} s: looking at the queue for the last time", self.member.idle.as_secs());
                }
            }
            Err(error) => {
                self.unsent_since.get_or_insert_with(Instant::now);
                if self.warned.is_due(&error, Instant::now()) {
                    warn!("Cannot set the capacity of this machine's group to {machines}: {error}");
                }
            }
        }
    }
}

/// Returns the sentence about a machine that could not do `what` for [`USELESS`].
pub(crate) fn useless(what: &str) -> String {
    format!(
        "this machine could not {what} for {} minutes, so it ends; the messages before this one state why",
        USELESS.as_secs() / 60
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Whether a call fails before or after its effect.
    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Fault {
        Before,
        After,
    }

    /// A group, the number of calls, and the fault of one of them.
    #[derive(Debug, Default)]
    struct Group {
        machines: Mutex<u8>,
        calls: Mutex<u32>,
        fault: Option<(u32, Fault)>,
    }

    #[async_trait]
    impl MachineGroup for Group {
        async fn set(&self, machines: u8) -> Result<(), String> {
            let mut calls = self.calls.lock().unwrap();
            *calls += 1;
            let fault = self.fault.filter(|(at, _)| at == &*calls).map(|(_, fault)| fault);
            if fault != Some(Fault::Before) {
                *self.machines.lock().unwrap() = machines;
            }
            fault.map_or(Ok(()), |_| Err("no answer".into()))
        }
    }

    fn standby(group: &Arc<Group>) -> Standby {
        Standby::new(Membership { group: group.clone(), idle: Duration::ZERO })
    }

    /// A step of the control plane.
    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Step {
        Send,
        Wake,
    }

    /// What is left when the steps of the control plane happen before those steps of the runner.
    #[derive(Debug, PartialEq)]
    enum End {
        /// The runner has the order, and the group has a place for its machine.
        Works,
        /// The runner has ended, and the group starts another machine.
        Replaced,
        /// The runner has ended, and nothing waits.
        Sleeps,
        Lost,
    }

    async fn end(steps: [(Step, u32); 2], fault: Option<(u32, Fault)>) -> End {
        let group = Arc::new(Group { machines: Mutex::new(1), fault, ..Group::default() });
        let mut standby = standby(&group);
        let (mut waiting, mut taken, mut now) = (0, 0, 0);
        let mut happen = |waiting: &mut u32, machines: &Mutex<u8>| {
            for (step, _) in steps.iter().filter(|(_, at)| *at == now) {
                match step {
                    Step::Send => *waiting += 1,
                    Step::Wake => *machines.lock().unwrap() = 1,
                }
            }
            now += 1;
        };
        let mut ended = false;
        for _ in 0..8 {
            happen(&mut waiting, &group.machines);
            if !ended {
                standby.before_look(taken > 0).await;
            }
            happen(&mut waiting, &group.machines);
            if !ended {
                taken += std::mem::take(&mut waiting);
                ended = standby.may_end(taken > 0);
            }
        }
        let machines = *group.machines.lock().unwrap();
        match (ended, waiting, taken, machines) {
            (false, 0, 1, 1) => End::Works,
            (true, 1, 0, 1) => End::Replaced,
            (true, 0, 0, _) => End::Sleeps,
            _ => End::Lost,
        }
    }

    /// Every place of two steps of the control plane between the first steps of the runner.
    fn places() -> impl Iterator<Item = (u32, u32)> {
        (0..12).flat_map(|first| (first..12).map(move |second| (first, second)))
    }

    #[tokio::test(start_paused = true)]
    async fn an_order_that_crosses_the_end_of_the_machine_is_taken_or_wakes_another_machine() {
        let faults = (1..4).flat_map(|at| [Some((at, Fault::Before)), Some((at, Fault::After))]);
        let mut seen = Vec::new();
        for fault in faults.chain([None]) {
            for (sent, woken) in places() {
                let end = end([(Step::Send, sent), (Step::Wake, woken)], fault).await;

                assert!(matches!(end, End::Works | End::Replaced), "{end:?}: {sent} {woken} {fault:?}");
                seen.push(end);
            }
        }
        assert!(seen.contains(&End::Works) && seen.contains(&End::Replaced));
    }

    #[tokio::test(start_paused = true)]
    async fn waking_before_sending_would_lose_orders() {
        let mut lost = 0;
        for (woken, sent) in places() {
            lost += u32::from(end([(Step::Wake, woken), (Step::Send, sent)], None).await == End::Lost);
        }

        assert_ne!(lost, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn the_place_is_kept_until_there_was_no_work_for_long_enough() {
        let group = Arc::new(Group { machines: Mutex::new(1), ..Group::default() });
        let mut standby = Standby::new(Membership { group: group.clone(), idle: Duration::from_secs(600) });
        let mut after = async |secs, has_work| {
            tokio::time::advance(Duration::from_secs(secs)).await;
            standby.before_look(has_work).await;
            (*group.machines.lock().unwrap(), standby.may_end(has_work))
        };

        assert_eq!(after(0, false).await, (1, false));
        assert_eq!(after(599, false).await, (1, false));
        assert_eq!(after(1, true).await, (1, false));
        assert_eq!(after(1, false).await, (1, false));
        assert_eq!(after(599, false).await, (1, false));
        assert_eq!(after(1, false).await, (0, true));
        assert_eq!(after(0, true).await, (1, false));
    }

    #[tokio::test(start_paused = true)]
    async fn the_group_is_told_once_and_not_at_each_look() {
        let group = Arc::new(Group { machines: Mutex::new(1), ..Group::default() });
        let mut standby = standby(&group);

        for has_work in [true, true, true, false, false, false] {
            standby.before_look(has_work).await;
        }

        assert_eq!(*group.calls.lock().unwrap(), 2);
    }
}

//! One state of the whole protocol: jobs, orders and reports on their way, runners, and what the rules watch.

use crate::bounds::Bounds;
use crate::job::{Fence, Job, Time};
use crate::report::{DISPATCHES, RUNNERS, Reports};
use crate::rule::Rule;
use crate::runner::{Attempt, JOBS, Machine, Redelivery, Runner};

/// One state of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct World {
    pub jobs: [JobPart; JOBS],
    pub runners: [Runner; RUNNERS],
    /// Whose key the control plane listens to; the ones before it are retired.
    pub speaker: u8,
    /// The customer has switched the runner off.
    pub paused: bool,
    /// How many orders were sent: decides who is first in a FIFO group.
    pub sent: u8,
    /// The faults and wishes that are used up.
    pub spent: Spent,
    /// Rules that a step has broken, by bit.
    pub broken: u32,
}

/// Everything about one job that is not on a runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct JobPart {
    pub redelivery: Redelivery,
    pub job: Job,
    /// The grace after the current order's expiry is over.
    pub outlived: bool,
    /// The job has waited for its runner for as long as it may.
    pub waited: bool,
    pub orders: [Order; DISPATCHES],
    /// The dispatch that a cancel message on the way means; 0 for none.
    pub cancel: u8,
    /// What the reports queue holds.
    pub reports: Reports,
    /// Watched: by runner, the last receive of the current dispatch whose end the reports queue took; 0 for none.
    pub ended_receive: [u8; RUNNERS],
    /// Watched: the job's end came from a report.
    pub ended_by_report: bool,
    /// By dispatch, the one from which it follows by orders that came back: a retry begins a new one.
    pub origin: [u8; DISPATCHES],
    /// Watched: how often a job that must not start twice has had its effect, by origin.
    pub effects: [u8; DISPATCHES],
}

/// The order of one dispatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Order {
    pub place: Place,
    /// SQS `ApproximateReceiveCount`.
    pub receives: u8,
    /// Its place in its group.
    pub nth: u8,
    /// Its `not_after` has passed.
    pub expired: bool,
    /// Copies behind it that deduplication should have stopped.
    pub copies: u8,
    /// One delivery has reached both runners.
    pub twins: bool,
    /// The receives, by bit, that went back unstarted with a note for other machines.
    pub noted: u8,
    /// The runner for whose key it was made; 0 where nobody keeps orders.
    pub made_for: u8,
    /// Somebody kept the order and sent it again, in a second message.
    pub is_copy: bool,
    /// By runner, what the audit chain of the install has of the order; nothing where nobody keeps orders.
    pub recorded: [Recorded; RUNNERS],
}

/// For each message with an order, the highest receive for which the audit chain has a start or an end by one runner; 0
/// for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Recorded {
    pub original: u8,
    pub copy: u8,
}

impl Recorded {
    /// Returns whether this excludes a delivery to another runner: a start or an end excludes every other message, and the
    /// earlier receives of its own message.
    pub const fn excludes(self, is_copy: bool, receive: u8) -> bool {
        let (same, other) = if is_copy { (self.copy, self.original) } else { (self.original, self.copy) };
        other > 0 || same >= receive
    }
}

/// Where an order is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Place {
    #[default]
    Unsent,
    Waiting,
    InFlight {
        runner: u8,
    },
    /// Deleted, or in the dead-letter queue.
    Gone,
}

/// How much of each bounded thing has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Spent {
    pub lapses: u8,
    pub crashes: u8,
    pub losses: u8,
    pub acks: u8,
    pub cancels: u8,
    pub lates: u8,
    pub twins: u8,
    pub pauses: u8,
    pub kept: u8,
}

impl World {
    /// Returns the world before anything has happened.
    pub fn new(redelivery: [Redelivery; JOBS]) -> Self {
        Self {
            jobs: redelivery.map(JobPart::new),
            runners: [Runner::UP, Runner::ABSENT],
            speaker: 0,
            paused: false,
            sent: 0,
            spent: Spent::default(),
            broken: 0,
        }
    }

    /// Remembers that a step broke `rule`, when `broken`.
    pub const fn watch(&mut self, rule: Rule, broken: bool) {
        if broken {
            self.broken |= rule.bit();
        }
    }

    /// Returns the order of `dispatch` of job `j`.
    pub const fn order(&self, j: usize, dispatch: u8) -> &Order {
        &self.jobs[j].orders[dispatch as usize - 1]
    }

    /// Returns the order of `dispatch` of job `j`.
    pub const fn order_mut(&mut self, j: usize, dispatch: u8) -> &mut Order {
        &mut self.jobs[j].orders[dispatch as usize - 1]
    }

    /// Returns whether runner `r` holds the lease of the delivery that `fence` names.
    pub fn holds_lease(&self, r: usize, j: usize, fence: Fence) -> bool {
        let order = self.order(j, fence.dispatch);
        match order.place {
            Place::InFlight { runner } => order.receives == fence.receive && (usize::from(runner) == r || order.twins),
            Place::Unsent | Place::Waiting | Place::Gone => false,
        }
    }

    /// Returns the runners whose attempt at job `j` is of `dispatch`, with their attempts.
    pub fn attempts(&self, j: usize, dispatch: u8) -> impl Iterator<Item = (usize, Attempt)> {
        self.runners
            .iter()
            .map(move |runner| runner.attempts[j])
            .enumerate()
            .filter(move |(_, attempt)| attempt.fence().is_some_and(|fence| fence.dispatch == dispatch))
    }

    /// Returns whether an attempt at `dispatch` of job `j` works.
    pub fn is_worked_on(&self, j: usize, dispatch: u8) -> bool {
        self.attempts(j, dispatch).any(|(_, attempt)| attempt.is_working())
    }

    /// Returns whether SQS may hand out this order: it waits, and nothing before it in its group is there.
    pub fn is_first_in_group(&self, bounds: &Bounds, j: usize, dispatch: u8) -> bool {
        let order = self.order(j, dispatch);
        let before =
            |other: &Order| matches!(other.place, Place::Waiting | Place::InFlight { .. }) && other.nth < order.nth;
        order.place == Place::Waiting
            && (0..bounds.jobs)
                .filter(|other| bounds.same_group(*other, j))
                .all(|other| !self.jobs[other].orders.iter().any(before))
    }

    /// Returns the times of job `j` as the control plane counts them.
    pub const fn time(&self, j: usize) -> Time {
        let part = &self.jobs[j];
        let too_late = self.order(j, part.job.dispatch).expired;
        Time {
            too_late,
            outlived: part.outlived,
            waited: part.waited,
            begun: false,
            closed_too_long: false,
            plan_expired: false,
            plan_over: false,
        }
    }

    /// Returns whether any report about the job's current dispatch is still on its way.
    pub fn will_hear_of(&self, j: usize) -> bool {
        let part = &self.jobs[j];
        part.reports.speaks_of(part.job.dispatch)
            || self.runners.iter().any(|runner| runner.will_speak_of(j, &part.job))
    }

    /// Returns how many attempts work on the things of job `j`'s group at this moment.
    pub fn working_in_group(&self, bounds: &Bounds, j: usize) -> usize {
        (0..bounds.jobs)
            .filter(|other| *other == j || bounds.one_thing)
            .map(|other| self.runners.iter().filter(|runner| runner.attempts[other].is_working()).count())
            .sum()
    }
}

impl JobPart {
    /// Begins a new dispatch of the job, which follows from the dispatch `origin`.
    pub(crate) const fn dispatched(&mut self, origin: u8) {
        self.origin[self.job.dispatch as usize - 1] = origin;
        self.outlived = false;
        self.ended_by_report = false;
        self.ended_receive = [0; RUNNERS];
    }

    fn new(redelivery: Redelivery) -> Self {
        Self {
            redelivery,
            job: Job::default(),
            outlived: false,
            waited: false,
            orders: Default::default(),
            cancel: 0,
            reports: Reports::NONE,
            ended_receive: [0; RUNNERS],
            ended_by_report: false,
            origin: [1; DISPATCHES],
            effects: [0; DISPATCHES],
        }
    }
}

impl Order {
    /// Takes the order out of the queue; a copy that should not be there comes next.
    pub const fn leave(&mut self) {
        *self = if self.copies > 0 {
            Self { place: Place::Waiting, receives: 0, copies: self.copies - 1, twins: false, ..*self }
        } else {
            Self { place: Place::Gone, receives: 0, nth: 0, twins: false, copies: 0, noted: 0, ..*self }
        };
    }

    /// Notes that no attempt has started up to `receive`. Nobody reads a note about an order that is gone.
    pub const fn note(&mut self, receive: u8) {
        if !matches!(self.place, Place::Gone) {
            self.noted |= 1 << receive;
        }
    }
}

impl Runner {
    /// Returns the machine after it was lost with its disk.
    pub const fn lost() -> Self {
        Self { machine: Machine::Gone, ..Self::ABSENT }
    }
}

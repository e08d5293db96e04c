//! What a runner knows and decides: its journal, its attempt per job, its spool.

use crate::bug::{Seed, seeded};
use crate::job::{Fence, Job, Outcome};
use crate::report::Reports;

/// The most jobs that the model follows.
pub const JOBS: usize = 2;

/// What a second delivery means after the first attempt's runner died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Redelivery {
    Resume,
    Interrupted,
}

/// Whether the runner's machine is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Machine {
    NotYet,
    Up,
    Gone,
}

/// A runner with its disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Runner {
    pub machine: Machine,
    pub attempts: [Attempt; JOBS],
    pub journal: [Entry; JOBS],
    pub spool: [Reports; JOBS],
    /// Attempts that the control plane wants stopped: the loser of two equal fences, or a stale one.
    pub stop: [bool; JOBS],
}

/// What a runner does about one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Attempt {
    Idle,
    /// The answer to its receive request is on the way.
    Coming {
        fence: Fence,
    },
    /// Accepted; nothing is journaled or started yet.
    Ready {
        fence: Fence,
    },
    /// The job's process runs; `changed` once it has had its effect.
    Working {
        fence: Fence,
        changed: bool,
    },
    /// Over and journaled; the order is deleted once the report is durable.
    Done {
        fence: Fence,
    },
}

impl Attempt {
    /// Returns the fence of the delivery that it answers.
    pub const fn fence(&self) -> Option<Fence> {
        match *self {
            Self::Idle => None,
            Self::Coming { fence } | Self::Ready { fence } | Self::Working { fence, .. } | Self::Done { fence } => {
                Some(fence)
            }
        }
    }

    /// Returns whether the job's process runs.
    pub const fn is_working(&self) -> bool {
        matches!(self, Self::Working { .. })
    }
}

/// What a journal holds of one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Entry {
    /// The newest dispatch that was accepted or put back; 0 for none.
    pub dispatch: u8,
    pub phase: Phase,
    /// The dispatch that the control plane cancelled before it was in hand; 0 for none.
    pub cancelled: u8,
    /// An order was accepted, so that no older one of its group is. An order that was put back was not.
    pub accepted: bool,
}

/// How far the newest dispatch came here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Phase {
    #[default]
    Accepted,
    /// Put back into the queue; no attempt has begun up to this receive of the message.
    PutBack {
        receive: u8,
        message: u8,
    },
    Started,
    Finished(Outcome),
}

impl Entry {
    /// Returns whether the journal knows how `dispatch` ended.
    pub const fn has_finished(self, dispatch: u8) -> bool {
        self.dispatch == dispatch && matches!(self.phase, Phase::Finished(_))
    }
}

/// What a runner makes of a delivered order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use]
pub enum Decision {
    /// Nobody has begun it.
    Start,
    /// An earlier attempt may have begun: start again from refreshed state.
    Resume,
    /// An earlier attempt may have begun, and this kind is not started a second time.
    Interrupted,
    /// It ended here: report that again.
    Again(Outcome),
    /// The control plane cancelled the order before it started.
    Cancelled,
    /// Too late to be started: given back.
    GiveBack,
    /// Refused: a newer order of the group, or a newer dispatch of the job, was accepted before.
    Replayed,
}

/// What a delivered order says, beside the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Delivery {
    pub fence: Fence,
    /// Which of the messages with the order it delivers.
    pub message: u8,
    pub redelivery: Redelivery,
    pub expired: bool,
    /// The journal holds an order of the same group with a higher serial.
    pub newer_accepted: bool,
    /// A machine noted that no attempt had started when the delivery before this one went back.
    pub noted: bool,
}

/// Returns what a runner with `entry` in its journal makes of `delivery`.
///
/// A second receive of an order that must not start twice ends as interrupted even when the journal knows nothing of
/// a start: another machine, whose journal is lost, may have started it. Only a journal that has seen all earlier receives
/// of the message put back knows better.
pub fn decide(seed: Seed, entry: Entry, delivery: Delivery) -> Decision {
    let Delivery { fence, message, redelivery, expired, newer_accepted, noted: _ } = delivery;
    let Fence { dispatch, receive } = fence;
    if (newer_accepted || entry.dispatch > dispatch) && !seeded!(seed, SerialNotChecked) {
        return Decision::Replayed;
    }
    let known = (entry.dispatch == dispatch).then_some(entry.phase);
    match known {
        Some(Phase::Finished(outcome)) if !seeded!(seed, FinishedForgotten) => return Decision::Again(outcome),
        Some(Phase::Accepted | Phase::PutBack { .. } | Phase::Started | Phase::Finished(_)) | None => {}
    }
    if entry.cancelled == dispatch && !seeded!(seed, CancelForgotten) {
        return Decision::Cancelled;
    }
    let unstarted = match known {
        Some(Phase::PutBack { .. }) if seeded!(seed, PutBackCountsForOthers) => receive,
        Some(Phase::PutBack { receive, message: of }) if of == message || seeded!(seed, JournalNamesNoMessage) => {
            receive
        }
        Some(Phase::Accepted | Phase::PutBack { .. } | Phase::Started | Phase::Finished(_)) | None => 0,
    };
    let may_have_begun = receive > unstarted + 1 || known == Some(Phase::Started);
    let in_time = !expired || seeded!(seed, ExpiredOrderStarts);
    match (may_have_begun, redelivery) {
        (false, _) | (true, Redelivery::Resume) if !in_time => Decision::GiveBack,
        (true, Redelivery::Interrupted) if !in_time && seeded!(seed, StartedIsGivenBack) => Decision::GiveBack,
        (false, _) => Decision::Start,
        (true, Redelivery::Resume) => Decision::Resume,
        (true, Redelivery::Interrupted) if seeded!(seed, InterruptedStartsAgain) => Decision::Start,
        (true, Redelivery::Interrupted) => Decision::Interrupted,
    }
}

/// Returns whether only a machine with another journal can have begun the delivered job, which must not start twice.
pub fn is_unseen(seed: Seed, entry: Entry, delivery: Delivery) -> bool {
    let Fence { dispatch, .. } = delivery.fence;
    let only_put_back = entry.dispatch != dispatch || matches!(entry.phase, Phase::PutBack { .. });
    only_put_back && decide(seed, entry, Delivery { expired: false, ..delivery }) == Decision::Interrupted
}

/// Returns the journal's entry after the runner has looked for another machine's note of the delivery before this one.
pub fn learn(seed: Seed, entry: Entry, delivery: Delivery) -> Entry {
    let Fence { dispatch, receive } = delivery.fence;
    if delivery.noted && is_unseen(seed, entry, delivery) {
        Entry { dispatch, phase: Phase::PutBack { receive: receive - 1, message: delivery.message }, ..entry }
    } else {
        entry
    }
}

/// Returns the journal's entry after `delivery` goes back to the queue unstarted; `None` when an earlier attempt may have
/// begun, so that nothing is written.
pub fn put_back(seed: Seed, entry: Entry, delivery: Delivery) -> Option<Entry> {
    let Fence { dispatch, receive } = delivery.fence;
    let unstarted = decide(seed, entry, Delivery { expired: false, ..delivery }) == Decision::Start;
    (unstarted || seeded!(seed, PutBackForgetsStart)).then_some(Entry {
        dispatch,
        phase: Phase::PutBack { receive, message: delivery.message },
        ..entry
    })
}

impl Runner {
    /// A machine that is not there yet.
    pub const ABSENT: Self = Self {
        machine: Machine::NotYet,
        attempts: [Attempt::Idle; JOBS],
        journal: [Entry { dispatch: 0, phase: Phase::Accepted, cancelled: 0, accepted: false }; JOBS],
        spool: [Reports::NONE; JOBS],
        stop: [false; JOBS],
    };

    /// A machine that is up, with an empty disk.
    pub const UP: Self = Self { machine: Machine::Up, ..Self::ABSENT };

    /// Returns whether the machine is there.
    pub const fn is_up(&self) -> bool {
        matches!(self.machine, Machine::Up)
    }

    /// Returns whether a report about the job's current dispatch waits on its disk.
    pub fn will_speak_of(&self, j: usize, job: &Job) -> bool {
        self.is_up() && self.spool[j].speaks_of(job.dispatch)
    }
}

//! The worlds of an order and a copy of it, within bounds: the two messages, the machines that receive them, and the
//! audit chain.

use crate::bug::Seed;
use crate::copies::chain::{Chain, Delivery};
use crate::runner::{Entry, Phase, Redelivery};

/// The original order, and the copy that somebody sends.
pub const MESSAGES: usize = 2;
/// The message with the original order.
pub const ORIGINAL: usize = 0;
/// The message with the copy.
pub const COPY: usize = 1;
/// The most machines that the model follows.
pub const MACHINES: usize = 3;
/// The machine for whose key the order was made.
pub const OWNER: usize = 0;

/// Where a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    Unsent,
    Waiting,
    InFlight {
        machine: u8,
    },
    /// Deleted by a machine that refused it, or after the end of the job.
    Deleted,
    /// In the dead-letter queue.
    Dead,
}

/// A message with the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Message {
    pub place: Place,
    /// SQS `ApproximateReceiveCount`.
    pub receives: u8,
}

/// How far a machine is with a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// It has the order in hand, and has not decided about it.
    Taken,
    /// It will start the job.
    Accepted,
    /// The chain has the record of the start.
    Announced,
    /// It will give the order back, and has looked into the chain.
    GoesBack,
    /// The chain has the record that it gives the order back.
    GivenBack,
    /// The job runs, and the journal has its start.
    Working,
    /// The job has ended: the journal and the reports queue have its outcome.
    Done {
        /// The job ran in this attempt.
        started: bool,
    },
}

/// A machine with its disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Machine {
    pub is_up: bool,
    /// The delivery that it has in flight.
    pub attempt: Option<(Stage, Delivery)>,
    pub journal: Entry,
    /// The journal has the record that the order was given back.
    pub gave_back: bool,
}

/// One state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct World {
    pub redelivery: Redelivery,
    pub messages: [Message; MESSAGES],
    pub machines: [Machine; MACHINES],
    pub chain: Chain,
    /// For each message, the receives, by bit, that went back unstarted with a note for other machines.
    pub noted: [u8; MESSAGES],
    pub lapses: u8,
    pub crashes: u8,
    pub losses: u8,
    pub put_backs: u8,
    pub give_backs: u8,
    /// Watched: the reports queue has the report that the order was given back, so the work is ordered again.
    pub is_given_back: bool,
    /// Watched: by message, the machines that started the job under it, by bit.
    pub started: [u8; MESSAGES],
    /// Watched: the highest receive of an attempt that started; 0 for none.
    pub newest_start: u8,
    /// Watched: the highest receive of which the reports queue has the outcome; 0 for none.
    pub newest_outcome: u8,
    /// Watched: the chain has an outcome, and before it no other machine's start of a later delivery or of the other
    /// message.
    pub has_ended: bool,
    /// Rules that a step has broken, by bit.
    pub broken: u8,
}

/// Something that happens; `r` is a machine, `m` a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    SendCopy,
    LeaseEnds {
        m: usize,
    },
    Receive {
        r: usize,
        m: usize,
    },
    /// Decides about the delivery in hand, by the journal and the chain.
    Decide {
        r: usize,
    },
    /// Records in the chain that the job starts.
    Announce {
        r: usize,
    },
    /// Looks for earlier records, and starts the job.
    Start {
        r: usize,
    },
    /// Lets go of a delivery that is not started and whose lease is over.
    Drop {
        r: usize,
    },
    /// Puts a delivery back that is not started: the machine drains, is switched off, or cannot read the chain.
    PutBack {
        r: usize,
    },
    /// Takes the next step to give the order back: looks into the chain, records it, reports it, or deletes the
    /// message.
    GiveBack {
        r: usize,
    },
    /// Stops the job before the lease ends.
    StopForLease {
        r: usize,
    },
    Finish {
        r: usize,
    },
    /// Records the outcome in the chain.
    Conclude {
        r: usize,
    },
    Delete {
        r: usize,
    },
    /// Kills the machine's process, which starts again with its disk.
    Crash {
        r: usize,
    },
    /// Loses the machine with its disk.
    Lose {
        r: usize,
    },
}

/// An order and a copy of it, within bounds.
#[derive(Debug, Clone, Copy)]
pub struct Space {
    pub name: &'static str,
    /// The machines that receive messages, all of them from the beginning.
    pub machines: usize,
    /// The copy is in the message group of the original. SQS then delivers it only behind the original.
    pub has_one_group: bool,
    /// The machines refuse a copy that is in another message group.
    pub compares_groups: bool,
    /// Receives of one message before the dead-letter queue.
    pub receives: u8,
    /// Leases that end although their machine lives.
    pub lapses: u8,
    /// Times that a process is killed.
    pub crashes: u8,
    /// Machines lost with their disk.
    pub losses: u8,
    /// Times that a machine puts an order back although it has the lease.
    pub put_backs: u8,
    /// Times that a machine gives an order back although no other one has done so: it is too late, or the customer lets
    /// no change start.
    pub give_backs: u8,
    pub seed: Seed,
}

impl Machine {
    /// A machine that is up, with an empty disk.
    pub const UP: Self = Self {
        is_up: true,
        attempt: None,
        journal: Entry { dispatch: 0, phase: Phase::Accepted, cancelled: 0, accepted: false },
        gave_back: false,
    };

    /// A machine that is lost, or was never there.
    pub const ABSENT: Self = Self { is_up: false, ..Self::UP };

    /// Returns whether the journal has a start or an end of the job.
    pub const fn knows_order(&self) -> bool {
        matches!(self.journal.phase, Phase::Started | Phase::Finished(_))
    }
}

impl World {
    /// Returns the world in which the original waits in the queue, and nothing else has happened.
    pub fn new(space: &Space, redelivery: Redelivery) -> Self {
        let message = |place| Message { place, receives: 0 };
        Self {
            redelivery,
            messages: [message(Place::Waiting), message(Place::Unsent)],
            machines: std::array::from_fn(|r| if r < space.machines { Machine::UP } else { Machine::ABSENT }),
            chain: Chain::default(),
            noted: [0; MESSAGES],
            lapses: 0,
            crashes: 0,
            losses: 0,
            put_backs: 0,
            give_backs: 0,
            is_given_back: false,
            started: [0; MESSAGES],
            newest_start: 0,
            newest_outcome: 0,
            has_ended: false,
            broken: 0,
        }
    }

    /// Returns whether machine `r` has the lease of a delivery.
    pub fn has_lease(&self, r: usize, delivery: Delivery) -> bool {
        let leased = Message { place: Place::InFlight { machine: r as u8 }, receives: delivery.receive };
        self.messages[usize::from(delivery.message)] == leased
    }

    /// Returns whether SQS may deliver message `m` to machine `r`. In one group, the copy comes after the original is
    /// gone, or together with it in one response.
    pub fn is_deliverable(&self, space: &Space, r: usize, m: usize) -> bool {
        let [original, copy] = self.messages.map(|message| message.place);
        let is_turn = match m {
            ORIGINAL => !matches!(copy, Place::InFlight { .. }),
            _ => {
                let attempt = self.machines[r].attempt;
                let comes_along = matches!(attempt, Some((Stage::Taken, held)) if self.has_lease(r, held));
                comes_along || matches!(original, Place::Deleted | Place::Dead)
            }
        };
        self.messages[m].place == Place::Waiting && (is_turn || !space.has_one_group)
    }

    /// Returns whether the control plane will have an outcome: the reports queue has one that no later attempt
    /// supersedes.
    pub const fn has_outcome(&self) -> bool {
        self.newest_outcome > 0 && self.newest_outcome >= self.newest_start
    }
}

impl Space {
    /// The copy is behind the original, in its message group.
    pub const BEHIND: Self = Self {
        name: "copies: behind",
        machines: 2,
        has_one_group: true,
        compares_groups: true,
        receives: 3,
        lapses: 1,
        crashes: 1,
        losses: 1,
        put_backs: 0,
        give_backs: 0,
        seed: NO_SEED,
    };
    /// The same, and machines put orders back.
    pub const BEHIND_PUT_BACK: Self =
        Self { name: "copies: behind, put back", lapses: 0, put_backs: 2, ..Self::BEHIND };
    /// The copy is in another message group, and the machines refuse it.
    pub const OTHER_GROUP: Self =
        Self { name: "copies: other group", has_one_group: false, put_backs: 1, lapses: 0, ..Self::BEHIND };
    /// The copy is in another message group, which the machines do not compare: both messages may be in flight at once,
    /// and the chain alone decides.
    pub const BESIDE: Self =
        Self { name: "copies: beside", has_one_group: false, compares_groups: false, receives: 2, ..Self::BEHIND };
    /// The same, and machines put orders back, but are neither killed nor lost.
    pub const BESIDE_PUT_BACK: Self =
        Self { name: "copies: beside, put back", crashes: 0, losses: 0, put_backs: 1, ..Self::BESIDE };
    /// The same as `BESIDE`, and a machine gives the order back, but none is killed or lost.
    pub const GIVEN_BACK: Self =
        Self { name: "copies: given back", crashes: 0, losses: 0, give_backs: 1, ..Self::BESIDE };
    /// The same, and a process is killed.
    pub const GIVEN_BACK_KILLED: Self = Self { name: "copies: given back, killed", crashes: 1, ..Self::GIVEN_BACK };
    /// The same as `BESIDE` with a third machine.
    pub const THREE_MACHINES: Self = Self { name: "copies: three machines", machines: 3, lapses: 0, ..Self::BESIDE };

    /// Every space. Mistakes are hunted in this order, which begins with the spaces that are small.
    pub const ALL: [Self; 8] = [
        Self::OTHER_GROUP,
        Self::BESIDE_PUT_BACK,
        Self::GIVEN_BACK,
        Self::BEHIND,
        Self::BEHIND_PUT_BACK,
        Self::THREE_MACHINES,
        Self::BESIDE,
        Self::GIVEN_BACK_KILLED,
    ];

    /// Returns whether a machine may start the copy.
    pub const fn accepts_copy(&self) -> bool {
        self.has_one_group || !self.compares_groups
    }

    /// Returns the space with a mistake in it.
    pub const fn seeded(self, seed: Seed) -> Self {
        Self { seed, ..self }
    }
}

const NO_SEED: Seed = Seed {
    #[cfg(any(test, feature = "mutants"))]
    bug: None,
};

//! The worlds in which a verified deploy lives, within bounds: its jobs, its executions, the messages between them, and the other
//! workflows of the install.

use crate::bug::Seed;
use crate::workflow::install::{Install, Who};
use crate::workflow::nodes::{Act, End, Graph, NODES, Part, Workflow};

/// One more than the highest number of dispatches that a job can have within the bounds.
pub const DISPATCHES: usize = 8;
/// The serial of the deploy.
pub const SERIAL: u8 = 1;

/// The job of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Job {
    /// The number of its last dispatch; 0 before the node starts.
    pub dispatch: u8,
    pub end: Option<End>,
    /// Somebody wants it cancelled.
    pub is_cancelled: bool,
}

impl Job {
    /// Returns whether the job was dispatched and has not ended.
    pub const fn is_open(self) -> bool {
        self.dispatch > 0 && self.end.is_none()
    }
}

/// The executions of the deploy's state machine, one for each attempt, by bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Executions {
    /// Those that are about to start the graph.
    pub starting: u8,
    /// Those that have started it, or were refused.
    pub started: u8,
    /// Those that wait for the end of the last job.
    pub waiting: u8,
    /// Those for which somebody found that the last job has ended, and is about to resume them.
    pub callbacks: u8,
    /// Those that call for the end of the workflow.
    pub finishing: u8,
    /// Those that failed and call for the end of the workflow.
    pub failing: u8,
}

/// A workflow beside the deploy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Neighbour {
    NotYet,
    Live,
    Ended,
}

/// How often something happened that the bounds limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Times {
    pub failures: u8,
    pub lost: u8,
    pub repeated: u8,
    pub continued: u8,
    pub cancels: u8,
    pub errors: u8,
}

/// One state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct World {
    pub install: Install,
    pub deploy: Workflow,
    pub jobs: [Job; NODES],
    /// The messages that ask for the order of a job, by bit of the dispatch.
    pub asked: [u8; NODES],
    /// The last dispatch of each job whose order the runner has.
    pub sent: [u8; NODES],
    /// The attempts that work, by bit of the dispatch.
    pub at_work: [u8; NODES],
    /// The reports of ends in the queue, by dispatch.
    pub reports: [[Option<End>; DISPATCHES]; NODES],
    pub executions: Executions,
    /// The task that rolls the deploy back is stored.
    pub is_due: bool,
    /// The call after the end of the deploy, which rolls it back, is on its way.
    pub is_called: bool,
    pub roll_back: Neighbour,
    pub other: Neighbour,
    pub times: Times,
    /// How often the machine retried the job of each node since the deploy was last continued.
    pub retried: [u8; NODES],
    /// The number of roll backs that have begun.
    pub roll_backs: u8,
    /// The rules that a step broke, by bit.
    pub broken: u16,
}

/// A message that may be lost: whoever sends it commits first, and may crash after that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Message {
    Ask { node: usize, dispatch: u8 },
    Start { attempt: u8 },
    Callback { attempt: u8 },
    Finish { attempt: u8, has_error: bool },
    Call,
}

/// Something that happens. What is not acknowledged happens again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// An execution starts the graph.
    Start {
        attempt: u8,
        is_acknowledged: bool,
    },
    /// An execution is resumed, because the last job has ended.
    Callback {
        attempt: u8,
    },
    /// An execution ends its workflow.
    Finish {
        attempt: u8,
        has_error: bool,
        is_acknowledged: bool,
    },
    /// An execution fails for a reason of its own, perhaps while jobs are open.
    Fail {
        attempt: u8,
    },
    Lose(Message),
    /// The order of a job is sent, if the job waits for it.
    Order {
        node: usize,
        dispatch: u8,
        is_acknowledged: bool,
    },
    /// An attempt ends, and its runner reports that.
    Work {
        node: usize,
        dispatch: u8,
        end: End,
    },
    Report {
        node: usize,
        dispatch: u8,
        is_acknowledged: bool,
    },
    /// The order of a job has expired, and no attempt works. The report of its end may be on its way.
    Expire {
        node: usize,
    },
    /// The sweep asks again for an order that was not sent.
    SweepOrder {
        node: usize,
    },
    /// The sweep looks at a deploy without open jobs.
    SweepDeploy,
    /// The task that rolls the deploy back is done.
    DueTask {
        is_acknowledged: bool,
    },
    /// The call after the end of the deploy rolls it back.
    Call,
    Cancel,
    Continue(Act),
    BeginOther,
    EndOther,
    EndRollBack {
        has_failed: bool,
    },
}

/// The life of a verified deploy, within bounds.
#[derive(Debug, Clone, Copy)]
pub struct Space {
    pub name: &'static str,
    pub graph: Graph,
    /// The nodes that are gates, by bit: they are blocked where others fail.
    pub gates: u8,
    /// Jobs that fail, are blocked or lost, and roll backs that fail.
    pub failures: u8,
    /// Messages that are lost.
    pub lost: u8,
    /// Messages that come again.
    pub repeated: u8,
    /// How often a person continues the deploy.
    pub continued: u8,
    /// How often a person cancels the deploy.
    pub cancels: u8,
    /// Executions that fail.
    pub errors: u8,
    /// Whether a person starts another workflow.
    pub has_other: bool,
    pub seed: Seed,
}

impl World {
    /// Returns the world after the commit that begins the deploy.
    pub fn new() -> Self {
        Self {
            install: Install { live: Some(Who::Deploy), last: SERIAL, next_serial: SERIAL + 1 },
            deploy: Workflow::new(Part::Verified),
            jobs: [Job::default(); NODES],
            asked: [0; NODES],
            sent: [0; NODES],
            at_work: [0; NODES],
            reports: [[None; DISPATCHES]; NODES],
            executions: Executions { starting: 1, ..Executions::default() },
            is_due: false,
            is_called: false,
            roll_back: Neighbour::NotYet,
            other: Neighbour::NotYet,
            times: Times::default(),
            retried: [0; NODES],
            roll_backs: 0,
            broken: 0,
        }
    }

    /// Returns the message bits that `message` is one of, and its own bit.
    pub fn bits_of(&mut self, message: Message) -> Option<(&mut u8, u8)> {
        let executions = &mut self.executions;
        Some(match message {
            Message::Ask { node, dispatch } => (&mut self.asked[node], 1 << dispatch),
            Message::Start { attempt } => (&mut executions.starting, 1 << attempt),
            Message::Callback { attempt } => (&mut executions.callbacks, 1 << attempt),
            Message::Finish { attempt, has_error: false } => (&mut executions.finishing, 1 << attempt),
            Message::Finish { attempt, has_error: true } => (&mut executions.failing, 1 << attempt),
            Message::Call => return None,
        })
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

impl Space {
    /// A component that the machine may retry twice, its gate, and a component after the gate. Messages are lost, and another
    /// workflow may begin.
    pub const GATE: Self = Self {
        name: "workflow: gate",
        graph: Graph { needs: [0, 0b001, 0b010], retries: [2, 1, 0], slots: 2 },
        gates: 0b010,
        failures: 2,
        lost: 1,
        repeated: 1,
        continued: 1,
        cancels: 0,
        errors: 0,
        has_other: true,
        seed: NO_SEED,
    };
    /// Two components side by side, and one that needs both. A person cancels.
    pub const CANCEL: Self = Self {
        name: "workflow: cancel",
        graph: Graph { needs: [0, 0, 0b011], retries: [1, 0, 0], slots: 2 },
        gates: 0,
        lost: 0,
        cancels: 1,
        has_other: false,
        ..Self::GATE
    };
    /// The same components. An execution fails while jobs may be open.
    pub const ERROR: Self =
        Self { name: "workflow: error", failures: 1, lost: 1, cancels: 0, errors: 1, has_other: true, ..Self::CANCEL };

    /// Every space.
    pub const ALL: [Self; 3] = [Self::GATE, Self::CANCEL, Self::ERROR];

    /// Returns the space with a mistake in it.
    pub const fn seeded(self, seed: Seed) -> Self {
        Self { seed, ..self }
    }
}

const NO_SEED: Seed = Seed {
    #[cfg(any(test, feature = "mutants"))]
    bug: None,
};

//! The decisions of a workflow: which nodes start, which are tried again, how it ends, and whether a roll back follows. A property
//! test holds them equal to `freehold_domain::workflow::Workflow`.

use crate::bug::{Seed, seeded};

/// The number of nodes.
pub const NODES: usize = 3;

/// The graph of a workflow. A node needs only nodes before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Graph {
    /// The nodes that each node needs, by bit.
    pub needs: [u8; NODES],
    /// How often the machine may retry a failed job of each node.
    pub retries: [u8; NODES],
    /// The number of nodes that may be active at the same time.
    pub slots: u8,
}

/// The end of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    Succeeded,
    Failed,
    /// Somebody has to change something first; a gate that closes ends like this.
    Blocked,
    Lost,
    Cancelled,
}

/// The state of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NodeState {
    Waiting,
    Active,
    Succeeded,
    Failed(End),
    NotReached,
    /// A person let the workflow continue without the node.
    Skipped,
}

impl NodeState {
    /// Returns whether the node ended well, or a person skipped it.
    pub const fn is_done(self) -> bool {
        matches!(self, Self::Succeeded | Self::Skipped)
    }

    /// Returns whether nodes that need this one may start.
    fn lets_others_start(self, seed: Seed) -> bool {
        self.is_done() || (matches!(self, Self::Failed(_)) && seeded!(seed, FailedCountsAsDone))
    }

    /// Returns whether the node has ended, or never starts.
    pub const fn is_terminal(self) -> bool {
        !matches!(self, Self::Waiting | Self::Active)
    }
}

/// A node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Node {
    pub state: NodeState,
    /// How often the machine retried its job since the workflow was last continued.
    pub retried: u8,
    /// How often its job was dispatched before the workflow was last continued.
    pub earlier: u8,
}

/// The state of a workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    Pending,
    Running,
    Succeeded,
    Failed,
    Cancelled,
}

impl State {
    /// Returns whether the workflow has ended.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }
}

/// The part of a workflow in a roll back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// A deploy that nobody wants rolled back.
    None,
    /// A verified deploy that nothing has followed yet.
    Verified,
    /// A verified deploy that was rolled back.
    RolledBack,
    /// A verified deploy that could not be rolled back; the reason is stored.
    Refused,
    /// The roll back of a verified deploy.
    Of,
}

/// What a person does to continue a workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Act {
    Resume,
    Retry(usize),
    Skip(usize),
}

/// The nodes that a decision starts, by bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Starts {
    /// Nodes that get their first job.
    pub new: u8,
    /// Nodes whose job ended before the workflow was continued.
    pub again: u8,
}

/// A workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Workflow {
    pub nodes: [Node; NODES],
    pub state: State,
    pub is_cancelled: bool,
    /// How often it was continued.
    pub attempt: u8,
    pub part: Part,
}

impl Workflow {
    /// Returns a pending workflow whose nodes wait.
    pub const fn new(part: Part) -> Self {
        let nodes = [Node { state: NodeState::Waiting, retried: 0, earlier: 0 }; NODES];
        Self { nodes, state: State::Pending, is_cancelled: false, attempt: 0, part }
    }

    /// Starts a pending workflow.
    pub fn start(mut self, graph: Graph, seed: Seed) -> (Self, Starts) {
        self.state = State::Running;
        let starts = self.start_ready(graph, seed);
        (self, starts)
    }

    /// Returns the workflow after the end of a node's job. A node that is not active keeps its state: the report is late.
    pub fn on_job(mut self, graph: Graph, seed: Seed, node: usize, end: End) -> (Self, Starts) {
        if self.nodes[node].state != NodeState::Active {
            return (self, Starts::default());
        }
        self.nodes[node].state = if end == End::Succeeded { NodeState::Succeeded } else { NodeState::Failed(end) };
        self.skip_unreachable(graph, seed);
        let starts = self.start_ready(graph, seed);
        (self, starts)
    }

    /// Returns the workflow after the machine retried the failed job of a node; `None` if it may not. `is_job_cancelled` is
    /// whether somebody wants the job cancelled.
    pub fn retry(
        mut self,
        graph: Graph,
        seed: Seed,
        node: usize,
        (end, is_job_cancelled): (End, bool),
    ) -> Option<Self> {
        let has_failed = end == End::Failed || (end == End::Blocked && seeded!(seed, BlockedIsRetried));
        let is_wanted = !(self.is_cancelled || is_job_cancelled) || seeded!(seed, CancelledIsRetried);
        let is_left = self.nodes[node].retried < graph.retries[node] || seeded!(seed, NodeRetriesUnbounded);
        let is_retried = has_failed && is_wanted && is_left && self.nodes[node].state == NodeState::Active;
        is_retried.then(|| {
            self.nodes[node].retried += 1;
            self
        })
    }

    /// Returns the workflow after a person cancelled it; `None` if that changes nothing.
    pub fn cancel(mut self) -> Option<Self> {
        if self.state.is_terminal() || self.is_cancelled {
            return None;
        }
        self.is_cancelled = true;
        self.end_waiting();
        Some(self)
    }

    /// Returns the workflow in its final state; `None` if it has ended. `has_error` is whether its execution failed.
    pub fn finish(mut self, has_error: bool) -> Option<Self> {
        if self.state.is_terminal() {
            return None;
        }
        let was_stopped = self.is_cancelled && !self.nodes.iter().all(|node| node.state.is_done());
        self.state = match has_error {
            true if self.state == State::Pending && self.is_cancelled => State::Cancelled,
            true => State::Failed,
            false if self.has_failed() => State::Failed,
            false if was_stopped => State::Cancelled,
            false => State::Succeeded,
        };
        self.end_waiting();
        Some(self)
    }

    /// Returns the workflow as pending again; `None` if it cannot be continued.
    pub fn continued(mut self, graph: Graph, seed: Seed, act: Act) -> Option<Self> {
        let has_ended = matches!(self.state, State::Failed | State::Cancelled);
        if !has_ended || self.active().next().is_some() {
            return None;
        }
        let chosen = match act {
            Act::Resume => u8::MAX,
            Act::Retry(node) | Act::Skip(node) => {
                matches!(self.nodes[node].state, NodeState::Failed(_)).then(|| graph.dependents(node))?
            }
        };
        for (at, node) in self.nodes.iter_mut().enumerate().filter(|(at, _)| chosen & 1 << at != 0) {
            node.reopen(seed, at, act);
        }
        self.skip_unreachable(graph, seed);
        let runs = self.nodes.iter().any(|node| node.state == NodeState::Waiting);
        if !runs && !matches!(act, Act::Skip(_)) {
            return None;
        }
        Some(Self { attempt: self.attempt + 1, is_cancelled: false, state: State::Pending, ..self })
    }

    /// Returns whether the deploy has to be rolled back.
    pub fn is_to_roll_back(&self, seed: Seed) -> bool {
        let is_followed = self.part != Part::Verified;
        let is_left = self.is_cancelled && !seeded!(seed, CancelledIsRolledBack);
        self.state == State::Failed && !self.never_started() && !is_followed && !is_left
    }

    /// Returns whether no node has started a job.
    pub fn never_started(&self) -> bool {
        self.nodes.iter().all(|node| matches!(node.state, NodeState::Waiting | NodeState::NotReached))
    }

    /// Returns whether the workflow runs and all its nodes have ended.
    pub fn is_settled(&self) -> bool {
        self.state == State::Running && self.nodes.iter().all(|node| node.state.is_terminal())
    }

    /// Returns the nodes whose jobs are open.
    pub fn active(&self) -> impl Iterator<Item = usize> + use<> {
        let nodes = self.nodes;
        (0..NODES).filter(move |node| nodes[*node].state == NodeState::Active)
    }

    fn end_waiting(&mut self) {
        for node in self.nodes.iter_mut().filter(|node| node.state == NodeState::Waiting) {
            node.state = NodeState::NotReached;
        }
    }

    /// Returns whether a node failed that nobody cancelled, or was not reached although nobody cancelled the workflow.
    fn has_failed(&self) -> bool {
        self.nodes.iter().any(|node| match node.state {
            NodeState::Failed(End::Cancelled) | NodeState::NotReached => !self.is_cancelled,
            NodeState::Failed(_) | NodeState::Waiting | NodeState::Active => true,
            NodeState::Succeeded | NodeState::Skipped => false,
        })
    }

    /// Ends the nodes that wait for one that failed. One pass is enough, because a node needs only nodes before it.
    fn skip_unreachable(&mut self, graph: Graph, seed: Seed) {
        if seeded!(seed, UnreachableWaits) {
            return;
        }
        for node in 0..NODES {
            let is_dead = |state: NodeState| {
                matches!(state, NodeState::Failed(_) | NodeState::NotReached) && !state.lets_others_start(seed)
            };
            let is_unreachable = graph.needs(node).any(|need| is_dead(self.nodes[need].state));
            if self.nodes[node].state == NodeState::Waiting && is_unreachable {
                self.nodes[node].state = NodeState::NotReached;
            }
        }
    }

    /// Starts nodes while slots are free.
    fn start_ready(&mut self, graph: Graph, seed: Seed) -> Starts {
        let mut starts = Starts::default();
        if self.state != State::Running || self.is_cancelled {
            return starts;
        }
        let free = usize::from(graph.slots).saturating_sub(self.active().count());
        let before = self.nodes;
        let is_ready = |node: &usize| {
            let mut needs = graph.needs(*node);
            before[*node].state == NodeState::Waiting && needs.all(|need| before[need].state.lets_others_start(seed))
        };
        for node in (0..NODES).filter(is_ready).take(free) {
            let bits = if before[node].earlier > 0 { &mut starts.again } else { &mut starts.new };
            *bits |= 1 << node;
            self.nodes[node].state = NodeState::Active;
        }
        starts
    }
}

impl Node {
    /// Makes a node that failed or was not reached wait again, or marks it as skipped.
    fn reopen(&mut self, seed: Seed, at: usize, act: Act) {
        let runs = match act {
            Act::Resume => true,
            Act::Retry(node) => node == at,
            Act::Skip(_) => false,
        };
        self.state = match self.state {
            NodeState::Failed(_) if act == Act::Skip(at) => NodeState::Skipped,
            NodeState::Succeeded if runs && seeded!(seed, SucceededRunsAgain) => self.waiting_again(),
            NodeState::Failed(_) if runs => self.waiting_again(),
            NodeState::NotReached => NodeState::Waiting,
            other => other,
        };
    }

    const fn waiting_again(&mut self) -> NodeState {
        self.earlier += 1 + self.retried;
        self.retried = 0;
        NodeState::Waiting
    }
}

impl Graph {
    /// Returns the nodes that `node` needs.
    pub fn needs(self, node: usize) -> impl Iterator<Item = usize> {
        (0..NODES).filter(move |need| self.needs[node] & 1 << need != 0)
    }

    /// Returns the node and all nodes that come after it, by bit.
    fn dependents(self, node: usize) -> u8 {
        (node + 1..NODES).fold(
            1 << node,
            |found, later| {
                if self.needs[later] & found == 0 { found } else { found | 1 << later }
            },
        )
    }
}

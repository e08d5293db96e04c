//! Approvals: the plan that an attempt made waits for both sides. Of the protocol, this is the job aggregate alone, with
//! everything that people say about its plans: in any order, twice, too late, and about another plan.

use stateright::{Model, Property};

use crate::bug::Seed;
use crate::job::{Answer, Control, Event, Fence, Job, JobState, Outcome, Time};
use crate::word::Word;

/// The dispatches of the job.
const DISPATCHES: u8 = 2;
/// The attempts that make plans.
const PLANS: [Fence; 4] = [
    Fence { dispatch: 1, receive: 1 },
    Fence { dispatch: 1, receive: 2 },
    Fence { dispatch: 2, receive: 1 },
    Fence { dispatch: 2, receive: 2 },
];

/// What people said about a plan while it waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Words {
    pub vendor_approved: bool,
    pub customer_approved: bool,
    pub rejected: bool,
}

/// One state: the job, and what people said about each plan that its attempts may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct World {
    pub job: Job,
    pub words: [Words; PLANS.len()],
    /// The plan that waits may be approved no more.
    pub expired: bool,
    /// A plan was approved too late, or a job was ordered with a plan that not both sides had approved.
    pub is_broken: bool,
}

/// Something that happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// The time in which the plan may be approved is over.
    Expire,
    Happens(Event),
}

/// A job whose attempts make plans.
#[derive(Debug, Clone, Copy)]
pub struct Approvals {
    pub seed: Seed,
}

impl Approvals {
    fn after(&self, world: &World, event: Event) -> World {
        let control = Control { max_dispatches: 11, seed: self.seed };
        let time = Time { plan_expired: world.expired, plan_over: world.expired, ..Time::default() };
        // A word that is not taken counts too, such as a rejection.
        let heard = if let Event::Word(word) = event { world.hears(word) } else { *world };
        let Answer::Changed(job) = control.on(&world.job, &event, time) else { return heard };
        let was_waiting = matches!(world.job.state, JobState::Approval { .. });
        let is_ordered = was_waiting && job.state == JobState::Queued;
        let is_too_late = world.expired && matches!(event, Event::Word(Word::Approve(_)));
        let has_new_plan = matches!(event, Event::Finished { .. });
        World {
            job,
            expired: world.expired && !has_new_plan,
            is_broken: is_too_late || (is_ordered && !world.permits(job.approval)),
            ..heard
        }
    }
}

impl World {
    /// Returns the world in which somebody has said this. A word about a plan that does not wait says nothing.
    fn hears(mut self, word: Word) -> Self {
        let plan = match word {
            Word::Approve(plan) | Word::CustomerApproves(plan) | Word::Reject(plan) | Word::CustomerRejects(plan) => {
                plan
            }
            Word::Proceed => return self,
        };
        let JobState::Approval { receive, .. } = self.job.state else { return self };
        let waits = plan == Fence { dispatch: self.job.dispatch, receive };
        let (true, Some(at)) = (waits, PLANS.iter().position(|one| *one == plan)) else { return self };
        let words = &mut self.words[at];
        match word {
            Word::Approve(_) => words.vendor_approved = true,
            Word::CustomerApproves(_) => words.customer_approved = true,
            Word::Reject(_) | Word::CustomerRejects(_) => words.rejected = true,
            Word::Proceed => {}
        }
        self
    }

    /// Returns whether the job may be ordered with this plan.
    fn permits(&self, plan: Option<Fence>) -> bool {
        let at = plan.and_then(|plan| PLANS.iter().position(|one| *one == plan));
        let words = at.map(|at| self.words[at]).unwrap_or_default();
        words.vendor_approved && words.customer_approved && !words.rejected && !self.job.cancel_requested
    }
}

impl Model for Approvals {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::default()]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        if world.is_broken {
            return;
        }
        let mut events = vec![Event::Cancel, Event::Word(Word::Proceed)];
        for fence in PLANS {
            events.push(Event::Finished { fence, runner: 0, outcome: Outcome::NeedsApproval });
            for word in [Word::Approve, Word::Reject, Word::CustomerApproves, Word::CustomerRejects] {
                events.push(Event::Word(word(fence)));
            }
        }
        actions.push(Action::Expire);
        actions.extend(events.into_iter().map(Action::Happens));
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let next = match action {
            Action::Expire => World { expired: true, ..*world },
            Action::Happens(event) => self.after(world, event),
        };
        let is_within = next.is_broken || next.job.dispatch <= DISPATCHES;
        (is_within && next != *world).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(
                "a job is ordered only with a plan that both sides approved in time",
                |_, world: &World| !world.is_broken,
            ),
            Property::sometimes("a job is ordered with the plan of its first attempt", |_, world: &World| {
                world.job.approval == Some(PLANS[0])
            }),
            Property::sometimes("a job is ordered with the plan of a later attempt", |_, world: &World| {
                world.job.approval == Some(PLANS[1])
            }),
            Property::sometimes("a plan that was approved is rejected", |_, world: &World| {
                let is_blocked = matches!(world.job.state, JobState::Blocked { .. });
                is_blocked && world.words.iter().any(|words| words.vendor_approved && words.rejected)
            }),
        ]
    }
}

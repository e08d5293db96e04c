//! What must hold while a workflow lives, and what must be possible.

use stateright::{Model, Property};

use crate::workflow::nodes::{End, NodeState, Part, State};
use crate::workflow::world::{Action, Neighbour, Space, World};

/// A rule that a single step can break.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Rule {
    SucceededRunsOnce,
    RetriesAreBounded,
    BlockedWaitsForAPerson,
    NothingStartsAfterACancel,
    NeededNodesFirst,
    EndsAfterItsJobs,
    RollsBackFailuresOnly,
    UndoesNothingLater,
    RollsBackAfterTheJobs,
    ContinuesTheLatest,
}

impl Rule {
    /// Returns the bit that marks the rule as broken.
    pub const fn bit(self) -> u16 {
        1 << self as u8
    }
}

fn holds(name: &'static str, condition: fn(&Space, &World) -> bool) -> Property<Space> {
    Property::always(name, condition)
}

fn is_possible(name: &'static str, condition: fn(&Space, &World) -> bool) -> Property<Space> {
    Property::sometimes(name, condition)
}

/// Returns what must hold in every world, and what must be seen in some.
pub(super) fn properties(space: &Space) -> Vec<Property<Space>> {
    let mut all = rules_of_jobs();
    all.extend(rules_of_roll_backs());
    all.extend(possible());
    if space.has_other {
        all.push(is_possible("another workflow keeps a deploy from being rolled back", |_, world| {
            world.deploy.part == Part::Refused
        }));
    }
    all
}

const fn keeps(world: &World, rule: Rule) -> bool {
    world.broken & rule.bit() == 0
}

fn rules_of_jobs() -> Vec<Property<Space>> {
    vec![
        holds("what succeeded never runs again", |_, world| keeps(world, Rule::SucceededRunsOnce)),
        holds("one attempt of a node at a time", |_, world| world.at_work.iter().all(|bits| bits.count_ones() <= 1)),
        holds("the machine retries as often as it may", |_, world| keeps(world, Rule::RetriesAreBounded)),
        holds("the machine does not retry what is blocked", |_, world| keeps(world, Rule::BlockedWaitsForAPerson)),
        holds("nothing starts after a cancel", |_, world| keeps(world, Rule::NothingStartsAfterACancel)),
        holds("what a node needs ends well before it, or a person skips it", |_, world| {
            keeps(world, Rule::NeededNodesFirst)
        }),
        holds("a workflow ends after its jobs, unless its execution fails", |_, world| {
            keeps(world, Rule::EndsAfterItsJobs)
        }),
        holds("a workflow succeeds only with all its nodes", |_, world| {
            world.deploy.state != State::Succeeded || world.deploy.nodes.iter().all(|node| node.state.is_done())
        }),
        holds("everything ends, and a failed deploy has its roll back or a reason", ends_and_is_rolled_back),
    ]
}

fn rules_of_roll_backs() -> Vec<Property<Space>> {
    vec![
        holds("one workflow changes the install at a time", |_, world| {
            let live =
                [world.roll_back == Neighbour::Live, world.other == Neighbour::Live, !world.deploy.state.is_terminal()];
            live.into_iter().filter(|is_live| *is_live).count() <= 1
        }),
        holds("no workflow is continued after a later one", |_, world| keeps(world, Rule::ContinuesTheLatest)),
        holds("at most one roll back", |_, world| world.roll_backs <= 1),
        holds("a deploy names the roll back that began", |_, world| {
            (world.deploy.part == Part::RolledBack) == (world.roll_back != Neighbour::NotYet)
        }),
        holds("only a failure that nobody cancelled is rolled back", |_, world| {
            keeps(world, Rule::RollsBackFailuresOnly)
        }),
        holds("a roll back undoes no later workflow", |_, world| keeps(world, Rule::UndoesNothingLater)),
        holds("a roll back begins after the deploy's jobs", |_, world| keeps(world, Rule::RollsBackAfterTheJobs)),
    ]
}

fn possible() -> Vec<Property<Space>> {
    vec![
        is_possible("a retry of the machine succeeds", |_, world| {
            world.deploy.nodes[0].state == NodeState::Succeeded && world.retried[0] > 0
        }),
        is_possible("a deploy is rolled back", |_, world| world.roll_back == Neighbour::Ended),
        is_possible("a person continues a deploy before it is rolled back, and it fails again", |_, world| {
            world.deploy.attempt > 0 && world.deploy.part == Part::RolledBack
        }),
        is_possible("a deploy succeeds because a person skips a node", |_, world| {
            world.deploy.state == State::Succeeded
                && world.deploy.nodes.iter().any(|node| node.state == NodeState::Skipped)
        }),
        is_possible("a report says after the loss of a job that it succeeded", |_, world| {
            (0..world.jobs.len()).any(|node| {
                world.jobs[node].end == Some(End::Succeeded)
                    && world.deploy.nodes[node].state == NodeState::Failed(End::Lost)
            })
        }),
        is_possible("a node succeeds by such a report when a person continues", |_, world| {
            (0..world.jobs.len()).any(|node| {
                let found = world.deploy.nodes[node];
                found.state == NodeState::Succeeded && found.earlier > 0 && world.jobs[node].dispatch == found.earlier
            })
        }),
    ]
}

/// Where nothing is left that must happen, every workflow and job has ended, and a deploy that failed has its roll back or the
/// reason why it has none. No step leads back, so that every path comes to such a world.
fn ends_and_is_rolled_back(space: &Space, world: &World) -> bool {
    let has_ended = world.deploy.state.is_terminal()
        && !world.jobs.iter().any(|job| job.is_open())
        && world.other != Neighbour::Live
        && world.roll_back != Neighbour::Live;
    if has_ended && !world.deploy.is_to_roll_back(space.seed) {
        return true;
    }
    let mut actions = Vec::new();
    space.actions(world, &mut actions);
    let mut left = actions.into_iter().filter(|action| must_happen(*action));
    left.any(|action| space.next_state(world, action).is_some())
}

/// Returns whether the action comes if nothing else does: no fault, and nothing that people may leave out.
const fn must_happen(action: Action) -> bool {
    match action {
        Action::Start { is_acknowledged, .. }
        | Action::Finish { is_acknowledged, .. }
        | Action::Order { is_acknowledged, .. }
        | Action::Report { is_acknowledged, .. }
        | Action::DueTask { is_acknowledged } => is_acknowledged,
        Action::Work { end, .. } => matches!(end, End::Succeeded),
        Action::EndRollBack { has_failed } => !has_failed,
        Action::Callback { .. } | Action::SweepOrder { .. } | Action::SweepDeploy | Action::Call | Action::EndOther => {
            true
        }
        Action::Fail { .. }
        | Action::Lose(_)
        | Action::Expire { .. }
        | Action::Cancel
        | Action::Continue(_)
        | Action::BeginOther => false,
    }
}

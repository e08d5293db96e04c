//! Workflows: the life of a verified deploy whose jobs succeed, fail, are blocked or lost, while the machine retries them, people
//! retry, skip, resume and cancel, another workflow may begin, and each message may be lost, late or repeated.
//!
//! The decisions of the workflow and of the install are written again ([`nodes`], [`install`]) and held equal to the domain by
//! property tests. What the functions do around them (`finish_workflow`, `roll_back`, `continuation`, `sweep` and `advance` of
//! `crates/app`) is written in `steps.rs`.
//!
//! Left out: attempts of one dispatch, which the model of the job protocol has; planning, and what it may refuse; contracts,
//! inputs and artifacts, which may keep a workflow from being continued or rolled back; the nodes of the roll back and of the
//! other workflow. A person's cancel reaches the jobs together with their workflow: in `cancel_workflow` and `finish_workflow` the
//! jobs' rows are written apart from that of the workflow.

pub mod install;
pub mod nodes;
pub mod rules;
mod steps;
pub mod world;

use stateright::{Model, Property};

use self::nodes::{Act, End, NODES};
use self::steps::Step;
use self::world::{Action, Message, Space, World};

/// Returns the positions of the bits that are set.
fn set(bits: u8) -> impl Iterator<Item = u8> {
    (0..8).filter(move |at| bits & 1 << at != 0)
}

const EITHER: [bool; 2] = [false, true];

fn job_actions(world: &World, node: usize, actions: &mut Vec<Action>) {
    for dispatch in set(world.asked[node]) {
        actions.extend(EITHER.map(|is_acknowledged| Action::Order { node, dispatch, is_acknowledged }));
        actions.push(Action::Lose(Message::Ask { node, dispatch }));
    }
    for dispatch in set(world.at_work[node]) {
        let ends = [End::Succeeded, End::Failed, End::Blocked, End::Cancelled];
        actions.extend(ends.map(|end| Action::Work { node, dispatch, end }));
    }
    for (dispatch, _) in (0..).zip(world.reports[node]).filter(|(_, report)| report.is_some()) {
        actions.extend(EITHER.map(|is_acknowledged| Action::Report { node, dispatch, is_acknowledged }));
    }
    actions.extend([Action::Expire { node }, Action::SweepOrder { node }]);
    actions.extend([Action::Continue(Act::Retry(node)), Action::Continue(Act::Skip(node))]);
}

fn execution_actions(world: &World, actions: &mut Vec<Action>) {
    let executions = world.executions;
    for attempt in set(executions.starting) {
        actions.extend(EITHER.map(|is_acknowledged| Action::Start { attempt, is_acknowledged }));
        actions.push(Action::Lose(Message::Start { attempt }));
    }
    actions.extend(set(executions.waiting).map(|attempt| Action::Fail { attempt }));
    for attempt in set(executions.callbacks) {
        actions.extend([Action::Callback { attempt }, Action::Lose(Message::Callback { attempt })]);
    }
    for (bits, has_error) in [(executions.finishing, false), (executions.failing, true)] {
        for attempt in set(bits) {
            actions.extend(EITHER.map(|is_acknowledged| Action::Finish { attempt, has_error, is_acknowledged }));
            actions.push(Action::Lose(Message::Finish { attempt, has_error }));
        }
    }
}

impl Model for Space {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new()]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        (0..NODES).for_each(|node| job_actions(world, node, actions));
        execution_actions(world, actions);
        actions.extend([Action::SweepDeploy, Action::Call, Action::Lose(Message::Call)]);
        actions.extend(EITHER.map(|is_acknowledged| Action::DueTask { is_acknowledged }));
        actions.extend([Action::Cancel, Action::Continue(Act::Resume), Action::BeginOther, Action::EndOther]);
        actions.extend(EITHER.map(|has_failed| Action::EndRollBack { has_failed }));
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = *world;
        Step { space: self, world: &mut next }.perform(action)?;
        (next != *world).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        rules::properties(self)
    }
}

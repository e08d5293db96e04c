//! What must hold while an order and its copy are in the queue, and what must be possible.

use stateright::Property;

use crate::copies::chain::{Delivery, End};
use crate::copies::world::{COPY, Machine, ORIGINAL, Place, Space, Stage, World};
use crate::runner::Redelivery;

/// A rule that a single step can break.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Rule {
    StartsOnce,
    EndedStartsNoMore,
    CopyStartsNothing,
    BegunIsResumed,
    InterruptsNobody,
    GivenBackStartsNothing,
    StartedIsNotGivenBack,
}

impl Rule {
    /// Returns the bit that marks the rule as broken.
    pub const fn bit(self) -> u8 {
        1 << self as u8
    }
}

fn holds(name: &'static str, condition: fn(&Space, &World) -> bool) -> Property<Space> {
    Property::always(name, condition)
}

fn is_possible(name: &'static str, condition: fn(&Space, &World) -> bool) -> Property<Space> {
    Property::sometimes(name, condition)
}

const fn keeps(world: &World, rule: Rule) -> bool {
    world.broken & rule.bit() == 0
}

/// Returns what must hold in every world, and what must be seen in some.
pub(super) fn properties(space: &Space) -> Vec<Property<Space>> {
    let mut all = vec![
        holds("one attempt works on the order at a time", |_, world| {
            world.machines.iter().filter_map(|machine| at(machine, Stage::Working)).count() <= 1
        }),
        holds("what must not start twice starts once", |_, world| keeps(world, Rule::StartsOnce)),
        holds("what the chain has as ended does not start again", |_, world| keeps(world, Rule::EndedStartsNoMore)),
        holds("a machine starts nothing that another one started by another message", |_, world| {
            keeps(world, Rule::CopyStartsNothing)
        }),
        holds("a copy keeps no order that was begun from being resumed", |_, world| keeps(world, Rule::BegunIsResumed)),
        holds("no machine ends the job as interrupted while another one works on it", |_, world| {
            keeps(world, Rule::InterruptsNobody)
        }),
        holds("an order that was given back is not started", |_, world| keeps(world, Rule::GivenBackStartsNothing)),
        holds(
            "no order is given back that a machine works on, or that must not start twice and has started",
            |_, world| keeps(world, Rule::StartedIsNotGivenBack),
        ),
        holds("no order is deleted in all its messages before it has an outcome or is given back", |_, world| {
            let is_deleted = |place: Place| matches!(place, Place::Deleted | Place::Unsent);
            world.has_outcome()
                || world.is_given_back
                || !world.messages.iter().all(|message| is_deleted(message.place))
        }),
    ];
    all.extend(possible(space));
    all
}

fn possible(space: &Space) -> Vec<Property<Space>> {
    let mut possible = vec![is_possible("a machine resumes what another one began", resumes)];
    if space.crashes > 0 {
        let name = "a process is killed between the record of the start and the start";
        possible.push(is_possible(name, is_killed_before_start));
    }
    if space.lapses > 0 {
        possible.push(is_possible("an outcome is recorded after the start of a later delivery", ends_late));
    }
    if space.put_backs > 0 {
        possible.push(is_possible("a machine starts an action that another one put back", starts_after_put_back));
    }
    if space.give_backs > 0 {
        possible.push(is_possible("a machine gives back what another one has given back", |_, world| {
            world.machines.iter().filter(|machine| machine.gave_back).count() > 1
        }));
    }
    if !space.accepts_copy() {
        possible.push(is_possible("the copy is refused while the original is in flight", |_, world| {
            let [original, copy] = world.messages.map(|message| message.place);
            copy == Place::Deleted && matches!(original, Place::InFlight { .. })
        }));
        return possible;
    }
    possible.push(is_possible("the copy is started, and the original never", |_, world| {
        world.started[COPY] != 0 && world.started[ORIGINAL] == 0
    }));
    if !space.has_one_group {
        possible.push(is_possible("two machines record the starts of both messages at once", announces_both));
    }
    possible
}

fn resumes(_: &Space, world: &World) -> bool {
    let began = |r: usize, delivery: Delivery| world.started[usize::from(delivery.message)] & !(1 << r) != 0;
    let mut machines = world.machines.iter().enumerate();
    machines.any(|(r, machine)| at(machine, Stage::Working).is_some_and(|delivery| began(r, delivery)))
}

fn is_killed_before_start(_: &Space, world: &World) -> bool {
    let has_announced = |r: usize| {
        let own = world.chain.records().filter(|record| usize::from(record.machine) == r);
        own.last().is_some_and(|last| last.end == End::None)
    };
    let is_idle = |machine: &Machine| machine.is_up && machine.attempt.is_none() && !machine.knows_order();
    world.machines.iter().enumerate().any(|(r, machine)| is_idle(machine) && has_announced(r))
}

fn ends_late(_: &Space, world: &World) -> bool {
    let mut outcomes = world.chain.records().filter(|record| record.end == End::Outcome);
    outcomes.any(|outcome| {
        let mut before = world.chain.before(outcome).records();
        before.any(|one| {
            let (start, end) = (one.delivery, outcome.delivery);
            let is_later = start.message == end.message && start.receive > end.receive;
            one.end == End::None && one.machine != outcome.machine && is_later
        })
    })
}

fn starts_after_put_back(_: &Space, world: &World) -> bool {
    let was_put_back = |r: usize, delivery: Delivery| {
        let mut others = world.chain.records().filter(|one| usize::from(one.machine) != r);
        others.any(|one| one.end == End::PutBack && one.delivery.message == delivery.message)
    };
    let mut machines = world.machines.iter().enumerate();
    let starts =
        machines.any(|(r, machine)| at(machine, Stage::Working).is_some_and(|delivery| was_put_back(r, delivery)));
    starts && world.redelivery == Redelivery::Interrupted
}

fn announces_both(_: &Space, world: &World) -> bool {
    let is_announced = |m: usize| {
        let mut announced = world.machines.iter().filter_map(|machine| at(machine, Stage::Announced));
        announced.any(|delivery| usize::from(delivery.message) == m)
    };
    is_announced(ORIGINAL) && is_announced(COPY)
}

/// Returns the delivery of the machine, if it is as far as `stage`.
fn at(machine: &Machine, stage: Stage) -> Option<Delivery> {
    machine.attempt.filter(|(at, _)| *at == stage).map(|(_, delivery)| delivery)
}

//! What must hold, whatever crashes: each rule is a property of the model.

use stateright::{Model, Property};

use crate::bounds::Bounds;
use crate::job::{Job, JobState};
use crate::protocol::Protocol;
use crate::rule::Rule;
use crate::runner::{Attempt, Entry, Phase, Redelivery};
use crate::world::{Place, World};

macro_rules! watched {
    ($name:literal, $rule:ident) => {
        Property::always($name, |_, world: &World| world.broken & Rule::$rule.bit() == 0)
    };
}

/// Returns every rule, and some situations that must be reachable, so that no rule holds only because nothing happens.
pub fn properties(bounds: &Bounds) -> Vec<Property<Protocol>> {
    let mut properties = vec![
        Property::always("one attempt works on one thing at a time", one_at_a_time),
        watched!("no effect without a lease", NoEffectWithoutLease),
        watched!("no effect after the order has expired", NoEffectAfterExpiry),
        watched!("what must not start twice has its effect once per request", DoneOnce),
        watched!("what a journal knows as finished is not started again", FinishedIsNotStartedAgain),
        watched!("what a runner was told to cancel is not started by it", CancelledIsNotStarted),
        watched!("what runs stands in the journal", JournalFirst),
        watched!("no older order after a newer one of its group", NoOlderOrder),
        watched!("no stale report changes a job", NoStaleReport),
        watched!("no report of a retired key changes a job", NoRetiredKey),
        watched!("an end absorbs", EndAbsorbs),
        watched!("a wish to cancel does not end a job by itself", CancelAsksOnly),
        watched!("a job is given up only after its order has expired", GivenUpOnlyAfterExpiry),
        watched!("a dispatch follows an end", DispatchFollowsEnd),
        watched!("attempts are bounded", AttemptsAreBounded),
        watched!("no outcome is lost", NoOutcomeLost),
        watched!("an order is deleted when its outcome is durable", DeletedWhenDurable),
        watched!("a job that somebody wants cancelled gets no new order", NoOrderAfterCancel),
        watched!("a job whose order waits for the runner is not lost", WaitingIsNotLost),
        watched!("a runner that is switched off changes nothing", NoEffectWhilePaused),
        Property::always("every job ends", every_job_ends),
    ];
    properties.extend(possible(bounds));
    properties
}

fn possible(bounds: &Bounds) -> Vec<Property<Protocol>> {
    let mut possible = vec![
        Property::sometimes("a second delivery succeeds", |_, world: &World| {
            any_state(world, |state| state == JobState::Succeeded { receive: 2 })
        }),
        Property::sometimes("a job ends interrupted", |_, world: &World| {
            any_state(world, |state| matches!(state, JobState::Interrupted { .. }))
        }),
        Property::sometimes("a job is lost", |_, world: &World| {
            any_state(world, |state| matches!(state, JobState::Lost { .. }))
        }),
        Property::sometimes("a runner waits to delete the order of a job that has ended", |_, world: &World| {
            world.runners.iter().any(|runner| {
                runner
                    .attempts
                    .iter()
                    .zip(&world.jobs)
                    .any(|(attempt, part)| matches!(attempt, Attempt::Done { .. }) && part.job.has_ended())
            })
        }),
    ];
    if bounds.dispatches > 1 {
        possible.push(Property::sometimes("a second dispatch succeeds", |_, world: &World| {
            world.jobs.iter().any(|part| part.job.dispatch == 2 && matches!(part.job.state, JobState::Succeeded { .. }))
        }));
    }
    if bounds.puts_back {
        possible.push(Property::sometimes(
            "what must not start twice is started after it was put back",
            |_, world: &World| {
                world.jobs.iter().any(|part| {
                    part.redelivery == Redelivery::Interrupted
                        && matches!(part.job.state, JobState::Succeeded { receive: 2.. })
                })
            },
        ));
    }
    if bounds.puts_back && bounds.replacement {
        possible.push(Property::sometimes("one machine starts what the other one put back", |_, world: &World| {
            let [first, second] = [0, 1].map(|r: usize| world.runners[r].journal[0].phase);
            matches!((first, second), (Phase::PutBack { receive: 1, .. }, Phase::Started))
                && world.jobs[0].redelivery == Redelivery::Interrupted
        }));
    }
    if bounds.waits {
        possible.push(Property::sometimes("a job waits for its runner", |_, world: &World| {
            any_state(world, |state| matches!(state, JobState::Waiting { .. }))
        }));
    }
    if bounds.returns > 0 {
        possible.push(Property::sometimes("what came back is ordered again and succeeds", |_, world: &World| {
            let is_done = |job: &Job| job.returned > 0 && matches!(job.state, JobState::Succeeded { .. });
            world.jobs.iter().any(|part| is_done(&part.job))
        }));
    }
    if bounds.pauses > 0 {
        possible.push(Property::sometimes("what the pause stopped succeeds after it", |_, world: &World| {
            let is_done = |state: JobState| matches!(state, JobState::Succeeded { receive: 2.. });
            world.spent.pauses > 0 && any_state(world, is_done)
        }));
    }
    if bounds.kept > 0 {
        possible.push(Property::sometimes(
            "a kept order reaches a machine that has never seen it",
            |_, world: &World| {
                let order = &world.jobs[0].orders[0];
                let is_kept = order.is_copy && order.recorded[0].original > 0;
                let second = &world.runners[1];
                is_kept && matches!(second.attempts[0], Attempt::Coming { .. }) && second.journal[0].dispatch == 0
            },
        ));
    }
    if bounds.cancels > 0 {
        possible.push(Property::sometimes("a job is cancelled", |_, world: &World| {
            any_state(world, |state| matches!(state, JobState::Cancelled { .. }))
        }));
    }
    if bounds.twins > 0 {
        possible.push(Property::sometimes("the loser of two equal fences is asked to stop", |_, world: &World| {
            world.runners.iter().any(|runner| runner.stop[0])
        }));
    }
    possible
}

fn any_state(world: &World, test: fn(JobState) -> bool) -> bool {
    world.jobs.iter().any(|part| test(part.job.state))
}

fn one_at_a_time(protocol: &Protocol, world: &World) -> bool {
    let bounds = &protocol.bounds;
    bounds.twins > 0 || (0..bounds.jobs).all(|j| world.working_in_group(bounds, j) <= 1)
}

/// Nothing is left to happen, so every job must have ended. The space has no cycles (a test shows it), so that every
/// path comes to such a state and this is the same as "every job ends eventually".
fn every_job_ends(protocol: &Protocol, world: &World) -> bool {
    if world.broken != 0 || world.jobs.iter().take(protocol.bounds.jobs).all(|part| part.job.has_ended()) {
        return true;
    }
    let mut actions = Vec::new();
    protocol.actions(world, &mut actions);
    actions.into_iter().any(|action| protocol.next_state(world, action).is_some())
}

impl World {
    /// Watches an attempt being accepted with `entry` in the journal so far.
    pub(crate) const fn watch_accept(&mut self, entry: Entry, dispatch: u8, newer_accepted: bool) {
        self.watch(Rule::FinishedIsNotStartedAgain, entry.has_finished(dispatch));
        self.watch(Rule::CancelledIsNotStarted, entry.cancelled == dispatch);
        self.watch(Rule::NoOlderOrder, newer_accepted || entry.dispatch > dispatch);
    }

    /// Watches the job's process being started with `entry` in the journal.
    pub(crate) const fn watch_start(&mut self, entry: Entry, dispatch: u8) {
        let journaled = entry.dispatch == dispatch && matches!(entry.phase, Phase::Started);
        self.watch(Rule::JournalFirst, !journaled);
    }

    /// Watches the control plane giving up job `j` by itself: no attempt may be working, and no outcome may be known.
    pub(crate) fn watch_given_up(&mut self, j: usize, before: Job, may_be_back: bool) {
        let part = &self.jobs[j];
        let ended_receive = part.ended_receive[usize::from(self.speaker)];
        let heard = ended_receive > 0 && ended_receive >= before.receive().unwrap_or(0);
        let kept =
            ended_receive == 0 && self.runners[usize::from(self.speaker)].journal[j].has_finished(before.dispatch);
        let expired = self.order(j, before.dispatch).expired;
        let working = self.is_worked_on(j, before.dispatch);
        let excused = self.spent.lates > 0 || may_be_back;
        let is_there = matches!(self.order(j, before.dispatch).place, Place::Waiting | Place::InFlight { .. });
        let is_lost = matches!(part.job.state, JobState::Lost { .. });
        let waits = is_lost && is_there && !part.waited && !before.cancel_requested;
        self.watch(Rule::GivenUpOnlyAfterExpiry, !expired || working);
        self.watch(Rule::NoOutcomeLost, (heard || kept) && !excused);
        self.watch(Rule::WaitingIsNotLost, waits);
    }

    /// Watches job `j` beginning to wait: no attempt may be working.
    pub(crate) fn watch_outlived(&mut self, j: usize, before: Job) {
        let expired = self.order(j, before.dispatch).expired;
        let working = self.is_worked_on(j, before.dispatch);
        self.watch(Rule::GivenUpOnlyAfterExpiry, !expired || working);
    }
}

//! No sequence of events orders a job with a plan that not both sides have approved; seeded mistakes do.

use std::collections::HashSet;

use crate::bug::{Bug, Seed};
use crate::job::{Answer, Control, Event, Fence, Job, JobState, Outcome, Time};
use crate::word::Word;

/// The number of events of the longest sequences.
const DEPTH: usize = 8;

/// What people said about each of two plans, and the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct World {
    job: Job,
    /// Whether the vendor approved, the customer approved, or one of them rejected the plan, by its dispatch and receive.
    words: [[bool; 3]; 4],
    expired: bool,
}

fn plans() -> [Fence; 4] {
    let fence = |dispatch, receive| Fence { dispatch, receive };
    [fence(1, 1), fence(1, 2), fence(2, 1), fence(2, 2)]
}

fn events() -> Vec<Event> {
    let mut all = vec![Event::Cancel, Event::Word(Word::Proceed)];
    for fence in plans() {
        all.push(Event::Finished { fence, runner: 0, outcome: Outcome::NeedsApproval });
        for word in [Word::Approve, Word::Reject, Word::CustomerApproves, Word::CustomerRejects] {
            all.push(Event::Word(word(fence)));
        }
    }
    all
}

/// Returns whether a sequence of events breaks the rule.
fn is_broken(seed: Seed) -> bool {
    let control = Control { max_dispatches: 11, seed };
    let mut level: HashSet<World> = [World { job: Job::default(), words: Default::default(), expired: false }].into();
    for _ in 0..DEPTH {
        let mut next = HashSet::new();
        for world in &level {
            next.insert(World { expired: true, ..*world });
            for event in events() {
                let time = Time { plan_expired: world.expired, plan_over: world.expired, ..Time::default() };
                let Answer::Changed(job) = control.on(&world.job, &event, time) else {
                    // Whoever says it in vain has said it: a rejection that is not taken counts below.
                    if let (Event::Word(word), JobState::Approval { .. }) = (event, world.job.state) {
                        next.insert(with_word(*world, word));
                    }
                    continue;
                };
                let before = if let Event::Word(word) = event { with_word(*world, word) } else { *world };
                let was_waiting = matches!(world.job.state, JobState::Approval { .. });
                if was_waiting && job.state == JobState::Queued {
                    let Some(plan) = job.approval else { return true };
                    let at = plans().iter().position(|one| *one == plan).unwrap();
                    let [vendor, customer, rejected] = world.words[at];
                    if !vendor || !customer || rejected || world.job.cancel_requested {
                        return true;
                    }
                }
                let approves = matches!(event, Event::Word(Word::Approve(_)));
                if approves && world.expired {
                    return true;
                }
                let has_new_plan = matches!(event, Event::Finished { .. });
                next.insert(World { job, expired: before.expired && !has_new_plan, ..before });
            }
        }
        next.retain(|world| world.job.dispatch < 3);
        level = next;
    }
    false
}

/// Returns the world in which somebody has said this about the plan that it names.
fn with_word(mut world: World, word: Word) -> World {
    let (plan, what) = match word {
        Word::Approve(plan) => (plan, 0),
        Word::CustomerApproves(plan) => (plan, 1),
        Word::Reject(plan) | Word::CustomerRejects(plan) => (plan, 2),
        Word::Proceed => return world,
    };
    let Some(at) = plans().iter().position(|one| *one == plan) else { return world };
    // A word about a plan that does not wait says nothing.
    let waits = matches!(world.job.state, JobState::Approval { receive, .. }
        if plan == Fence { dispatch: world.job.dispatch, receive });
    if waits {
        world.words[at][what] = true;
    }
    world
}

#[test]
fn a_job_is_ordered_only_with_a_plan_that_both_sides_approved_in_time() {
    assert!(!is_broken(Seed::default()));
}

#[test]
fn each_seeded_mistake_about_approvals_breaks_that() {
    let survivors: Vec<Bug> = Bug::OF_APPROVALS.into_iter().filter(|bug| !is_broken((*bug).into())).collect();

    assert_eq!(survivors, []);
}

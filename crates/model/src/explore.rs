//! Runs of the checker, and the check that the space has no cycles.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

use stateright::{Checker, HasDiscoveries, Model};

use crate::action::Action;
use crate::approvals::{self, Approvals};
use crate::bounds::Bounds;
use crate::bug::Seed;
use crate::copies::world as copies;
use crate::hellos::{self, Hellos};
use crate::protocol::Protocol;
use crate::workflow::world as workflow;

/// What one run of the checker found.
#[derive(Debug)]
pub struct Checked<A = Action> {
    pub name: &'static str,
    /// Different worlds.
    pub unique: usize,
    /// Steps taken.
    pub steps: usize,
    /// Broken rules, each with the steps that break it.
    pub broken: Vec<(&'static str, Vec<A>)>,
    /// Things that should be possible and were not seen.
    pub missing: Vec<&'static str>,
    /// The whole space was seen.
    pub exhausted: bool,
    pub took: Duration,
}

/// Returns what the checker finds in the whole space within `bounds`.
pub fn check(bounds: Bounds) -> Checked {
    run(bounds.name, Protocol::new(bounds), HasDiscoveries::All)
}

/// Returns what the checker finds until the first rule is broken.
pub fn hunt(bounds: Bounds) -> Checked {
    run(bounds.name, Protocol::new(bounds), HasDiscoveries::AnyFailures)
}

/// Returns what the checker finds in the whole space of hellos.
pub fn check_hellos() -> Checked<hellos::Action> {
    run("hellos", Hellos::new(Seed::default()), HasDiscoveries::All)
}

/// Returns what the checker finds in the space of hellos with a mistake, until the first rule is broken.
pub fn hunt_hellos(seed: Seed) -> Checked<hellos::Action> {
    run("hellos", Hellos::new(seed), HasDiscoveries::AnyFailures)
}

/// Returns what the checker finds in the whole space of approvals.
pub fn check_approvals() -> Checked<approvals::Action> {
    run("approvals", Approvals { seed: Seed::default() }, HasDiscoveries::All)
}

/// Returns what the checker finds in the space of approvals with a mistake, until the first rule is broken.
pub fn hunt_approvals(seed: Seed) -> Checked<approvals::Action> {
    run("approvals", Approvals { seed }, HasDiscoveries::AnyFailures)
}

/// Returns what the checker finds in a whole space of copies.
pub fn check_copies(space: copies::Space) -> Checked<copies::Action> {
    run(space.name, space, HasDiscoveries::All)
}

/// Returns what the checker finds in the spaces of copies with a mistake, until the first rule is broken.
pub fn hunt_copies(seed: Seed) -> Checked<copies::Action> {
    let [first, others @ ..] = copies::Space::ALL.map(|space| space.seeded(seed));
    let hunt = |space: copies::Space| run(space.name, space, HasDiscoveries::AnyFailures);
    others.into_iter().fold(hunt(first), |found, space| if found.broken.is_empty() { hunt(space) } else { found })
}

/// Returns what the checker finds in a whole space of workflows.
pub fn check_workflow(space: workflow::Space) -> Checked<workflow::Action> {
    run(space.name, space, HasDiscoveries::All)
}

/// Returns what the checker finds in the spaces of workflows with a mistake, until the first rule is broken.
pub fn hunt_workflows(seed: Seed) -> Checked<workflow::Action> {
    let [first, others @ ..] = workflow::Space::ALL.map(|space| space.seeded(seed));
    let hunt = |space: workflow::Space| run(space.name, space, HasDiscoveries::AnyFailures);
    others.into_iter().fold(hunt(first), |found, space| if found.broken.is_empty() { hunt(space) } else { found })
}

fn run<M>(name: &'static str, model: M, until: HasDiscoveries) -> Checked<M::Action>
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + PartialEq + Hash + Send + Sync,
    M::Action: Clone + PartialEq + Send + Sync,
{
    let begun = Instant::now();
    let checker = model.checker().threads(2).finish_when(until).spawn_bfs().join();
    let found = checker.discoveries();
    let properties = checker.model().properties();
    let missing = properties
        .iter()
        .filter(|property| !property.expectation.discovery_is_failure() && !found.contains_key(property.name))
        .map(|property| property.name)
        .collect();
    let broken: Vec<_> = properties
        .iter()
        .filter(|property| property.expectation.discovery_is_failure())
        .filter_map(|property| Some((property.name, found.get(property.name)?.clone().into_actions())))
        .collect();
    Checked {
        name,
        unique: checker.unique_state_count(),
        steps: checker.state_count(),
        exhausted: checker.is_done() && broken.is_empty(),
        broken,
        missing,
        took: begun.elapsed(),
    }
}

/// Returns a world from which some steps lead back to it, if there is one.
///
/// Without one, "nothing can happen any more and every job has ended" at the end of every path is the same as "every
/// job ends eventually", which the checker itself does not decide where paths meet.
pub fn find_cycle<M: Model<State: Copy + Eq + Hash>>(model: &M) -> Option<M::State> {
    // Whether a world is on the path that is being followed now; others are done with.
    let mut on_path: HashMap<M::State, bool> = HashMap::new();
    let mut path: Vec<(M::State, Vec<M::State>)> = Vec::new();
    for first in model.init_states() {
        on_path.insert(first, true);
        path.push((first, model.next_states(&first)));
        while let Some((world, rest)) = path.last_mut() {
            let Some(next) = rest.pop() else {
                on_path.insert(*world, false);
                path.pop();
                continue;
            };
            match on_path.get(&next) {
                Some(true) => return Some(next),
                Some(false) => {}
                None => {
                    on_path.insert(next, true);
                    path.push((next, model.next_states(&next)));
                }
            }
        }
    }
    None
}

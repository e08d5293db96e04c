//! Runs of the checker, and the check that the space has no cycles.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use stateright::{Checker, HasDiscoveries, Model};

use crate::action::Action;
use crate::bounds::Bounds;
use crate::protocol::Protocol;
use crate::world::World;

/// What one run of the checker found.
#[derive(Debug)]
pub struct Checked {
    pub name: &'static str,
    /// Different worlds.
    pub unique: usize,
    /// Steps taken.
    pub steps: usize,
    /// Broken rules, each with the steps that break it.
    pub broken: Vec<(&'static str, Vec<Action>)>,
    /// Things that should be possible and were not seen.
    pub missing: Vec<&'static str>,
    /// The whole space was seen.
    pub exhausted: bool,
    pub took: Duration,
}

/// Returns what the checker finds in the whole space within `bounds`.
pub fn check(bounds: Bounds) -> Checked {
    run(bounds, HasDiscoveries::All)
}

/// Returns what the checker finds until the first rule is broken.
pub fn hunt(bounds: Bounds) -> Checked {
    run(bounds, HasDiscoveries::AnyFailures)
}

fn run(bounds: Bounds, until: HasDiscoveries) -> Checked {
    let begun = Instant::now();
    let checker = Protocol::new(bounds).checker().threads(2).finish_when(until).spawn_bfs().join();
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
        name: bounds.name,
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
pub fn find_cycle(bounds: Bounds) -> Option<World> {
    let protocol = Protocol::new(bounds);
    // Whether a world is on the path that is being followed now; others are done with.
    let mut on_path: HashMap<World, bool> = HashMap::new();
    let mut path: Vec<(World, Vec<World>)> = Vec::new();
    for first in protocol.init_states() {
        on_path.insert(first, true);
        path.push((first, protocol.next_states(&first)));
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
                    path.push((next, protocol.next_states(&next)));
                }
            }
        }
    }
    None
}

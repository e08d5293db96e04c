//! The runs of actions that the switches of an install's roles started, and how many of them an install may have.

use std::collections::BTreeMap;

use freehold_protocol::{Timestamp, WorkflowId};
use serde::{Deserialize, Serialize};

/// The maximum number of runs in the [`RoleRuns`] of an install.
pub const MAX_ROLE_RUNS: usize = 100;

/// The time for which a run counts even if it has ended, in seconds.
const RECENT_SECS: u64 = 60 * 60;

/// The runs that switches of roles started in an install: all of the last hour, and the older ones that have not ended.
/// The vendor pays for each run, and a runner that lies may announce other switches every minute. So a runner that
/// never ends its runs gets no further ones, and a runner that ends them at once gets a limited number in an hour.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RoleRuns {
    /// The time from which each run counts.
    pub runs: BTreeMap<WorkflowId, Timestamp>,
}

impl RoleRuns {
    /// Returns the runs that count at `now` only if they have not ended.
    pub fn older(&self, now: Timestamp) -> Vec<WorkflowId> {
        let older = self.runs.iter().filter(|(_, at)| now.since(**at) >= RECENT_SECS * 1000);
        older.map(|(run, _)| run.clone()).collect()
    }

    /// Removes a run that was never started, or a run of [`Self::older`] that has ended.
    pub fn remove(&mut self, run: &WorkflowId) {
        self.runs.remove(run);
    }

    /// Counts a run from `now` on, and returns whether it may start. A run that counts already may start again.
    #[must_use]
    pub fn admit(&mut self, run: &WorkflowId, now: Timestamp) -> bool {
        if self.runs.len() >= MAX_ROLE_RUNS && !self.runs.contains_key(run) {
            return false;
        }
        self.runs.entry(run.clone()).or_insert(now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Timestamp = Timestamp::from_millis(1_795_250_000_000);

    fn run(number: usize) -> WorkflowId {
        WorkflowId::derive("globex", &number.to_string())
    }

    /// Returns how many of the runs with these numbers may start.
    fn admit(runs: &mut RoleRuns, numbers: std::ops::Range<usize>, now: Timestamp) -> usize {
        numbers.filter(|number| runs.admit(&run(*number), now)).count()
    }

    #[test]
    fn an_install_has_a_hundred_runs_in_an_hour_and_a_repeated_run_counts_once() {
        let mut runs = RoleRuns::default();

        let started = [admit(&mut runs, 0..60, BASE), admit(&mut runs, 0..120, BASE.plus_secs(60))];

        assert_eq!(started, [60, 100]);
        assert_eq!(runs.runs.len(), MAX_ROLE_RUNS);
        assert_eq!(runs.runs[&run(0)], BASE);
    }

    #[test]
    fn after_an_hour_a_run_counts_as_long_as_nobody_finds_that_it_has_ended() {
        let mut runs = RoleRuns::default();
        let first = admit(&mut runs, 0..100, BASE);
        let (before, after) = (BASE.plus_secs(RECENT_SECS - 1), BASE.plus_secs(RECENT_SECS));

        let refused = admit(&mut runs, 100..101, after);
        runs.remove(&run(7));
        let next = admit(&mut runs, 101..103, after);

        assert_eq!((first, refused, next), (100, 0, 1));
        assert_eq!((runs.older(before).len(), runs.older(after).len()), (0, 99));
    }
}

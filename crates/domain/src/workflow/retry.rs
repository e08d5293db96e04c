//! Automatic retries of a node: its job is dispatched again after a failure.

use freehold_protocol::{JobId, Timestamp};

use super::{NodeState, Workflow};
use crate::job::{Job, JobEvent, JobState, MAX_DISPATCHES, Step};

/// The maximum number of automatic retries of one node, even if its config sets a higher number.
pub const MAX_RETRIES: u32 = MAX_DISPATCHES - 1;

impl Workflow {
    /// Returns the workflow and the requeued job, if `job` has failed and its node has a retry left.
    ///
    /// A lost job is not retried, because no runner reported its end. A blocked job is not retried, because somebody
    /// has to change something first. After a request to cancel, no job is retried.
    pub fn retry(&self, job: &Job, now: Timestamp) -> Option<(Self, Job)> {
        let failed = matches!(job.state, JobState::Failed { .. } | JobState::Interrupted { .. });
        if !failed || self.cancel_requested.is_some() || job.cancel_requested.is_some() {
            return None;
        }
        let mut next = self.clone();
        let node = next.nodes.iter_mut().find(|node| node.name == job.node)?;
        let is_active = matches!(&node.state, NodeState::Active { job: active } if *active == job.id);
        if !is_active || node.retried >= node.retries {
            return None;
        }
        let Ok(Step::Changed { job: again, .. }) = job.on(&JobEvent::Retry, now) else { return None };
        node.retried += 1;
        Some((next, *again))
    }

    /// Returns the number of the current dispatch of a node's job.
    pub fn dispatch_of(&self, job: &JobId) -> u32 {
        let is_its = |state: &NodeState| matches!(state, NodeState::Active { job: active } if active == job);
        1 + self.nodes.iter().find(|node| is_its(&node.state)).map_or(0, |node| node.earlier + node.retried)
    }
}

//! How the job of a gate waits for required checks. Its runner has found the component healthy and ended its attempt, and no
//! order is in the queue. The job succeeds when all checks have passed.

use std::collections::BTreeMap;

use freehold_protocol::limits::LOST_GRACE_SECS;
use freehold_protocol::report::{Block, Fence, Outcome};
use freehold_protocol::{KeyId, Timestamp};
use serde_json::Value;

use super::{Job, JobEvent, JobState, Rejected, Step, utc};
use crate::required_checks::{Verdict, named};

impl Job {
    /// Returns the state of the job after the attempt with this fence succeeded with these outputs, if the job has to wait for
    /// required checks; `None` for any other job.
    pub(super) fn awaiting_checks(
        &self,
        event: &JobEvent,
        fence: Fence,
        outputs: &BTreeMap<String, Value>,
        now: Timestamp,
    ) -> Option<JobState> {
        let required = &self.checks.as_ref()?.required;
        // The workflow has continued without a job that was lost, so its checks would not be evaluated again.
        if required.is_empty() || self.state.is_terminal() {
            return None;
        }
        if self.cancel_requested.is_some() {
            return Some(JobState::Cancelled { dispatch: fence.dispatch, ended_at: now, unclaimed: false });
        }
        let (_, runner) = event.attempt()?;
        let (runner, missing, outputs) = (runner.clone(), required.names.clone(), outputs.clone());
        // The end of another attempt does not prolong the wait.
        let (since, until) = if let JobState::WaitingForChecks { since, until, .. } = &self.state {
            (*since, *until)
        } else {
            (now, now.plus_secs(required.window_secs.into()))
        };
        Some(JobState::WaitingForChecks { fence, runner, since, until, missing, outputs })
    }

    /// Returns the effect of an event on a job that waits for required checks.
    pub(super) fn while_waiting_for_checks(
        &self,
        (current, holder): (Fence, &KeyId),
        event: &JobEvent,
        now: Timestamp,
    ) -> Result<Step, Rejected> {
        if let Some(step) = self.after_attempt((current, holder), event, now)? {
            return Ok(step);
        }
        match event {
            JobEvent::Expire | JobEvent::Wait if self.cancel_requested.is_some() => {
                Ok(self.ended(event, current, &Outcome::Cancelled, now))
            }
            // Only the verdict of the checks ends the wait: the time alone does not.
            JobEvent::Expire | JobEvent::Wait => Ok(Step::NotYet),
            JobEvent::Checks(verdict) => Ok(self.on_verdict(verdict, event, now)),
            JobEvent::Approval(approval) => self.approval_elsewhere(approval),
            _ => Ok(Step::Already),
        }
    }

    /// Returns whether the job, which was `before`, begins to wait for its required checks. A further attempt of the same
    /// dispatch may begin to wait again; this is the same wait to the people who report the checks.
    pub fn begins_to_await_checks(&self, before: &Self) -> bool {
        let JobState::WaitingForChecks { fence, .. } = &self.state else { return false };
        !before.history.iter().any(|line| {
            line.to == self.state.as_str() && line.fence.is_some_and(|earlier| earlier.dispatch == fence.dispatch)
        })
    }

    /// Returns the time from which a missing result blocks the job: a report from before `until` may be stored a little later.
    pub fn checks_end_at(&self) -> Option<Timestamp> {
        let JobState::WaitingForChecks { until, .. } = &self.state else { return None };
        Some(until.plus_secs(LOST_GRACE_SECS))
    }

    /// Returns whether the job is blocked because the component did not pass its required checks. The runner found the
    /// component healthy.
    pub fn is_blocked_by_checks(&self) -> bool {
        matches!(self.state, JobState::Blocked { block: Block::Unhealthy, .. })
            && self.history.last().is_some_and(|line| line.what == "check_results")
    }

    fn on_verdict(&self, verdict: &Verdict, event: &JobEvent, now: Timestamp) -> Step {
        let JobState::WaitingForChecks { fence, until, missing: known, outputs, .. } = &self.state else {
            return Step::Already;
        };
        // The next sweep ends a job that somebody asked to cancel.
        if self.cancel_requested.is_some() {
            return Step::Already;
        }
        match verdict {
            Verdict::Passed => {
                let (outputs, sensitive) = (outputs.clone(), BTreeMap::new());
                let ended = JobState::Succeeded { fence: *fence, ended_at: now, outputs, sensitive, artifact: None };
                self.change(ended, event, now)
            }
            Verdict::Failed(_) => self.not_passed(*fence, &verdict.problem(), event, now),
            Verdict::Missing(missing) if self.checks_end_at().is_some_and(|end| now >= end) => {
                let problem = format!("no result of {} came before {}", named(missing), utc(*until));
                self.not_passed(*fence, &problem, event, now)
            }
            Verdict::Missing(missing) if missing == known => Step::NotYet,
            Verdict::Missing(found) => {
                let mut state = self.state.clone();
                if let JobState::WaitingForChecks { missing, .. } = &mut state {
                    missing.clone_from(found);
                }
                self.change(state, event, now)
            }
        }
    }

    /// Ends the job because the component did not pass its required checks.
    fn not_passed(&self, fence: Fence, problem: &str, event: &JobEvent, now: Timestamp) -> Step {
        let component = self.checks.as_ref().map(|checks| checks.component.to_string()).unwrap_or_default();
        let reason = format!(
            "component `{component}` is not healthy: {problem}; when the check passes, report this result with \
             `freehold check report {} {component} NAME passed`, and then run `freehold job retry {}`",
            self.install, self.id
        );
        self.ended(event, fence, &Outcome::Blocked { block: Block::Unhealthy, reason }, now)
    }
}

#[cfg(test)]
mod tests;

//! The health of a component and of an install, as the last checks found it. It is independent of deploys: a deployed
//! component may be unhealthy, and a component whose deploy failed may be healthy.

use std::collections::BTreeSet;

use freehold_protocol::order::health::{Health, HealthState, OUTPUT};
use freehold_protocol::report::Block;
use freehold_protocol::{CheckName, ComponentName, JobId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::job::{Job, JobState};

use crate::required_checks::{self, ReportedCheck, Verdict};

/// The health of a component as the last check found it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastHealth {
    pub component: ComponentName,
    pub state: HealthState,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The time since which all checks have found this state.
    pub since: Timestamp,
    /// The time of the last check.
    pub at: Timestamp,
    pub job: JobId,
    /// The serial of the last check's workflow.
    pub serial: u64,
    /// The required checks of the component in the version that the check used.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub required: BTreeSet<CheckName>,
    /// Whether only the required checks made the component unhealthy: its runner found it healthy, and its gate stayed
    /// closed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_checks: bool,
}

/// The health of an install, which is the health of its worst component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstallHealth {
    pub state: HealthState,
    /// The time since which a component has had this state without interruption; for `healthy`, since which all have.
    pub since: Timestamp,
}

/// Returns the health that an ended job found; `None` for a job that was cancelled.
pub fn found_by(job: &Job) -> Option<Health> {
    match &job.state {
        JobState::Succeeded { outputs, .. } => {
            let found = outputs.get(OUTPUT).cloned().and_then(|value| serde_json::from_value::<Health>(value).ok());
            let unreadable = || Health::new(HealthState::Unknown, "the runner reported no health");
            // The runner is not trusted to cut the reason.
            Some(found.map_or_else(unreadable, |found| Health::new(found.state, &found.reason)))
        }
        JobState::Blocked { block: Block::Unhealthy, reason, .. } => Some(Health::new(HealthState::Unhealthy, reason)),
        JobState::Cancelled { .. } => None,
        ended => {
            let reason = job.reason().unwrap_or_else(|| format!("the check is {}", ended.as_str()));
            Some(Health::new(HealthState::Unknown, &reason))
        }
    }
}

/// Returns whether the job of a health check that has ended has a result: false if it failed or was lost, and if its
/// order was refused.
pub const fn has_result(job: &Job) -> bool {
    matches!(&job.state, JobState::Succeeded { .. } | JobState::Blocked { block: Block::Unhealthy, .. })
}

impl LastHealth {
    /// Returns whether the check belongs to the deploy with this serial or to a later workflow, so that it is about
    /// what is deployed.
    pub const fn is_since(&self, deployed: u64) -> bool {
        self.serial >= deployed
    }

    /// Returns the health of `component`, which has these required checks, after `job` checked it; `None` when a later
    /// workflow has checked it since, or when the job has not ended or was cancelled.
    pub fn after(
        before: Option<&Self>,
        (component, required): (&ComponentName, &BTreeSet<CheckName>),
        job: &Job,
        now: Timestamp,
    ) -> Option<Self> {
        if !job.state.is_terminal() || before.is_some_and(|before| before.serial > job.serial) {
            return None;
        }
        let Health { state, reason } = found_by(job)?;
        let since = before.filter(|before| before.state == state).map_or(now, |before| before.since);
        let by_checks = job.is_blocked_by_checks();
        let (component, job, serial) = (component.clone(), job.id.clone(), job.serial);
        Some(Self { component, state, reason, since, at: now, job, serial, required: required.clone(), by_checks })
    }

    /// Returns the health with the reports of required checks that were stored by the time `now`: a component that only
    /// its required checks made unhealthy is healthy once all have passed, also if they passed too late for its gate.
    /// `reported` may contain results of other components. `serial` is that of the component's last deploy.
    #[must_use]
    pub fn after_report(self, reported: &[ReportedCheck], serial: u64, now: Timestamp) -> Self {
        if !self.by_checks || !self.is_since(serial) {
            return self;
        }
        let own = reported.iter().filter(|one| one.component == self.component);
        match required_checks::verdict(&self.required, own, serial, None) {
            Verdict::Passed => {
                Self { state: HealthState::Healthy, reason: String::new(), since: now, by_checks: false, ..self }
            }
            Verdict::Failed(_) | Verdict::Missing(_) => self,
        }
    }

    /// Returns the health combined with the required checks: a failed check makes the component unhealthy, and a
    /// missing result makes its health unknown. A component is not healthy before its last check passed. `reported` may
    /// contain results of other components. `serial` and `at` are those of the component's last deploy.
    #[must_use]
    pub fn with_checks(self, reported: &[ReportedCheck], (serial, at): (u64, Timestamp)) -> Self {
        let own: Vec<&ReportedCheck> = reported.iter().filter(|one| one.component == self.component).collect();
        let verdict = required_checks::verdict(&self.required, own.iter().copied(), serial, None);
        let (state, since) = match &verdict {
            Verdict::Passed => {
                let is_required = |one: &&ReportedCheck| one.serial == serial && self.required.contains(&one.check);
                let last = own.iter().copied().filter(is_required).map(|one| one.at).max();
                let last = last.filter(|_| self.state == HealthState::Healthy);
                let since = last.map_or(self.since, |last| last.max(self.since));
                return Self { since, ..self };
            }
            Verdict::Failed(failed) => {
                let times = own.iter().filter(|one| failed.contains_key(&one.check)).map(|one| one.at);
                (HealthState::Unhealthy, times.min().unwrap_or(at))
            }
            Verdict::Missing(_) => (HealthState::Unknown, at),
        };
        if self.state >= state {
            return self;
        }
        let parts = [self.reason.clone(), verdict.problem()];
        let reason = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ");
        Self { reason: Health::new(state, &reason).reason, state, since, ..self }
    }
}

/// Returns the health of an install whose components have this health; `None` when no component was checked.
pub fn of_install<'a>(components: impl IntoIterator<Item = &'a LastHealth>) -> Option<InstallHealth> {
    let mut worst: Option<InstallHealth> = None;
    for LastHealth { state, since, .. } in components {
        let one = InstallHealth { state: *state, since: *since };
        worst = Some(match worst {
            Some(known) if known.state > one.state => known,
            Some(known) if known.state < one.state => one,
            // An install is healthy since its last component became healthy. Any other state begins with the first
            // component in it.
            Some(known) if known.state == HealthState::Healthy => {
                InstallHealth { since: known.since.max(one.since), ..known }
            }
            Some(known) => InstallHealth { since: known.since.min(one.since), ..known },
            None => one,
        });
    }
    worst
}

#[cfg(test)]
mod tests;

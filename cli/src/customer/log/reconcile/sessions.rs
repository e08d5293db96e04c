//! The number of sessions of its role that a runner starts for a job, by the records of the job.

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::Timestamp;
use freehold_protocol::audit::{AuditEvent, AuditRecord};

use super::super::history::Run;

/// The tolerated difference between clocks. It also covers the last calls of a job, which may come after the record of
/// the job's end.
pub(super) const SLACK_MILLIS: u64 = 5 * 60 * 1000;

/// The time after which a runner renews a session that it still uses. A session lasts for an hour, and the runner
/// renews it five minutes before its end.
const RENEWED_AFTER_MILLIS: u64 = 55 * 60 * 1000;

/// The sessions that records explain, and the number of those that CloudTrail shows.
pub(super) struct Sessions<'a> {
    runs: BTreeMap<&'a str, Vec<&'a Run>>,
    /// The attempts that records name, by job: each with its dispatch and its delivery.
    attempts: BTreeMap<&'a str, BTreeSet<(u32, u32)>>,
    /// The sessions so far, by job and role.
    begun: BTreeMap<(&'a str, String), u64>,
}

impl<'a> Sessions<'a> {
    pub(super) fn of(runs: &'a [Run], records: &'a [AuditRecord]) -> Self {
        let mut all = Self { runs: BTreeMap::new(), attempts: BTreeMap::new(), begun: BTreeMap::new() };
        for run in runs {
            all.runs.entry(run.job.as_str()).or_default().push(run);
            all.attempts.entry(run.job.as_str()).or_default().insert((run.fence.dispatch, run.fence.receive));
        }
        for record in records {
            if let AuditEvent::Ended { job, fence, .. } = &record.event {
                all.attempts.entry(job.as_str()).or_default().insert((fence.dispatch, fence.receive));
            }
        }
        all
    }

    /// Counts a session of `job` under `role` that began at `at`. Returns why the records do not explain it; `None` if
    /// they do.
    pub(super) fn beyond(&mut self, at: Timestamp, job: &'a str, role: &str) -> Option<String> {
        let most = self.most(job, at);
        let begun = self.begun.entry((job, role.to_owned())).or_default();
        *begun += 1;
        (*begun > most).then(|| {
            format!(
                "this is session {begun} of job `{job}` under role `{role}`, and its records explain only {most} until then; \
                 either somebody else has the credentials of the runner, or a runner died before it wrote the record of a \
                 start, or it repeated a request whose answer was lost"
            )
        })
    }

    /// Returns how many sessions of its role a runner may have begun for `job` until `at`: one for each attempt, one
    /// for each renewal, and one for each attempt without success, because the runner then finds out whether the role
    /// was switched off.
    fn most(&self, job: &str, at: Timestamp) -> u64 {
        let attempts = self.attempts.get(job).map_or(0, BTreeSet::len) as u64;
        let runs = self.runs.get(job).into_iter().flatten();
        let more = runs.map(|run| {
            let end = run.end.as_ref().map_or(at, |end| end.at.min(at));
            let lasted = (end.as_millis() + SLACK_MILLIS).saturating_sub(run.at.as_millis());
            let has_succeeded = run.end.as_ref().is_some_and(|end| end.result == "succeeded");
            lasted / RENEWED_AFTER_MILLIS + u64::from(!has_succeeded)
        });
        attempts + more.sum::<u64>()
    }
}

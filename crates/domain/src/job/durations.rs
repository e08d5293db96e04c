//! How long a job waited for its runner, and how long it ran, as its history shows.

use super::Job;
use crate::AuditRecord;

impl Job {
    /// Returns how long the job waited for its runner before the start that is the newest record of its history, in
    /// milliseconds. Waits for approvals and for the customer's window before its order do not count. `None` if the newest
    /// record is not the start of a job that was waiting.
    pub fn waited_for_runner_ms(&self) -> Option<u64> {
        let (start, before) = self.history.split_last()?;
        if start.to != "running" || !waits(&start.from) {
            return None;
        }
        let begins = |record: &&AuditRecord| waits(&record.to) && !waits(&record.from);
        let since = before.iter().rev().find(begins).map_or(self.created_at, |record| record.at);
        Some(start.at.since(since))
    }

    /// Returns how long the job ran in its last dispatch until the newest record of its history, in milliseconds. `None`
    /// if no start of this dispatch was reported.
    pub fn ran_ms(&self) -> Option<u64> {
        let end = self.history.last()?;
        let dispatch = self.history.iter().rev().take_while(|record| record.to != "queued");
        let start = dispatch.filter(|record| record.to == "running" && record.from != "running").last()?;
        Some(end.at.since(start.at))
    }
}

/// Returns whether a job in this state waits for a runner that starts its order.
fn waits(state: &str) -> bool {
    ["queued", "waiting_for_runner"].contains(&state)
}

#[cfg(test)]
mod tests {
    use freehold_protocol::Timestamp;

    use super::super::tests::new_job;
    use super::super::{Job, WaitLimits};
    use crate::AuditRecord;

    /// Returns a job that was made at 1 s, with these changes of its state at these seconds.
    fn job(changes: &[(u64, &str, &str)]) -> Job {
        let limits = WaitLimits { order_secs: 3600, job_secs: 24 * 3600 };
        let mut job = Job::new(new_job(), limits, Timestamp::from_millis(1000));
        let record = |(at, from, to): &(u64, &str, &str)| AuditRecord {
            at: Timestamp::from_millis(at * 1000),
            job: job.id.clone(),
            what: "changed".into(),
            from: (*from).into(),
            to: (*to).into(),
            fence: None,
            runner: None,
            reason: String::new(),
        };
        job.history = changes.iter().map(record).collect();
        job
    }

    #[test]
    fn a_job_waits_for_its_runner_from_its_order_to_its_start() {
        let at_once = job(&[(4, "queued", "running")]);
        let late = job(&[
            (9, "queued", "waiting_for_runner"),
            (10, "waiting_for_runner", "queued"),
            (21, "queued", "running"),
        ]);
        let held = job(&[
            (2, "queued", "waiting_for_window"),
            (50, "waiting_for_window", "queued"),
            (52, "queued", "running"),
        ]);
        let retried = job(&[
            (4, "queued", "running"),
            (5, "running", "failed"),
            (5, "failed", "queued"),
            (8, "queued", "running"),
        ]);

        assert_eq!(
            [at_once, late, held, retried].map(|job| job.waited_for_runner_ms()),
            [3000, 20_000, 2000, 3000].map(Some)
        );
    }

    #[test]
    fn only_the_start_of_a_job_that_waited_has_a_wait() {
        let changes = [(4, "queued", "running"), (5, "running", "running"), (6, "running", "succeeded")];

        let waits = [0, 2, 3].map(|many| job(&changes[..many]).waited_for_runner_ms());

        assert_eq!(waits, [None; 3]);
    }

    #[test]
    fn a_job_ran_from_the_first_start_of_its_last_dispatch_to_its_end() {
        let again = job(&[(4, "queued", "running"), (6, "running", "running"), (9, "running", "succeeded")]);
        let retried = job(&[
            (4, "queued", "running"),
            (5, "running", "failed"),
            (5, "failed", "queued"),
            (8, "queued", "running"),
            (20, "running", "failed"),
        ]);
        let unseen = job(&[
            (4, "queued", "running"),
            (5, "running", "failed"),
            (5, "failed", "queued"),
            (9, "queued", "failed"),
        ]);

        assert_eq!([again, retried, unseen].map(|job| job.ran_ms()), [Some(5000), Some(12_000), None]);
    }
}

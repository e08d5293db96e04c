//! Records in the audit trail which IAM actions a job's programs perform.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use freehold_iam_proxy::{Change, Recorder, Stage, Used};
use freehold_protocol::JobId;
use freehold_protocol::audit::AuditEvent;
use freehold_protocol::report::Fence;
use tracing::error;

use crate::aws;
use crate::record::audit;
use crate::work::agent::Agent;

/// The maximum number of changes to IAM by one attempt. It limits the records that a program of the vendor can cause in
/// a loop: each change makes two or three records in the customer's bucket. The largest sandboxes make a few hundred
/// changes.
const MOST_CHANGES: u32 = 5_000;

/// The error code in the record of a change that was announced and not sent to IAM.
const NOT_SENT: &str = "NotSent";

/// The IAM records of one attempt.
#[derive(Debug)]
pub(super) struct IamAudit {
    agent: Arc<Agent>,
    job: JobId,
    fence: Fence,
    changes: Changes,
}

/// The number of changes so far.
#[derive(Debug, Default)]
struct Changes(AtomicU32);

impl Changes {
    /// Counts one more change.
    fn add(&self) -> Result<(), String> {
        if self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| (n < MOST_CHANGES).then_some(n + 1)).is_ok() {
            return Ok(());
        }
        Err(format!(
            "this attempt has changed IAM {MOST_CHANGES} times, which is the maximum for one attempt; make sure \
             that the module does not change IAM in a loop, and then deploy again: the next deploy makes the remaining changes"
        ))
    }
}

impl IamAudit {
    pub(super) fn new(agent: &Arc<Agent>, job: &JobId, fence: Fence) -> Self {
        Self { agent: Arc::clone(agent), job: job.clone(), fence, changes: Changes::default() }
    }

    fn event(&self, change: Change) -> AuditEvent {
        let (stage, detail) = match change.stage {
            Stage::Announced => ("announced", String::new()),
            Stage::Made => ("made", String::new()),
            Stage::Failed { code } => ("failed", code),
            Stage::Held { instead } => ("held", instead),
            Stage::Refused { reason } => ("refused", reason),
        };
        let (job, fence, stage) = (self.job.clone(), self.fence, stage.to_owned());
        AuditEvent::IamChange { job, fence, action: change.action, resource: change.resource, stage, detail }
    }
}

#[async_trait]
impl Recorder for IamAudit {
    /// A change that is about to happen is written into the customer's bucket first. If the bucket does not take the
    /// record in time, a second record states that the change was not made.
    async fn record(&self, change: Change) -> Result<(), String> {
        let audit = &self.agent.audit;
        let explain = |error| aws::explain(&error);
        match change.stage {
            Stage::Announced | Stage::Held { .. } => {
                self.changes.add()?;
                let failed = Stage::Failed { code: NOT_SENT.to_owned() };
                let not_sent = self.event(Change { stage: failed, ..change.clone() });
                audit.record(self.event(change)).map_err(explain)?;
                let Err(error) = audit.flush(audit::BUCKET_LIMIT).await else { return Ok(()) };
                if let Err(error) = audit.conclude(not_sent) {
                    error!("{}", explain(error));
                }
                Err(explain(error))
            }
            Stage::Made | Stage::Failed { .. } => audit.conclude(self.event(change)).map_err(explain),
            Stage::Refused { .. } => audit.record(self.event(change)).map_err(explain),
        }
    }

    async fn record_used(&self, used: BTreeMap<String, Used>) -> Result<(), String> {
        let count = |of: fn(&Used) -> u64| {
            let counted = used.iter().map(|(action, used)| (action.clone(), of(used)));
            counted.filter(|(_, times)| *times > 0).collect()
        };
        let (answered, refused) = (count(|used| used.answered), count(|used| used.refused));
        let (job, fence) = (self.job.clone(), self.fence);
        let event = AuditEvent::IamUsed { job, fence, answered, refused };
        self.agent.audit.conclude(event).map_err(|error| aws::explain(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_attempt_cannot_fill_the_audit_with_changes() {
        let changes = Changes::default();

        let made = (0..MOST_CHANGES * 2).filter(|_| changes.add().is_ok()).count();

        assert_eq!(u32::try_from(made), Ok(MOST_CHANGES));
        assert!(changes.add().unwrap_err().contains("5000 times"));
    }
}

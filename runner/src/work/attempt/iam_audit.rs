//! Records in the audit trail which IAM actions a job's programs perform.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use freehold_iam_proxy::{Change, Recorder, Stage, Used};
use freehold_protocol::JobId;
use freehold_protocol::audit::AuditEvent;
use freehold_protocol::report::Fence;

use crate::aws;
use crate::work::agent::Agent;

/// The IAM records of one attempt.
#[derive(Debug)]
pub(super) struct IamAudit {
    agent: Arc<Agent>,
    job: JobId,
    fence: Fence,
}

impl IamAudit {
    pub(super) fn new(agent: &Arc<Agent>, job: &JobId, fence: Fence) -> Self {
        Self { agent: Arc::clone(agent), job: job.clone(), fence }
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
    /// A change that is about to happen is written into the customer's bucket first.
    async fn record(&self, change: Change) -> Result<(), String> {
        let announces = matches!(change.stage, Stage::Announced | Stage::Held { .. });
        let event = self.event(change);
        let audit = &self.agent.audit;
        let recorded = if announces { audit.announce(event).await } else { audit.record(event) };
        recorded.map_err(|error| aws::explain(&error))
    }

    async fn used(&self, used: BTreeMap<String, Used>) -> Result<(), String> {
        let count = |of: fn(&Used) -> u64| {
            let counted = used.iter().map(|(action, used)| (action.clone(), of(used)));
            counted.filter(|(_, times)| *times > 0).collect()
        };
        let (answered, refused) = (count(|used| used.answered), count(|used| used.refused));
        let (job, fence) = (self.job.clone(), self.fence);
        let event = AuditEvent::IamUsed { job, fence, answered, refused };
        self.agent.audit.record(event).map_err(|error| aws::explain(&error))
    }
}

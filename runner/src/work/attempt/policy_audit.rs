//! Records the results of a job's policies in the audit trail, and holds them for the job's report.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use freehold_protocol::audit::AuditEvent;
use freehold_protocol::policy::PolicyResult;

use crate::aws;
use crate::job::PolicyRecorder;
use crate::record::audit;
use crate::work::agent::Agent;
use crate::work::in_flight::HeldOrder;

/// The policies of one attempt.
#[derive(Debug)]
pub(super) struct PolicyAudit {
    agent: Arc<Agent>,
    held: Arc<HeldOrder>,
    results: Mutex<Vec<PolicyResult>>,
}

impl PolicyAudit {
    pub(super) fn new(agent: &Arc<Agent>, held: &Arc<HeldOrder>) -> Self {
        Self { agent: Arc::clone(agent), held: Arc::clone(held), results: Mutex::default() }
    }
}

#[async_trait]
impl PolicyRecorder for PolicyAudit {
    /// The record is in the customer's bucket before the job continues.
    async fn record(&self, results: Vec<PolicyResult>) -> Result<(), String> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&results);
        let order = &self.held.order;
        let (job, fence, component) = (order.job.clone(), self.held.fence, order.work.component().cloned());
        let (audit, explain) = (&self.agent.audit, |error| aws::explain(&error));
        audit.record(AuditEvent::PoliciesAsked { job, fence, component, results }).map_err(explain)?;
        audit.flush(audit::BUCKET_LIMIT).await.map_err(explain)
    }

    fn results(&self) -> Vec<PolicyResult> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

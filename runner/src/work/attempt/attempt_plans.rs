//! The approvals that the customer requires of this runner's jobs, and the storage of their plans.

use std::sync::Arc;

use async_trait::async_trait;
use freehold_protocol::Timestamp;
use freehold_protocol::approval::ApproveChanges;
use freehold_protocol::audit::AuditEvent;
use freehold_protocol::order::Order;
use tokio::time::Instant;

use crate::aws;
use crate::job::Plans;
use crate::process::clock;
use crate::record::audit;
use crate::work::agent::Agent;

/// The plans of one attempt.
#[derive(Debug)]
pub(super) struct AttemptPlans(pub(super) Arc<Agent>);

#[async_trait]
impl Plans for AttemptPlans {
    async fn customer_asks(&self, order: &Order) -> Result<ApproveChanges, String> {
        let agent = &self.0;
        // A build runner has no install stack.
        if agent.standing.stack_name().is_empty() {
            return Ok(ApproveChanges::None);
        }
        agent.changes.read(&agent.standing).await?.approve_changes(order)
    }

    async fn get(&self, object: &str) -> Result<Option<Vec<u8>>, String> {
        self.0.plans.get(object).await
    }

    async fn put(&self, object: &str, bytes: Vec<u8>) -> Result<(), String> {
        self.0.plans.put(object, bytes).await
    }

    async fn record(&self, event: AuditEvent) -> Result<(), String> {
        let (audit, explain) = (&self.0.audit, |error| aws::explain(&error));
        audit.record(event).map_err(explain)?;
        audit.flush(audit::BUCKET_LIMIT).await.map_err(explain)
    }

    fn now(&self) -> Timestamp {
        self.0.clock.now(Instant::now()).unwrap_or_else(clock::local)
    }
}

//! Records the connections of an attempt that the egress proxy refused.

use std::sync::Arc;

use freehold_egress::Refusal;
use freehold_protocol::audit::AuditEvent;
use tracing::error;

use crate::aws;
use crate::job::Connections;
use crate::work::agent::Agent;
use crate::work::in_flight::HeldOrder;

/// Records refused connections in the audit trail.
#[derive(Debug)]
pub(super) struct RefusedConnections {
    pub(super) agent: Arc<Agent>,
    pub(super) held: Arc<HeldOrder>,
}

impl Connections for RefusedConnections {
    fn refused(&self, refusal: &Refusal) {
        let event = AuditEvent::ConnectionRefused {
            job: self.held.order.job.clone(),
            fence: self.held.fence,
            host: refusal.host.clone(),
            port: refusal.port,
            reason: refusal.word.to_owned(),
            times: refusal.times,
        };
        let agent = self.agent.clone();
        // The record is written on another thread. The connection is already refused, so nothing has to wait for the
        // record.
        tokio::task::spawn_blocking(move || {
            if let Err(error) = agent.audit.record(event) {
                error!("{}", aws::explain(&error));
            }
        });
    }
}

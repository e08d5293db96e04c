//! Handles cancels and grants as soon as they arrive, while jobs run.

use std::sync::Arc;

use freehold_protocol::Digest;
use freehold_protocol::audit::AuditEvent;
use freehold_protocol::grant::ArtifactGrant;
use freehold_protocol::order::Cancel;
use tracing::{error, info};

use crate::aws;
use crate::wire::inbox::Delivery;
use crate::work::agent::Agent;
use crate::work::journal::Record;

/// Records the cancel, so that the order does not start later, and stops the attempt that the cancel names.
pub fn cancel(agent: &Arc<Agent>, cancel: &Cancel, delivery: Delivery) {
    if cancel.runner.as_ref().is_some_and(|runner| runner != agent.reporter.runner()) {
        delete_later(agent, delivery.handle);
        return;
    }
    if let Err(error) = agent.journal().append(&[Record::cancelled(cancel)]) {
        // The message is redelivered when its visibility timeout ends.
        error!("{}", aws::explain(&error));
        return;
    }
    let job = cancel.job.clone();
    let stopped = agent.in_flight.cancel(&job, cancel.dispatch, cancel.receive);
    info!(job.id = %job, stopped, "The control plane cancelled job `{job}`");
    let message = Digest::of(delivery.body.as_bytes());
    if let Err(error) = agent.audit.record(AuditEvent::Cancelled { job, dispatch: cancel.dispatch, message }) {
        error!("{}", aws::explain(&error));
        return;
    }
    delete_later(agent, delivery.handle);
}

/// Delivers the grant to the attempt that waits for it, and deletes the message, also when no attempt waits.
pub fn grant(agent: &Arc<Agent>, grant: ArtifactGrant, delivery: Delivery) {
    let (id, job) = (grant.grant.clone(), grant.job.clone());
    if !agent.grants.deliver(grant) {
        info!(job.id = %job, "No attempt waits for grant `{id}`");
    }
    delete_later(agent, delivery.handle);
}

/// Deletes a message in the background.
pub fn delete_later(agent: &Arc<Agent>, handle: String) {
    let agent = agent.clone();
    tokio::spawn(async move { agent.delete(&handle).await });
}

//! Handles cancels, grants, notices of a replaced key and refused messages as soon as they arrive, while jobs run.

use std::sync::Arc;

use freehold_protocol::Digest;
use freehold_protocol::audit::AuditEvent;
use freehold_protocol::grant::ArtifactGrant;
use freehold_protocol::order::{Cancel, Retired};
use freehold_protocol::report::Refusal;
use tracing::{error, info, warn};

use crate::aws;
use crate::keys::renewal;
use crate::wire::inbox::Delivery;
use crate::wire::report::shortened;
use crate::work::agent::Agent;
use crate::work::journal::Record;

/// The number of times that a notice for another runner is left in the queue. Both runners receive from one queue, so
/// the addressed runner may receive it later, or may no longer exist.
const LEFT_TO_OTHERS: u32 = 8;

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
    let (dispatch, receive) = (cancel.dispatch, cancel.receive);
    let (asked_by, asked_why) = (cancel.asked_by.clone(), cancel.asked_why.clone().map(shortened));
    let event = AuditEvent::Cancelled { job, dispatch, receive, asked_by, asked_why, message };
    if let Err(error) = agent.audit.record(event) {
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

/// Stores that this runner's key was replaced, and drains the runner, which then makes a new key. A notice for another
/// key changes nothing.
pub fn retired(agent: &Arc<Agent>, notice: &Retired, delivery: Delivery) {
    if notice.runner != *agent.reporter.runner() {
        if delivery.receive >= LEFT_TO_OTHERS {
            delete_later(agent, delivery.handle);
        }
        return;
    }
    if !agent.is_retired() {
        if let Err(error) = renewal::learn(&agent.config.state_dir, notice) {
            // The message is redelivered when its visibility timeout ends.
            error!("{}", aws::explain(&error));
            return;
        }
        let message = Digest::of(delivery.body.as_bytes());
        let event = AuditEvent::KeyReplaced { replaced_by: notice.replaced_by.clone(), message };
        if let Err(error) = agent.audit.record(event) {
            error!("{}", aws::explain(&error));
        }
        warn!(
            runner.key = %notice.runner,
            "The control plane accepts no reports of this runner any more, because key `{}` has replaced its key `{}`: \
             draining, to enrol with a new key",
            notice.replaced_by,
            notice.runner
        );
        agent.retire(notice.replaced_by.clone());
    }
    delete_later(agent, delivery.handle);
}

/// Refuses a message and deletes it. A refusal that cannot be recorded leaves the message in the queue.
pub fn refuse(agent: &Arc<Agent>, refusal: Refusal, delivery: &Delivery) {
    if agent.refuse(refusal, delivery.known_sent_at()) {
        delete_later(agent, delivery.handle.clone());
    }
}

/// Deletes a message in the background.
pub fn delete_later(agent: &Arc<Agent>, handle: String) {
    let agent = agent.clone();
    tokio::spawn(async move { agent.delete(&handle).await });
}

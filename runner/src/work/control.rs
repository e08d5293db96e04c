//! Handles cancels, grants, notices of a replaced key and refused messages as soon as they arrive, while jobs run.

use std::sync::Arc;

use freehold_protocol::audit::AuditEvent;
use freehold_protocol::grant::ArtifactGrant;
use freehold_protocol::order::{Cancel, Retired};
use freehold_protocol::report::Refusal;
use freehold_protocol::{Digest, limits};
use tracing::{error, info, warn};

use crate::aws;
use crate::keys::renewal;
use crate::wire::inbox::Delivery;
use crate::wire::report::shortened;
use crate::work::agent::Agent;
use crate::work::journal::Record;

/// The number of deliveries of a message until it is deleted, if it is for another machine of the install. The machines
/// receive from one queue, so the other one may receive the message later, or may no longer exist.
const LEFT_TO_OTHERS: u32 = 8;
/// The time, in seconds, after which a message that is left to another machine is delivered again. Other messages of
/// its message group wait meanwhile.
const LEFT_SECS: u64 = 2;
/// A notice that expires within this time, in seconds, is not left to another machine: at its next delivery it could
/// have expired.
const NOTICE_ENDS_SECS: u64 = 2 * limits::LEASE_SECS;

/// Records the cancel, so that the order does not start later, and stops the attempt that the cancel names. A cancel
/// for another runner is then left to that runner.
pub fn cancel(agent: &Arc<Agent>, cancel: &Cancel, delivery: Delivery) {
    let is_for_other = cancel.runner.as_ref().is_some_and(|runner| runner != agent.reporter.runner());
    // An attempt of this runner may have the same fence as that of the other one.
    if is_for_other && cancel.receive.is_some() {
        leave_to_another(agent, delivery);
        return;
    }
    if let Err(error) = agent.journal().append(&[Record::cancelled(cancel)]) {
        // The message is redelivered when its visibility timeout ends.
        error!("{}", aws::explain(&error));
        return;
    }
    let job = cancel.job.clone();
    let stopped = agent.in_flight.cancel(&job, cancel.dispatch, cancel.receive);
    // The machine that deletes the message records the cancel.
    if is_for_other && delivery.receive < LEFT_TO_OTHERS {
        leave_to_another(agent, delivery);
        return;
    }
    info!(job.id = %job, stopped, "The control plane cancelled job `{job}`");
    let message = Digest::of(delivery.body.as_bytes());
    let (dispatch, receive) = (cancel.dispatch, cancel.receive);
    let (asked_by, asked_why) = (cancel.asked_by().cloned(), cancel.asked_why.clone().map(shortened));
    let event = AuditEvent::Cancelled { job, dispatch, receive, asked_by, asked_why, message };
    if let Err(error) = agent.audit.record(event) {
        error!("{}", aws::explain(&error));
        return;
    }
    delete_later(agent, delivery.handle);
}

/// Delivers the grant to the attempt that waits for it, and deletes the message. If no attempt waits, the grant may be
/// for an attempt of another machine.
pub fn grant(agent: &Arc<Agent>, grant: ArtifactGrant, delivery: Delivery) {
    let (id, job, fence) = (grant.grant.clone(), grant.job.clone(), grant.fence);
    if !agent.grants.deliver(grant) {
        if !agent.journal().state().has_attempted(&job, fence) {
            leave_to_another(agent, delivery);
            return;
        }
        info!(job.id = %job, "No attempt waits for grant `{id}`");
    }
    delete_later(agent, delivery.handle);
}

/// Stores that this runner's key was replaced, and drains the runner, which then makes a new key. A notice for another
/// key changes nothing, and stays in the queue for as long as it is valid: the control plane sends the next one an hour
/// later. In another message group than that of notices, other messages would wait behind it.
pub fn retired(agent: &Arc<Agent>, notice: &Retired, delivery: Delivery) {
    if notice.runner != *agent.reporter.runner() {
        let ends = agent.server_now(delivery.sent_at).plus_secs(NOTICE_ENDS_SECS) >= notice.not_after;
        let is_in_place = delivery.group.as_deref().is_none_or(|group| group == Retired::MESSAGE_GROUP);
        if ends || !is_in_place {
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

/// Leaves a message in the queue for another machine of the install, or deletes it if it was delivered too often.
fn leave_to_another(agent: &Arc<Agent>, delivery: Delivery) {
    if delivery.receive >= LEFT_TO_OTHERS {
        delete_later(agent, delivery.handle);
        return;
    }
    let agent = agent.clone();
    tokio::spawn(async move {
        if let Err(error) = agent.inbox.lease(&delivery.handle, LEFT_SECS).await {
            warn!("A message for another machine of the install is delivered again only when its lease ends: {error}");
        }
    });
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

//! Decides about an order that this version of the runner does not understand. A machine of the install with a newer
//! version may understand it, so the order is left to that machine for as long as it may be there.

use std::sync::Arc;
use std::time::Duration;

use freehold_protocol::audit::{AuditEvent, AuditRecord};
use freehold_protocol::order::OrderHead;
use freehold_protocol::report::{Fence, Refusal, RefusalReason};
use freehold_protocol::{Envelope, KeyId, Timestamp};
use semver::Version;
use tracing::{info, warn};

use crate::aws;
use crate::wire::inbox::Delivery;
use crate::work::agent::Agent;
use crate::work::control;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The time limit for reading the audit chain. The lease of the order, which is not renewed, is longer.
const READ_LIMIT: Duration = Duration::from_secs(15);
/// How long before the order was made a newer machine may have written its last record, in seconds. A runner sends a
/// hello at least once an hour, and records it. The clocks of the bucket and of the control plane may differ.
const RECENT_SECS: u64 = 2 * 3600;

/// Returns whether the refused message is an order for this install that this version does not understand.
pub(super) fn is_about_order(refusal: &Refusal) -> bool {
    refusal.reason == RefusalReason::NotUnderstood && refusal.job.is_some()
}

/// How long an order is left to another machine of the install.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Left {
    until: Timestamp,
    /// Whether another machine has started the job.
    is_started: bool,
}

/// Leaves the order in the queue if another machine of the install may understand it, and refuses it otherwise. The
/// control plane ends the job of an order that is refused.
pub(super) async fn settle(agent: Arc<Agent>, refusal: Refusal, delivery: Delivery) {
    let head = Envelope::parse(delivery.body.as_bytes()).and_then(|envelope| envelope.peek::<OrderHead>());
    // INVARIANT: `Trust::verify` has read the head, because the refusal names a job.
    if let Ok(head) = head
        && let Some(left) = left(&agent, &head).await
        && agent.server_now(delivery.sent_at) <= left.until
    {
        let (job, why) = (&head.job, &refusal.detail);
        info!(job.id = %job, "The order of job `{job}` stays in the queue for another machine of the install: {why}");
        if !left.is_started {
            note_unstarted(&agent, &head, &delivery).await;
        }
        return;
    }
    control::refuse(&agent, refusal, &delivery);
}

/// Writes the note that this delivery started nothing, if that holds for all earlier deliveries. Without the note, the
/// other machine would end a job that must not start twice as interrupted.
async fn note_unstarted(agent: &Agent, head: &OrderHead, delivery: &Delivery) {
    let fence = |receive| Fence { dispatch: head.dispatch, receive };
    let (unstarted, sent_at, receive) = (&agent.unstarted, delivery.known_sent_at(), delivery.receive);
    if receive <= 1 || unstarted.is_noted(&head.job, fence(receive - 1), sent_at).await {
        unstarted.note(&head.job, fence(receive), sent_at).await;
    }
}

/// Returns how long the order is left to another machine; `None` if none may understand it. While the chain cannot be
/// read, one may.
async fn left(agent: &Agent, head: &OrderHead) -> Option<Left> {
    let own = agent.audit.key();
    let from = Timestamp::from_millis(head.issued_at.as_millis().saturating_sub(RECENT_SECS * 1000));
    let records = agent.audit.since(from, READ_LIMIT, |record| left_because_of(record, own, head).is_some()).await;
    match records {
        Ok(records) => records?.iter().filter_map(|record| left_because_of(record, own, head)).max(),
        Err(error) => {
            warn!(job.id = %head.job, "Cannot look for a newer machine of the install: {}", aws::explain(&error));
            // That machine may have started the job.
            Some(Left { until: starts_by(head), is_started: true })
        }
    }
}

/// Returns how long the order is left to the machine that wrote the record, if this is another machine than `own` and
/// may understand the order.
fn left_because_of(record: &AuditRecord, own: &KeyId, head: &OrderHead) -> Option<Left> {
    if record.runner == *own {
        return None;
    }
    if has_started(&record.event, head) {
        // Each attempt ends by this time. If that machine is lost, the next one resumes the job.
        return Some(Left { until: head.not_after, is_started: true });
    }
    let may_understand = head.runner.as_ref() == Some(&record.runner) || is_of_newer_version(&record.event);
    may_understand.then(|| Left { until: starts_by(head), is_started: false })
}

fn has_started(event: &AuditEvent, head: &OrderHead) -> bool {
    matches!(event, AuditEvent::Started { job, fence, .. } if *job == head.job && fence.dispatch == head.dispatch)
}

fn is_of_newer_version(event: &AuditEvent) -> bool {
    let is_newer = |version: &str| Version::parse(version).ok() > Version::parse(VERSION).ok();
    matches!(event, AuditEvent::Newer(_)) || matches!(event, AuditEvent::Joined { version, .. } if is_newer(version))
}

fn starts_by(head: &OrderHead) -> Timestamp {
    head.start_by.unwrap_or(head.not_after)
}

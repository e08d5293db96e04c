//! The history of jobs by the records: each start with its signed order, and how it ended.

use std::collections::BTreeMap;

use freehold_protocol::audit::verify::RecordsCopy;
use freehold_protocol::audit::{AuditEvent, AuditRecord, message_name, record_number};
use freehold_protocol::order::{AskedBy, Mode, Order, Work};
use freehold_protocol::report::Fence;
use freehold_protocol::succession::Roots;
use freehold_protocol::{Digest, Envelope, JobId, RoleKey, Timestamp, WorkflowId};
use serde::Serialize;

/// One attempt at a job, as its record describes it.
#[derive(Debug, Serialize)]
pub(super) struct Run {
    /// The number of the record of the start.
    pub(super) record: u64,
    pub(super) at: Timestamp,
    pub(super) workflow: WorkflowId,
    pub(super) job: JobId,
    pub(super) fence: Fence,
    pub(super) work: String,
    pub(super) mode: Mode,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) role: Option<RoleKey>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) asked_by: Option<AskedBy>,
    /// The continuation of the workflow after it had ended, and the reason, according to the signed order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) asked_why: Option<String>,
    /// Whether the order requests to start while the customer's change windows are closed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) now: bool,
    /// The digest of the signed order.
    pub(super) order: Digest,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) end: Option<End>,
    /// The reason why the record is not proven by its signed order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) doubt: Option<String>,
    /// The order, if it proves the record.
    #[serde(skip)]
    pub(super) signed: Option<Order>,
}

/// How an attempt ended.
#[derive(Debug, Clone, Serialize)]
pub(super) struct End {
    pub(super) at: Timestamp,
    pub(super) result: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) log: Option<Digest>,
}

impl Run {
    /// Returns the name of the role under which the job ran: the mode, or the app's own role.
    pub(super) fn role_name(&self) -> String {
        self.role.as_ref().map_or_else(|| self.mode.as_str().to_owned(), ToString::to_string)
    }

    /// Returns the kind of work, with the name of an action, which only the signed order has.
    pub(super) fn work_name(&self) -> String {
        match self.signed.as_ref().map(|order| order.work.made_by()) {
            Some(Work::Action(action)) => format!("{} {}", self.work, action.action),
            Some(_) | None => self.work.clone(),
        }
    }
}

/// Returns the records of a copy in their order. A record that cannot be read is a problem of the chain, and left out.
pub(crate) fn records(copy: &RecordsCopy) -> Vec<AuditRecord> {
    let numbered = copy.records.iter().filter(|(name, _)| record_number(name).is_some());
    numbered.filter_map(|(_, bytes)| Envelope::parse(bytes).ok()?.peek().ok()).collect()
}

/// Returns the attempts that the records name, in the order of their starts. With the vendor's root key, the signature of
/// each order is verified.
pub(super) fn runs(copy: &RecordsCopy, roots: Option<&Roots>) -> Vec<Run> {
    let (mut runs, mut at): (Vec<Run>, BTreeMap<(JobId, String), usize>) = (Vec::new(), BTreeMap::new());
    for record in records(copy) {
        match record.event {
            AuditEvent::Started { workflow, job, fence, work, mode, role, asked_by, order, .. } => {
                at.insert((job.clone(), fence.to_string()), runs.len());
                let run = Run {
                    record: record.seq,
                    at: record.at,
                    workflow,
                    job,
                    fence,
                    work,
                    mode,
                    role,
                    asked_by,
                    now: false,
                    asked_why: None,
                    order,
                    end: None,
                    doubt: None,
                    signed: None,
                };
                runs.push(with_order(run, copy, roots));
            }
            AuditEvent::Ended { job, fence, result, log, .. } => {
                let started = at.get(&(job, fence.to_string())).and_then(|index| runs.get_mut(*index));
                if let Some(run) = started {
                    run.end = Some(End { at: record.at, result, log });
                }
            }
            AuditEvent::Joined { .. }
            | AuditEvent::PoliciesAsked { .. }
            | AuditEvent::Approval { .. }
            | AuditEvent::Strangers { .. }
            | AuditEvent::Sent { .. }
            | AuditEvent::Refused { .. }
            | AuditEvent::ConnectionRefused { .. }
            | AuditEvent::Cancelled { .. }
            | AuditEvent::KeyReplaced { .. }
            | AuditEvent::IamChange { .. }
            | AuditEvent::IamUsed { .. }
            | AuditEvent::Newer(_) => {}
        }
    }
    runs
}

/// Adds to an attempt what its signed order states, or the doubt about the order.
fn with_order(run: Run, copy: &RecordsCopy, roots: Option<&Roots>) -> Run {
    match proven(&run, copy, roots) {
        Ok(order) => Run { now: order.now, asked_why: order.asked_why.clone(), signed: Some(order), ..run },
        Err(why) => Run { doubt: Some(why), ..run },
    }
}

/// Returns the signed order of an attempt, if the order is the one that the record names and agrees with the record.
fn proven(run: &Run, copy: &RecordsCopy, roots: Option<&Roots>) -> Result<Order, String> {
    let order = signed_order(&run.order, copy, roots)?;
    let says = |what: &str, record: &str, order: &str| Err(contradiction(what, record, order));
    let who = |asked_by: Option<&AskedBy>| asked_by.map_or_else(|| "unknown".to_owned(), ToString::to_string);
    let role = |role: Option<&RoleKey>| role.map_or_else(|| "none".to_owned(), ToString::to_string);
    if order.job != run.job {
        return says("job", run.job.as_str(), order.job.as_str());
    }
    if order.dispatch != run.fence.dispatch {
        return says("dispatch", &run.fence.dispatch.to_string(), &order.dispatch.to_string());
    }
    if order.workflow != run.workflow {
        return says("workflow", run.workflow.as_str(), order.workflow.as_str());
    }
    if order.work.kind() != run.work {
        return says("work", &run.work, order.work.kind());
    }
    if order.mode != run.mode {
        return says("mode", run.mode.as_str(), order.mode.as_str());
    }
    if order.role != run.role {
        return says("role", &role(run.role.as_ref()), &role(order.role.as_ref()));
    }
    if order.asked_by() != run.asked_by.as_ref() {
        return says("asked by", &who(run.asked_by.as_ref()), &who(order.asked_by()));
    }
    Ok(order)
}

/// Returns the doubt about a record that contradicts the signed order.
pub(super) fn contradiction(what: &str, record: &str, order: &str) -> String {
    format!("the record states {what} `{record}`, but the signed order states `{order}`")
}

/// Returns the order with this digest. With `roots`, the control plane must have signed the order.
pub(super) fn signed_order(digest: &Digest, copy: &RecordsCopy, roots: Option<&Roots>) -> Result<Order, String> {
    let bytes = copy.orders.get(&message_name(digest)).ok_or("its signed order is missing")?;
    if Digest::of(bytes) != *digest {
        return Err("its signed order was changed: it has another digest than the record names".to_owned());
    }
    opened(bytes, roots)
}

/// Returns the order in these bytes. With `roots`, the control plane must have signed the order.
fn opened(bytes: &[u8], roots: Option<&Roots>) -> Result<Order, String> {
    let envelope = Envelope::parse(bytes).map_err(|error| error.to_string())?;
    let claimed: Order = envelope.peek().map_err(|error| error.to_string())?;
    let Some(roots) = roots else { return Ok(claimed) };
    let unsigned = |error| format!("the vendor did not sign its order: {error}");
    let roots = roots.followed_by(&envelope).map_err(unsigned)?;
    let delegate = roots.delegate(&envelope).map_err(unsigned)?;
    // An order that is sent late or again may be older than the delegate key that signs it.
    let from = claimed.issued_at.max(delegate.not_before);
    roots.open_delegated(&envelope, from).map_err(unsigned)
}

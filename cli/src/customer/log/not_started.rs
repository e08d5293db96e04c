//! Jobs that ended before they started: the runner took the order and refused it, for example because the role is switched
//! off.

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::audit::verify::RecordsCopy;
use freehold_protocol::audit::{AuditEvent, AuditRecord};
use freehold_protocol::order::{AskedBy, Mode};
use freehold_protocol::report::{AttemptEvent, Fence, Outcome, Report, ReportBody};
use freehold_protocol::succession::Roots;
use freehold_protocol::{Digest, Envelope, JobId, RoleKey, Timestamp, WorkflowId};
use serde::Serialize;

use super::history::{contradiction, records, signed_order};
use crate::output::{clean, time};

/// The text in tables for a value that records of earlier versions do not have.
const UNRECORDED: &str = "not recorded";

/// A job that ended before it started.
#[derive(Debug, Serialize)]
pub(super) struct NotStarted {
    /// The number of the record of the end.
    pub(super) record: u64,
    pub(super) at: Timestamp,
    pub(super) job: JobId,
    pub(super) fence: Fence,
    /// Always false, so that a program that reads the JSON knows that nothing ran.
    pub(super) started: bool,
    pub(super) result: String,
    /// The reason that the runner gave to the vendor, if the text of this report is in the bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    /// The work that the signed order requested; absent in records of earlier versions.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(super) asked: Option<OrderedWork>,
    /// The reason why the record is not proven by the order that it names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) doubt: Option<String>,
}

/// The work that a signed order requested.
#[derive(Debug, Serialize)]
pub(super) struct OrderedWork {
    workflow: WorkflowId,
    work: String,
    mode: Mode,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<RoleKey>,
    #[serde(skip_serializing_if = "Option::is_none")]
    asked_by: Option<AskedBy>,
    /// The digest of the signed order.
    order: Digest,
}

impl NotStarted {
    /// Returns the first columns of a table: the time, the job and attempt, and the work with its role.
    pub(super) fn columns(&self) -> [String; 4] {
        let asked = self.asked.as_ref();
        let work = asked.map_or_else(|| UNRECORDED.to_owned(), |asked| clean(&asked.work));
        let role =
            asked.map(|asked| asked.role.as_ref().map_or_else(|| asked.mode.as_str().to_owned(), ToString::to_string));
        [time(self.at), self.job.to_string(), work, role.unwrap_or_else(|| UNRECORDED.to_owned())]
    }

    /// Returns who requested the job, as text.
    pub(super) fn asked_by(&self) -> String {
        match &self.asked {
            Some(asked) => asked.asked_by.as_ref().map_or_else(|| "not in the order".to_owned(), ToString::to_string),
            None => UNRECORDED.to_owned(),
        }
    }
}

/// Returns the reasons why these jobs are not proven.
pub(super) fn doubts(all: &[NotStarted]) -> impl Iterator<Item = String> {
    let doubted = all.iter().filter_map(|one| Some((one, one.doubt.as_ref()?)));
    doubted.map(|(one, why)| format!("record {}, job {}: {why}", one.record, one.job))
}

/// Returns the jobs for which the records contain an end but no start.
pub(super) fn not_started(copy: &RecordsCopy, roots: Option<&Roots>) -> Vec<NotStarted> {
    let records = records(copy);
    let started: BTreeSet<&JobId> = records.iter().filter_map(started).collect();
    let reasons = reasons(copy);
    let ended = records.iter().filter_map(|record| match &record.event {
        AuditEvent::Ended { job, fence, result, order, .. } if !started.contains(job) => {
            let (asked, doubt) = match order.as_ref().map(|order| asked(order, (job, *fence), copy, roots)) {
                Some(Ok(asked)) => (Some(asked), None),
                Some(Err(why)) => (None, Some(why)),
                None => (None, None),
            };
            let reason = reasons.get(&(job.clone(), fence.to_string())).cloned();
            let (job, result) = (job.clone(), result.clone());
            let (record, at, fence) = (record.seq, record.at, *fence);
            Some(NotStarted { record, at, job, fence, started: false, result, reason, asked, doubt })
        }
        AuditEvent::Ended { .. }
        | AuditEvent::Started { .. }
        | AuditEvent::Joined { .. }
        | AuditEvent::Strangers { .. }
        | AuditEvent::Sent { .. }
        | AuditEvent::Refused { .. }
        | AuditEvent::ConnectionRefused { .. }
        | AuditEvent::Cancelled { .. }
        | AuditEvent::KeyReplaced { .. }
        | AuditEvent::IamChange { .. }
        | AuditEvent::PoliciesAsked { .. }
        | AuditEvent::Approval { .. }
        | AuditEvent::IamUsed { .. }
        | AuditEvent::Newer(_) => None,
    });
    ended.collect()
}

fn started(record: &AuditRecord) -> Option<&JobId> {
    if let AuditEvent::Started { job, .. } = &record.event { Some(job) } else { None }
}

/// Returns the work that the order with this digest requested, if it is the order of this attempt.
fn asked(
    digest: &Digest,
    (job, fence): (&JobId, Fence),
    copy: &RecordsCopy,
    roots: Option<&Roots>,
) -> Result<OrderedWork, String> {
    let order = signed_order(digest, copy, roots)?;
    if order.job != *job {
        return Err(contradiction("job", job.as_str(), order.job.as_str()));
    }
    if order.dispatch != fence.dispatch {
        return Err(contradiction("dispatch", &fence.dispatch.to_string(), &order.dispatch.to_string()));
    }
    let work = order.work.kind().to_owned();
    let asked_by = order.asked_by().cloned();
    let (workflow, mode, role) = (order.workflow, order.mode, order.role);
    Ok(OrderedWork { workflow, work, mode, role, asked_by, order: digest.clone() })
}

/// Returns the reasons in the reports about ends, by job and attempt.
fn reasons(copy: &RecordsCopy) -> BTreeMap<(JobId, String), String> {
    let reports = copy.reports.values().filter_map(|bytes| Envelope::parse(bytes).ok()?.peek::<Report>().ok());
    let reason = |report: Report| match report.body {
        ReportBody::Attempt(attempt) => match attempt.event {
            AttemptEvent::Finished { outcome, .. } => {
                Some(((attempt.job, attempt.fence.to_string()), reason_of(outcome)?))
            }
            AttemptEvent::Started
            | AttemptEvent::Progress { .. }
            | AttemptEvent::GrantRequest { .. }
            | AttemptEvent::AttestRequest { .. } => None,
        },
        ReportBody::Hello(_) | ReportBody::Heartbeat | ReportBody::Refused(_) | ReportBody::Away(_) => None,
    };
    reports.filter_map(reason).collect()
}

fn reason_of(outcome: Outcome) -> Option<String> {
    match outcome {
        Outcome::Failed { reason, .. } | Outcome::Blocked { reason, .. } | Outcome::Interrupted { reason } => {
            Some(reason)
        }
        Outcome::Succeeded { .. } | Outcome::Cancelled | Outcome::NeedsApproval { .. } => None,
    }
}

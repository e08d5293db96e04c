//! Audit records: the signed chain in which the runners of an install record their jobs, refusals and changes in IAM.
//!
//! An install has one chain. Each record is an object of the customer's bucket, `audit/<number>.json`; beside it is the
//! public key of each runner that wrote into the chain, `audit/<key id>.pub`. Below `audit/` are also the messages that
//! the records name: the signed orders, the reports, and the receipts of the control plane ([`message_name`]).

pub mod exclusion;
mod newer_event;
pub mod verify;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::approval::{PlanSummary, Side};
use crate::order::{AskedBy, Mode};
use crate::policy::PolicyResult;
use crate::report::{Fence, Refusal};
use crate::{
    ComponentName, Digest, Group, InstallId, JobId, KeyId, Payload, RoleKey, TenantName, Timestamp, WorkflowId,
};

pub use crate::report::{ChainHead, Receipt};
pub use newer_event::NewerEvent;

/// The folder, below `audit/`, of the signed orders that started jobs.
pub const ORDERS: &str = "orders";
/// The folder, below `audit/`, of the reports that left the account.
pub const REPORTS: &str = "reports";
/// The folder, below `audit/`, of the control plane's receipts. A receipt has the name of the record that it confirms.
pub const RECEIPTS: &str = "receipts";

/// The folders, below `audit/`, in the order in which a copy has to list them while runners write. The empty name means
/// the records and the public keys, which are in no folder.
///
/// Reports and receipts name only records that the bucket has, and records name only orders that it has. So a copy in
/// this order does not lack what it names. In another order, a complete chain may look cut.
pub const READING_ORDER: [&str; 4] = [REPORTS, RECEIPTS, "", ORDERS];

/// The maximum size of an object below `audit/`, in bytes. A record and each message that a record names is an
/// envelope, which is smaller ([`crate::limits::MAX_ENVELOPE_BYTES`]), so no runner writes a larger object.
pub const MAX_OBJECT_BYTES: usize = 2 * 1024 * 1024;

/// One record of the chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditRecord {
    pub tenant: TenantName,
    pub install: InstallId,
    pub runner: KeyId,
    /// The number of the record: 1 for the first record of the install, then 2, and so on, whichever runner writes it.
    pub seq: u64,
    /// The digest of the previous record's bytes, which another runner of the install may have written; for the first
    /// record, the digest of zero bytes.
    pub previous: Digest,
    /// The time of the event, by the runner's own clock.
    pub at: Timestamp,
    pub event: AuditEvent,
}

impl Payload for AuditRecord {
    const TYPE: &'static str = "application/vnd.freehold.audit.v1+json";
}

/// Returns the name of the object, below `audit/`, of the record with this number.
pub fn record_name(seq: u64) -> String {
    format!("{seq:012}.json")
}

/// Returns the number of the record whose object has this name below `audit/`; `None` for any other object. A number of
/// more than twelve digits does not name a record: its name would not be listed after the others.
pub fn record_number(name: &str) -> Option<u64> {
    let seq = name.strip_suffix(".json").filter(|digits| digits.len() == 12)?.parse().ok()?;
    (record_name(seq) == name).then_some(seq)
}

/// Returns the name of the object, in [`ORDERS`] or [`REPORTS`], of the message with this digest.
pub fn message_name(digest: &Digest) -> String {
    format!("{}.json", digest.hex())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The event of an audit record.
///
/// A kind that is added has the field `job`: the job that the event is about, or null if it is about no job. A runner
/// of an earlier version cannot read the event, and puts back the orders that the event may be about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[serde(expecting = "the event of an audit record is an object that names its kind")]
pub enum AuditEvent {
    /// A runner begins to write into the chain. This is the first record of its key, on a new machine or after a new
    /// key was made. The records before it belong to other keys.
    Joined {
        /// The machine: an EC2 instance id or a host name.
        host: String,
        /// The runner's version.
        version: String,
    },
    /// A job is about to start.
    Started {
        workflow: WorkflowId,
        job: JobId,
        fence: Fence,
        work: String,
        mode: Mode,
        /// The part that the job changes, such as a component.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        group: Option<Group>,
        /// The serial of the order; absent in records of earlier versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        serial: Option<u64>,
        /// The named role that the job runs under, instead of the role of its mode.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        role: Option<RoleKey>,
        /// Who asked for the job's workflow, as the signed order states; absent when the order does not name anybody.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked_by: Option<AskedBy>,
        /// The digest of the signed order, without the texts that are attached to it.
        order: Digest,
        /// The time at which the orders queue took the order's message; absent in records of earlier versions. A
        /// redelivery of the message has the same time, and a copy that somebody sends has another one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sent_at: Option<Timestamp>,
    },
    /// The policies that guard a job were evaluated on its plan. The record is written before the plan is applied. If a
    /// policy stops the job, its plan is not applied.
    PoliciesAsked {
        job: JobId,
        fence: Fence,
        /// The component that the job changes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        component: Option<ComponentName>,
        results: Vec<PolicyResult>,
    },
    /// A plan waits for its approval, or is applied with its approval. The record is written before the plan is
    /// applied.
    Approval {
        job: JobId,
        fence: Fence,
        /// The component that the job changes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        component: Option<ComponentName>,
        /// The digest of the plan's record.
        plan: Digest,
        /// The digest of the plan's bytes.
        bytes: Digest,
        until: Timestamp,
        /// `asked`: recorded when the plan begins to wait. `applied`: recorded just before the plan is applied.
        stage: String,
        /// Who has to approve the plan.
        asks: BTreeSet<Side>,
        /// The changes of the plan, without values.
        #[serde(default)]
        summary: PlanSummary,
        /// Who approved the plan at the vendor, as the signed order states.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        vendor: Option<AskedBy>,
        /// Who approved the plan at the customer, as the customer's object states.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        customer: Option<String>,
    },
    /// A job ended. If the job did not start after all, `result` states this.
    Ended {
        job: JobId,
        fence: Fence,
        result: String,
        /// The digest of the attempt's full log, which is in the customer's bucket; absent when the attempt has no log.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        log: Option<Digest>,
        /// The digest of the signed order, in [`ORDERS`], of a job that ended before its start; absent when another
        /// record states that the job started, and in records of earlier versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        order: Option<Digest>,
        /// The time at which the orders queue took the order's message; absent in records of earlier versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sent_at: Option<Timestamp>,
    },
    /// These reports are about to be sent to the control plane. Their texts are in [`REPORTS`].
    Sent { reports: Vec<Digest> },
    /// After a job, roles of the app trust principals outside the customer's account. `roles` lists these principals by
    /// the ARN of the role.
    Strangers {
        job: JobId,
        fence: Fence,
        roles: BTreeMap<String, Vec<String>>,
        /// The number of further roles that are not listed, because a record has a limit.
        #[serde(default, skip_serializing_if = "is_zero")]
        more: u64,
    },
    /// A message was refused.
    Refused {
        refusal: Refusal,
        /// The time at which the orders queue took the message; absent in records of earlier versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sent_at: Option<Timestamp>,
    },
    /// The runner refused a job's connection to a host.
    ConnectionRefused {
        job: JobId,
        fence: Fence,
        host: String,
        port: u16,
        /// The reason as a word that does not change between versions.
        reason: String,
        /// The number of such refusals so far.
        times: u64,
    },
    /// The control plane cancelled a job.
    Cancelled {
        job: JobId,
        dispatch: u32,
        /// When present, only the attempt with this receive count was cancelled.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        receive: Option<u32>,
        /// Who asked for the cancel, as the signed message states; absent when the message does not name anybody.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked_by: Option<AskedBy>,
        /// The reason, in the words of the person who asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked_why: Option<String>,
        message: Digest,
    },
    /// The control plane announced that another key has replaced the key of this runner, which signs this record. The
    /// runner makes a new key, which signs its next record.
    KeyReplaced { replaced_by: KeyId, message: Digest },
    /// A job asked IAM for a change.
    IamChange {
        job: JobId,
        fence: Fence,
        /// The IAM action, such as `CreateRole`.
        action: String,
        resource: String,
        /// `announced` before the change, then `made` or `failed`; `held` when the runner's IAM proxy answered with
        /// success and did not make the change (decision 0040); `refused` when a rule forbids the change.
        stage: String,
        /// The details: IAM's error code for `failed`, or `NotSent` when the runner did not send the announced change;
        /// the replacement for `held`, the rule for `refused`.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        detail: String,
    },
    /// The IAM actions that a job used: the number of calls that were answered and that were refused, by action.
    IamUsed { job: JobId, fence: Fence, answered: BTreeMap<String, u64>, refused: BTreeMap<String, u64> },
    /// An event of a newer version, which this version cannot read. It is a variant because the machines of an install
    /// write one chain, also while their versions differ: each reader has to decide what such an event means to it.
    #[serde(untagged)]
    Newer(NewerEvent),
}

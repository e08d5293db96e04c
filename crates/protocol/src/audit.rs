//! Records of a runner's audit trail: a chain of signed records of what was started, ended and refused.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::order::Mode;
use crate::report::{Fence, Refusal};
use crate::{Digest, Group, InstallId, JobId, KeyId, Payload, RoleKey, TenantName, Timestamp, WorkflowId};

/// One link of the chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditRecord {
    pub tenant: TenantName,
    pub install: InstallId,
    pub runner: KeyId,
    /// Rises by one with every record of this runner, from 1.
    pub seq: u64,
    /// The digest of the line before this one; for the first line, the digest of zero bytes.
    pub previous: Digest,
    /// The runner's own clock.
    pub at: Timestamp,
    pub event: AuditEvent,
}

impl Payload for AuditRecord {
    const TYPE: &'static str = "application/vnd.freehold.audit.v1+json";
}

/// The event of an audit record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum AuditEvent {
    /// A job is about to start.
    Started {
        workflow: WorkflowId,
        job: JobId,
        fence: Fence,
        work: String,
        mode: Mode,
        /// What the job changes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        group: Option<Group>,
        /// The named role that is taken instead of the mode's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        role: Option<RoleKey>,
        order: Digest,
    },
    /// A job ended.
    Ended { job: JobId, fence: Fence, result: String },
    /// After a job, roles of the app trust somebody outside of the account: the ARN of each role, with whom it trusts.
    Strangers { job: JobId, fence: Fence, roles: BTreeMap<String, Vec<String>> },
    /// A message was refused.
    Refused { refusal: Refusal },
    /// A job was refused connections to a host.
    ConnectionRefused {
        job: JobId,
        fence: Fence,
        host: String,
        port: u16,
        /// Why, as a stable word.
        reason: String,
        /// How often so far.
        times: u64,
    },
    /// The control plane cancelled a job.
    Cancelled { job: JobId, dispatch: u32, message: Digest },
    /// A job asked IAM for a change.
    IamChange {
        job: JobId,
        fence: Fence,
        /// Such as `CreateRole`.
        action: String,
        resource: String,
        /// `announced`, then `made` or `failed`; or `held`, or `refused`.
        stage: String,
        /// IAM's word for an error, what was done instead, or the rule.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        detail: String,
    },
    /// The actions of IAM that a job used, with how often each was answered and refused.
    IamUsed { job: JobId, fence: Fence, answered: BTreeMap<String, u64>, refused: BTreeMap<String, u64> },
}

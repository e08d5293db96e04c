//! Reports: what a runner reports about itself and about its jobs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::artifact::Artifact;
use crate::envelope::{Payload, PublicKey};
use crate::provenance::BuildFacts;
use crate::{Digest, GrantId, InstallId, JobId, KeyId, TenantName, Timestamp};

pub use crate::fence::Fence;

/// The signed message that answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub tenant: TenantName,
    pub install: InstallId,
    /// The runner's key, which signed this.
    pub runner: KeyId,
    /// The runner's own clock: for people, decides nothing.
    pub at: Timestamp,
    pub body: ReportBody,
}

impl Payload for Report {
    const TYPE: &'static str = "application/vnd.freehold.report.v1+json";
}

/// What is reported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "report", rename_all = "snake_case")]
pub enum ReportBody {
    /// A runner announces itself. The envelope carries two signatures: its own and the enrolment key's.
    Hello(Hello),
    /// Still here; once an hour when idle.
    Heartbeat,
    /// Something about one attempt.
    Attempt(AttemptReport),
    /// An order that was not taken, and why.
    Refused(Refusal),
}

/// A runner announces itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    pub public_key: PublicKey,
    /// The runner's version, `major.minor.patch`.
    pub version: String,
    /// How many jobs it runs at once.
    pub slots: u32,
    /// The machine: an EC2 instance id or a host name.
    pub host: String,
    /// What the customer answered in the install stack, by parameter ([`crate::app_version::Input::parameter`]);
    /// sensitive answers stay in the customer's account.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, String>,
    /// A keyed digest of each secret of the app that has a value; the key is the customer's. Absent when the runner could
    /// not read them, and where the app has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets: Option<BTreeMap<String, Digest>>,
    /// The terms that the customer agreed to; absent where the install stack asks for no consent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_contract: Option<Digest>,
}

/// One message about one attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptReport {
    pub job: JobId,
    pub fence: Fence,
    /// Rises by one with every report of the attempt, from 1; decides the order of log lines and shows gaps.
    pub seq: u64,
    pub event: AttemptEvent,
}

/// What happened to an attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum AttemptEvent {
    /// The job's process is about to start.
    Started,
    /// The job is still working; also carries log lines.
    Progress {
        /// Redacted log text, whole lines.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        log: String,
    },
    /// The runner lacks an artifact and asks for a grant.
    GrantRequest {
        grant: GrantId,
        artifact: Digest,
        /// The blobs that the install registry does not have.
        missing: Vec<Digest>,
        /// How many grants for the artifact the attempt has used up; their URLs expired.
        #[serde(default, skip_serializing_if = "is_zero")]
        round: u32,
    },
    /// A build has pushed its artifact and asks for the tenant's signature under what made it.
    AttestRequest { grant: GrantId, artifact: Artifact, facts: BuildFacts },
    /// The attempt ended.
    Finished {
        outcome: Outcome,
        /// The rest of the log.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        log: String,
    },
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    Succeeded {
        /// Named results, without sensitive ones.
        #[serde(default)]
        outputs: BTreeMap<String, Value>,
        /// The artifact that a build pushed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        artifact: Option<Artifact>,
    },
    Failed {
        reason: String,
        /// Whether something may have been changed before the failure.
        partial: bool,
    },
    Blocked {
        block: Block,
        reason: String,
    },
    /// The job's runner died, and this kind of job is not started a second time.
    Interrupted {
        reason: String,
    },
    /// Stopped because the control plane asked for it.
    Cancelled,
}

/// Who or what stands in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Block {
    /// The customer has switched the mode's role off.
    ModeDisabled,
    /// A policy says no.
    Policy,
    /// The release may do more than the customer agreed to.
    ContractNotAccepted,
}

/// An order that was not taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    pub reason: RefusalReason,
    /// A sentence for people.
    pub detail: String,
    /// The digest of the refused message's bytes.
    pub message: Digest,
    /// The job, if the message was verified far enough to trust it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<(JobId, Fence)>,
}

/// Why an order was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalReason {
    /// Not an envelope, not JSON, or not a kind of message that this runner knows.
    Malformed,
    TooLarge,
    /// No signature, a wrong signature, or an invalid certificate.
    BadSignature,
    /// Signed, but for another install or tenant.
    OtherInstall,
    Expired,
    /// The order is older than an order that was accepted in the same group.
    Replayed,
    /// The control plane cancelled the order before it started.
    Cancelled,
}

impl RefusalReason {
    /// Returns the word used in messages and audit records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::TooLarge => "too_large",
            Self::BadSignature => "bad_signature",
            Self::OtherInstall => "other_install",
            Self::Expired => "expired",
            Self::Replayed => "replayed",
            Self::Cancelled => "cancelled",
        }
    }
}

//! Reports: the messages of a runner about itself and about its jobs.

mod away;
mod chain_head;
mod change_times;
mod role_proof;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::approval::{CustomerDecision, ProposedPlan};
use crate::artifact::Artifact;
use crate::envelope::{Payload, PublicKey};
use crate::flag::is_false;
use crate::policy::PolicyResult;
use crate::provenance::BuildFacts;
use crate::sealing::SealingKey;
use crate::{Digest, GrantId, IamRoleName, InstallId, JobId, KeyId, RoleKey, TenantName, Timestamp};

pub use crate::fence::Fence;
pub use away::{Away, AwayReason};
pub use chain_head::{ChainHead, Receipt};
pub use change_times::{ChangeTimes, FreeActions, OpenTime};
pub use role_proof::{CallerRequest, RoleProof, RoleProofError};

/// The signed message with which a runner answers orders or announces itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub tenant: TenantName,
    pub install: InstallId,
    /// The name of the runner's key, which signed the report.
    pub runner: KeyId,
    /// The time by the runner's own clock. No job's state depends on it; only the verification of a lineage checks it.
    pub at: Timestamp,
    /// The last record of the install's audit chain that the runner knows to be in the customer's bucket; absent before
    /// the first one, and for a runner without a bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<ChainHead>,
    pub body: ReportBody,
}

impl Payload for Report {
    const TYPE: &'static str = "application/vnd.freehold.report.v1+json";
}

/// The content of a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "report", rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "one report is in memory at a time, and a box would save nothing")]
pub enum ReportBody {
    /// A runner announces itself.
    Hello(Hello),
    /// An idle runner shows that it is still running. Runners repeat their hello instead; older versions send this report.
    Heartbeat,
    /// A message about one attempt.
    Attempt(AttemptReport),
    /// The runner refused an order.
    Refused(Refusal),
    /// The runner stops taking orders, or still takes none, until its next hello.
    Away(Away),
}

/// The announcement of a runner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    pub public_key: PublicKey,
    /// The runner's version, `major.minor.patch`.
    pub version: String,
    /// The number of jobs that the runner can run at the same time.
    pub slots: u32,
    /// The machine: an EC2 instance id or a host name.
    pub host: String,
    /// The customer's answers in the install stack, by parameter ([`crate::app_version::Input::parameter`]). Sensitive
    /// answers are not included: they stay in the customer's account.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, String>,
    /// A keyed digest of each of the app's secrets that has a value. Only the customer's account has the key. Absent
    /// when the runner could not read the secrets, or the app has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets: Option<BTreeMap<String, Digest>>,
    /// The digest of the terms that the customer agreed to; absent when the install stack does not ask for consent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_contract: Option<Digest>,
    /// The proof that the runner has the role of its install. Only hellos of earlier versions are without it; the control
    /// plane does not accept them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<RoleProof>,
    /// The key to which the vendor's sensitive inputs are sealed, so that only this runner reads them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealing_key: Option<SealingKey>,
    /// When the customer lets changes start; absent when changes may start at any time, and from an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<ChangeTimes>,
    /// The customer's decisions about plans that wait for an approval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<CustomerDecision>,
    /// The roles of the install stack, by the end of their names, and whether the customer has switched each of them on. The
    /// roles of the modes have the names of the modes. Absent while the runner cannot know this, for a build runner, and
    /// from an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roles: Option<BTreeMap<RoleKey, bool>>,
}

/// One message about one attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptReport {
    pub job: JobId,
    pub fence: Fence,
    /// The number of the report: 1 for the attempt's first report, then 2, and so on. It puts log lines in order, and a
    /// gap shows that a report is missing.
    pub seq: u64,
    pub event: AttemptEvent,
}

/// An event of an attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum AttemptEvent {
    /// The job's process is about to start.
    Started,
    /// The job is still running. The event also contains new log lines.
    Progress {
        /// Log text in whole lines, after redaction.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        log: String,
    },
    /// The runner lacks an artifact and asks for a grant.
    GrantRequest {
        grant: GrantId,
        artifact: Digest,
        /// The blobs that the install registry does not have.
        missing: Vec<Digest>,
        /// The number of earlier grants to this attempt for the artifact. Their URLs expired.
        #[serde(default, skip_serializing_if = "is_zero")]
        round: u32,
    },
    /// A build has pushed its artifact and asks the tenant to sign the statement about the build.
    AttestRequest { grant: GrantId, artifact: Artifact, facts: BuildFacts },
    /// The attempt ended.
    Finished {
        outcome: Outcome,
        /// The rest of the log.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        log: String,
        /// The results of the policies that the runner evaluated on the plan.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        policies: Vec<PolicyResult>,
        /// The app's roles that trust a principal outside of the customer's account after the attempt. Absent when the
        /// runner did not check them: the job could make no role, or the runner could not list the roles.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        roles_trusting_strangers: Option<BTreeSet<IamRoleName>>,
    },
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl AttemptEvent {
    /// Returns the end of an attempt for which no policy was evaluated and no role was checked. `log` is the rest of
    /// the log.
    pub fn finished(outcome: Outcome, log: &str) -> Self {
        Self::Finished { outcome, log: log.to_owned(), policies: Vec::new(), roles_trusting_strangers: None }
    }
}

/// The result of an attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    Succeeded {
        /// The job's outputs by name, without sensitive outputs.
        #[serde(default)]
        outputs: BTreeMap<String, Value>,
        /// A keyed digest of each sensitive output. The runner keeps the values and the key in the customer's account, for
        /// later jobs ([`crate::order::KeptOutputs`]).
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        sensitive: BTreeMap<String, Digest>,
        /// The artifact that a build pushed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        artifact: Option<Artifact>,
    },
    Failed {
        reason: String,
        /// Whether the attempt may have changed something before it failed.
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
    /// The runner stopped the job because the control plane cancelled it.
    Cancelled,
    /// The runner made a plan that somebody has to approve, and changed nothing. The job is ordered again when the plan is
    /// approved.
    NeedsApproval {
        plan: Box<ProposedPlan>,
    },
}

/// The cause that blocks a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Block {
    /// The customer has switched the job's role off.
    ModeDisabled,
    /// A policy forbids the change.
    Policy,
    /// The customer has not agreed to everything that the release may do.
    ContractNotAccepted,
    /// The plan was rejected, nobody approved it in time, or its approval does not count.
    NotApproved,
    /// The component is not healthy, and its dependents wait until it is.
    Unhealthy,
}

/// The refusal of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    pub reason: RefusalReason,
    /// The explanation, as a sentence for people.
    pub detail: String,
    /// The digest of the refused message, without the texts that are attached to it.
    pub message: Digest,
    /// The job and the fence; present only when the message is a verified order for this install.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<(JobId, Fence)>,
    /// Whether the order is given back, so that the work may be ordered again: no attempt is running, and no attempt
    /// that must not be repeated has started.
    #[serde(default, skip_serializing_if = "is_false")]
    pub given_back: bool,
    /// The time from which the customer lets the work start; absent when that is not known, and for other refusals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// The reason for the refusal of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalReason {
    /// The message is not an envelope, not JSON, or of a type that this runner does not know.
    Malformed,
    TooLarge,
    /// The signature is missing or wrong, or the certificate is invalid.
    BadSignature,
    /// The message is signed, but for another install or tenant.
    OtherInstall,
    Expired,
    /// The runner has already accepted a newer order of the same group, or the order is a copy.
    Replayed,
    /// The control plane cancelled the order before it started.
    Cancelled,
    /// The message is signed and for this install, but demands a feature that this runner does not know.
    NotUnderstood,
    /// The work is a change, and the customer lets no change start now.
    OutsideWindow,
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
            Self::NotUnderstood => "not_understood",
            Self::OutsideWindow => "outside_window",
        }
    }
}

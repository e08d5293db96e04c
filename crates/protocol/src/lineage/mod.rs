//! Lineage: what an artifact was made from, who built it and where it was deployed, with the signed messages that prove
//! it. `verify` checks the document with the tenant's root key alone, without any service.

mod verify;

use serde::{Deserialize, Serialize};

use crate::envelope::PublicKey;
use crate::order::{Package, Source};
use crate::provenance::{Provenance, ProvenanceError};
use crate::report::Fence;
use crate::{
    AccountId, AppName, BuildId, ComponentName, Digest, Envelope, EnvelopeError, InstallId, JobId, KeyId, TenantName,
    Timestamp, WorkflowId,
};

/// The document's format.
pub const FORMAT: u32 = 1;

/// The lineage of one artifact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Lineage {
    /// [`FORMAT`].
    pub format: u32,
    pub tenant: TenantName,
    /// The root key that signed all of it, as the control plane claims; a verifier compares it with the key that it knows.
    pub root_key: PublicKey,
    pub artifact: Digest,
    /// The builds that made it: one, or several when different sources gave the same bytes.
    pub builds: Vec<Made>,
    /// The jobs that deployed it and succeeded.
    pub uses: Vec<Used>,
}

/// A build that made the artifact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Made {
    pub app: AppName,
    pub component: ComponentName,
    pub build: BuildId,
    pub package: Package,
    /// As it was asked for; what it was resolved to is in the statement.
    pub source: Source,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>"))]
    pub provenance: Option<Box<Provenance>>,
    /// Why the vendor revoked the artifact; absent when the artifact is not revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<String>,
    pub proof: Proof,
}

/// A job that deployed the artifact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Used {
    pub app: AppName,
    pub component: ComponentName,
    /// The customer's account.
    pub account: AccountId,
    pub build: BuildId,
    pub workflow: WorkflowId,
    pub approval: Approval,
    /// Why the vendor disabled the install; absent when it is enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<String>,
    pub proof: Proof,
}

/// Who approved a deploy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Approval {
    /// No approval was required.
    #[serde(rename = "none required")]
    NoneRequired,
}

impl Approval {
    /// Returns the approval as tables write it.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::NoneRequired => "none required",
        }
    }
}

/// The attempt that did it, and the messages that prove it: a message that is absent is a gap.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Proof {
    pub install: InstallId,
    pub job: JobId,
    pub fence: Fence,
    /// The key of the runner that ended it.
    pub runner: KeyId,
    /// When the control plane accepted the report.
    pub at: Timestamp,
    /// The order, as it was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>"))]
    pub order: Option<Envelope>,
    /// The report that the attempt succeeded, unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>"))]
    pub report: Option<Envelope>,
    /// The runner's announcement, which its own key and the enrolment key signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>"))]
    pub hello: Option<Envelope>,
    /// The public half of the enrolment key that the install had at the time of the announcement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enrolment_key: Option<PublicKey>,
}

/// What ties one part of a lineage to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum LinkName {
    /// The document's root key is the one that the verifier trusts.
    #[serde(rename = "root key")]
    RootKey,
    /// There is a build that made the artifact.
    #[serde(rename = "build")]
    Build,
    /// The tenant's root key says what made the artifact.
    #[serde(rename = "statement")]
    Statement,
    /// The name of the build is derived from the requested source, and the statement names what the source was resolved to.
    #[serde(rename = "source")]
    Source,
    /// The tenant ordered the build.
    #[serde(rename = "build order")]
    BuildOrder,
    /// The key of the build runner was announced under the build install's enrolment key.
    #[serde(rename = "build runner key")]
    BuildRunnerKey,
    /// The build runner made the artifact.
    #[serde(rename = "build report")]
    BuildReport,
    /// The times of the build do not contradict each other.
    #[serde(rename = "build times")]
    BuildTimes,
    /// The tenant ordered this install to deploy this artifact.
    #[serde(rename = "order")]
    Order,
    /// The artifact that was copied to the install is this one, made by the build that is named.
    #[serde(rename = "sync")]
    Sync,
    /// Who had to approve did.
    #[serde(rename = "approval")]
    Approval,
    /// The runner's key was announced under the install's enrolment key.
    #[serde(rename = "runner key")]
    RunnerKey,
    /// The runner deployed it.
    #[serde(rename = "deploy report")]
    DeployReport,
    /// The times of the deploy do not contradict each other.
    #[serde(rename = "times")]
    Times,
}

impl LinkName {
    /// Returns the name as messages say it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RootKey => "root key",
            Self::Build => "build",
            Self::Source => "source",
            Self::Statement => "statement",
            Self::BuildOrder => "build order",
            Self::BuildRunnerKey => "build runner key",
            Self::BuildReport => "build report",
            Self::BuildTimes => "build times",
            Self::Order => "order",
            Self::Sync => "sync",
            Self::Approval => "approval",
            Self::RunnerKey => "runner key",
            Self::DeployReport => "deploy report",
            Self::Times => "times",
        }
    }
}

/// One link, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    pub name: LinkName,
    /// What it belongs to: the artifact, a build, or an install's component with its job.
    pub of: String,
    /// What holds, as a sentence's beginning, or why it does not.
    pub finding: Result<String, Broken>,
}

/// Why a link failed verification.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// The evidence is not in the document.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// The link depends on another link that failed verification.
    #[error("cannot be verified because the {0} failed verification")]
    Unfounded(&'static str),
    #[error("{what} failed verification: {source}")]
    Envelope {
        what: &'static str,
        #[source]
        source: EnvelopeError,
    },
    #[error(transparent)]
    Provenance(#[from] ProvenanceError),
    /// A signed message is about something else than the document says.
    #[error("{what} is `{found}`, expected `{expected}`")]
    Other { what: &'static str, found: String, expected: String },
    #[error("{early} ({} ms) is later than {late} ({} ms)", .early_at.as_millis(), .late_at.as_millis())]
    Times { early: &'static str, early_at: Timestamp, late: &'static str, late_at: Timestamp },
}

impl Lineage {
    /// Keeps the uses that `keep` accepts, and the builds that those uses name. When no use is left, all builds stay.
    #[must_use]
    pub fn only(mut self, keep: impl Fn(&Used) -> bool) -> Self {
        self.uses.retain(keep);
        let named = |made: &Made| self.uses.is_empty() || self.uses.iter().any(|used| used.build == made.build);
        self.builds.retain(named);
        self
    }
}

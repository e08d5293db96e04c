//! Lineage: the sources, the builder and the deploys of an artifact, with the signed messages that prove them. `verify`
//! checks the document only with the tenant's root key, without any service.

mod verify;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::envelope::PublicKey;
use crate::order::{Package, Source};
use crate::provenance::{Provenance, ProvenanceError};
use crate::report::Fence;
use crate::{
    AccountId, AppName, BuildId, ComponentName, Digest, Envelope, EnvelopeError, InstallId, JobId, KeyId, TenantName,
    Timestamp, WorkflowId,
};

/// The format of the lineage document.
pub const FORMAT: u32 = 2;
/// The format of earlier versions. Its proofs also have the field [`ENROLMENT_KEY`].
const FORMAT_WITH_ENROLMENT_KEY: u32 = 1;
/// The field with the public half of a secret of the install. In documents of that format, this secret signed the
/// runner's announcement too. This release ignores the field.
const ENROLMENT_KEY: &str = "enrolment_key";

/// The lineage of one artifact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Lineage {
    /// The format of the document, [`FORMAT`].
    pub format: u32,
    pub tenant: TenantName,
    /// The tenant's root key, as the control plane claims. A verifier compares it with the key that it trusts.
    pub root_key: PublicKey,
    /// The successions of root keys that lead to this root key, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<serde_json::Value>"))]
    pub succession: Vec<Envelope>,
    pub artifact: Digest,
    /// The builds that made the artifact: several when different sources resulted in the same bytes.
    pub builds: Vec<Made>,
    /// The jobs that deployed the artifact successfully.
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
    /// The requested source. The statement contains the exact source that the build used.
    pub source: Source,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>"))]
    pub provenance: Option<Box<Provenance>>,
    /// The vendor's reason for revoking the artifact; absent when the artifact is not revoked.
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
    /// The vendor's reason for disabling the install; absent when the install is enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<String>,
    pub proof: Proof,
}

/// The approval of a deploy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Approval {
    /// No approval was required.
    #[serde(rename = "none required")]
    NoneRequired,
}

impl Approval {
    /// Returns the text for the approval in the tables of `freehold lineage`.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::NoneRequired => "none required",
        }
    }
}

/// The attempt that built or deployed the artifact, and the messages that prove it. A missing message is a gap in the
/// proof.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Proof {
    pub install: InstallId,
    pub job: JobId,
    pub fence: Fence,
    /// The key of the runner that reported the end of the attempt.
    pub runner: KeyId,
    /// The time when the control plane accepted the report.
    pub at: Timestamp,
    /// The signed order, unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>"))]
    pub order: Option<Envelope>,
    /// The signed report of success, unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>"))]
    pub report: Option<Envelope>,
    /// The runner's announcement, signed by the runner's own key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>"))]
    pub hello: Option<Envelope>,
}

/// The name of a link: a fact that connects two parts of a lineage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum LinkName {
    /// The document's root key is the key that the verifier trusts.
    #[serde(rename = "root key")]
    RootKey,
    /// The document contains a build of the artifact.
    #[serde(rename = "build")]
    Build,
    /// The tenant's root key signed the statement about the build.
    #[serde(rename = "statement")]
    Statement,
    /// The build's id is derived from the requested source, and the statement names the exact source that was used.
    #[serde(rename = "source")]
    Source,
    /// The tenant ordered the build.
    #[serde(rename = "build order")]
    BuildOrder,
    /// The build runner announced its key in a message that the key signed.
    #[serde(rename = "build runner key")]
    BuildRunnerKey,
    /// The build runner reported that it made the artifact.
    #[serde(rename = "build report")]
    BuildReport,
    /// The times of the build do not contradict each other.
    #[serde(rename = "build times")]
    BuildTimes,
    /// The tenant ordered this install to deploy this artifact.
    #[serde(rename = "order")]
    Order,
    /// The order names this artifact, and the named build made it.
    #[serde(rename = "sync")]
    Sync,
    /// The deploy has every approval that it needs.
    #[serde(rename = "approval")]
    Approval,
    /// The runner announced its key in a message that the key signed. The link does not show that the key belongs to
    /// the customer's runner. Only the customer's account can show this: AWS proved it to the control plane when the
    /// runner announced itself, and nobody can repeat that proof.
    #[serde(rename = "runner key")]
    RunnerKey,
    /// The runner reported that it deployed the artifact.
    #[serde(rename = "deploy report")]
    DeployReport,
    /// The times of the deploy do not contradict each other.
    #[serde(rename = "times")]
    Times,
}

impl LinkName {
    /// Returns the name in messages.
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

/// One link and the result of its check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    pub name: LinkName,
    /// The owner of the link: the artifact, a build, or an install's component with its job.
    pub of: String,
    /// The confirmed fact, as a text for people, or the reason why the check failed.
    pub finding: Result<String, Broken>,
}

/// The reason why a link failed verification.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// The document does not contain the evidence.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// The link depends on another link that failed verification.
    #[error("it could not be verified, because it depends on the {0}, which failed verification")]
    Unfounded(&'static str),
    #[error("{what} failed verification: {source}")]
    Envelope {
        what: &'static str,
        #[source]
        source: EnvelopeError,
    },
    #[error(transparent)]
    Provenance(#[from] ProvenanceError),
    /// A value in a signed message is different from the value that the document or the verifier expects.
    #[error("{what} is `{found}`, expected `{expected}`")]
    Other { what: &'static str, found: String, expected: String },
    #[error("{early} ({} ms) is later than {late} ({} ms)", .early_at.as_millis(), .late_at.as_millis())]
    Times { early: &'static str, early_at: Timestamp, late: &'static str, late_at: Timestamp },
}

/// The reason why a text is not a lineage document that this version reads.
#[derive(Debug, thiserror::Error)]
pub enum ParseError {
    #[error(transparent)]
    Malformed(#[from] serde_json::Error),
    /// The document has a format of another version of Freehold.
    #[error("its format is {0}, and this version reads formats {FORMAT_WITH_ENROLMENT_KEY} and {FORMAT}")]
    Format(u32),
}

/// The part of a document that tells its format.
#[derive(Deserialize)]
struct Head {
    format: u32,
}

impl Lineage {
    /// Reads a document of this format or of the previous format, and returns it in this format.
    ///
    /// # Errors
    /// A [`ParseError`].
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        match serde_json::from_slice::<Head>(bytes)?.format {
            FORMAT => Ok(serde_json::from_slice(bytes)?),
            FORMAT_WITH_ENROLMENT_KEY => {
                let mut document: Value = serde_json::from_slice(bytes)?;
                for list in ["builds", "uses"] {
                    let entries = document.get_mut(list).and_then(Value::as_array_mut);
                    let proofs = entries.into_iter().flatten().filter_map(|entry| entry.get_mut("proof"));
                    proofs.filter_map(Value::as_object_mut).for_each(|proof| drop(proof.remove(ENROLMENT_KEY)));
                }
                let former: Self = serde_json::from_value(document)?;
                Ok(Self { format: FORMAT, ..former })
            }
            other => Err(ParseError::Format(other)),
        }
    }

    /// Keeps the uses that `keep` accepts, and the builds of these uses. When `keep` accepts no use, all builds stay.
    #[must_use]
    pub fn only(mut self, keep: impl Fn(&Used) -> bool) -> Self {
        self.uses.retain(keep);
        let named = |made: &Made| self.uses.is_empty() || self.uses.iter().any(|used| used.build == made.build);
        self.builds.retain(named);
        self
    }
}

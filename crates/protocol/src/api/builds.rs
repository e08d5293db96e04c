//! Builds, and the runner that makes them.

use serde::{Deserialize, Serialize};

use crate::envelope::PublicKey;
use crate::{BuildId, ComponentName, Digest, WorkflowId};

/// `POST /v1/apps/{app}/builds`: builds each component of the version that has no artifact.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BuildComponentsRequest {
    /// The version; the latest one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Digest>,
}

/// Answers a build request: all builds of the version, and the workflow that builds the missing artifacts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BuildStarted {
    pub version: Digest,
    /// Absent when every component has its artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowId>,
    pub builds: Vec<BuildView>,
    /// Components of kinds that cannot be built yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

/// A component that a build leaves out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeftOut {
    pub component: ComponentName,
    /// Such as "is a `helm_chart`".
    pub why: String,
}

/// `GET /v1/apps/{app}/builds`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BuildView {
    pub build: BuildId,
    pub component: ComponentName,
    /// `building`, `built` or `failed`.
    pub state: String,
    /// The artifact's digest, once built.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<Digest>,
    /// Bytes of all blobs, once built.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Why the vendor revoked the artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<String>,
}

/// `POST /v1/build-runner`: registers the tenant's build runner. The same key again changes nothing; another key
/// replaces it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EnrolBuildRunnerRequest {
    pub enrolment_key: PublicKey,
}

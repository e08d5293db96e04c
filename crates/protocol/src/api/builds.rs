//! Requests and responses of the API about builds and the build runner.

use serde::{Deserialize, Serialize};

use crate::{BuildId, ComponentName, Digest, WorkflowId};

/// `POST /v1/apps/{app}/builds`: builds every component of a version that has no artifact.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BuildComponentsRequest {
    /// The app version; the latest version when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Digest>,
}

/// The response to a build request: all builds of the version, and the workflow that builds the missing artifacts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BuildStarted {
    pub version: Digest,
    /// The workflow; absent when every component already has its artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowId>,
    pub builds: Vec<BuildView>,
}

/// `GET /v1/apps/{app}/builds`: a build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BuildView {
    pub build: BuildId,
    pub component: ComponentName,
    /// The state: `building`, `built`, `failed` or `removed` (nothing used the artifact, so the tenant registry does
    /// not have it any more).
    pub state: String,
    /// The digest of the artifact; absent until it is built.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<Digest>,
    /// The size of all blobs of the artifact, in bytes; absent until the artifact is built, and after it was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The vendor's reason for revoking the artifact; absent when it is not revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<String>,
}

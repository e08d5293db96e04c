//! Requests and responses of the API about artifacts and releases, and for disabling an install or revoking an
//! artifact.

use serde::{Deserialize, Serialize};

use crate::lineage::Lineage;
use crate::release::Release;
use crate::{AppName, BuildId, ComponentName, Digest, ReleaseName, Shape, Timestamp};

/// The form of a reason: one line, because messages show it to others.
pub const REASON: Shape = Shape::Line { max: 500 };

/// `GET /v1/artifacts/{digest}/lineage`: each page has all builds and a part of the uses. With `?install=`, each page has
/// a part of the uses in that install, and the builds that these uses name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LineagePage {
    pub lineage: Lineage,
    /// The value of the parameter `after` for the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// `GET /v1/apps/{app}/artifacts`: the artifacts of an app in the tenant registry, and the reasons why they are kept.
/// `POST /v1/apps/{app}/artifacts/prune`: marks the unused artifacts and returns the first page of the same list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ArtifactsView {
    pub app: AppName,
    pub artifacts: Vec<ArtifactView>,
    /// The value of the parameter `after` of `GET /v1/apps/{app}/artifacts` for the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// The artifact of one build, and whether the tenant registry keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ArtifactView {
    pub artifact: Digest,
    pub component: ComponentName,
    pub build: BuildId,
    /// The total size of the artifact's blobs in bytes, including blobs that other artifacts share.
    pub size: u64,
    /// The time of the build; absent when the artifact has been removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub built_at: Option<Timestamp>,
    /// The state: `kept`, `unused` (no new workflow may use the artifact) or `removed`.
    pub state: String,
    /// The reasons why the artifact is kept, as texts for people; empty when it is unused.
    pub kept_by: Vec<String>,
    /// The next step of pruning: `mark`, `restore` or `remove`; empty when there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub next: String,
    /// The earliest time at which the artifact may be removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removable_at: Option<Timestamp>,
}

/// `POST /v1/artifacts/{artifact}/revoke`: forbids further grants of the artifact. Installs that have it keep it.
/// `POST /v1/installs/{install}/disable`: forbids new workflows and grants. Deployed components continue to run.
/// `POST /v1/runs/{run}/resume`: runs again the step of a runbook that failed, and then the steps after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReasonRequest {
    /// Why the artifact is revoked, the install is disabled or the run continues, in one line of 1 to 500 characters. Refused
    /// requests and the run show it.
    #[cfg_attr(feature = "schema", schemars(schema_with = "reason_schema"))]
    pub reason: String,
}

#[cfg(feature = "schema")]
pub(super) fn reason_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    REASON.schema()
}

/// The response to `POST /v1/artifacts/{artifact}/revoke`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Revoked {
    pub artifact: Digest,
    pub reason: String,
    /// All builds of the artifact.
    pub builds: Vec<BuildId>,
}

/// `POST /v1/apps/{app}/releases`: creates a release. A repeated request with the same contents changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CreateReleaseRequest {
    pub name: ReleaseName,
    /// The app version; the latest version when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Digest>,
}

/// `GET /v1/apps/{app}/releases`, `GET /v1/apps/{app}/releases/{release}`: a release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReleaseView {
    pub name: ReleaseName,
    /// The digest of the contents.
    pub digest: Digest,
    pub contents: Release,
    pub created_at: Timestamp,
}

//! Artifacts and releases as the API shows them, and the two switches.

use serde::{Deserialize, Serialize};

use crate::lineage::Lineage;
use crate::release::Release;
use crate::{AppName, BuildId, ComponentName, Digest, ReleaseName, Shape, Timestamp};

/// What a reason looks like: one line that is shown to others.
pub const REASON: Shape = Shape::Line { max: 500 };

/// `GET /v1/artifacts/{digest}/lineage`: each page has all builds and a part of the uses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LineagePage {
    pub lineage: Lineage,
    /// Pass this as `after` to get the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// `GET /v1/apps/{app}/artifacts`: what the tenant registry keeps of an app, and why.
/// `POST /v1/apps/{app}/artifacts/prune`: the same list, after artifacts that nothing keeps were marked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ArtifactsView {
    pub app: AppName,
    pub artifacts: Vec<ArtifactView>,
}

/// The artifact of one build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ArtifactView {
    pub artifact: Digest,
    pub component: ComponentName,
    pub build: BuildId,
    /// The total size of its blobs in bytes, including blobs that other artifacts share.
    pub size: u64,
    /// Absent when the artifact has been removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub built_at: Option<Timestamp>,
    /// `kept`, `unused` (no new workflow may use it) or `removed`.
    pub state: String,
    /// What keeps it, as text for people; empty when nothing does.
    pub kept_by: Vec<String>,
    /// The next step: `mark`, `restore`, `remove`, or nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub next: String,
    /// The time from which it may be removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removable_at: Option<Timestamp>,
}

/// `POST /v1/artifacts/{artifact}/revoke`: no runner gets the artifact any more; installs that have it keep it.
/// `POST /v1/installs/{install}/disable`: no workflow starts and no artifact is granted; deployed components continue to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReasonRequest {
    /// The reason that every refusal shows; 1 to 500 characters.
    #[cfg_attr(feature = "schema", schemars(schema_with = "reason_schema"))]
    pub reason: String,
}

#[cfg(feature = "schema")]
fn reason_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    REASON.schema()
}

/// Answers a revocation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Revoked {
    pub artifact: Digest,
    pub reason: String,
    /// The builds that made the artifact.
    pub builds: Vec<BuildId>,
}

/// `POST /v1/apps/{app}/releases`: creates a release. The same contents under the same name change nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CreateReleaseRequest {
    pub name: ReleaseName,
    /// The version; the latest one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Digest>,
}

/// `GET /v1/apps/{app}/releases`, `GET /v1/apps/{app}/releases/{release}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReleaseView {
    pub name: ReleaseName,
    /// The digest of the contents.
    pub digest: Digest,
    pub contents: Release,
    pub created_at: Timestamp,
}

//! Artifacts and releases as the API shows them, and the two switches.

use serde::{Deserialize, Serialize};

use crate::lineage::Lineage;
use crate::release::Release;
use crate::{AppName, BuildId, ComponentName, Digest, ReleaseName, Timestamp};

/// `GET /v1/artifacts/{digest}/lineage`: every page has all builds, and some of the uses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LineagePage {
    pub lineage: Lineage,
    /// Pass as `after` to go on; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// `GET /v1/apps/{app}/artifacts`: what the tenant registry keeps of an app, and why.
/// `POST /v1/apps/{app}/artifacts/prune`: the same, after what nothing keeps was marked.
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
    /// Bytes of its blobs, those included that it shares with others.
    pub size: u64,
    /// Absent once it is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub built_at: Option<Timestamp>,
    /// `kept`, `unused` (nothing new begins with it) or `removed`.
    pub state: String,
    /// What keeps it, in words; empty when nothing does.
    pub kept_by: Vec<String>,
    /// What comes next: `mark`, `restore`, `remove`, or nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub next: String,
    /// From when on it may be removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removable_at: Option<Timestamp>,
}

/// `POST /v1/artifacts/{artifact}/revoke`: the artifact is granted to nobody any more; what has it keeps it.
/// `POST /v1/installs/{install}/disable`: no workflow starts there and nothing is granted; what runs there goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReasonRequest {
    /// Shown to whoever is refused; 1 to 500 characters.
    pub reason: String,
}

/// Answers a revocation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Revoked {
    pub artifact: Digest,
    pub reason: String,
    /// The builds that made it.
    pub builds: Vec<BuildId>,
}

/// `POST /v1/apps/{app}/releases`: the same contents under the same name again change nothing.
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

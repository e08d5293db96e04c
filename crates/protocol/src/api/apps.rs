//! Apps, their versions and their sources.

use serde::{Deserialize, Serialize};

use crate::app_version::AppVersion;
use crate::{AppName, BuildId, ComponentName, Digest, Timestamp};

/// `POST /v1/apps/{app}/sources`: requests a URL for the upload of a packed source directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UploadSourceRequest {
    /// SHA-256 of the packed bytes.
    pub digest: Digest,
    /// The size in bytes, at most 512 MiB.
    #[cfg_attr(feature = "schema", schemars(range(max = crate::limits::MAX_SOURCE_BYTES)))]
    pub size: u64,
}

/// Where to upload the source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SourceUpload {
    /// A pre-signed URL for PUT, valid for 15 minutes; the same bytes may be uploaded again.
    pub url: String,
}

/// `POST /v1/apps/{app}/versions`: stores a document as an app version. The same document is always the same version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SyncAppRequest {
    pub document: AppVersion,
}

/// One app version without its document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VersionView {
    pub app: AppName,
    pub version: Digest,
    /// The number of the version: 1 for the app's first sync, then 2, and so on.
    pub number: u64,
    pub created_at: Timestamp,
    pub components: u32,
}

/// `GET /v1/apps/{app}/versions/{version}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VersionDocument {
    #[serde(flatten)]
    pub view: VersionView,
    pub document: AppVersion,
    /// The source of each component, resolved to a commit or a digest, in the order of the document.
    #[serde(default)]
    pub resolved: Vec<ResolvedSource>,
}

/// The source of a component: what the config asks for, and what it was resolved to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResolvedSource {
    pub component: ComponentName,
    /// As the config writes it, such as an image with its tag, or a repository with its branch.
    pub asked: String,
    /// A commit or a digest; absent when only a build can resolve the source and no build has done so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved: Option<String>,
    /// The build of this source, in any state; absent when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<BuildId>,
}

/// `GET /v1/apps`, `GET /v1/apps/{app}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AppView {
    pub app: AppName,
    /// The version that was synced last.
    pub latest: Digest,
    pub number: u64,
    pub updated_at: Timestamp,
}

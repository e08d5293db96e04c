//! Requests and responses of the API about apps, their versions and their sources.

use serde::{Deserialize, Serialize};

use crate::app_version::AppVersion;
use crate::{AppName, BuildId, ComponentName, Digest, Timestamp};

/// `POST /v1/apps/{app}/sources`: requests a URL for the upload of a packed source directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UploadSourceRequest {
    /// The SHA-256 of the packed bytes.
    pub digest: Digest,
    /// The size in bytes, at most 512 MiB.
    #[cfg_attr(feature = "schema", schemars(range(max = crate::limits::MAX_SOURCE_BYTES)))]
    pub size: u64,
}

/// The place to which the source is uploaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SourceUpload {
    /// A pre-signed URL for a PUT request, valid for 15 minutes. The same bytes may be uploaded again.
    pub url: String,
}

/// `POST /v1/apps/{app}/versions`: stores a document as an app version. The same document always gives the same
/// version.
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

/// `GET /v1/apps/{app}/versions/{version}`: one app version with its document.
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

/// The source of a component, as the config names it and as a commit or digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResolvedSource {
    pub component: ComponentName,
    /// The source in the config, such as an image with its tag, or a repository with its branch.
    pub asked: String,
    /// The commit or digest of the source; absent when only a build can find it and no build has done so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved: Option<String>,
    /// The build of this source, in any state; absent when the source was never built.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<BuildId>,
}

/// `GET /v1/apps`, `GET /v1/apps/{app}`: an app and its latest version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AppView {
    pub app: AppName,
    /// The version that was synced last.
    pub latest: Digest,
    pub number: u64,
    pub updated_at: Timestamp,
}

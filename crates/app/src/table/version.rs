//! The rows of app versions.

use freehold_protocol::app_version::AppVersion;
use freehold_protocol::{AppName, Digest, Timestamp};
use serde::{Deserialize, Serialize};

use super::app::app_pk;
use super::record::{Record, key};
use crate::ports::Key;

/// An app version; `versions` loads its document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VersionRecord {
    pub app: AppName,
    pub version: Digest,
    pub number: u64,
    pub created_at: Timestamp,
    /// How many components it has.
    pub components: u32,
    pub document: Document,
}

/// The place of an app version's document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Document {
    /// The document is in the row itself.
    Inline(Box<AppVersion>),
    /// In the tenant's bucket, by the version's digest; `bytes` is the size of its canonical form.
    Bucket { bytes: u64 },
}

/// Returns the row of an app version.
pub fn version_key(app: &AppName, version: &Digest) -> Key {
    key(app_pk(app), format!("version#{version}"))
}

impl Record for VersionRecord {
    fn key(&self) -> Key {
        version_key(&self.app, &self.version)
    }
}

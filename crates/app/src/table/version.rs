//! The rows of app versions.

use freehold_protocol::app_version::AppVersion;
use freehold_protocol::{AppName, Digest, Timestamp};
use serde::{Deserialize, Serialize};

use super::app::app_pk;
use super::record::{Record, key};
use crate::ports::Key;

/// The record of an app version. `Versions` loads the version's document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VersionRecord {
    pub app: AppName,
    pub version: Digest,
    pub number: u64,
    pub created_at: Timestamp,
    /// The number of components in the version.
    pub components: u32,
    pub document: Document,
}

/// The place of an app version's document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Document {
    /// The document is in the row itself.
    Inline(Box<AppVersion>),
    /// The document is in the tenant's bucket, under the version's digest. `bytes` is the size of its canonical JSON.
    Bucket { bytes: u64 },
}

/// Returns the key of an app version's row.
pub fn version_key(app: &AppName, version: &Digest) -> Key {
    key(app_pk(app), format!("version#{version}"))
}

/// The entry of an app version in its app's list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionEntry {
    pub app: AppName,
    pub version: Digest,
    pub number: u64,
    pub created_at: Timestamp,
    pub components: u32,
}

impl Record for VersionEntry {
    fn key(&self) -> Key {
        // With this key, a forward query returns the newest version first.
        let newest_first = u64::MAX - self.number;
        key(app_pk(&self.app), format!("number#{newest_first:020}"))
    }
}

impl VersionRecord {
    /// Returns the version's entry in the list.
    pub fn entry(&self) -> VersionEntry {
        VersionEntry {
            app: self.app.clone(),
            version: self.version.clone(),
            number: self.number,
            created_at: self.created_at,
            components: self.components,
        }
    }
}

impl Record for VersionRecord {
    fn key(&self) -> Key {
        version_key(&self.app, &self.version)
    }
}

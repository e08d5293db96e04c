//! The rows of releases.

use freehold_domain::absence::Absence;
use freehold_protocol::release::Release;
use freehold_protocol::{AppName, Digest, ReleaseName, Timestamp};
use serde::{Deserialize, Serialize};

use super::app::app_pk;
use super::record::{Record, Stored, load};
use crate::AppError;
use crate::ports::{Key, Store};

/// The record of a release. It never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleaseRecord {
    pub name: ReleaseName,
    pub created_at: Timestamp,
    /// The digest of `contents`.
    pub digest: Digest,
    pub contents: Release,
}

/// Returns the key of a release's row.
pub fn release_key(app: &AppName, name: &ReleaseName) -> Key {
    Key { pk: app_pk(app), sk: format!("release#{name}") }
}

impl Record for ReleaseRecord {
    fn key(&self) -> Key {
        release_key(&self.contents.app, &self.name)
    }
}

/// Loads a release that must exist.
///
/// # Errors
/// NotFound, or the store's errors.
pub async fn release(store: &dyn Store, app: &AppName, name: &ReleaseName) -> Result<ReleaseRecord, AppError> {
    let record: Option<Stored<ReleaseRecord>> = load(store, &release_key(app, name)).await?;
    let found = record.ok_or_else(|| Absence::Release { app: app.clone(), release: name.clone() })?;
    Ok(found.value)
}

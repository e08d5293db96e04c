//! The rows of apps.

use std::collections::BTreeMap;

use freehold_domain::absence::Absence;
use freehold_protocol::{AppName, Digest, Timestamp};
use serde::{Deserialize, Serialize};

use super::record::{Record, Stored, key, load};
use crate::AppError;
use crate::ports::{Key, Store};

/// The entry of an app in the list of apps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppRecord {
    pub app: AppName,
    pub latest: Digest,
    pub number: u64,
    pub updated_at: Timestamp,
    /// The default labels of the latest version, so that a list of installs reads no version.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub default_labels: BTreeMap<String, String>,
}

/// Returns the partition key of an app's rows.
pub fn app_pk(app: &AppName) -> String {
    format!("app#{app}")
}

/// Returns the key of an app's row.
pub fn app_key(app: &AppName) -> Key {
    key("apps", app.as_str())
}

impl Record for AppRecord {
    fn key(&self) -> Key {
        app_key(&self.app)
    }
}

/// Loads an app that must exist.
///
/// # Errors
/// NotFound, or the errors of [`load`].
pub async fn app(store: &dyn Store, app: &AppName) -> Result<Stored<AppRecord>, AppError> {
    load(store, &app_key(app)).await?.ok_or_else(|| unknown_app(app))
}

/// Returns the error for an app that was never synced.
pub fn unknown_app(app: &AppName) -> AppError {
    Absence::App(app.clone()).into()
}

//! What the API shows of apps and their versions.

use freehold_protocol::api::{AppView, VersionView};

use crate::table::{AppRecord, VersionRecord};

/// Returns the API's view of an app.
pub fn app_view(record: AppRecord) -> AppView {
    let AppRecord { app, latest, number, updated_at } = record;
    AppView { app, latest, number, updated_at }
}

/// Returns the API's view of a version.
pub fn version_view(record: &VersionRecord) -> VersionView {
    VersionView {
        app: record.app.clone(),
        version: record.version.clone(),
        number: record.number,
        created_at: record.created_at,
        components: record.components,
    }
}

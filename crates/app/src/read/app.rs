//! The API's views of apps and of app versions.

use freehold_protocol::AppName;
use freehold_protocol::api::{AppView, Page, VersionView};

use super::{List, page};
use crate::AppError;
use crate::ports::Store;
use crate::table::{AppRecord, VersionEntry, app_pk};

/// Returns the API's view of an app.
pub fn app_view(record: AppRecord) -> AppView {
    let AppRecord { app, latest, number, updated_at } = record;
    AppView { app, latest, number, updated_at }
}

/// Returns the API's view of a version.
pub fn version_view(entry: VersionEntry) -> VersionView {
    let VersionEntry { app, version, number, created_at, components } = entry;
    VersionView { app, version, number, created_at, components }
}

/// Returns one page of an app's versions, newest first.
///
/// # Errors
/// The store's errors.
pub async fn versions(store: &dyn Store, app: &AppName, after: Option<&str>) -> Result<Page<VersionView>, AppError> {
    let Page { items, next } = page(store, &app_pk(app), List::Versions, after).await?;
    Ok(Page { items: items.into_iter().map(version_view).collect(), next })
}

//! Shows and lists apps and their versions.

use freehold_protocol::AppName;
use freehold_protocol::api::{AppView, Page, VersionView};

use super::{List, rows};
use crate::AppError;
use crate::ports::Store;
use crate::table::{self, AppRecord, VersionEntry, app_pk};

/// Returns one page of the apps for which `is_shown` holds.
///
/// # Errors
/// The store's errors.
pub async fn list_apps(
    store: &dyn Store,
    after: Option<&str>,
    is_shown: &(dyn Fn(&AppName) -> bool + Sync),
) -> Result<Page<AppView>, AppError> {
    let mut after = after.map(str::to_owned);
    loop {
        let mut page = rows::<AppRecord>(store, "apps", List::Apps, after.as_deref()).await?;
        page.items.retain(|(_, record)| is_shown(&record.app));
        match page.next_shown() {
            Some(place) => after = Some(place),
            None => return page.map(app_view),
        }
    }
}

/// Returns an app.
///
/// # Errors
/// NotFound, or the store's errors.
pub async fn show_app(store: &dyn Store, app: &AppName) -> Result<AppView, AppError> {
    Ok(app_view(table::app(store, app).await?.value))
}

/// Returns one page of an app's versions, newest first.
///
/// # Errors
/// The store's errors.
pub async fn list_versions(
    store: &dyn Store,
    app: &AppName,
    after: Option<&str>,
) -> Result<Page<VersionView>, AppError> {
    rows(store, &app_pk(app), List::Versions, after).await?.map(version_view)
}

fn app_view(record: AppRecord) -> AppView {
    let AppRecord { app, latest, number, updated_at, default_labels: _ } = record;
    AppView { app, latest, number, updated_at }
}

/// Returns the API's view of a version.
pub(crate) fn version_view(entry: VersionEntry) -> VersionView {
    let VersionEntry { app, version, number, created_at, components } = entry;
    VersionView { app, version, number, created_at, components }
}

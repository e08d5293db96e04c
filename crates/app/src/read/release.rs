//! Shows and lists releases.

use freehold_protocol::api::{Page, ReleaseView};
use freehold_protocol::{AppName, ReleaseName};

use super::{List, map, page};
use crate::AppError;
use crate::ports::Store;
use crate::table::{self, ReleaseRecord, app_pk};

/// Returns one page of an app's releases.
///
/// # Errors
/// NotFound for an app that does not exist, or the store's errors.
pub async fn list_releases(
    store: &dyn Store,
    app: &AppName,
    after: Option<&str>,
) -> Result<Page<ReleaseView>, AppError> {
    let releases = map(page(store, &app_pk(app), List::Releases, after).await?, release_view);
    if releases.items.is_empty() {
        table::app(store, app).await?;
    }
    Ok(releases)
}

/// Returns a release.
///
/// # Errors
/// NotFound, or the store's errors.
pub async fn show_release(store: &dyn Store, app: &AppName, name: &ReleaseName) -> Result<ReleaseView, AppError> {
    Ok(release_view(table::release(store, app, name).await?))
}

/// Returns the API's view of a release.
pub(crate) fn release_view(record: ReleaseRecord) -> ReleaseView {
    let ReleaseRecord { name, created_at, digest, contents } = record;
    ReleaseView { name, digest, contents, created_at }
}

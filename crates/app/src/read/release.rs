//! Shows and lists releases and channels.

use freehold_domain::install::follows::Channel;
use freehold_protocol::api::{ChannelView, Page, ReleaseView};
use freehold_protocol::{AppName, ReleaseName};
use futures_util::future::try_join_all;

use super::{List, rows};
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
    let releases = rows(store, &app_pk(app), List::Releases, after).await?.map(release_view)?;
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

/// Returns the channels of an app, by name.
///
/// # Errors
/// NotFound for an app that does not exist, or the store's errors.
pub async fn list_channels(store: &dyn Store, app: &AppName) -> Result<Vec<ChannelView>, AppError> {
    let channels = table::channels(store, app).await?;
    if channels.is_empty() {
        table::app(store, app).await?;
    }
    try_join_all(channels.into_iter().map(|channel| channel_view(store, channel))).await
}

/// Returns the API's view of a channel.
///
/// # Errors
/// The store's errors.
pub(crate) async fn channel_view(store: &dyn Store, channel: Channel) -> Result<ChannelView, AppError> {
    let installs = table::count_followers(store, &channel.app, &channel.name).await?;
    let Channel { app, name, release, moves, moved_at, moved_by } = channel;
    Ok(ChannelView { app, channel: name, release, moves, moved_at, moved_by, installs })
}

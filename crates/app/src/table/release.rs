//! The rows of releases, of channels, and of the installs that follow them.

use freehold_domain::absence::Absence;
use freehold_domain::install::follows::Channel;
use freehold_protocol::release::Release;
use freehold_protocol::{AppName, ChannelName, Digest, InstallId, ReleaseName, Timestamp};
use serde::{Deserialize, Serialize};

use super::app::app_pk;
use super::install::install_pk;
use super::record::{Record, Stored, key, load, load_all, parse};
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

/// The prefix of the keys of channels.
const CHANNEL_PREFIX: &str = "channel#";

/// An install that follows a channel, in the list of the channel's app.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Follower {
    pub app: AppName,
    pub channel: ChannelName,
    pub install: InstallId,
}

/// The reason why an install does not have the release of its channel yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotFollowed {
    pub install: InstallId,
    pub channel: ChannelName,
    pub release: ReleaseName,
    pub at: Timestamp,
    pub reason: String,
}

/// Returns the key of a channel's row.
pub fn channel_key(app: &AppName, name: &ChannelName) -> Key {
    key(app_pk(app), format!("{CHANNEL_PREFIX}{name}"))
}

/// Returns the key of the row with the reason why an install does not follow its channel.
pub fn not_followed_key(install: &InstallId) -> Key {
    key(install_pk(install), "not-followed")
}

/// Returns the beginning of the sort keys of a channel's followers.
fn followers_prefix(channel: &ChannelName) -> String {
    format!("follower#{channel}#")
}

impl Record for Channel {
    fn key(&self) -> Key {
        channel_key(&self.app, &self.name)
    }
}

impl Record for Follower {
    fn key(&self) -> Key {
        key(app_pk(&self.app), format!("{}{}", followers_prefix(&self.channel), self.install))
    }
}

impl Record for NotFollowed {
    fn key(&self) -> Key {
        not_followed_key(&self.install)
    }
}

/// Loads a channel that must exist.
///
/// # Errors
/// NotFound, or the store's errors.
pub async fn channel(store: &dyn Store, app: &AppName, name: &ChannelName) -> Result<Stored<Channel>, AppError> {
    let found: Option<Stored<Channel>> = load(store, &channel_key(app, name)).await?;
    Ok(found.ok_or_else(|| Absence::Channel { app: app.clone(), channel: name.clone() })?)
}

/// Loads the channels of an app, by name.
///
/// # Errors
/// The store's errors.
pub async fn channels(store: &dyn Store, app: &AppName) -> Result<Vec<Channel>, AppError> {
    load_all(store, &app_pk(app), CHANNEL_PREFIX).await
}

/// Loads at most `most` installs that follow a channel, in the order of their names, beginning after the install
/// `after`.
///
/// # Errors
/// The store's errors.
pub async fn followers(
    store: &dyn Store,
    app: &AppName,
    channel: &ChannelName,
    after: Option<&InstallId>,
    most: u32,
) -> Result<Vec<Follower>, AppError> {
    let prefix = followers_prefix(channel);
    let after = after.map(|install| format!("{prefix}{install}"));
    let rows = store.query(&app_pk(app), &prefix, after.as_deref(), most).await?;
    rows.iter().map(|row| Ok(parse::<Follower>(row)?.value)).collect()
}

/// Counts the installs that follow a channel.
///
/// # Errors
/// The store's errors.
pub async fn count_followers(store: &dyn Store, app: &AppName, channel: &ChannelName) -> Result<u32, AppError> {
    let all: Vec<Follower> = load_all(store, &app_pk(app), &followers_prefix(channel)).await?;
    Ok(u32::try_from(all.len()).unwrap_or(u32::MAX))
}

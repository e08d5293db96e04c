//! Fetches an app version from the tenant, with its document.

use freehold_client::calls;
use freehold_protocol::AppName;
use freehold_protocol::api::VersionDocument;

use super::version::{VersionName, or_latest};
use crate::api::Api;
use crate::error::Result;

/// Returns the version of `app` that `name` refers to, or the latest version if `name` is absent.
pub(super) async fn fetch_version(api: &Api, app: &AppName, name: Option<&VersionName>) -> Result<VersionDocument> {
    let version = or_latest(api, app, name).await?;
    api.send(calls::show_version(app, &version)).await
}

//! Lists the builds of an app.

use freehold_domain::build::{Build, BuildState};
use freehold_protocol::AppName;
use freehold_protocol::api::{BuildView, Page};

use super::{List, rows};
use crate::AppError;
use crate::ports::Store;
use crate::table::app_pk;

/// Returns one page of an app's builds.
///
/// # Errors
/// The store's errors.
pub async fn list_builds(store: &dyn Store, app: &AppName, after: Option<&str>) -> Result<Page<BuildView>, AppError> {
    rows(store, &app_pk(app), List::Builds, after).await?.map(|build: Build| build_view(&build))
}

/// Returns the API's view of a build.
pub(crate) fn build_view(build: &Build) -> BuildView {
    let (artifact, size, reason) = match &build.state {
        BuildState::Building { .. } => (None, None, String::new()),
        BuildState::Built { artifact, .. } => {
            (Some(artifact.digest.clone()), Some(artifact.blob_bytes()), String::new())
        }
        BuildState::Failed { reason, .. } => (None, None, reason.clone()),
        BuildState::Removed { artifact, .. } => (
            Some(artifact.digest.clone()),
            None,
            "removed because nothing used it; build the component again when it is needed".to_owned(),
        ),
    };
    BuildView {
        build: build.id.clone(),
        component: build.component.clone(),
        state: build.state.as_str().to_owned(),
        artifact,
        size,
        reason,
        revoked: build.revoked.clone(),
    }
}

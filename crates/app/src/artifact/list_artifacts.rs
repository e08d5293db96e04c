//! Lists the artifacts of an app with the reasons to keep each of them.

use std::sync::Arc;

use freehold_domain::build::{Build, BuildState};
use freehold_domain::prune_artifacts::{self, Step, Uses, WAIT_SECS};
use freehold_protocol::api::{ArtifactView, ArtifactsView, Page};
use freehold_protocol::{AppName, Timestamp};

use crate::AppError;
use crate::app_version::versions::Versions;
use crate::artifact::uses::uses_of;
use crate::ports::Clock;
use crate::read::{List, Rows, Space, fitting, rows_at_most};
use crate::table::{self, app_pk};

/// The maximum number of builds whose artifacts are on one page. It is large, because each page reads everything that
/// uses artifacts of the app.
const PAGE_BUILDS: u32 = 500;

/// The use case that lists artifacts, with its ports.
#[derive(Clone)]
pub struct ListArtifacts {
    pub versions: Versions,
    pub clock: Arc<dyn Clock>,
}

impl ListArtifacts {
    /// Returns one page of the artifacts of an app, each with the reasons to keep it.
    ///
    /// # Errors
    /// NotFound for an unknown app, or the store's errors.
    pub async fn list(&self, app: &AppName, after: Option<&str>) -> Result<ArtifactsView, AppError> {
        let store = &*self.versions.store;
        table::app(store, app).await?;
        let uses = uses_of(&self.versions, app).await?;
        let Rows { items, next } = rows_at_most::<Build>(store, &app_pk(app), List::Builds, after, PAGE_BUILDS).await?;
        let now = self.clock.now();
        let views = items.into_iter().filter_map(|(place, build)| Some((place, artifact_view(&build, &uses, now)?)));
        let Page { items: artifacts, next } = fitting(views.collect(), next, Space::default())?;
        Ok(ArtifactsView { app: app.clone(), artifacts, next })
    }
}

fn artifact_view(build: &Build, uses: &Uses, now: Timestamp) -> Option<ArtifactView> {
    let (artifact, built_at, state) = match &build.state {
        BuildState::Built { artifact, built_at, .. } => {
            let state = if build.unused_since.is_some() { "unused" } else { "kept" };
            (artifact, Some(*built_at), state)
        }
        BuildState::Removed { artifact, .. } => (artifact, None, "removed"),
        BuildState::Building { .. } | BuildState::Failed { .. } => return None,
    };
    let kept_by: Vec<String> = uses.of(build, now).iter().map(ToString::to_string).collect();
    let next = match prune_artifacts::step(build, uses, now) {
        Step::Nothing => "",
        Step::Mark => "mark",
        Step::Restore => "restore",
        Step::Remove | Step::Resume => "remove",
    };
    Some(ArtifactView {
        artifact: artifact.digest.clone(),
        component: build.component.clone(),
        build: build.id.clone(),
        size: artifact.blob_bytes(),
        built_at,
        state: state.to_owned(),
        kept_by,
        next: next.to_owned(),
        removable_at: build.unused_since.map(|since| since.plus_secs(WAIT_SECS)),
    })
}

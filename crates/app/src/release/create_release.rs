//! Creates a release, which gives a fixed name to one version of an app and to the current artifacts of its components.

use std::collections::BTreeMap;
use std::sync::Arc;

use freehold_domain::build::Build;
use freehold_domain::plan::check_deployable;
use freehold_protocol::AppName;
use freehold_protocol::api::{CreateReleaseRequest, ReleaseView};
use freehold_protocol::release::Release;

use crate::AppError;
use crate::app_version::builds::source_builds;
use crate::app_version::versions::Versions;
use crate::ports::{Clock, Committed, Expect, Store};
use crate::read::release_view;
use crate::table::{self, ReleaseRecord, put};

/// The use case that creates a release, with its ports.
#[derive(Clone)]
pub struct CreateRelease {
    pub store: Arc<dyn Store>,
    pub versions: Versions,
    pub clock: Arc<dyn Clock>,
}

impl CreateRelease {
    /// Creates the release. A repeated request with the same name and contents returns the existing release.
    ///
    /// # Errors
    /// NotFound for an unknown app or version, Conflict for components without an artifact or for a name that a release
    /// with other contents has, or the ports' errors.
    pub async fn create(&self, app: &AppName, request: &CreateReleaseRequest) -> Result<ReleaseView, AppError> {
        let version = self.versions.load(app, request.version.as_ref()).await?;
        check_deployable(&version.document)?;
        let mut artifacts = BTreeMap::new();
        let mut unbuilt = Vec::new();
        for source in source_builds(&*self.store, &version.document).await? {
            match source.known.as_ref().map(|known| &known.value) {
                Some(Build { revoked: Some(why), .. }) => {
                    return Err(AppError::conflict(format!(
                        "artifact of component `{}` was revoked: {why}; change the component's source and build it again",
                        source.component
                    )));
                }
                Some(build) if let Some(artifact) = build.usable() => {
                    artifacts.insert(source.component, artifact.digest.clone());
                }
                Some(_) | None => unbuilt.push(format!("`{}`", source.component)),
            }
        }
        if !unbuilt.is_empty() {
            return Err(AppError::conflict(format!(
                "version {} of app `{app}` has components that are not built: {}; build them with `freehold build {app} \
                 --version {0}`",
                version.number,
                unbuilt.join(", ")
            )));
        }
        let contents = Release::new(app.clone(), version.version, artifacts);
        let digest = contents.digest()?;
        let record = ReleaseRecord { name: request.name.clone(), created_at: self.clock.now(), digest, contents };
        if self.store.commit(vec![put(&record, Expect::Absent)?]).await? == Committed::Done {
            tracing::info!("Created release `{}` of app `{app}`: {}", record.name, record.digest);
            return Ok(release_view(record));
        }
        let there = table::release(&*self.store, app, &request.name).await?;
        if there.digest == record.digest {
            return Ok(release_view(there));
        }
        let has = self.versions.load(app, Some(&there.contents.version)).await?.number;
        let differs = if has == version.number {
            format!("has version {has} with other artifacts")
        } else {
            format!("has version {has}, not {}", version.number)
        };
        Err(AppError::conflict(format!(
            "release `{}` of app `{app}` {differs} ({}); choose another name, because a release never changes",
            there.name, there.digest
        )))
    }
}

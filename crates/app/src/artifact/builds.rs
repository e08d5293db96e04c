//! The builds of an app version: which components need a build, and the record of each build that exists.

use std::collections::BTreeMap;

use freehold_domain::build::Build;
use freehold_protocol::app_version::AppVersion;
use freehold_protocol::{BuildId, ComponentName, Digest};
use futures_util::future::try_join_all;

use crate::AppError;
use crate::ports::Store;
use crate::table::{self, Stored};

/// The number of rows that are loaded concurrently.
const AT_ONCE: usize = 16;

/// A build that a component or the sandbox needs, with its record if one exists. The sandbox has a component name too.
#[derive(Debug)]
pub struct SourceBuild {
    pub component: ComponentName,
    pub id: BuildId,
    pub source_digest: Digest,
    pub known: Option<Stored<Build>>,
}

/// Returns the builds that `version` needs: for the sandbox, then for the components.
///
/// # Errors
/// The store's errors, or Internal when a source cannot be written as JSON.
pub async fn source_builds(store: &dyn Store, version: &AppVersion) -> Result<Vec<SourceBuild>, AppError> {
    let mut wanted = Vec::new();
    for component in version.parts() {
        if let Some(source_digest) = component.source_digest()? {
            let id = BuildId::derive(&version.app, &source_digest, &component.name);
            wanted.push((component.name.clone(), id, source_digest));
        }
    }
    let mut builds = Vec::with_capacity(wanted.len());
    for some in wanted.chunks(AT_ONCE) {
        let found = try_join_all(some.iter().map(async |(component, id, source_digest)| {
            let known = table::load(store, &table::build_key(&version.app, id)).await?;
            let (component, id, source_digest) = (component.clone(), id.clone(), source_digest.clone());
            Ok::<_, AppError>(SourceBuild { component, id, source_digest, known })
        }));
        builds.extend(found.await?);
    }
    Ok(builds)
}

/// Returns the builds of `version` that have a record, by the name of their component or sandbox.
///
/// # Errors
/// The errors of [`source_builds`].
pub async fn builds_of(store: &dyn Store, version: &AppVersion) -> Result<BTreeMap<ComponentName, Build>, AppError> {
    let builds = source_builds(store, version).await?;
    Ok(builds.into_iter().filter_map(|build| Some((build.component, build.known?.value))).collect())
}

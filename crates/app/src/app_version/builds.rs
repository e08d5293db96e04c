//! The builds of an app version: which components need a build, and the record of each build that exists.

use std::collections::BTreeMap;

use freehold_domain::build::Build;
use freehold_domain::plan::steps;
use freehold_domain::workflow::Node;
use freehold_protocol::app_version::{AppVersion, BuildInput};
use freehold_protocol::{BuildId, ComponentName, Digest};
use futures_util::future::try_join_all;

use crate::AppError;
use crate::ports::Store;
use crate::table::{self, Stored};

/// The number of rows that are loaded concurrently.
const AT_ONCE: usize = 16;

/// A build that a version needs, with its record if one exists. The sandbox and the directories of steps have component
/// names too.
#[derive(Debug)]
pub struct SourceBuild {
    pub component: ComponentName,
    pub id: BuildId,
    pub source_digest: Digest,
    pub input: BuildInput,
    pub known: Option<Stored<Build>>,
}

/// Returns the builds that `version` needs: for the sandbox, for the components, then for the directories of steps.
///
/// # Errors
/// The store's errors, or Internal when a source cannot be written as JSON.
pub async fn source_builds(store: &dyn Store, version: &AppVersion) -> Result<Vec<SourceBuild>, AppError> {
    let mut wanted = Vec::new();
    for input in version.build_inputs() {
        let source_digest = input.digest()?;
        let id = BuildId::derive(&version.app, &source_digest, &input.name);
        wanted.push((input, id, source_digest));
    }
    let mut builds = Vec::with_capacity(wanted.len());
    for some in wanted.chunks(AT_ONCE) {
        let found = try_join_all(some.iter().map(async |(input, id, source_digest)| {
            let known = table::load(store, &table::build_key(&version.app, id)).await?;
            let (input, id, source_digest) = (input.clone(), id.clone(), source_digest.clone());
            Ok::<_, AppError>(SourceBuild { component: input.name.clone(), id, source_digest, input, known })
        }));
        builds.extend(found.await?);
    }
    Ok(builds)
}

/// Returns the builds of `version` that have a record, by the name of their component, sandbox or step's directory.
///
/// # Errors
/// The errors of [`source_builds`].
pub async fn builds_of(store: &dyn Store, version: &AppVersion) -> Result<BTreeMap<ComponentName, Build>, AppError> {
    let builds = source_builds(store, version).await?;
    Ok(builds.into_iter().filter_map(|build| Some((build.component, build.known?.value))).collect())
}

/// Binds the actions among `nodes` to the builds of the directories that their steps run in. The builds are loaded only
/// if there are such steps.
///
/// # Errors
/// Conflict for a directory without an artifact, or the errors of [`source_builds`].
pub async fn bind_steps(store: &dyn Store, version: &AppVersion, nodes: &mut [Node]) -> Result<(), AppError> {
    if steps::has_directories(version, nodes) {
        steps::bind(version, nodes, &builds_of(store, version).await?)?;
    }
    Ok(())
}

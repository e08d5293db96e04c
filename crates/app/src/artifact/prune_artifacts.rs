//! Prunes the tenant registry: marks each unused artifact, and removes it a day later if it is still unused.

use std::collections::BTreeSet;
use std::sync::Arc;

use freehold_domain::build::{Build, BuildState};
use freehold_domain::prune_artifacts::{self, Step};
use freehold_protocol::api::ArtifactsView;
use freehold_protocol::order::Artifact;
use freehold_protocol::{AppName, Digest, Timestamp};

use crate::AppError;
use crate::app_version::versions::Versions;
use crate::artifact::list_artifacts::ListArtifacts;
use crate::artifact::uses::uses_of;
use crate::ports::{ArtifactRemover, Clock, Committed, Expect, Store};
use crate::table::{self, AppRecord, Stored, app_pk, load_all, put};

/// The use case that marks unused artifacts, with its ports. It changes only the table, not the registry.
#[derive(Clone)]
pub struct UnusedArtifacts {
    pub store: Arc<dyn Store>,
    pub versions: Versions,
    pub clock: Arc<dyn Clock>,
}

/// The use case that prunes artifacts, with its ports.
#[derive(Clone)]
pub struct PruneArtifacts {
    pub unused: UnusedArtifacts,
    pub registry: Arc<dyn ArtifactRemover>,
}

/// The number of artifacts for each result of a prune.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pruned {
    pub kept: u32,
    pub marked: u32,
    pub restored: u32,
    pub removed: u32,
    /// The number of artifacts that could not be removed. The next prune retries them.
    pub failed: u32,
}

impl UnusedArtifacts {
    /// Marks artifacts that became unused, restores artifacts that are in use again, and returns the first page of all
    /// artifacts in their new state.
    ///
    /// # Errors
    /// The errors of [`ListArtifacts::list`].
    pub async fn mark(&self, app: &AppName) -> Result<ArtifactsView, AppError> {
        table::app(&*self.store, app).await?;
        self.mark_app(app, &mut Pruned::default()).await?;
        ListArtifacts { versions: self.versions.clone(), clock: Arc::clone(&self.clock) }.list(app, None).await
    }

    /// Marks and restores the artifacts of one app in the table, and returns the builds whose artifacts must be
    /// removed.
    async fn mark_app(&self, app: &AppName, pruned: &mut Pruned) -> Result<Vec<Stored<Build>>, AppError> {
        let now = self.clock.now();
        // The builds are read before the uses: this prune ignores a build that is added after this read.
        let builds = table::load_all_stored::<Build>(&*self.store, &app_pk(app), "build#").await?;
        let uses = uses_of(&self.versions, app).await?;
        let mut due = Vec::new();
        for stored in builds {
            match prune_artifacts::step(&stored.value, &uses, now) {
                Step::Nothing => pruned.kept += u32::from(matches!(stored.value.state, BuildState::Built { .. })),
                Step::Remove | Step::Resume => due.push(stored),
                Step::Mark => {
                    let build = Build { unused_since: Some(now), ..stored.value };
                    pruned.marked += u32::from(self.write(&build, stored.rev).await?);
                }
                Step::Restore => {
                    let build = Build { unused_since: None, ..stored.value };
                    pruned.restored += u32::from(self.write(&build, stored.rev).await?);
                }
            }
        }
        Ok(due)
    }

    /// Writes a build if it still has revision `rev`. Otherwise another writer changed it, and the next prune decides
    /// with the new state.
    async fn write(&self, build: &Build, rev: u64) -> Result<bool, AppError> {
        Ok(self.store.commit(vec![put(build, Expect::Rev(rev))?]).await? == Committed::Done)
    }
}

impl PruneArtifacts {
    /// Marks, restores and removes the artifacts of all apps. A failed removal does not stop the others.
    ///
    /// # Errors
    /// The store's errors. When the uses cannot be read, nothing is removed.
    pub async fn prune(&self) -> Result<Pruned, AppError> {
        let mut pruned = Pruned::default();
        let apps: Vec<AppRecord> = load_all(&*self.unused.store, "apps", "").await?;
        let mut due = Vec::new();
        for app in &apps {
            due.extend(self.unused.mark_app(&app.app, &mut pruned).await?);
        }
        let mut begun = Vec::new();
        for stored in due {
            begun.extend(self.begin(stored).await?);
        }
        if begun.is_empty() {
            return Ok(pruned);
        }
        let held = self.held_manifests(&apps).await?;
        for (build, artifact, rev) in begun {
            match self.remove(&build, artifact, rev, &held).await {
                Ok(()) => pruned.removed += 1,
                Err(error) => {
                    tracing::warn!("Could not remove the artifact of build `{}`: {error}", build.id);
                    pruned.failed += 1;
                }
            }
        }
        Ok(pruned)
    }

    /// Records the removal before it starts, so that no workflow can start to use the artifact during the removal.
    async fn begin(&self, stored: Stored<Build>) -> Result<Option<(Build, Artifact, u64)>, AppError> {
        let Stored { value: build, rev } = stored;
        match &build.state {
            BuildState::Built { artifact, .. } => {
                let artifact = artifact.clone();
                let begun = removed(&build, &artifact, self.unused.clock.now(), false);
                Ok(self.unused.write(&begun, rev).await?.then_some((begun, artifact, rev + 1)))
            }
            BuildState::Removed { artifact, .. } => {
                let artifact = artifact.clone();
                Ok(Some((build, artifact, rev)))
            }
            BuildState::Building { .. } | BuildState::Failed { .. } => Ok(None),
        }
    }

    async fn remove(
        &self,
        build: &Build,
        artifact: Artifact,
        rev: u64,
        held: &BTreeSet<Digest>,
    ) -> Result<(), AppError> {
        let own: Vec<Digest> = manifests(&artifact).filter(|digest| !held.contains(digest)).collect();
        self.registry.remove(&own).await?;
        let done = removed(build, &artifact, self.unused.clock.now(), true);
        // A conflict is ignored: the row still says that the removal is not finished, and the next prune finishes it.
        self.unused.write(&done, rev).await?;
        tracing::info!("Removed artifact `{}` of build `{}`: {} manifests", artifact.digest, build.id, own.len());
        Ok(())
    }

    /// Returns the digests of the manifests of all artifacts that are not being removed.
    async fn held_manifests(&self, apps: &[AppRecord]) -> Result<BTreeSet<Digest>, AppError> {
        let mut held = BTreeSet::new();
        for app in apps {
            let builds: Vec<Build> = load_all(&*self.unused.store, &app_pk(&app.app), "build#").await?;
            for build in builds {
                if let BuildState::Built { artifact, .. } = &build.state {
                    held.extend(manifests(artifact));
                }
            }
        }
        Ok(held)
    }
}

fn removed(build: &Build, artifact: &Artifact, at: Timestamp, done: bool) -> Build {
    Build { state: BuildState::Removed { artifact: artifact.clone(), at, done }, unused_since: None, ..build.clone() }
}

/// Returns the digests of an artifact's manifests in the order in which they are removed: an index before the manifests
/// that it names, and last the signed statement about the artifact.
fn manifests(artifact: &Artifact) -> impl Iterator<Item = Digest> {
    let statement = artifact.provenance.iter().map(|provenance| provenance.referrer.clone());
    artifact.manifests.iter().rev().map(|manifest| manifest.digest.clone()).chain(statement)
}

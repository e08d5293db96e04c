//! Prunes the tenant registry: marks each unused artifact, and removes it a day later if it is still unused.

use std::collections::BTreeSet;
use std::sync::Arc;

use freehold_domain::build::{Build, BuildState};
use freehold_domain::install::Install;
use freehold_domain::prune_artifacts::{self, Kept, Step, Uses, WAIT_SECS};
use freehold_domain::workflow::{Request, Target, Use};
use freehold_protocol::api::{ArtifactView, ArtifactsView};
use freehold_protocol::order::Artifact;
use freehold_protocol::{AppName, Digest, InstallId, Timestamp, WorkflowId};

use crate::AppError;
use crate::app_version::versions::Versions;
use crate::artifact::builds::source_builds;
use crate::ports::{ArtifactRemover, Clock, Committed, Expect, Store};
use crate::table::ReleaseRecord;
use crate::table::{
    self, AppRecord, DeployedRecord, InstallEntry, OpenWorkflow, Stored, app_pk, install_key, install_pk, load,
    load_all, put,
};

/// The use case that finds and marks unused artifacts, with its ports. It changes only the table, not the registry.
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
    /// Returns every artifact of an app with the reasons to keep it.
    ///
    /// # Errors
    /// NotFound for an unknown app, or the store's errors.
    pub async fn show(&self, app: &AppName) -> Result<ArtifactsView, AppError> {
        table::app(&*self.store, app).await?;
        let uses = self.uses(app).await?;
        let builds: Vec<Build> = load_all(&*self.store, &app_pk(app), "build#").await?;
        let now = self.clock.now();
        let artifacts = builds.iter().filter_map(|build| artifact_view(build, &uses, now)).collect();
        Ok(ArtifactsView { app: app.clone(), artifacts })
    }

    /// Marks artifacts that became unused, restores artifacts that are in use again, and returns all artifacts in their
    /// new state.
    ///
    /// # Errors
    /// The errors of [`Self::show`].
    pub async fn mark(&self, app: &AppName) -> Result<ArtifactsView, AppError> {
        table::app(&*self.store, app).await?;
        self.mark_app(app, &mut Pruned::default()).await?;
        self.show(app).await
    }

    /// Marks and restores the artifacts of one app in the table, and returns the builds whose artifacts must be
    /// removed.
    async fn mark_app(&self, app: &AppName, pruned: &mut Pruned) -> Result<Vec<Stored<Build>>, AppError> {
        let now = self.clock.now();
        // The builds are read before the uses: this prune ignores a build that is added after this read.
        let builds = table::load_all_stored::<Build>(&*self.store, &app_pk(app), "build#").await?;
        let uses = self.uses(app).await?;
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

    async fn uses(&self, app: &AppName) -> Result<Uses, AppError> {
        let mut uses = Uses::default();
        // Workflows are read before installs: if a workflow ends in between, its components are found in its install.
        let open: Vec<OpenWorkflow> = load_all(&*self.store, "open", "").await?;
        for entry in open {
            self.workflow(app, &entry.workflow, &mut uses).await?;
        }
        self.version(app, None, &Kept::Newest, &mut uses).await?;
        let installs: Vec<InstallEntry> = load_all(&*self.store, "installs", "").await?;
        for entry in installs {
            self.install(app, &entry.install, &mut uses).await?;
        }
        let releases: Vec<ReleaseRecord> = load_all(&*self.store, &app_pk(app), "release#").await?;
        for release in releases {
            for artifact in release.contents.artifacts.values() {
                uses.artifact(artifact, Kept::Release(release.name.clone()));
            }
        }
        Ok(uses)
    }

    async fn workflow(&self, app: &AppName, id: &WorkflowId, uses: &mut Uses) -> Result<(), AppError> {
        let workflow = table::workflow(&*self.store, id).await?.value;
        let kept = Kept::Workflow(id.clone());
        for node in &workflow.nodes {
            for (_, Use { build, artifact }) in node.target.uses() {
                uses.build(build, kept.clone());
                uses.artifact(artifact, kept.clone());
            }
            if let Target::Teardown { build, artifact, .. } = &node.target {
                build.iter().for_each(|build| uses.build(build, kept.clone()));
                uses.artifact(artifact, kept.clone());
            }
            if let Target::Build { build, .. } = &node.target {
                uses.build(build, kept.clone());
            }
        }
        let install: Option<Stored<Install>> = load(&*self.store, &install_key(&workflow.install)).await?;
        if let Request::Deploy { version, .. } | Request::Action { version, .. } = &workflow.request
            // If nothing ever ran in the install, it may have been deleted meanwhile.
            && install.is_some_and(|install| install.value.app() == Some(app))
        {
            let version = workflow.version.as_ref().or(version.as_ref());
            self.version(app, version, &kept, uses).await?;
        }
        Ok(())
    }

    async fn install(&self, app: &AppName, id: &InstallId, uses: &mut Uses) -> Result<(), AppError> {
        let install = table::install(&*self.store, id).await?.value;
        if install.app() != Some(app) {
            return Ok(());
        }
        let deployed: Vec<DeployedRecord> = load_all(&*self.store, &install_pk(id), "component#").await?;
        for record in deployed {
            uses.artifact(&record.deployed.artifact, Kept::Runs(id.clone()));
        }
        if let Some(version) = install.version() {
            self.version(app, Some(version), &Kept::InstallAt(id.clone()), uses).await?;
        }
        Ok(())
    }

    async fn version(
        &self,
        app: &AppName,
        version: Option<&Digest>,
        kept: &Kept,
        uses: &mut Uses,
    ) -> Result<(), AppError> {
        let version = self.versions.load(app, version).await?;
        for source in source_builds(&*self.store, &version.document).await? {
            uses.build(&source.id, kept.clone());
        }
        Ok(())
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
        let held = self.held(&apps).await?;
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
        // A conflict is ignored: the other writer kept the state in which the removal is not finished.
        self.unused.write(&done, rev).await?;
        tracing::info!("Removed artifact `{}` of build `{}`: {} manifests", artifact.digest, build.id, own.len());
        Ok(())
    }

    /// Returns the digests of the manifests of all artifacts that are not being removed.
    async fn held(&self, apps: &[AppRecord]) -> Result<BTreeSet<Digest>, AppError> {
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

//! Collects what uses the artifacts of an app: open workflows, the newest version, installs and releases.

use freehold_domain::install::Install;
use freehold_domain::prune_artifacts::{Kept, Uses};
use freehold_domain::workflow::{Request, Target, Use};
use freehold_protocol::{AppName, Digest, InstallId, WorkflowId};

use crate::AppError;
use crate::app_version::builds::source_builds;
use crate::app_version::versions::Versions;
use crate::ports::Store;
use crate::table::{
    self, DeployedRecord, InstallEntry, OpenWorkflow, ReleaseRecord, Stored, app_pk, install_key, install_pk, load,
    load_all,
};

/// Returns the uses of the artifacts of `app`.
///
/// # Errors
/// The errors of [`Versions::load`], or the store's errors.
pub(crate) async fn uses_of(versions: &Versions, app: &AppName) -> Result<Uses, AppError> {
    let store = &*versions.store;
    let mut reader = Reader { versions, app, uses: Uses::default() };
    // Workflows are read before installs: if a workflow ends in between, its components are found in its install.
    let open: Vec<OpenWorkflow> = load_all(store, "open", "").await?;
    for entry in open {
        reader.workflow(&entry.workflow).await?;
    }
    reader.version(None, &Kept::Newest).await?;
    let installs: Vec<InstallEntry> = load_all(store, "installs", "").await?;
    for entry in installs {
        reader.install(&entry.install).await?;
    }
    let releases: Vec<ReleaseRecord> = load_all(store, &app_pk(app), "release#").await?;
    for release in releases {
        for artifact in release.contents.artifacts.values() {
            reader.uses.artifact(artifact, Kept::Release(release.name.clone()));
        }
    }
    Ok(reader.uses)
}

/// The uses that were found so far.
struct Reader<'a> {
    versions: &'a Versions,
    app: &'a AppName,
    uses: Uses,
}

impl Reader<'_> {
    fn store(&self) -> &dyn Store {
        &*self.versions.store
    }

    async fn workflow(&mut self, id: &WorkflowId) -> Result<(), AppError> {
        // The install of the workflow may have been forgotten since the list was read.
        let Some(Stored { value: workflow, .. }) = table::find_workflow(self.store(), id).await? else {
            return Ok(());
        };
        let kept = Kept::Workflow(id.clone());
        for node in &workflow.nodes {
            for (_, Use { build, artifact }) in node.target.uses() {
                self.uses.build(build, kept.clone());
                self.uses.artifact(artifact, kept.clone());
            }
            if let Target::Teardown { build, artifact, .. } = &node.target {
                build.iter().for_each(|build| self.uses.build(build, kept.clone()));
                self.uses.artifact(artifact, kept.clone());
            }
            if let Target::Build { build, .. } = &node.target {
                self.uses.build(build, kept.clone());
            }
        }
        let install: Option<Stored<Install>> = load(self.store(), &install_key(&workflow.install)).await?;
        if let Request::Deploy { version, .. } | Request::Action { version, .. } = &workflow.request
            // If nothing ever ran in the install, it may have been deleted meanwhile.
            && install.is_some_and(|install| install.value.app() == Some(self.app))
        {
            let version = workflow.version.as_ref().or(version.as_ref());
            self.version(version, &kept).await?;
        }
        Ok(())
    }

    async fn install(&mut self, id: &InstallId) -> Result<(), AppError> {
        let found: Option<Stored<Install>> = load(self.store(), &install_key(id)).await?;
        // The install may have been deleted or forgotten since the list was read.
        let Some(install) = found.map(|found| found.value).filter(|install| install.app() == Some(self.app)) else {
            return Ok(());
        };
        let deployed: Vec<DeployedRecord> = load_all(self.store(), &install_pk(id), "component#").await?;
        for record in deployed {
            self.uses.artifact(&record.deployed.artifact, Kept::Runs(id.clone()));
        }
        if let Some(version) = install.version() {
            self.version(Some(version), &Kept::InstallAt(id.clone())).await?;
        }
        Ok(())
    }

    async fn version(&mut self, version: Option<&Digest>, kept: &Kept) -> Result<(), AppError> {
        let version = self.versions.load(self.app, version).await?;
        for source in source_builds(self.store(), &version.document).await? {
            self.uses.build(&source.id, kept.clone());
        }
        Ok(())
    }
}

//! Starts the builds that an app version needs, and the signing of its contract.

use std::collections::BTreeMap;
use std::sync::Arc;

use freehold_domain::absence::Absence;
use freehold_domain::build::{Build, BuildState};
use freehold_domain::install::Install;
use freehold_domain::workflow::{Request, RollBack, Workflow, WorkflowKind};
use freehold_protocol::api::{BuildComponentsRequest, BuildStarted};
use freehold_protocol::order::{AskedBy, Mode};
use freehold_protocol::{AppName, BuildId, ComponentName, Digest, WorkflowId};

use crate::AppError;
use crate::app_version::builds::{SourceBuild, source_builds};
use crate::app_version::versions::{Version, Versions};
use crate::new_workflow::{Asked, NewWorkflow, digest_of, is_other, start, used_before};
use crate::ports::{Clock, Committed, Expect, Machines, Store, Write};
use crate::read::build_view;
use crate::table::{self, Stored, install_key, load, put};

/// The maximum number of builds in one commit: a DynamoDB transaction holds 100 writes, and the workflow's own rows are
/// among them.
const BUILDS_PER_COMMIT: usize = 90;

/// The use case that builds components, with its ports.
#[derive(Clone)]
pub struct BuildComponents {
    pub store: Arc<dyn Store>,
    pub versions: Versions,
    pub machines: Arc<dyn Machines>,
    /// Whether the tenant stack starts a machine for the build runner when there is something to build.
    pub has_build_machine: bool,
    pub clock: Arc<dyn Clock>,
}

impl BuildComponents {
    /// Starts one workflow for all components that are neither built nor being built. The answer lists the components
    /// that cannot be built.
    ///
    /// All artifacts of a version may exist although its contract is not signed: for example, because only its
    /// permissions differ from those of another version. A workflow without builds is started then. It ends at once,
    /// and the contract is signed after its end.
    ///
    /// # Errors
    /// NotFound for an unknown app or version, Conflict without a build runner, or the ports' errors.
    pub async fn start(
        &self,
        app: &AppName,
        request: &BuildComponentsRequest,
        asked: Asked<'_>,
    ) -> Result<BuildStarted, AppError> {
        let version = self.versions.load(app, request.version.as_ref()).await?;
        let id = table::reserved_install()?;
        let install: Option<Stored<Install>> = load(&*self.store, &install_key(&id)).await?;
        let install = install.ok_or(Absence::BuildRunner)?;
        let workflow = WorkflowId::derive(app.as_str(), asked.cause);
        let mut sources = source_builds(&*self.store, &version.document).await?;
        self.restore(&mut sources).await?;
        let before = table::find_workflow(&*self.store, &workflow).await?;
        let digest = digest_of(request)?;
        let is_another = |before: &Workflow| before.install != id || is_other(before, Some(&digest));
        if before.as_ref().is_some_and(|before| is_another(&before.value)) {
            return Err(used_before());
        }
        // A repeated request builds nothing again, even if its workflow failed.
        let due = if before.is_some() { Vec::new() } else { self.due(&sources).await? };
        let mut builds: BTreeMap<ComponentName, Build> =
            sources.iter().filter_map(|one| Some((one.component.clone(), one.known.as_ref()?.value.clone()))).collect();
        if due.is_empty() {
            let new = building(app, &version, (workflow, asked.by, digest), Vec::new());
            let before = before.as_ref().map(|before| &before.value);
            return self.start_without_builds(&install, &version, (before, &builds), new).await;
        }
        // The machine is started by the first order.
        if install.value.runner.is_none() && !self.has_build_machine {
            return Err(AppError::not_yet(
                "the build runner has not announced itself yet; start it with `freehold-builder run --config FILE`, then build again",
            ));
        }
        let mut writes = Vec::new();
        for source in &due {
            let fresh = self.fresh(app, source, &workflow);
            let expect = source.known.as_ref().map_or(Expect::Absent, |known| Expect::Rev(known.rev));
            writes.push(put(&fresh, expect)?);
            builds.insert(fresh.component.clone(), fresh);
        }
        let due = due.iter().map(|one| (one.component.clone(), one.id.clone())).collect();
        self.begin(&install, building(app, &version, (workflow.clone(), asked.by, digest), due), writes).await?;
        Ok(answer(&version, Some(workflow), &builds))
    }

    /// Answers a request for which nothing has to be built. Starts the workflow `new`, which has no builds, if the
    /// contract of the version is not signed.
    async fn start_without_builds(
        &self,
        install: &Stored<Install>,
        version: &Version,
        (before, builds): (Option<&Workflow>, &BTreeMap<ComponentName, Build>),
        new: NewWorkflow,
    ) -> Result<BuildStarted, AppError> {
        let under_way = builds.values().find_map(|build| match &build.state {
            BuildState::Building { workflow } => Some(workflow.clone()),
            BuildState::Built { .. } | BuildState::Failed { .. } | BuildState::Removed { .. } => None,
        });
        if let Some(before) = before {
            return self.answer_again(version, before, under_way, builds).await;
        }
        if under_way.is_some() || self.has_contract(version, builds).await? {
            return Ok(answer(version, under_way, builds));
        }
        let workflow = new.id.clone();
        self.begin(install, new, Vec::new()).await?;
        Ok(answer(version, Some(workflow), builds))
    }

    /// Answers a repeated request. If its workflow has not ended, this also starts the execution if it was not started.
    async fn answer_again(
        &self,
        version: &Version,
        workflow: &Workflow,
        under_way: Option<WorkflowId>,
        builds: &BTreeMap<ComponentName, Build>,
    ) -> Result<BuildStarted, AppError> {
        if workflow.state.is_terminal() {
            return Ok(answer(version, under_way, builds));
        }
        self.machines.start(WorkflowKind::BuildComponents, &workflow.id, &workflow.install, 0).await?;
        Ok(answer(version, under_way.or_else(|| Some(workflow.id.clone())), builds))
    }

    /// Returns whether the signed contract of a version names the current artifacts of its components.
    async fn has_contract(&self, version: &Version, builds: &BTreeMap<ComponentName, Build>) -> Result<bool, AppError> {
        let contract = freehold_domain::contract::contract(&version.document, &version.version, builds)?;
        let signed = table::signed_contract(&*self.store, &version.document.app, &version.version).await?;
        Ok(signed.is_some_and(|signed| signed.contract == contract))
    }

    /// Commits the builds and their workflow, and starts the workflow. Builds that do not fit into one commit with the
    /// workflow are committed before it. If the workflow is then not created, these builds refer to a missing workflow,
    /// and the next request starts them again. Two concurrent requests may therefore build the same source twice; the
    /// first artifact is kept.
    async fn begin(&self, install: &Stored<Install>, new: NewWorkflow, mut writes: Vec<Write>) -> Result<(), AppError> {
        install.value.begin(&new.id, new.kind.is_exclusive())?;
        let before = writes.split_off(writes.len().min(BUILDS_PER_COMMIT));
        for some in before.chunks(BUILDS_PER_COMMIT) {
            if let Committed::Conflict(_) = self.store.commit(some.to_vec()).await? {
                let message = "builds of this app are being started by another request; try again";
                return Err(AppError::new(crate::Kind::Transient, message));
            }
        }
        start(&*self.store, &*self.machines, self.clock.now(), install, new, writes).await
    }

    /// Restores artifacts that are marked as unused, so that they are not removed.
    async fn restore(&self, sources: &mut [SourceBuild]) -> Result<(), AppError> {
        for source in sources {
            let Some(known) = &mut source.known else { continue };
            if known.value.unused_since.take().is_some() {
                let write = put(&known.value, Expect::Rev(known.rev))?;
                if let Committed::Conflict(_) = self.store.commit(vec![write]).await? {
                    return Err(table::contended("the build of component", &source.component));
                }
                known.rev += 1;
            }
        }
        Ok(())
    }

    /// Returns the sources that must be built: those that have no usable artifact and are not being built by an open
    /// workflow.
    async fn due<'a>(&self, sources: &'a [SourceBuild]) -> Result<Vec<&'a SourceBuild>, AppError> {
        let mut left_behind: BTreeMap<&WorkflowId, bool> = BTreeMap::new();
        let mut due = Vec::new();
        for source in sources {
            let is_due = match source.known.as_ref().map(|known| &known.value.state) {
                None | Some(BuildState::Failed { .. } | BuildState::Removed { done: true, .. }) => true,
                Some(BuildState::Removed { done: false, .. }) => {
                    let message = format!("the artifact of component `{}` is being removed", source.component);
                    return Err(AppError::new(
                        crate::Kind::Transient,
                        format!("{message}; build again in a few minutes"),
                    ));
                }
                // Runners refuse an artifact without a signed statement, so such an artifact is built again.
                Some(BuildState::Built { artifact, .. }) => artifact.provenance.is_none(),
                Some(BuildState::Building { workflow: by }) => match left_behind.get(by) {
                    Some(known) => *known,
                    None => {
                        let found = table::find_workflow(&*self.store, by).await?;
                        let left = found.is_none_or(|workflow| workflow.value.state.is_terminal());
                        left_behind.insert(by, left);
                        left
                    }
                },
            };
            if is_due {
                due.push(source);
            }
        }
        Ok(due)
    }

    fn fresh(&self, app: &AppName, source: &SourceBuild, workflow: &WorkflowId) -> Build {
        Build {
            id: source.id.clone(),
            app: app.clone(),
            component: source.component.clone(),
            package: source.input.package,
            source: source.input.source.clone(),
            source_digest: source.source_digest.clone(),
            created_at: self.clock.now(),
            state: BuildState::Building { workflow: workflow.clone() },
            unused_since: None,
            // The same source makes the same artifact, so a revoked build stays revoked.
            revoked: source.known.as_ref().and_then(|known| known.value.revoked.clone()),
        }
    }
}

/// Returns the workflow that makes `builds` on request of `by`. After its end, the version's contract is signed.
fn building(
    app: &AppName,
    version: &Version,
    (id, by, digest): (WorkflowId, &AskedBy, Digest),
    builds: Vec<(ComponentName, BuildId)>,
) -> NewWorkflow {
    let request = Request::Build { app: app.clone(), builds, version: Some(version.version.clone()) };
    let (kind, mode) = (WorkflowKind::BuildComponents, Mode::Maintenance);
    NewWorkflow {
        id,
        kind,
        mode,
        request,
        digest: Some(digest),
        asked_by: by.clone(),
        run: None,
        now: false,
        roll_back: RollBack::None,
    }
}

fn answer(version: &Version, workflow: Option<WorkflowId>, builds: &BTreeMap<ComponentName, Build>) -> BuildStarted {
    BuildStarted { version: version.version.clone(), workflow, builds: builds.values().map(build_view).collect() }
}

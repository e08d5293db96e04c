//! Starts a teardown of an install: of a component with its dependents, of the sandbox, or of everything that is
//! deployed or that an unsuccessful deploy may have created. A teardown of everything ends with a list of what still
//! exists, also when nothing is deployed any more.

use std::collections::BTreeSet;
use std::sync::Arc;

use freehold_domain::inputs::{known_inputs, resolve_inputs_for};
use freehold_domain::install::Install;
use freehold_domain::plan::teardown::{TeardownScope, add_leftovers, teardown_nodes};
use freehold_domain::plan::triggers;
use freehold_domain::workflow::{Node, Request, RollBack, Target, TeardownParts, WorkflowKind};
use freehold_protocol::api::TeardownInstallRequest;
use freehold_protocol::app_version::{AppVersion, Reference};
use freehold_protocol::order::Mode;
use freehold_protocol::{Digest, InstallId, WorkflowId};

use crate::AppError;
use crate::app_version::builds::bind_steps;
use crate::app_version::versions::Versions;
use crate::new_workflow::{Asked, NewWorkflow, came_before, digest_of, require_runner, start};
use crate::part::standing_parts::StandingParts;
use crate::ports::{Clock, Machines, Store};
use crate::table;

/// The use case that starts a teardown, with its ports.
#[derive(Clone)]
pub struct TeardownInstall {
    pub store: Arc<dyn Store>,
    pub versions: Versions,
    pub machines: Arc<dyn Machines>,
    pub clock: Arc<dyn Clock>,
}

impl TeardownInstall {
    /// Starts a teardown. A repeated call with the same cause returns the same workflow. A teardown that cannot be
    /// planned is refused before anything is stored.
    ///
    /// # Errors
    /// NotFound, Invalid for a request that names both a component and the sandbox or for inputs that a job needs and that
    /// have no usable value, Conflict while another workflow has locked the install, without a runner, or when there is
    /// nothing to remove, or the ports' errors.
    pub async fn teardown(
        &self,
        install: &InstallId,
        request: &TeardownInstallRequest,
        asked: Asked<'_>,
    ) -> Result<WorkflowId, AppError> {
        let id = WorkflowId::derive(install.as_str(), asked.cause);
        let digest = digest_of(request)?;
        let kind = WorkflowKind::TeardownInstall;
        let before = came_before(&*self.store, &*self.machines, &id, install, kind, &digest).await?;
        if before.is_some() {
            return Ok(id);
        }
        let stored = table::install(&*self.store, install).await?;
        stored.value.require_app()?;
        let what = parts_of(request)?;
        require_runner(&stored.value)?;
        stored.value.begin(&id, true)?;
        let (version, nodes) = plan_teardown(&self.versions, &stored.value, &what, request.role.as_deref(), 0).await?;
        self.check_inputs(&stored.value, &version, &nodes).await?;
        let new = NewWorkflow {
            id: id.clone(),
            kind,
            mode: Mode::Deprovision,
            request: Request::Teardown { what, destroy_data: request.destroy_data, role: request.role.clone() },
            digest: Some(digest),
            asked_by: asked.by.clone(),
            run: asked.run(),
            now: request.now,
            roll_back: RollBack::None,
        };
        start(&*self.store, &*self.machines, self.clock.now(), &stored, new, asked.writes()).await?;
        Ok(id)
    }

    /// Checks the inputs that the jobs of a teardown read, so that the teardown does not fail halfway. The teardown
    /// runs the actions of `version`.
    async fn check_inputs(&self, install: &Install, version: &Digest, nodes: &[Node]) -> Result<(), AppError> {
        let app = install.require_app()?;
        for node in nodes {
            let of = if let Target::Teardown { version, .. } = &node.target { version } else { version };
            let document = self.versions.load(app, Some(of)).await?.document;
            let Some(reads) = reads(&document, &node.target) else { continue };
            let known = known_inputs(&document, &install.inputs);
            resolve_inputs_for(&document, &known, &install.answers, install.sealing(), &reads)?;
        }
        Ok(())
    }
}

/// Returns the values that the templates of a target read, which is an action or a part that is removed. Returns `None`
/// for other targets. The target's job uses `version`.
pub(super) fn reads(version: &AppVersion, target: &Target) -> Option<BTreeSet<Reference>> {
    match target {
        Target::Action { action, .. } => Some(version.action(action)?.references.clone()),
        Target::Teardown { part, .. } => Some(version.part(part)?.references.clone()),
        Target::Secrets { .. }
        | Target::DetectDrift { .. }
        | Target::Build { .. }
        | Target::Component { .. }
        | Target::Sandbox { .. }
        | Target::Preflight
        | Target::Leftovers
        | Target::Health { .. }
        | Target::Upgrade => None,
    }
}

fn parts_of(request: &TeardownInstallRequest) -> Result<TeardownParts, AppError> {
    match (&request.component, request.sandbox) {
        (Some(_), true) => {
            Err(AppError::invalid("a teardown takes a component or the sandbox, not both; leave one out"))
        }
        (Some(component), false) => Ok(TeardownParts::Component { component: component.clone() }),
        (None, true) => Ok(TeardownParts::Sandbox),
        (None, false) => Ok(TeardownParts::All),
    }
}

/// Returns the nodes of a teardown, and the version of the app whose actions it starts. Each part is removed with the
/// version that deployed it, or with the version of the last deploy that may have created resources of the part. The
/// actions come from the version that was last deployed completely, or else from the latest version.
///
/// # Errors
/// Conflict when there is nothing to remove, or the errors of the store and of [`Versions::load`].
pub(crate) async fn plan_teardown(
    versions: &Versions,
    install: &Install,
    what: &TeardownParts,
    role: Option<&str>,
    serial: u64,
) -> Result<(Digest, Vec<Node>), AppError> {
    let app = install.require_app()?;
    let parts = table::parts(&*versions.store, &install.id).await?;
    let standing = StandingParts::load(versions, app, &parts).await?;
    let copies = versions.store.get(&table::copied_secrets_key(&install.id)).await?.is_some();
    let scope = TeardownScope { app, what, role, serial, copies };
    let mut nodes = teardown_nodes(&standing.parts()?, scope)?;
    let version = versions.load(app, install.version()).await?;
    let attempted = parts.iter().filter(|(_, one)| one.attempted).map(|(name, _)| name.clone()).collect();
    triggers::add_to_teardown(&version.document, &mut nodes, scope, &attempted)?;
    bind_steps(&*versions.store, &version.document, &mut nodes).await?;
    if *what == TeardownParts::All {
        add_leftovers(&mut nodes, serial);
    }
    Ok((version.version, nodes))
}

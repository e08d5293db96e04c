//! Starts a teardown of an install: of a component with its dependents, of the sandbox, or of everything that is
//! deployed.

use std::collections::BTreeMap;
use std::sync::Arc;

use freehold_domain::install::Install;
use freehold_domain::plan::teardown::{Standing, TeardownScope, teardown_nodes};
use freehold_domain::plan::triggers;
use freehold_domain::workflow::{Node, Request, TearDown, WorkflowKind};
use freehold_protocol::api::TearDownRequest;
use freehold_protocol::order::Mode;
use freehold_protocol::{Digest, InstallId, WorkflowId};

use crate::AppError;
use crate::app_version::versions::{Version, Versions};
use crate::ports::{Clock, Machines, Store};
use crate::table;
use crate::workflow::start_workflow::{NewWorkflow, came_before, no_app, require_runner, start};

/// The use case that starts a teardown, with its ports.
#[derive(Clone)]
pub struct TearDownInstall {
    pub store: Arc<dyn Store>,
    pub versions: Versions,
    pub machines: Arc<dyn Machines>,
    pub clock: Arc<dyn Clock>,
}

impl TearDownInstall {
    /// Starts a teardown. A repeated call with the same `cause` returns the same workflow. A teardown that cannot be
    /// planned is refused before anything is stored.
    ///
    /// # Errors
    /// NotFound, Invalid for a request that names both a component and the sandbox, Conflict while another workflow has
    /// locked the install, without a runner, or when there is nothing to remove, or the ports' errors.
    pub async fn tear_down(
        &self,
        install: &InstallId,
        request: &TearDownRequest,
        cause: &str,
    ) -> Result<WorkflowId, AppError> {
        let id = WorkflowId::derive(install.as_str(), cause);
        let before = came_before(&*self.store, &*self.machines, &id, install, WorkflowKind::TeardownInstall).await?;
        if before.is_some() {
            return Ok(id);
        }
        let stored = table::install(&*self.store, install).await?;
        stored.value.app().ok_or_else(|| no_app(install))?;
        let what = asked(request)?;
        require_runner(&stored.value)?;
        stored.value.begin(&id, true)?;
        plan_teardown(&self.versions, &stored.value, &what, request.role.as_deref(), 0).await?;
        let new = NewWorkflow {
            id: id.clone(),
            kind: WorkflowKind::TeardownInstall,
            mode: Mode::Deprovision,
            request: Request::TearDown { what, destroy_data: request.destroy_data, role: request.role.clone() },
        };
        start(&*self.store, &*self.machines, self.clock.now(), &stored, new, Vec::new()).await?;
        Ok(id)
    }
}

fn asked(request: &TearDownRequest) -> Result<TearDown, AppError> {
    match (&request.component, request.sandbox) {
        (Some(_), true) => {
            Err(AppError::invalid("a teardown takes a component or the sandbox, not both; leave one out"))
        }
        (Some(component), false) => Ok(TearDown::Component { component: component.clone() }),
        (None, true) => Ok(TearDown::Sandbox),
        (None, false) => Ok(TearDown::All),
    }
}

/// Returns the nodes of a teardown, and the version of the app whose actions it starts. Each part is removed with the
/// version that deployed it. The actions come from the version that was last deployed completely, or else from the
/// latest version.
///
/// # Errors
/// Conflict when there is nothing to remove, or the errors of the store and of [`Versions::load`].
pub(crate) async fn plan_teardown(
    versions: &Versions,
    install: &Install,
    what: &TearDown,
    role: Option<&str>,
    serial: u64,
) -> Result<(Digest, Vec<Node>), AppError> {
    let app = install.app().ok_or_else(|| no_app(&install.id))?;
    let deployed = table::deployed(&*versions.store, &install.id).await?;
    let mut documents: BTreeMap<Digest, Version> = BTreeMap::new();
    for one in deployed.values() {
        if !documents.contains_key(&one.version) {
            documents.insert(one.version.clone(), versions.load(app, Some(&one.version)).await?);
        }
    }
    let mut there = Vec::new();
    for (name, one) in &deployed {
        let document = documents.get(&one.version).map(|version| &*version.document);
        let part = document.and_then(|document| Some((document, document.part(name)?.into_owned())));
        let (document, part) = part.ok_or_else(|| {
            // INVARIANT: a part was deployed from the version that its row names.
            AppError::internal(format!("version `{}` has no component `{name}`", one.version))
        })?;
        there.push(Standing { part, document, version: one.version.clone(), artifact: one.artifact.clone() });
    }
    let scope = TeardownScope { app, what, role, serial };
    let mut nodes = teardown_nodes(&there, scope)?;
    let version = versions.load(app, install.version()).await?;
    triggers::add_to_teardown(&version.document, &mut nodes, scope)?;
    Ok((version.version, nodes))
}

//! Starts a check for drift in an install. A check makes plans, and applies nothing.

use std::collections::BTreeSet;
use std::sync::Arc;

use freehold_domain::drift::{Check, Drift};
use freehold_domain::install::{Install, InstallError};
use freehold_domain::plan::drift::NoCheck;
use freehold_domain::workflow::{Request, RollBack, WorkflowKind};
use freehold_protocol::api::DetectDriftRequest;
use freehold_protocol::order::Mode;
use freehold_protocol::{ComponentName, InstallId, WorkflowId};

use super::plan::plan_drift;
use crate::AppError;
use crate::app_version::versions::Versions;
use crate::ports::{Clock, Expect, Machines, Store, Write};
use crate::table::{self, DeployedRecord, Stored, load, put};
use crate::workflow::start_workflow::{Asked, NewWorkflow, came_before, digest_of, require_runner, start};

/// The use case that starts a check, with its ports.
#[derive(Clone)]
pub struct DetectDrift {
    pub store: Arc<dyn Store>,
    pub versions: Versions,
    pub machines: Arc<dyn Machines>,
    pub clock: Arc<dyn Clock>,
}

impl DetectDrift {
    /// Starts a check. A repeated call with the same cause returns the same workflow. What a part that cannot be checked now
    /// is told by is stored with the start of the workflow.
    ///
    /// # Errors
    /// NotFound for an unknown install, Invalid for a named part whose kind is not checked, Conflict without a runner, while a
    /// workflow changes the install or another check has not ended, for a named part that is not deployed, or when nothing
    /// can be checked, or the ports' errors.
    pub async fn detect(
        &self,
        install: &InstallId,
        request: &DetectDriftRequest,
        asked: Asked<'_>,
    ) -> Result<WorkflowId, AppError> {
        let id = WorkflowId::derive(install.as_str(), asked.cause);
        let digest = digest_of(request)?;
        let kind = WorkflowKind::DetectDrift;
        if came_before(&*self.store, &*self.machines, &id, install, kind, &digest).await?.is_some() {
            return Ok(id);
        }
        let Stored { value, rev } = table::install(&*self.store, install).await?;
        value.require_app()?;
        require_runner(&value)?;
        self.check_free(&value).await?;
        let only = &request.components;
        let plan = plan_drift(&self.versions, &value, only, 0).await?;
        let later = check_named(only, &plan.left_out)?;
        if plan.nodes.is_empty() && later.is_empty() {
            return Err(AppError::conflict(format!(
                "install `{install}` has no deployed part whose drift can be checked: Terraform modules, charts and manifests \
                 can be"
            )));
        }
        let now = self.clock.now();
        let check = Check { workflow: &id, serial: value.next_serial, at: now };
        let writes = self.unknown(install, check, &later).await?;
        let new = NewWorkflow {
            id: id.clone(),
            kind,
            mode: Mode::Maintenance,
            request: Request::DetectDrift { only: only.clone() },
            digest: Some(digest),
            asked_by: asked.by.clone(),
            run: None,
            now: false,
            roll_back: RollBack::None,
        };
        let held = Stored { value: Install { checking: Some(id.clone()), ..value }, rev };
        start(&*self.store, &*self.machines, now, &held, new, writes).await?;
        Ok(id)
    }

    /// Refuses a check while a workflow changes the install, since it would find half of a change, and while another check
    /// has not ended.
    async fn check_free(&self, install: &Install) -> Result<(), AppError> {
        if let Some(live) = &install.live {
            return Err(InstallError::Live { install: install.id.clone(), live: live.clone() }.into());
        }
        let Some(checking) = &install.checking else { return Ok(()) };
        match table::find_workflow(&*self.store, checking).await? {
            Some(found) if !found.value.state.is_terminal() => Err(AppError::conflict(format!(
                "install `{}` is being checked for drift by `{checking}`; wait for it or cancel it",
                install.id
            ))),
            Some(_) | None => Ok(()),
        }
    }

    /// Returns the writes for the parts that cannot be checked now.
    async fn unknown(
        &self,
        install: &InstallId,
        check: Check<'_>,
        parts: &[(&ComponentName, String)],
    ) -> Result<Vec<Write>, AppError> {
        let mut writes = Vec::new();
        for (part, why) in parts {
            let known: Option<Stored<DeployedRecord>> = load(&*self.store, &table::deployed_key(install, part)).await?;
            let Some(Stored { mut value, rev }) = known else { continue };
            let next = Drift::checked(value.deployed.drift.as_ref(), check, Err(why.clone()));
            let Some(next) = next else { continue };
            value.deployed.drift = Some(next);
            writes.push(put(&value, Expect::Rev(rev))?);
        }
        Ok(writes)
    }
}

/// The number of parts whose reasons one commit stores, beside the rows of the workflow.
const MOST_UNKNOWN: usize = 50;

/// Returns the parts that a deploy makes checkable again, with the reason.
///
/// # Errors
/// For a part that the request names and that no check is for.
fn check_named<'a>(
    only: &BTreeSet<ComponentName>,
    left_out: &'a [(ComponentName, NoCheck)],
) -> Result<Vec<(&'a ComponentName, String)>, AppError> {
    let mut later = Vec::new();
    for (part, why) in left_out {
        match why {
            NoCheck::Partial(_) | NoCheck::Behind(_) => later.push((part, why.to_string())),
            NoCheck::Absent(_) if only.contains(part) => return Err(AppError::conflict(why.to_string())),
            NoCheck::Kind { .. } if only.contains(part) => return Err(AppError::invalid(why.to_string())),
            NoCheck::Absent(_) | NoCheck::Kind { .. } => {}
        }
    }
    later.truncate(MOST_UNKNOWN);
    Ok(later)
}

//! Starts the upgrade of an install's runner. The control plane decides nothing about the program: the runner asks the
//! customer's install stack whether the program is permitted.

use std::sync::Arc;

use freehold_domain::workflow::{Request, RollBack, WorkflowKind};
use freehold_protocol::api::UpgradeRunnerRequest;
use freehold_protocol::limits::MAX_SOURCE_BYTES;
use freehold_protocol::order::Mode;
use freehold_protocol::order::upgrade::HEALTH_SECS;
use freehold_protocol::{InstallId, WorkflowId};

use crate::AppError;
use crate::new_workflow::{Asked, NewWorkflow, came_before, digest_of, require_runner, start};
use crate::ports::{Clock, Machines, Store};
use crate::table;

/// The maximum size of a release's checksums with their signature, in bytes. The order contains them.
const MAX_RELEASE_BYTES: usize = 64 * 1024;

/// The use case that upgrades a runner, with its ports.
#[derive(Clone)]
pub struct UpgradeRunner {
    pub store: Arc<dyn Store>,
    pub machines: Arc<dyn Machines>,
    pub clock: Arc<dyn Clock>,
}

impl UpgradeRunner {
    /// Starts an upgrade. A repeated call with the same cause returns the same workflow.
    ///
    /// # Errors
    /// NotFound, Invalid for values out of range, Conflict without a runner, or the ports' errors.
    pub async fn upgrade_runner(
        &self,
        install: &InstallId,
        request: &UpgradeRunnerRequest,
        asked: Asked<'_>,
    ) -> Result<WorkflowId, AppError> {
        let id = WorkflowId::derive(install.as_str(), asked.cause);
        let digest = digest_of(request)?;
        let kind = WorkflowKind::UpgradeRunner;
        if came_before(&*self.store, &*self.machines, &id, install, kind, &digest).await?.is_some() {
            return Ok(id);
        }
        check(request)?;
        let stored = table::install(&*self.store, install).await?;
        stored.value.require_app()?;
        require_runner(&stored.value)?;
        let new = NewWorkflow {
            id: id.clone(),
            kind,
            mode: Mode::Maintenance,
            request: Request::Upgrade { program: Box::new(request.into()) },
            digest: Some(digest),
            asked_by: asked.by.clone(),
            run: asked.run(),
            now: request.now,
            roll_back: RollBack::None,
        };
        start(&*self.store, &*self.machines, self.clock.now(), &stored, new, Vec::new()).await?;
        Ok(id)
    }
}

fn check(request: &UpgradeRunnerRequest) -> Result<(), AppError> {
    let (low, high, asked) = (HEALTH_SECS.start(), HEALTH_SECS.end(), request.health_secs);
    if !HEALTH_SECS.contains(&asked) {
        return Err(AppError::invalid(format!("`health_secs` is {asked}; choose {low} to {high}")));
    }
    if request.archive_size > MAX_SOURCE_BYTES {
        return Err(AppError::invalid(format!(
            "the archive of the runner has {} bytes, more than the maximum of {MAX_SOURCE_BYTES}; pack only the program",
            request.archive_size
        )));
    }
    let bytes = request.release.sums.len() + request.release.signature.len();
    if bytes > MAX_RELEASE_BYTES {
        return Err(AppError::invalid(format!(
            "the checksums of the release have {bytes} bytes, more than the maximum of {MAX_RELEASE_BYTES}; pass \
             `SHA256SUMS` as `make dist` writes it"
        )));
    }
    Ok(())
}

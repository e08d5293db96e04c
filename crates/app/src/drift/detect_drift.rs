//! Starts a check for drift in an install. A check makes plans, and applies nothing.

use std::collections::BTreeSet;
use std::sync::Arc;

use freehold_domain::cron::Schedule;
use freehold_domain::drift::{Check, Drift};
use freehold_domain::plan::drift::{NoCheck, unchecked};
use freehold_domain::workflow::{Request, WorkflowKind};
use freehold_protocol::api::DetectDriftRequest;
use freehold_protocol::app_version::Component;
use freehold_protocol::{ComponentName, InstallId, WorkflowId};

use super::plan::plan_drift;
use crate::AppError;
use crate::app_version::versions::Versions;
use crate::new_workflow::Asked;
use crate::new_workflow::check::{NewCheck, ScheduledCheck};
use crate::ports::{Clock, Expect, Machines, Store, Write};
use crate::table::{self, DeployedRecord, DueWhat, Stored, load, put};

/// The use case that starts a check, with its ports.
#[derive(Clone)]
pub struct DetectDrift {
    pub store: Arc<dyn Store>,
    pub versions: Versions,
    pub machines: Arc<dyn Machines>,
    pub clock: Arc<dyn Clock>,
}

impl DetectDrift {
    /// Starts a check. A repeated call with the same cause returns the same workflow. The note about a part that cannot
    /// be checked now is stored with the start of the workflow.
    ///
    /// # Errors
    /// NotFound for an unknown install, Invalid for a named part whose kind is not checked, Conflict if the install has
    /// no runner, while a workflow changes the install or another check has not ended, for a named part that is not
    /// deployed, or when nothing can be checked; or the ports' errors.
    pub async fn detect(
        &self,
        install: &InstallId,
        request: &DetectDriftRequest,
        asked: Asked<'_>,
    ) -> Result<WorkflowId, AppError> {
        let only = &request.components;
        let work = Request::DetectDrift { only: only.clone() };
        let new = NewCheck::of(install, WorkflowKind::DetectDrift, work, request, asked)?;
        let id = new.id();
        let Some(held) = new.hold(&*self.store, &*self.machines).await? else { return Ok(id) };
        let plan = plan_drift(&self.versions, &held.value, only, 0).await?;
        let later = check_named(only, &plan.left_out)?;
        if plan.nodes.is_empty() && later.is_empty() {
            return Err(AppError::conflict(format!(
                "install `{install}` has no deployed part whose drift can be checked; only Terraform modules, charts \
                 and manifests can be checked"
            )));
        }
        let now = self.clock.now();
        let check = Check { workflow: &id, serial: held.value.next_serial, at: now };
        let writes = self.unknown(install, check, &later).await?;
        new.start(&*self.store, &*self.machines, now, &held, writes).await
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

impl ScheduledCheck for DetectDrift {
    const WHAT: &'static str = "drift";
    const DUE: DueWhat = DueWhat::Drift;

    fn schedule(part: &Component) -> Option<Schedule> {
        unchecked(&part.spec).is_none().then(|| Schedule::parse(&part.settings.drift_schedule).ok()).flatten()
    }

    async fn start(
        &self,
        install: &InstallId,
        only: BTreeSet<ComponentName>,
        asked: Asked<'_>,
    ) -> Result<WorkflowId, AppError> {
        self.detect(install, &DetectDriftRequest { components: only }, asked).await
    }
}

/// The number of parts whose reasons one commit stores, beside the rows of the workflow.
const MOST_UNKNOWN: usize = 50;

/// Returns the parts that cannot be checked before the next deploy, with the reason.
///
/// # Errors
/// Conflict for a named part that is not deployed, and Invalid for a named part whose kind is not checked.
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

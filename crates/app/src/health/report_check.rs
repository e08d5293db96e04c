//! Reports the result of a required check of a component. When a gate waits for the result, `sweep` reads the results
//! at once.

use std::collections::BTreeSet;
use std::sync::Arc;

use freehold_domain::absence::Absence;
use freehold_domain::install::Install;
use freehold_domain::plan::Deployed;
use freehold_domain::plan::health_check::is_checked_as;
use freehold_domain::required_checks::{ReportedCheck, named};
use freehold_domain::workflow::{Node, NodeState};
use freehold_protocol::api::{CHECK_URL, CheckView, ReportCheckRequest};
use freehold_protocol::app_version::ComponentHealth;
use freehold_protocol::order::AskedBy;
use freehold_protocol::{CheckName, ComponentName, InstallId, WorkflowId};

use crate::AppError;
use crate::app_version::versions::{Version, Versions};
use crate::health::plan::present;
use crate::health::record::record_report;
use crate::ports::{Clock, Expect, Store};
use crate::read::check_view;
use crate::reason::optional;
use crate::table::{self, CheckRecord, Decided, DeployedRecord, HealthRecord, Stored, load, put};

/// The use case that reports a check, with its ports.
#[derive(Clone)]
pub struct ReportCheck {
    pub store: Arc<dyn Store>,
    pub versions: Versions,
    pub clock: Arc<dyn Clock>,
}

/// A gate of the component that is active in a workflow.
struct AskedGate {
    workflow: WorkflowId,
    /// The checks for which the gate waits, or will wait after the runner found the component healthy.
    names: BTreeSet<CheckName>,
}

impl ReportCheck {
    /// Stores the result for the last deploy of the component, on request of `by`. If a workflow may wait for the
    /// result, the commit also makes this workflow due. If the component is healthy again, people are notified. A
    /// repeated report changes nothing, and a repeated result keeps the time of its first report.
    ///
    /// # Errors
    /// Invalid for a reason that is not one line and for an address of another form, NotFound for an unknown install, a
    /// component that is not deployed and a check that it does not require, Conflict when another job has deployed the component
    /// since the one that the request names, or the ports' errors.
    pub async fn report(
        &self,
        install: &InstallId,
        (component, check): (&ComponentName, &CheckName),
        request: &ReportCheckRequest,
        by: &AskedBy,
    ) -> Result<CheckView, AppError> {
        let (reason, url) = (optional(request.reason.as_deref())?, address(request.url.as_deref())?);
        let store = &*self.store;
        let reported = table::change(store, ("check", check), || async {
            let at = self.clock.now();
            let found = self.install(install).await?;
            let deployed = self.deployed(install, component).await?;
            let gate = asked_gate(store, &found, component).await?;
            self.check_name(&found, &deployed, gate.as_ref(), check).await?;
            check_deploy(request, &deployed)?;
            let known: Option<Stored<CheckRecord>> = load(store, &table::check_key(install, component, check)).await?;
            let reported = ReportedCheck {
                component: component.clone(),
                check: check.clone(),
                result: request.result,
                reason: reason.clone(),
                url: url.clone(),
                by: by.clone(),
                at,
                serial: deployed.serial,
                deploy: deployed.job.clone(),
            };
            let reported = reported.after(known.as_ref().map(|known| &known.value.reported));
            if let Some(known) = known.as_ref().filter(|known| known.value.reported.is_repeated_by(&reported)) {
                return Ok(Decided::Keep(known.value.reported.clone()));
            }
            let expect = known.as_ref().map_or(Expect::Absent, |known| Expect::Rev(known.rev));
            let record = CheckRecord { install: install.clone(), reported: reported.clone() };
            let mut writes = vec![put(&record, expect)?];
            writes.extend(record_report(store, install, &deployed, &reported, at).await?);
            if let Some(gate) = &gate {
                let due_by = format!("check {component} {check}");
                writes.extend(table::sweep_soon_writes(store, &gate.workflow, &due_by, at).await?);
            }
            Ok(Decided::Commit(writes, reported))
        })
        .await?;
        tracing::info!(install.id = %install, "Check `{check}` of `{component}` in `{install}` {}", request.result.as_str());
        Ok(check_view(&reported))
    }

    /// Returns the install, unless it is being forgotten.
    async fn install(&self, id: &InstallId) -> Result<Install, AppError> {
        let found = table::install(&*self.store, id).await?.value;
        if found.forgetting.is_some() {
            return Err(Absence::Install(id.clone()).into());
        }
        Ok(found)
    }

    /// Returns the last deploy of the component that succeeded.
    async fn deployed(&self, install: &InstallId, component: &ComponentName) -> Result<Deployed, AppError> {
        let found: Option<Stored<DeployedRecord>> =
            load(&*self.store, &table::deployed_key(install, component)).await?;
        let deployed = found.map(|found| found.value.deployed).filter(|deployed| !deployed.attempted);
        deployed.ok_or_else(|| {
            AppError::not_found(format!(
                "component `{component}` is not deployed in install `{install}`, so it has no deploy to check; \
                 `freehold install show {install}` shows what is deployed"
            ))
        })
    }

    /// Checks that the component requires the check. Any of these versions may require it: the version that deployed
    /// the component, the version of its latest health check since that deploy, the version by which it would be
    /// checked now, and the version of the deploy whose gate waits.
    async fn check_name(
        &self,
        install: &Install,
        deployed: &Deployed,
        gate: Option<&AskedGate>,
        check: &CheckName,
    ) -> Result<(), AppError> {
        let component = &deployed.component;
        let version = self.versions.load(install.require_app()?, Some(&deployed.version)).await?;
        let mut required = checks_of(&version, component);
        required.extend(gate.into_iter().flat_map(|gate| gate.names.iter().cloned()));
        let known: Option<Stored<HealthRecord>> =
            load(&*self.store, &table::health_key(&install.id, component)).await?;
        let found = known.map(|known| known.value.health).filter(|found| found.is_since(deployed.serial));
        required.extend(found.into_iter().flat_map(|found| found.required));
        if let Some((present, serial)) = present(&self.versions, install).await?
            && is_checked_as(&present.document, serial, deployed)
        {
            required.extend(checks_of(&present, component));
        }
        if required.contains(check) {
            return Ok(());
        }
        let others = if required.is_empty() {
            format!("none; add `required_checks` to `[health]` of `{component}` in the app config, and deploy it")
        } else {
            named(&required)
        };
        Err(AppError::not_found(format!(
            "component `{component}` does not require check `{check}`; it requires {others}"
        )))
    }
}

/// Returns the required checks of the component in this version.
fn checks_of(version: &Version, component: &ComponentName) -> BTreeSet<CheckName> {
    let health = version.document.component(component).and_then(|found| found.settings.health.as_ref());
    health.map(ComponentHealth::checks).unwrap_or_default()
}

/// Returns the gate of the component that is active in the install's workflow, if the gate has required checks.
async fn asked_gate(
    store: &dyn Store,
    install: &Install,
    component: &ComponentName,
) -> Result<Option<AskedGate>, AppError> {
    let Some(live) = &install.live else { return Ok(None) };
    let Some(found) = table::find_workflow(store, live).await? else { return Ok(None) };
    let is_active = |node: &&Node| matches!(node.state, NodeState::Active { .. });
    let awaited = found.value.nodes.iter().filter(is_active).filter_map(|node| node.target.awaited_checks());
    let names = awaited.filter(|checks| checks.component == *component).map(|checks| checks.required.names);
    Ok(names.reduce(|all, more| &all | &more).map(|names| AskedGate { workflow: live.clone(), names }))
}

/// Checks that the deploy which the caller has checked is the last one.
fn check_deploy(request: &ReportCheckRequest, deployed: &Deployed) -> Result<(), AppError> {
    match &request.deploy {
        Some(job) if *job != deployed.job => Err(AppError::conflict(format!(
            "job `{job}` did not make the last deploy of component `{}`, job `{}` did; check that deploy, and report its \
             result",
            deployed.component, deployed.job
        ))),
        Some(_) | None => Ok(()),
    }
}

/// Returns the URL of a report, or an empty text for a report without a URL.
fn address(url: Option<&str>) -> Result<String, AppError> {
    let Some(url) = url else { return Ok(String::new()) };
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")).unwrap_or_default();
    if CHECK_URL.accepts(url) && !rest.is_empty() {
        return Ok(url.to_owned());
    }
    Err(AppError::invalid(
        "`url` must begin with `https://` or `http://`, and have at most 500 visible ASCII characters",
    ))
}

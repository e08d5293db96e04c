//! The row of a component's health, which the component's last check and the reports of its required checks write.

use std::collections::{BTreeMap, BTreeSet};

use freehold_domain::health::LastHealth;
use freehold_domain::job::Job;
use freehold_domain::plan::Deployed;
use freehold_domain::required_checks::ReportedCheck;
use freehold_domain::workflow::Workflow;
use freehold_protocol::api::CheckResult;
use freehold_protocol::order::health::HealthState;
use freehold_protocol::{CheckName, ComponentName, InstallId, Timestamp};

use crate::AppError;
use crate::notification::task::of_changed_health;
use crate::part::late_result::is_being_changed;
use crate::ports::{Expect, Store, Write};
use crate::table::{self, DeployedRecord, HEALTH_PREFIX, HealthRecord, Stored, install_pk, load, load_all, put};

/// Returns the writes of the health that `job` found for a component with these required checks, and of the task that
/// sends the notification of a change. Returns no writes if a later workflow has checked the component since. Also
/// returns none for a check that a deploy has overtaken, because a component that is being replaced may be unavailable.
pub(crate) async fn record_health(
    store: &dyn Store,
    job: &Job,
    workflow: &Workflow,
    (component, required): (&ComponentName, &BTreeSet<CheckName>),
    now: Timestamp,
) -> Result<Vec<Write>, AppError> {
    if workflow.kind.is_check() && is_overtaken(store, job, workflow, component).await? {
        return Ok(Vec::new());
    }
    let known: Option<Stored<HealthRecord>> = load(store, &table::health_key(&job.install, component)).await?;
    let before = known.as_ref().map(|known| &known.value.health);
    let Some(health) = LastHealth::after(before, (component, required), job, now) else { return Ok(Vec::new()) };
    let expect = known.as_ref().map_or(Expect::Absent, |known| Expect::Rev(known.rev));
    let notification = of_shown_health(store, &job.install, before, &health).await?;
    let record = put(&HealthRecord { install: job.install.clone(), health, last_report: None }, expect)?;
    Ok([Some(record), notification].into_iter().flatten().collect())
}

/// Returns the writes of the health of a component after `report` replaced the earlier result of a required check, and
/// of the task that sends the notification if the component is healthy again. The report of a failed check sends no
/// notification.
///
/// The row is written also if the health stays the same. Reports and health checks at the same moment then conflict,
/// and the later one finds the result of the other.
pub(crate) async fn record_report(
    store: &dyn Store,
    install: &InstallId,
    deployed: &Deployed,
    report: &ReportedCheck,
    now: Timestamp,
) -> Result<Vec<Write>, AppError> {
    let key = table::health_key(install, &deployed.component);
    let Some(Stored { value: HealthRecord { health, .. }, rev }) = load(store, &key).await? else {
        return Ok(vec![Write::CheckAbsent { key }]);
    };
    let row = |health| {
        let last_report = Some(report.check.clone());
        put(&HealthRecord { install: install.clone(), health, last_report }, Expect::Rev(rev))
    };
    if report.result == CheckResult::Failed || !health.is_since(deployed.serial) {
        return Ok(vec![row(health)?]);
    }
    let earlier = table::reported_checks(store, install).await?;
    let others = earlier.iter().filter(|one| one.component != report.component || one.check != report.check);
    let results: Vec<ReportedCheck> = others.chain([report]).cloned().collect();
    let of_deploy = (deployed.serial, deployed.at);
    let mut before = health.clone().with_checks(&earlier, of_deploy);
    // The health is unknown between the reports of several checks. A component whose check had failed is healthy again
    // only when all have passed.
    if before.state == HealthState::Unknown && has_recovered(&results, deployed) {
        before.state = HealthState::Unhealthy;
    }
    let health = health.after_report(&results, deployed.serial, now);
    let after = health.clone().with_checks(&results, of_deploy);
    let notification = of_changed_health(store, install, Some(&before), &after, Some(now)).await?;
    Ok([Some(row(health)?), notification].into_iter().flatten().collect())
}

/// Returns whether a check of the component passed after it had failed for the same deploy.
fn has_recovered(results: &[ReportedCheck], deployed: &Deployed) -> bool {
    results.iter().any(|one| one.recovered && one.component == deployed.component && one.serial == deployed.serial)
}

/// Returns the write of the task that sends the notification of a change. The health before and after the change
/// includes the results of the required checks, so that the notification agrees with `install show`.
async fn of_shown_health(
    store: &dyn Store,
    install: &InstallId,
    before: Option<&LastHealth>,
    after: &LastHealth,
) -> Result<Option<Write>, AppError> {
    if [before, Some(after)].into_iter().flatten().all(|health| health.required.is_empty()) {
        return of_changed_health(store, install, before, after, None).await;
    }
    let known: Option<Stored<DeployedRecord>> = load(store, &table::deployed_key(install, &after.component)).await?;
    let Some(Deployed { serial, at, .. }) = known.map(|known| known.value.deployed) else {
        return of_changed_health(store, install, before, after, None).await;
    };
    let results = table::reported_checks(store, install).await?;
    // The results are about the last deploy, and say nothing of the health that was found before it.
    let shown = |health: &LastHealth| {
        let health = health.clone();
        if health.is_since(serial) { health.with_checks(&results, (serial, at)) } else { health }
    };
    let (before, after) = (before.map(shown), shown(after));
    of_changed_health(store, install, before.as_ref(), &after, None).await
}

/// Returns whether a deploy of the component is running, or has ended since the start of `workflow`, which is the
/// workflow of `job`. The result of a check counts also for a part that an earlier deploy left partial.
async fn is_overtaken(
    store: &dyn Store,
    job: &Job,
    workflow: &Workflow,
    component: &ComponentName,
) -> Result<bool, AppError> {
    let known: Option<Stored<DeployedRecord>> = load(store, &table::deployed_key(&job.install, component)).await?;
    let is_later = known.is_none_or(|known| {
        let deployed = known.value.deployed;
        deployed.serial > job.serial || deployed.partial_by.is_some_and(|by| by.at >= workflow.created_at)
    });
    Ok(is_later || is_being_changed(store, &job.install, component).await?)
}

/// Returns the components that a check found healthy after their last deploy, and that passed their required checks.
pub(crate) async fn healthy(
    store: &dyn Store,
    install: &InstallId,
    deployed: &BTreeMap<ComponentName, Deployed>,
) -> Result<BTreeSet<ComponentName>, AppError> {
    let checks: Vec<HealthRecord> = load_all(store, &install_pk(install), HEALTH_PREFIX).await?;
    let results = table::reported_checks(store, install).await?;
    let standing = |check: LastHealth| {
        let one = deployed.get(&check.component).filter(|one| check.is_since(one.serial))?;
        Some(check.with_checks(&results, (one.serial, one.at)))
    };
    let found = checks.into_iter().filter_map(|record| standing(record.health));
    Ok(found.filter(|check| check.state == HealthState::Healthy).map(|check| check.component).collect())
}

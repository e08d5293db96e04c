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
    let (health, combined) = with_results(store, &job.install, health, now).await?;
    let expect = known.as_ref().map_or(Expect::Absent, |known| Expect::Rev(known.rev));
    let known_before = known.is_some_and(|known| is_known_unhealthy(&known.value));
    let notification = of_changed_health(store, &job.install, known_before, &combined, None).await?;
    let known_unhealthy = stays_known(known_before, combined.state);
    let record = HealthRecord { install: job.install.clone(), health, known_unhealthy, last_report: None };
    Ok([Some(put(&record, expect)?), notification].into_iter().flatten().collect())
}

/// Returns the writes of the health of a component after `report` replaced the earlier result of a required check, and
/// of the task that sends the notification if the component is healthy again. The report of a failed check sends no
/// notification.
///
/// The row is written also if the health stays the same, or is about an earlier deploy. Reports and health checks at
/// the same moment then conflict, and the later one finds the result of the other.
pub(crate) async fn record_report(
    store: &dyn Store,
    install: &InstallId,
    deployed: &Deployed,
    report: &ReportedCheck,
    now: Timestamp,
) -> Result<Vec<Write>, AppError> {
    let key = table::health_key(install, &deployed.component);
    let Some(Stored { value: known, rev }) = load::<HealthRecord>(store, &key).await? else {
        return Ok(vec![Write::CheckAbsent { key }]);
    };
    let known_before = is_known_unhealthy(&known);
    let last_report = Some(report.check.clone());
    let known = HealthRecord { known_unhealthy: known_before, last_report, ..known };
    if !known.health.is_since(deployed.serial) {
        return Ok(vec![put(&known, Expect::Rev(rev))?]);
    }
    let earlier = table::reported_checks(store, install).await?;
    let others = earlier.into_iter().filter(|one| one.component != report.component || one.check != report.check);
    let results: Vec<ReportedCheck> = others.chain([report.clone()]).collect();
    let health = known.health.after_report(&results, deployed.serial, now);
    let combined = health.clone().with_checks(&results, (deployed.serial, deployed.at));
    let notification = match report.result {
        CheckResult::Passed => of_changed_health(store, install, known_before, &combined, Some(now)).await?,
        CheckResult::Failed => None,
    };
    let known_unhealthy = stays_known(known_before, combined.state);
    let record = put(&HealthRecord { health, known_unhealthy, ..known }, Expect::Rev(rev))?;
    Ok([Some(record), notification].into_iter().flatten().collect())
}

/// Returns whether people know that the component is unhealthy. Rows of earlier versions do not store this, and their
/// state is unhealthy only after a notification.
fn is_known_unhealthy(record: &HealthRecord) -> bool {
    record.known_unhealthy || record.health.state == HealthState::Unhealthy
}

/// Returns whether people know that a component is unhealthy after this state of it was found.
const fn stays_known(known_before: bool, found: HealthState) -> bool {
    match found {
        HealthState::Healthy => false,
        HealthState::Unknown => known_before,
        HealthState::Unhealthy => true,
    }
}

/// Returns the health that a check found as it is stored, and the same combined with the results of the required
/// checks, so that a notification agrees with `install show`. A component is healthy also if its checks passed too late
/// for its gate.
async fn with_results(
    store: &dyn Store,
    install: &InstallId,
    health: LastHealth,
    now: Timestamp,
) -> Result<(LastHealth, LastHealth), AppError> {
    if health.required.is_empty() {
        return Ok((health.clone(), health));
    }
    let known: Option<Stored<DeployedRecord>> = load(store, &table::deployed_key(install, &health.component)).await?;
    // The results are about the last deploy, and not about the health that was found before it.
    let deployed = known.map(|known| known.value.deployed).filter(|deployed| health.is_since(deployed.serial));
    let Some(Deployed { serial, at, .. }) = deployed else { return Ok((health.clone(), health)) };
    let results = table::reported_checks(store, install).await?;
    let health = health.after_report(&results, serial, now);
    Ok((health.clone(), health.with_checks(&results, (serial, at))))
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

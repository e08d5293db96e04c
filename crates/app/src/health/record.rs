//! The row of a component's health, which the component's last check and the reports of its required checks write.

use std::collections::{BTreeMap, BTreeSet};

use freehold_domain::health::{LastHealth, has_result};
use freehold_domain::job::{Job, JobState};
use freehold_domain::notification::{ChangedBy, KnownHealth};
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
/// sends the notification of a change or of a check without a result. Returns no writes if a later workflow has checked
/// the component since. Also returns none for a check that a deploy has overtaken, because a component that is being
/// replaced may be unavailable.
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
    let known_before = known.map(|known| known_health(&known.value)).unwrap_or_default();
    let by = changed_by(workflow, job);
    let notification = of_changed_health(store, &job.install, known_before, &combined, by).await?;
    let KnownHealth { unhealthy: known_unhealthy, unchecked: known_unchecked } = known_before.after(combined.state, by);
    let install = job.install.clone();
    let record = HealthRecord { install, health, known_unhealthy, known_unchecked, last_report: None };
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
    let known_before = known_health(&known);
    let last_report = Some(report.check.clone());
    let known = HealthRecord { known_unhealthy: known_before.unhealthy, last_report, ..known };
    if !known.health.is_since(deployed.serial) {
        return Ok(vec![put(&known, Expect::Rev(rev))?]);
    }
    let earlier = table::reported_checks(store, install).await?;
    let others = earlier.into_iter().filter(|one| one.component != report.component || one.check != report.check);
    let results: Vec<ReportedCheck> = others.chain([report.clone()]).collect();
    let health = known.health.after_report(&results, deployed.serial, now);
    let combined = health.clone().with_checks(&results, (deployed.serial, deployed.at));
    let by = ChangedBy::Report(now);
    let notification = match report.result {
        CheckResult::Passed => of_changed_health(store, install, known_before, &combined, by).await?,
        CheckResult::Failed => None,
    };
    let KnownHealth { unhealthy: known_unhealthy, unchecked: known_unchecked } = known_before.after(combined.state, by);
    let record = put(&HealthRecord { health, known_unhealthy, known_unchecked, ..known }, Expect::Rev(rev))?;
    Ok([Some(record), notification].into_iter().flatten().collect())
}

/// Returns what people know of the component's health. Rows of earlier versions do not store this, and their state is
/// unhealthy only after a notification.
fn known_health(record: &HealthRecord) -> KnownHealth {
    let unhealthy = record.known_unhealthy || record.health.state == HealthState::Unhealthy;
    KnownHealth { unhealthy, unchecked: record.known_unchecked }
}

/// Returns what the end of a check's job changes. Not every end without a result is news: a gate fails its workflow, and
/// a lost job had no runner or lost its runner. There are notifications about that workflow, and about a runner that is
/// away.
fn changed_by(workflow: &Workflow, job: &Job) -> ChangedBy {
    if has_result(job) {
        return ChangedBy::Check;
    }
    let only_looks = workflow.nodes.iter().any(|node| node.name == job.node && node.target.only_looks());
    ChangedBy::Unchecked { is_news: only_looks && !matches!(job.state, JobState::Lost { .. }) }
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

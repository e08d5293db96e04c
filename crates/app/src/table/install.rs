//! The rows of installs: their state, their entry in the list of installs, the last contact of their runner and what it
//! announced, their deployed components with their health and the results of required checks, and the leftovers of their
//! last teardown.

use std::collections::BTreeMap;

use freehold_domain::absence::Absence;
use freehold_domain::health::LastHealth;
use freehold_domain::install::connection;
use freehold_domain::install::strangers::StrangerTrusts;
use freehold_domain::install::{BUILD_INSTALL, Install};
use freehold_domain::plan::Deployed;
use freehold_domain::reports::head::ReportedHead;
use freehold_domain::required_checks::ReportedCheck;
use freehold_domain::role_switches::{RoleRuns, RoleSwitches};
use freehold_protocol::order::leftovers::Leftovers;
use freehold_protocol::report::ChangeTimes;
use freehold_protocol::{AccountId, CheckName, ComponentName, Digest, InstallId, JobId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::record::{Record, Stored, key, load, load_all};
use crate::AppError;
use crate::ports::{Key, Store};
use crate::subject;

/// The entry of an install in the list of installs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstallEntry {
    pub install: InstallId,
    pub account: AccountId,
}

/// The contact with an install's runner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contact {
    pub install: InstallId,
    #[serde(flatten)]
    pub contact: connection::Contact,
    /// The newest record of the customer's audit chain that a runner reported; absent before the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<ReportedHead>,
    /// Whether there is a task that finds out when the runner is away; false in rows of earlier versions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub watched: bool,
    /// The time since which the runner takes no orders, as in the notification; absent while the runner takes orders.
    #[serde(default, rename = "told_away", skip_serializing_if = "Option::is_none")]
    pub notified_away_since: Option<Timestamp>,
}

/// An install whose orders queue has to be closed, because its runner reported that it lost its access, or has to be
/// opened again. The sweep closes or opens the queue, and then removes the row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueTurn {
    pub install: InstallId,
}

/// The partition of all [`QueueTurn`] rows.
pub const QUEUE_TURNS: &str = "queue_turns";

/// The times at which the customer of an install lets changes start, as the install's runner announced them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeTimesRecord {
    pub install: InstallId,
    /// The time of the announcement.
    pub at: Timestamp,
    /// Absent when changes may start at any time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<ChangeTimes>,
}

/// The roles that the customer of an install has switched on, as the install's runner announced them. The time in the
/// row makes two hellos write different bodies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoleSwitchesRecord {
    pub install: InstallId,
    #[serde(flatten)]
    pub switches: RoleSwitches,
}

/// The roles of an install's app that trust a stranger, as the install's runner reported them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrangerTrustsRecord {
    pub install: InstallId,
    #[serde(flatten)]
    pub trusts: StrangerTrusts,
}

/// The runs that switches of roles started in an install, as far as they count. Only the sweep writes this row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoleRunsRecord {
    pub install: InstallId,
    #[serde(flatten)]
    pub counted: RoleRuns,
}

/// A component that is deployed, or for which an unsuccessful deploy may have created resources, and its install.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeployedRecord {
    pub install: InstallId,
    #[serde(flatten)]
    pub deployed: Deployed,
}

/// The fingerprint of the secrets that were copied into an install's cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CopiedSecrets {
    pub install: InstallId,
    pub fingerprint: Digest,
    /// Whether the cluster may have copies that are not wanted any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub others: bool,
}

/// The leftovers of the install's last teardown of everything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftoversRecord {
    pub install: InstallId,
    pub job: JobId,
    pub at: Timestamp,
    pub found: Leftovers,
}

/// The health of a component, as the last check found it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthRecord {
    pub install: InstallId,
    #[serde(flatten)]
    pub health: LastHealth,
    /// Whether people know that the component is unhealthy, by a notification or because one of them reported a failed
    /// check. It stays true while the health is unknown, and after deploys, until the component is healthy.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub known_unhealthy: bool,
    /// Whether people know, by a notification, that the health checks of the component end without a result. It stays
    /// true until a check finds the component healthy or unhealthy.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub known_unchecked: bool,
    /// The required check that was reported last, if one was reported since the last health check. Without it, reports
    /// of two checks at the same time could write the same body, and a commit takes an equal row for its own earlier
    /// try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_report: Option<CheckName>,
}

/// The last result of a required check of a component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckRecord {
    pub install: InstallId,
    #[serde(flatten)]
    pub reported: ReportedCheck,
}

/// The vendor's inputs and toggles with which the last deploy of all components succeeded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RanRecord {
    pub install: InstallId,
    /// The serial of that deploy; 0 in records of earlier versions.
    #[serde(default)]
    pub serial: u64,
    #[serde(default)]
    pub inputs: BTreeMap<String, Value>,
    #[serde(default)]
    pub toggles: BTreeMap<ComponentName, bool>,
}

/// The prefix of the keys of [`HealthRecord`] rows.
pub const HEALTH_PREFIX: &str = "health#";

/// The prefix of the keys of [`CheckRecord`] rows.
const CHECK_PREFIX: &str = "check#";

/// Returns the name of the install that no customer can have. The build runner belongs to it, and so do tasks for several
/// installs.
///
/// # Errors
/// Never, because the name is a valid name of an install.
pub fn reserved_install() -> Result<InstallId, AppError> {
    // INVARIANT: the reserved name is a valid install name. A test in `freehold-domain` checks this.
    BUILD_INSTALL.parse().map_err(|_| AppError::internal("the reserved install has no valid name"))
}

/// Returns the partition key of an install's rows.
pub fn install_pk(install: &InstallId) -> String {
    format!("install#{install}")
}

/// Returns the key of an install's row.
pub fn install_key(install: &InstallId) -> Key {
    key(install_pk(install), "state")
}

/// Returns the key of the row of the secrets that were copied into an install's cluster.
pub fn copied_secrets_key(install: &InstallId) -> Key {
    key(install_pk(install), "secrets")
}

/// Returns the key of the row with the leftovers of an install's last teardown.
pub fn leftovers_key(install: &InstallId) -> Key {
    key(install_pk(install), "leftovers")
}

/// Returns the key of an install's entry in the list of installs.
pub fn install_entry_key(install: &InstallId) -> Key {
    key("installs", install.as_str())
}

/// Returns the key of the row that reserves the name `name`: the name of an existing install begins with `name`, so no
/// other install may have this name.
pub fn prefix_key(name: &str) -> Key {
    key(format!("name#{name}"), "prefix")
}

/// Returns the proper prefixes of a name that could be names of installs.
pub fn name_prefixes(id: &InstallId) -> Vec<InstallId> {
    let name = id.as_str();
    (2..name.len()).filter_map(|end| name.get(..end)).filter_map(|text| text.parse().ok()).collect()
}

/// Returns the key of the row of an install's last contact.
pub fn contact_key(install: &InstallId) -> Key {
    key(install_pk(install), "contact")
}

/// Returns the key of the row of an install's change windows.
pub fn changes_key(install: &InstallId) -> Key {
    key(install_pk(install), "changes")
}

/// Returns the key of the row of the switches of an install's roles.
pub fn role_switches_key(install: &InstallId) -> Key {
    key(install_pk(install), "roles")
}

/// Returns the key of the row of the roles that trust a stranger.
pub fn stranger_trusts_key(install: &InstallId) -> Key {
    key(install_pk(install), "strangers")
}

/// Returns the key of the row of the runs that switches of roles started.
pub fn role_runs_key(install: &InstallId) -> Key {
    key(install_pk(install), "role-runs")
}

/// Returns the key of a deployed component's row.
pub fn deployed_key(install: &InstallId, component: &ComponentName) -> Key {
    key(install_pk(install), format!("component#{component}"))
}

/// Returns the key of the row of a component's health.
pub fn health_key(install: &InstallId, component: &ComponentName) -> Key {
    key(install_pk(install), format!("{HEALTH_PREFIX}{component}"))
}

/// Returns the key of the row of the last result of a component's required check.
pub fn check_key(install: &InstallId, component: &ComponentName, check: &CheckName) -> Key {
    key(install_pk(install), format!("{CHECK_PREFIX}{component}#{check}"))
}

/// Returns the key of the row of the values of the last successful deploy of all components.
pub fn ran_key(install: &InstallId) -> Key {
    key(install_pk(install), "ran")
}

impl Record for RanRecord {
    fn key(&self) -> Key {
        ran_key(&self.install)
    }
}

impl Record for HealthRecord {
    fn key(&self) -> Key {
        health_key(&self.install, &self.health.component)
    }
}

impl Record for CheckRecord {
    fn key(&self) -> Key {
        check_key(&self.install, &self.reported.component, &self.reported.check)
    }
}

impl Record for Install {
    fn key(&self) -> Key {
        install_key(&self.id)
    }
}

impl Record for InstallEntry {
    fn key(&self) -> Key {
        install_entry_key(&self.install)
    }
}

impl Record for Contact {
    fn key(&self) -> Key {
        contact_key(&self.install)
    }
}

impl Record for ChangeTimesRecord {
    fn key(&self) -> Key {
        changes_key(&self.install)
    }
}

impl Record for RoleSwitchesRecord {
    fn key(&self) -> Key {
        role_switches_key(&self.install)
    }
}

impl Record for StrangerTrustsRecord {
    fn key(&self) -> Key {
        stranger_trusts_key(&self.install)
    }
}

impl Record for RoleRunsRecord {
    fn key(&self) -> Key {
        role_runs_key(&self.install)
    }
}

impl Record for QueueTurn {
    fn key(&self) -> Key {
        key(QUEUE_TURNS, self.install.as_str())
    }
}

impl Record for CopiedSecrets {
    fn key(&self) -> Key {
        copied_secrets_key(&self.install)
    }
}

impl Record for LeftoversRecord {
    fn key(&self) -> Key {
        leftovers_key(&self.install)
    }
}

impl Record for DeployedRecord {
    fn key(&self) -> Key {
        deployed_key(&self.install, &self.deployed.component)
    }
}

/// Loads an install that must exist.
///
/// # Errors
/// NotFound, or the errors of [`load`].
pub async fn install(store: &dyn Store, id: &InstallId) -> Result<Stored<Install>, AppError> {
    let found: Option<Stored<Install>> = load(store, &install_key(id)).await?;
    let found = found.ok_or_else(|| Absence::Install(id.clone()))?;
    subject::note_install(&found.value);
    Ok(found)
}

/// Loads the last result of each required check of the install's components.
///
/// # Errors
/// The errors of [`load_all`].
pub async fn reported_checks(store: &dyn Store, id: &InstallId) -> Result<Vec<ReportedCheck>, AppError> {
    let records: Vec<CheckRecord> = load_all(store, &install_pk(id), CHECK_PREFIX).await?;
    Ok(records.into_iter().map(|record| record.reported).collect())
}

/// Loads the outputs of an install's sandbox, with the keyed digest in place of each sensitive value; empty if the sandbox
/// is not deployed.
///
/// # Errors
/// The errors of [`load`].
pub async fn sandbox_outputs(store: &dyn Store, id: &InstallId) -> Result<BTreeMap<String, Value>, AppError> {
    let record: Option<Stored<DeployedRecord>> = load(store, &deployed_key(id, &ComponentName::sandbox())).await?;
    Ok(record.map(|record| record.value.deployed.outputs_with_digests()).unwrap_or_default())
}

/// Loads the deployed components of an install by name. The sandbox is included under its own name.
///
/// # Errors
/// The errors of [`load_all`].
pub async fn deployed(store: &dyn Store, id: &InstallId) -> Result<BTreeMap<ComponentName, Deployed>, AppError> {
    Ok(deployed_among(&parts(store, id).await?))
}

/// Returns the parts that a deploy has deployed successfully.
pub fn deployed_among(parts: &BTreeMap<ComponentName, Deployed>) -> BTreeMap<ComponentName, Deployed> {
    let deployed = parts.iter().filter(|(_, one)| !one.attempted);
    deployed.map(|(name, one)| (name.clone(), one.clone())).collect()
}

/// Loads all parts of an install by name: those that are deployed, and those for which an unsuccessful deploy may have
/// created resources.
///
/// # Errors
/// The errors of [`load_all`].
pub async fn parts(store: &dyn Store, id: &InstallId) -> Result<BTreeMap<ComponentName, Deployed>, AppError> {
    let records: Vec<DeployedRecord> = load_all(store, &install_pk(id), "component#").await?;
    Ok(records.into_iter().map(|record| (record.deployed.component.clone(), record.deployed)).collect())
}

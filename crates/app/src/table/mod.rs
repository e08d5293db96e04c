//! The table's layout: which row holds what, and typed reads and writes of it.
//!
//! | pk | sk | what |
//! |---|---|---|
//! | `apps` | app | the app's latest version |
//! | `app#<app>` | `version#<digest>`, `number#<n>` | app versions and their order |
//! | `app#<app>` | `build#<build>` | builds and their artifacts |
//! | `app#<app>` | `release#<name>` | releases |
//! | `app#<app>` | `terms#<digest>`, `contract#<version>` | what customers agree to, and signed contracts |
//! | `installs` | install | directory of installs |
//! | `install#<install>` | `state`, `contact`, `component#<c>`, `workflow#<time>#<id>` | the install |
//! | `workflow#<id>` | `state` | the workflow |
//! | `open` | workflow | workflows that have not ended, for `sweep` |
//! | `token#<workflow>` | phase | task tokens: readable by `accept-report` and `sweep` alone |
//! | `job#<id>` | `state`, `log#<fence>#<seq>`, `refused#<message>` | the job |
//! | `grant#<id>` | `state` | burnt grants |
//!
//! `evidence` has the rows of signed messages and the index of artifacts.

mod contract;

use freehold_domain::build::Build;
use freehold_domain::install::Install;
use freehold_domain::job::Job;
use freehold_domain::plan::Deployed;
use freehold_domain::workflow::Workflow;
use freehold_protocol::app_version::AppVersion;
use freehold_protocol::grant::GrantRefusal;
use freehold_protocol::report::Fence;
use freehold_protocol::{
    AccountId, AppName, BuildId, ComponentName, Digest, GrantId, InstallId, JobId, KeyId, Timestamp, WorkflowId,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::AppError;
use crate::ports::{Expect, Key, Row, Store, Write};

pub use contract::{ContractInEnvelope, ContractRecord, contract_key, signed_contract};

/// How long log lines are kept, in seconds.
pub const LOG_TTL_SECS: u64 = 30 * 24 * 3600;
/// How long burnt grants and refusals are kept, in seconds.
pub const TRACE_TTL_SECS: u64 = 90 * 24 * 3600;

/// A value of the table and its revision.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored<T> {
    pub value: T,
    pub rev: u64,
}

/// A record that has one row.
pub trait Record: Serialize + DeserializeOwned {
    /// Returns where it is kept.
    fn key(&self) -> Key;
}

/// An app's directory entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppRecord {
    pub app: AppName,
    pub latest: Digest,
    pub number: u64,
    pub updated_at: Timestamp,
}

/// An app version; `versions` loads its document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VersionRecord {
    pub app: AppName,
    pub version: Digest,
    pub number: u64,
    pub created_at: Timestamp,
    /// How many components it has.
    pub components: u32,
    pub document: Document,
}

/// Where the document of an app version is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Document {
    /// Here.
    Inline(Box<AppVersion>),
    /// In the tenant's bucket, by the version's digest: this many canonical bytes.
    Bucket { bytes: u64 },
}

/// An install's directory entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstallEntry {
    pub install: InstallId,
    pub account: AccountId,
}

/// When an install's runner was last heard of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contact {
    pub install: InstallId,
    pub at: Timestamp,
}

/// A workflow that has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenWorkflow {
    pub workflow: WorkflowId,
    pub install: InstallId,
    pub since: Timestamp,
}

/// A workflow of an install, for lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowEntry {
    pub workflow: WorkflowId,
    pub install: InstallId,
    pub created_at: Timestamp,
}

/// The phase of a state machine that waits for a task token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    AwaitRunner,
    Run,
}

impl Phase {
    /// Returns the phase's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AwaitRunner => "await_runner",
            Self::Run => "run",
        }
    }
}

/// A task token: whoever holds it can end a phase, so it never leaves the tenant account.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskToken {
    pub workflow: WorkflowId,
    pub phase: Phase,
    pub token: String,
}

impl std::fmt::Debug for TaskToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TaskToken({} {})", self.workflow, self.phase.as_str())
    }
}

/// Log text of one report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogRecord {
    pub job: JobId,
    pub fence: Fence,
    pub seq: u64,
    pub text: String,
}

/// A report or request that was not believed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The partition it is kept in: a job's, or an install's when there is no such job.
    pub pk: String,
    /// The digest of the refused message.
    pub message: Digest,
    pub at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<KeyId>,
    /// Of a grant: the kind of refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<GrantRefusal>,
    pub reason: String,
}

/// A burnt grant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BurntGrant {
    pub grant: GrantId,
    pub job: JobId,
    pub fence: Fence,
    pub seq: u64,
    pub artifact: Digest,
    pub at: Timestamp,
}

fn key(pk: impl Into<String>, sk: impl Into<String>) -> Key {
    Key { pk: pk.into(), sk: sk.into() }
}

/// Returns an app's partition.
pub fn app_pk(app: &AppName) -> String {
    format!("app#{app}")
}

/// Returns an install's partition.
pub fn install_pk(install: &InstallId) -> String {
    format!("install#{install}")
}

/// Returns a job's partition.
pub fn job_pk(job: &JobId) -> String {
    format!("job#{job}")
}

/// Returns the row of an app.
pub fn app_key(app: &AppName) -> Key {
    key("apps", app.as_str())
}

/// Returns the row of an app version.
pub fn version_key(app: &AppName, version: &Digest) -> Key {
    key(app_pk(app), format!("version#{version}"))
}

/// Returns the row of a build.
pub fn build_key(app: &AppName, build: &BuildId) -> Key {
    key(app_pk(app), format!("build#{build}"))
}

/// Returns the row of an install.
pub fn install_key(install: &InstallId) -> Key {
    key(install_pk(install), "state")
}

/// Returns the directory row of an install.
pub fn install_entry_key(install: &InstallId) -> Key {
    key("installs", install.as_str())
}

/// Returns the row of an install's last contact.
pub fn contact_key(install: &InstallId) -> Key {
    key(install_pk(install), "contact")
}

/// Returns the row of a deployed component.
pub fn deployed_key(install: &InstallId, component: &ComponentName) -> Key {
    key(install_pk(install), format!("component#{component}"))
}

/// Returns the row of a workflow.
pub fn workflow_key(workflow: &WorkflowId) -> Key {
    key(format!("workflow#{workflow}"), "state")
}

/// Returns the row of a workflow that has not ended.
pub fn open_key(workflow: &WorkflowId) -> Key {
    key("open", workflow.as_str())
}

/// Returns the row of a task token.
pub fn token_key(workflow: &WorkflowId, phase: Phase) -> Key {
    key(format!("token#{workflow}"), phase.as_str())
}

/// Returns the row of a job.
pub fn job_key(job: &JobId) -> Key {
    key(job_pk(job), "state")
}

/// Returns the row of a grant.
pub fn grant_key(grant: &GrantId) -> Key {
    key(format!("grant#{grant}"), "state")
}

impl Record for AppRecord {
    fn key(&self) -> Key {
        app_key(&self.app)
    }
}

impl Record for VersionRecord {
    fn key(&self) -> Key {
        version_key(&self.app, &self.version)
    }
}

impl Record for Build {
    fn key(&self) -> Key {
        build_key(&self.app, &self.id)
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

impl Record for Workflow {
    fn key(&self) -> Key {
        workflow_key(&self.id)
    }
}

impl Record for OpenWorkflow {
    fn key(&self) -> Key {
        open_key(&self.workflow)
    }
}

impl Record for WorkflowEntry {
    fn key(&self) -> Key {
        // Newest first in a forward query.
        let newest_first = u64::MAX - self.created_at.as_millis();
        key(install_pk(&self.install), format!("workflow#{newest_first:020}#{}", self.workflow))
    }
}

impl Record for TaskToken {
    fn key(&self) -> Key {
        token_key(&self.workflow, self.phase)
    }
}

impl Record for Job {
    fn key(&self) -> Key {
        job_key(&self.id)
    }
}

impl Record for LogRecord {
    fn key(&self) -> Key {
        let Fence { dispatch, receive } = self.fence;
        key(job_pk(&self.job), format!("log#{dispatch:04}.{receive:06}#{:08}", self.seq))
    }
}

impl Record for Refused {
    fn key(&self) -> Key {
        key(self.pk.clone(), format!("refused#{}", self.message.hex()))
    }
}

impl Record for BurntGrant {
    fn key(&self) -> Key {
        grant_key(&self.grant)
    }
}

/// A deployed component and the install it belongs to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeployedRecord {
    pub install: InstallId,
    #[serde(flatten)]
    pub deployed: Deployed,
}

impl Record for DeployedRecord {
    fn key(&self) -> Key {
        deployed_key(&self.install, &self.deployed.component)
    }
}

/// Reads a row as what it holds.
///
/// # Errors
/// Internal, when the row is not what its key promises.
pub fn parse<T: DeserializeOwned>(row: &Row) -> Result<Stored<T>, AppError> {
    let value = serde_json::from_str(&row.body).map_err(|e| AppError {
        kind: crate::Kind::Internal,
        message: format!("row `{}` `{}` is not readable", row.key.pk, row.key.sk),
        soon: false,
        source: Some(Box::new(e)),
    })?;
    Ok(Stored { value, rev: row.rev })
}

/// Loads the record at `key`.
///
/// # Errors
/// The store's, or Internal for an unreadable row.
pub async fn load<T: DeserializeOwned>(store: &dyn Store, key: &Key) -> Result<Option<Stored<T>>, AppError> {
    store.get(key).await?.as_ref().map(parse).transpose()
}

/// Loads all records of a partition below `prefix`.
///
/// # Errors
/// As [`load`].
pub async fn load_all<T: DeserializeOwned>(store: &dyn Store, pk: &str, prefix: &str) -> Result<Vec<T>, AppError> {
    Ok(load_all_stored(store, pk, prefix).await?.into_iter().map(|stored| stored.value).collect())
}

/// The same with their revisions.
///
/// # Errors
/// As [`load`].
pub async fn load_all_stored<T: DeserializeOwned>(
    store: &dyn Store,
    pk: &str,
    prefix: &str,
) -> Result<Vec<Stored<T>>, AppError> {
    let mut all = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let rows = store.query(pk, prefix, after.as_deref(), PAGE).await?;
        for row in &rows {
            all.push(parse(row)?);
        }
        match rows.last() {
            Some(last) if rows.len() == PAGE as usize => after = Some(last.key.sk.clone()),
            Some(_) | None => return Ok(all),
        }
    }
}

/// How many rows one query asks for.
pub const PAGE: u32 = 100;

/// Returns the write of `record`.
///
/// # Errors
/// When the record cannot be written as JSON.
pub fn put<T: Record>(record: &T, expect: Expect) -> Result<Write, AppError> {
    Ok(Write::Put { key: record.key(), body: serde_json::to_string(record)?, expect, expires: None })
}

/// Returns the write of a `record` that DynamoDB may remove after `expires`.
///
/// # Errors
/// As [`put`].
pub fn put_until<T: Record>(record: &T, expect: Expect, expires: Timestamp) -> Result<Write, AppError> {
    Ok(Write::Put { key: record.key(), body: serde_json::to_string(record)?, expect, expires: Some(expires) })
}

/// Loads an install that must exist.
///
/// # Errors
/// NotFound, or as [`load`].
pub async fn install(store: &dyn Store, id: &InstallId) -> Result<Stored<Install>, AppError> {
    load(store, &install_key(id)).await?.ok_or_else(|| {
        AppError::not_found(format!("install `{id}` does not exist; `freehold install list` shows those that do"))
    })
}

/// Loads a workflow that must exist.
///
/// # Errors
/// NotFound, or as [`load`].
pub async fn workflow(store: &dyn Store, id: &WorkflowId) -> Result<Stored<Workflow>, AppError> {
    load(store, &workflow_key(id)).await?.ok_or_else(|| AppError::not_found(format!("workflow `{id}` does not exist")))
}

/// Loads a job that must exist.
///
/// # Errors
/// NotFound, or as [`load`].
pub async fn job(store: &dyn Store, id: &JobId) -> Result<Stored<Job>, AppError> {
    load(store, &job_key(id)).await?.ok_or_else(|| AppError::not_found(format!("job `{id}` does not exist")))
}

/// Loads an app that must exist.
///
/// # Errors
/// NotFound, or as [`load`].
pub async fn app(store: &dyn Store, app: &AppName) -> Result<Stored<AppRecord>, AppError> {
    load(store, &app_key(app)).await?.ok_or_else(|| unknown_app(app))
}

/// The error for an app that was never synced.
pub fn unknown_app(app: &AppName) -> AppError {
    AppError::not_found(format!("app `{app}` does not exist; sync it with `freehold app sync DIR`"))
}

/// Stores a refusal; a repeated one overwrites itself.
///
/// # Errors
/// The store's.
pub async fn store_refusal(store: &dyn Store, refused: &Refused) -> Result<(), AppError> {
    let write = put_until(refused, Expect::Any, refused.at.plus_secs(TRACE_TTL_SECS))?;
    let _ = store.commit(vec![write]).await.map_err(AppError::from)?;
    Ok(())
}

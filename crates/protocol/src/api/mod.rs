//! The `/v1` API: what the command sends and what the `api` function answers. JSON; times are milliseconds since the
//! epoch; every POST takes the header `idempotency-key`.

mod artifacts;
mod contracts;
mod workflows;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::app_version::{AppVersion, InputKind};
use crate::envelope::PublicKey;
use crate::{AccountId, AppName, BuildId, ComponentName, Digest, InstallId, JobId, Timestamp, WorkflowId};

pub use artifacts::{
    ArtifactView, ArtifactsView, CreateReleaseRequest, LineagePage, ReasonRequest, ReleaseView, Revoked,
};
pub use contracts::ContractView;
pub use workflows::{
    DeployComponentsRequest, HistoryView, JobView, LogChunk, LogPage, NodeView, RunActionRequest, WorkflowStarted,
    WorkflowView,
};

/// The header that makes a POST repeatable: 1 to 128 visible ASCII characters, one value for one intent.
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// The one shape of every error answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorBody {
    pub error: ErrorDetail,
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorDetail {
    pub kind: ErrorKind,
    /// A sentence that names the thing and the way out.
    pub message: String,
    /// Whether it passes by itself within a minute or so: ask again with the same key.
    #[serde(default, skip_serializing_if = "is_false")]
    pub soon: bool,
}

/// Whether a flag has the value that it has unsaid.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

/// The public kinds of errors; each has one HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// 400: the request itself is wrong; sending it again changes nothing.
    Invalid,
    /// 404.
    NotFound,
    /// 409: the state of things forbids it now.
    Conflict,
    /// 503: try again.
    Transient,
    /// 500: a defect.
    Internal,
}

impl ErrorKind {
    /// Returns the HTTP status.
    pub const fn status(self) -> u16 {
        match self {
            Self::Invalid => 400,
            Self::NotFound => 404,
            Self::Conflict => 409,
            Self::Transient => 503,
            Self::Internal => 500,
        }
    }
}

/// `GET /v1/tenant`: what a runner or a command needs to know of the tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TenantView {
    pub tenant: crate::TenantName,
    pub account: AccountId,
    pub region: String,
    pub reports_queue_url: String,
    /// The root of trust of all orders.
    pub tenant_key: PublicKey,
}

/// `POST /v1/apps/{app}/sources`: asks where to put a packed source directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UploadSourceRequest {
    /// SHA-256 of the packed bytes.
    pub digest: Digest,
    /// In bytes, at most 512 MiB.
    pub size: u64,
}

/// Where the source goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SourceUpload {
    /// A pre-signed PUT, valid for 15 minutes; the same bytes may be put again.
    pub url: String,
}

/// `POST /v1/apps/{app}/versions`: syncs an app version. The same document again answers the same version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SyncAppRequest {
    pub document: AppVersion,
}

/// One app version without its document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VersionView {
    pub app: AppName,
    pub version: Digest,
    /// From 1, in the order of first syncs.
    pub number: u64,
    pub created_at: Timestamp,
    pub components: u32,
}

/// `GET /v1/apps/{app}/versions/{version}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VersionDocument {
    #[serde(flatten)]
    pub view: VersionView,
    pub document: AppVersion,
    /// What the source of each component was resolved to, in the order of the document.
    #[serde(default)]
    pub resolved: Vec<ResolvedSource>,
}

/// What a component's source was asked for as, and what it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResolvedSource {
    pub component: ComponentName,
    /// As the config says it, such as an image with its tag, or a repository with its branch.
    pub asked: String,
    /// A commit or a digest; absent while only a build can tell, and there is none yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved: Option<String>,
    /// The build of this source, in whatever state; absent when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<BuildId>,
}

/// `GET /v1/apps`, `GET /v1/apps/{app}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AppView {
    pub app: AppName,
    /// The version synced last.
    pub latest: Digest,
    pub number: u64,
    pub updated_at: Timestamp,
}

/// `POST /v1/apps/{app}/builds`: builds what the version has no artifact for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BuildComponentsRequest {
    /// The version; the latest one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Digest>,
}

/// Answers a build request: what was there, and the workflow that makes the rest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BuildStarted {
    pub version: Digest,
    /// Absent when every component has its artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowId>,
    pub builds: Vec<BuildView>,
    /// Components that cannot be built here yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

/// A component that a build leaves out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeftOut {
    pub component: ComponentName,
    /// Such as "is a `helm_chart`".
    pub why: String,
}

/// `GET /v1/apps/{app}/builds`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BuildView {
    pub build: BuildId,
    pub component: ComponentName,
    /// `building`, `built` or `failed`.
    pub state: String,
    /// The artifact's digest, once built.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<Digest>,
    /// Bytes of all blobs, once built.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Why the vendor took the artifact back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<String>,
}

/// `POST /v1/installs`. The enrolment secret stays with the caller; only the public key that it stands for is sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CreateInstallRequest {
    pub install: InstallId,
    pub app: AppName,
    pub account: AccountId,
    pub region: String,
    #[serde(default)]
    pub inputs: BTreeMap<String, Value>,
    pub enrolment_key: PublicKey,
}

/// `POST /v1/build-runner`: registers the tenant's own build runner. The same key again is a no-op; another one
/// replaces it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EnrolBuildRunnerRequest {
    pub enrolment_key: PublicKey,
}

/// `GET /v1/installs`, `GET /v1/installs/{install}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InstallView {
    pub install: InstallId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<AppName>,
    pub account: AccountId,
    pub region: String,
    /// `disabled`, `waiting for runner`, `provisioning`, `deploying`, `ready` or `idle` (nothing deployed yet).
    pub state: String,
    /// Why the vendor sends it nothing any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<String>,
    /// The version deployed last to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Digest>,
    /// The workflow that works on it now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<WorkflowId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<RunnerView>,
    /// What was answered, by name, without defaults; empty in lists.
    #[serde(default)]
    pub inputs: BTreeMap<String, Value>,
    /// What stands in the way of deploys, such as an answer that does not fit; empty in lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    #[serde(default)]
    pub components: Vec<DeployedView>,
    /// The terms that the customer agreed to; absent where the install stack asks for no consent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_contract: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orders_queue_url: Option<String>,
}

/// `GET /v1/apps/{app}/versions/{version}/inputs-schema`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InputsSchema {
    pub app: AppName,
    pub version: Digest,
    /// JSON Schema 2020-12 of an object with a property for each input.
    pub schema: Value,
}

/// `POST /v1/installs/{install}/inputs`: changes the vendor's inputs; the others stay. Nothing is deployed by it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetInputsRequest {
    /// By name; null takes a value away, which leaves the default.
    pub inputs: BTreeMap<String, Value>,
}

/// `GET /v1/installs/{install}/inputs`: the inputs that the app's latest version has, as they are in the install.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InstallInputs {
    pub install: InstallId,
    pub app: AppName,
    pub version: Digest,
    pub inputs: Vec<InputView>,
}

/// One input of an install.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InputView {
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub display_name: String,
    #[serde(rename = "type")]
    pub kind: InputKind,
    pub required: bool,
    pub sensitive: bool,
    /// The parameter of the install stack with which the customer answers; absent for the vendor's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameter: Option<String>,
    pub from: AnsweredBy,
    /// Absent without one; `(set)` for a sensitive one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Why deploys are refused for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Where an input's value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AnsweredBy {
    Vendor,
    /// The install stack; the runner told it.
    Customer,
    /// The install stack, and it stays in the customer's account.
    CustomersAccount,
    Default,
    Nobody,
}

impl AnsweredBy {
    /// Returns what it is, as a table says it.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Vendor => "vendor",
            Self::Customer => "customer",
            Self::CustomersAccount => "customer's account",
            Self::Default => "default",
            Self::Nobody => "nobody",
        }
    }
}

/// The runner of an install.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunnerView {
    pub key: crate::KeyId,
    pub version: String,
    pub slots: u32,
    pub host: String,
    pub since: Timestamp,
    /// When it was last heard of, to within ten minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_contact: Option<Timestamp>,
}

/// What is deployed of one component.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeployedView {
    pub component: ComponentName,
    pub artifact: Digest,
    pub version: Digest,
    pub job: JobId,
    pub at: Timestamp,
    #[serde(default)]
    pub outputs: BTreeMap<String, Value>,
}

/// `POST /v1/installs`' answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InstallCreated {
    pub install: InstallView,
    /// The provisioning that waits for the runner.
    pub workflow: WorkflowId,
}

/// `GET /v1/installs/{install}/stack`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InstallStack {
    pub install: InstallId,
    /// The name to launch it under.
    pub stack_name: String,
    /// The CloudFormation template's text; the same bytes for the same install and app version.
    pub template: String,
    /// SHA-256 of the text.
    pub digest: Digest,
    /// The app version whose permissions it grants.
    pub version: Digest,
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Pass as `after` to go on; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

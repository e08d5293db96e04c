//! Requests and responses of the API about installs, their runners and their stacks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ApprovalOption, CheckView, DriftView, Follows, PlanView};
use crate::audit::ChainHead;
use crate::order::AskedBy;
use crate::order::health::HealthState;
use crate::order::leftovers::Leftovers;
use crate::{
    AccountId, AppName, ComponentName, Digest, InstallId, JobId, KeyId, RoleKey, RunId, Timestamp, WorkflowId,
};

/// `POST /v1/installs`: creates an install. Its runner proves by its role in `account` that it is the install's runner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CreateInstallRequest {
    pub install: InstallId,
    pub app: AppName,
    pub account: AccountId,
    /// The AWS region, such as `eu-west-1`.
    #[cfg_attr(feature = "schema", schemars(schema_with = "region_schema"))]
    pub region: String,
    /// Whether to accept a region that this release of Freehold does not know.
    #[serde(default, skip_serializing_if = "crate::flag::is_false")]
    pub unknown_region: bool,
    #[serde(default)]
    pub inputs: BTreeMap<String, Value>,
    /// Whether the install has a toggleable component, by its name. Other components have the default of the config.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub toggles: BTreeMap<ComponentName, bool>,
    /// Whether plans of the install wait until somebody at the vendor approves them.
    #[serde(default, skip_serializing_if = "ApprovalOption::approves_all")]
    pub approval_option: ApprovalOption,
    /// The target that the install deploys when a deploy names neither a version nor a release.
    #[serde(default, skip_serializing_if = "Follows::is_latest")]
    pub release: Follows,
    /// The install's own labels, of at most 4 KiB.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

#[cfg(feature = "schema")]
fn region_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    crate::Shape::Region.schema()
}

/// The response to `POST /v1/installs`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InstallCreated {
    pub install: InstallView,
    /// The workflow that provisions the install. It waits for the runner first.
    pub workflow: WorkflowId,
}

/// `POST /v1/installs/{install}/labels`: sets and removes labels that the install itself has. Applies at once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetLabelsRequest {
    /// The value of a label, by its key. `null` removes the label. All own labels together have at most 4 KiB.
    pub labels: BTreeMap<String, Option<String>>,
}

/// `POST /v1/installs/{install}/licence`: sets the licence of an install, or withdraws it. The new licence replaces the
/// former one as a whole. The next order of the install brings it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetLicenceRequest {
    /// The facts by name, of at most 4 KiB as JSON: texts, booleans, integers of at most 2^53 - 1, and lists of texts.
    /// A name has up to 64 lower-case letters, digits, `_`, `-` and `.`, and begins with a letter.
    #[serde(default)]
    pub facts: BTreeMap<String, Value>,
    /// The time after which the licence is over; absent for a licence without an end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_after: Option<Timestamp>,
    /// Whether to withdraw the licence. The request then has neither facts nor an end.
    #[serde(default, skip_serializing_if = "crate::flag::is_false")]
    pub withdraw: bool,
}

/// The newest licence of an install.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LicenceView {
    /// The number of the licence. Each later licence of the install has the next number.
    pub serial: u64,
    pub facts: BTreeMap<String, Value>,
    /// The time after which the licence is over; absent for a licence without an end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_after: Option<Timestamp>,
    /// Whether the licence was withdrawn. It then has no facts, and was over at once.
    #[serde(default, skip_serializing_if = "crate::flag::is_false")]
    pub withdrawn: bool,
    /// The time at which the licence was set or withdrawn.
    pub issued_at: Timestamp,
    /// Who set or withdrew the licence.
    pub by: AskedBy,
    /// The signed licence as the app reads it: an envelope as one line of JSON. Absent until the first order after the
    /// licence was set, which brings it to the customer's account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed: Option<String>,
}

/// `GET /v1/installs`, `GET /v1/installs/{install}`: an install.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InstallView {
    pub install: InstallId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<AppName>,
    /// The labels of the install: its own, and those of the app's default labels whose keys its own labels lack.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The labels that the install itself was given, without the default labels of its app.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub own_labels: BTreeMap<String, String>,
    pub account: AccountId,
    pub region: String,
    /// The state: `disabled`, `waiting for runner`, `provisioning`, `deploying`, `tearing down`, `forgetting`, `ready`
    /// or `idle` (no version is completely deployed).
    pub state: String,
    /// The vendor's reason for disabling the install; absent when the install is enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<String>,
    /// The version of the last deploy of all components that succeeded; absent when there was none, and after
    /// everything was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Digest>,
    /// The running workflow of the install, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<WorkflowId>,
    /// The run of a runbook that has not ended; absent in the list of installs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<RunnerView>,
    /// Whether the runner takes orders; absent before its first hello.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<ConnectionView>,
    /// When the customer lets changes start, as the runner announced it; absent when changes may start at any time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<ChangesView>,
    /// The roles of the install stack that the customer has switched on, as the runner announced them. Absent in lists,
    /// and before the runner announced them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roles: Option<RolesView>,
    /// The newest licence that was set or withdrawn. Absent in lists, and before the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub licence: Option<LicenceView>,
    /// Whether plans wait until somebody at the vendor approves them.
    #[serde(default, skip_serializing_if = "ApprovalOption::approves_all")]
    pub approval_option: ApprovalOption,
    /// The target that the install deploys when a deploy names neither a version nor a release.
    #[serde(default, skip_serializing_if = "Follows::is_latest")]
    pub release: Follows,
    /// The jobs whose plans wait for an approval. Empty in lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<WaitingPlan>,
    /// The values of inputs that were answered, by name, without defaults. Empty in lists.
    #[serde(default)]
    pub inputs: BTreeMap<String, Value>,
    /// The problems that prevent a deploy, such as an answer of the wrong type, the reason of each action of which a
    /// run by its schedule or by the switch of a role was skipped, and the reason why the release of the followed
    /// channel is not deployed yet. Empty in lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// The deployed components, as far as they fit into a response. Empty in lists.
    #[serde(default)]
    pub components: Vec<DeployedView>,
    /// The value of the parameter `after` with which `GET /v1/installs/{install}` returns the components that are left
    /// out here; absent when there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// The health of the install, which is the health of its worst component. Absent when no component was checked
    /// since its deploy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<InstallHealthView>,
    /// The components of the latest version that are switched off. Empty in lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub off: Vec<ComponentName>,
    /// The leftovers of the last teardown of everything. Absent in lists, when something is deployed, and before the
    /// first such teardown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leftovers: Option<LeftoversView>,
    /// The digest of the terms that the customer agreed to; absent when the install stack does not ask for consent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_contract: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orders_queue_url: Option<String>,
    /// The newest record of the audit chain in the customer's bucket that a runner reported; absent before the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<ChainHead>,
}

/// The leftovers of the app after a teardown of everything, as the runner listed them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeftoversView {
    pub at: Timestamp,
    /// The job that made the list.
    pub job: JobId,
    pub found: Leftovers,
}

/// The runner of an install.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunnerView {
    pub key: KeyId,
    pub version: String,
    pub slots: u32,
    pub host: String,
    pub since: Timestamp,
    /// The time when the control plane last accepted a report of the runner, accurate to a minute while jobs run. An
    /// idle runner reports once an hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_contact: Option<Timestamp>,
}

/// The connection of an install, as far as the tenant can know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConnectionView {
    /// The state: `connected`, `silent` (no report came for two hours), `paused` (the customer has switched the runner
    /// off or stopped it) or `cut_off` (the runner has lost its orders queue, or its install stack is deleted).
    pub state: String,
    /// The time since which the connection has this state; for `silent`, the time of the last report.
    pub since: Timestamp,
    /// Why the runner takes no orders, as a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// A job whose plan waits for an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitingPlan {
    pub job: JobId,
    pub node: String,
    pub plan: PlanView,
}

/// When the customer lets changes start. The runner decides; this is what it announced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChangesView {
    /// Whether changes may start now.
    pub open: bool,
    /// The time until which `open` keeps this value; absent when it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Why no change may start, as a sentence; empty while changes may start.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The customer's change windows, as the install stack has them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub windows: String,
    /// The customer's freezes, as the install stack has them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub freezes: String,
}

/// The roles that the customer has switched on. All other roles of the install stack are off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RolesView {
    /// The roles that are on, such as `maintenance`, in alphabetical order.
    pub on: Vec<RoleKey>,
    /// The time at which the runner announced that these roles are on, and no others.
    pub since: Timestamp,
}

/// One component that is deployed, or for which an unsuccessful deploy may have created resources.
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
    /// Present when a later job of the component did not succeed and may have changed the component before the job
    /// ended. The component may then differ from the other fields, and the next deploy deploys it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<PartialView>,
    /// Whether no deploy of the component has succeeded. A deploy may have created resources nevertheless; a teardown
    /// removes them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub attempted: bool,
    /// Present when a later workflow continued without the component because a person asked for it, until the component is
    /// deployed again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<SkippedView>,
    /// The drift that the last check found; absent before the first check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<DriftView>,
    /// The health of the component, as found by the last check since its deploy and by its required checks; absent
    /// without such a check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<HealthView>,
    /// The required checks of the component that have a result for this deploy, or are missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CheckView>,
}

/// The health of an install, which is independent of its deploys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InstallHealthView {
    pub state: HealthState,
    /// The time since which a component has this state; for `healthy`, the time since which all components have it.
    pub since: Timestamp,
}

/// The health of a component, as the last check found it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HealthView {
    pub state: HealthState,
    /// Why the component is not healthy, or why its health is unknown; empty for a healthy component.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The time since which all checks have found this state.
    pub since: Timestamp,
    /// The time of the last check.
    pub at: Timestamp,
    /// The job that made the last check.
    pub job: JobId,
}

/// The workflow that continued without a component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SkippedView {
    pub workflow: WorkflowId,
    /// Who asked for the continuation.
    pub by: AskedBy,
    pub reason: String,
    pub at: Timestamp,
}

/// The reason why a deployed component may differ from its record. The fields are absent in records of earlier versions
/// of Freehold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PartialView {
    /// The time at which the first job ended that did not succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The workflow of that job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    /// Whether the job was to remove the component.
    #[serde(default, skip_serializing_if = "crate::flag::is_false")]
    pub removes: bool,
}

/// The response to `POST /v1/installs/{install}/delete`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InstallDeleted {
    pub install: InstallId,
    pub account: AccountId,
    pub region: String,
    /// The name of the stack that the customer may already have created in this account and region.
    pub stack_name: String,
}

/// `POST /v1/installs/{install}/forget`: removes everything that the tenant stores about an install.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ForgetInstallRequest {
    /// Whether the customer has left. The install is then forgotten even if components are still deployed or its runner
    /// still reports. What is deployed stays in the customer's account.
    #[serde(default)]
    pub customer_gone: bool,
}

/// The response to `POST /v1/installs/{install}/forget`. The install is gone when `GET /v1/installs/{install}` does not
/// find it any more, which takes some minutes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ForgetStarted {
    pub install: InstallId,
    pub account: AccountId,
    pub region: String,
    /// The name of the install stack in the customer's account.
    pub stack_name: String,
    /// The time of the first request to forget the install.
    pub since: Timestamp,
}

/// `GET /v1/installs/{install}/stack`: the install stack that a customer launches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InstallStack {
    pub install: InstallId,
    /// The name to give to the stack.
    pub stack_name: String,
    /// The name of the stack for people, from the app config; absent when the config has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// The purpose of the stack, from the app config; absent when the config has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The text of the CloudFormation template. The same install and app version always give the same bytes.
    pub template: String,
    /// The SHA-256 of the text.
    pub digest: Digest,
    /// The app version. The stack grants the permissions that this version requests.
    pub version: Digest,
}

//! Installs, their runners and their stacks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::envelope::PublicKey;
use crate::{AccountId, AppName, ComponentName, Digest, InstallId, JobId, KeyId, Timestamp, WorkflowId};

/// `POST /v1/installs`. The enrolment secret stays with the caller; only the public key that is derived from it is sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CreateInstallRequest {
    pub install: InstallId,
    pub app: AppName,
    pub account: AccountId,
    /// A region of AWS, such as `eu-west-1`.
    #[cfg_attr(feature = "schema", schemars(schema_with = "region_schema"))]
    pub region: String,
    /// Accepts a region that this release does not know.
    #[serde(default, skip_serializing_if = "crate::flag::is_false")]
    pub unknown_region: bool,
    #[serde(default)]
    pub inputs: BTreeMap<String, Value>,
    pub enrolment_key: PublicKey,
}

#[cfg(feature = "schema")]
fn region_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    crate::Shape::Region.schema()
}

/// Answers `POST /v1/installs`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InstallCreated {
    pub install: InstallView,
    /// The provisioning workflow, which waits for the runner.
    pub workflow: WorkflowId,
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
    /// `disabled`, `waiting for runner`, `provisioning`, `deploying`, `tearing down`, `ready` or `idle` (nothing is deployed).
    pub state: String,
    /// Why the vendor disabled the install.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<String>,
    /// The version of the last deploy that succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Digest>,
    /// The workflow that runs in the install now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<WorkflowId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<RunnerView>,
    /// The answers by input name, without defaults; empty in lists.
    #[serde(default)]
    pub inputs: BTreeMap<String, Value>,
    /// What prevents deploys, such as an answer of the wrong type; empty in lists.
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

/// The runner of an install.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunnerView {
    pub key: KeyId,
    pub version: String,
    pub slots: u32,
    pub host: String,
    pub since: Timestamp,
    /// When the control plane last accepted a report of the runner, accurate to a minute while jobs run. An idle runner
    /// reports once an hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_contact: Option<Timestamp>,
}

/// One deployed component.
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

/// Answers `POST /v1/installs/{install}/delete` with the place of the deleted install.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InstallDeleted {
    pub install: InstallId,
    pub account: AccountId,
    pub region: String,
    /// The stack that the customer may have made already, in this account and region.
    pub stack_name: String,
}

/// `GET /v1/installs/{install}/stack`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InstallStack {
    pub install: InstallId,
    /// The name for the stack.
    pub stack_name: String,
    /// The CloudFormation template's text; the same bytes for the same install and app version.
    pub template: String,
    /// SHA-256 of the text.
    pub digest: Digest,
    /// The app version whose permissions it grants.
    pub version: Digest,
}

//! Drift: the differences from a deploy that checks found, and their acknowledgements by people.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::order::AskedBy;
use crate::order::drift::DriftedResource;
use crate::{ComponentName, InstallId, Timestamp, WorkflowId};

/// `POST /v1/installs/{install}/drift`: checks deployed parts for drift. A check applies nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DetectDriftRequest {
    /// The components to check; the name `sandbox` means the app's sandbox. Empty for all that can be checked.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub components: BTreeSet<ComponentName>,
}

/// `POST /v1/installs/{install}/drift/acknowledge`: records that a difference is known and stays for now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AcknowledgeDriftRequest {
    /// The address of the resource.
    pub address: String,
    /// The component of the resource. May be absent if only one component has a drifted resource with this address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<ComponentName>,
    /// One line of 1 to 500 characters.
    #[cfg_attr(feature = "schema", schemars(schema_with = "super::artifacts::reason_schema"))]
    pub reason: String,
}

/// `POST /v1/installs/{install}/drift/ignore`: adds, replaces or removes a rule that ignores drift.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IgnoreDriftRequest {
    /// A pattern of resource addresses, of 1 to 200 characters; `*` matches any characters.
    pub address: String,
    /// The component whose resources are ignored; absent for all parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<ComponentName>,
    /// The attributes whose differences are ignored, at most 20; empty for the whole resource, even when it is missing.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub attributes: BTreeSet<String>,
    /// One line of 1 to 500 characters.
    #[cfg_attr(feature = "schema", schemars(schema_with = "super::artifacts::reason_schema"))]
    pub reason: String,
    /// Whether the rule with this address and component is removed instead.
    #[serde(default, skip_serializing_if = "crate::flag::is_false")]
    pub remove: bool,
}

/// `GET /v1/installs/{install}/drift`: the drift of each part that was checked, and the rules that ignore some of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InstallDrift {
    pub install: InstallId,
    /// The check that was started last; it may still run. A check is stored for 90 days.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checking: Option<WorkflowId>,
    pub parts: Vec<PartDrift>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<DriftRuleView>,
}

/// The drift of one component, or of the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PartDrift {
    pub component: ComponentName,
    #[serde(flatten)]
    pub drift: DriftView,
}

/// The drift of one part, as checks found it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DriftView {
    /// The state: `unchecked` (no check has ended since the last deploy), `in_sync`, `drifted`, `acknowledged` (all
    /// differences are acknowledged) or `unknown`. Ignored differences do not count.
    pub state: String,
    /// The reason why the last check could not determine whether the part differs; empty when it could.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The time at which the last check ended.
    pub checked_at: Timestamp,
    /// The workflow of the last check.
    pub workflow: WorkflowId,
    /// The resources that differed at the last conclusive check.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<DriftedView>,
    /// The number of further resources that differed and are not in the list.
    #[serde(default)]
    pub more: u64,
}

/// One resource that differs: names, without values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DriftedView {
    #[serde(flatten)]
    pub resource: DriftedResource,
    /// The time at which the first check that found the difference ended.
    pub since: Timestamp,
    /// Whether a rule ignores the difference.
    #[serde(default, skip_serializing_if = "crate::flag::is_false")]
    pub ignored: bool,
    /// The acknowledgement by a person; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged: Option<AcknowledgedView>,
}

/// The acknowledgement of a difference by a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AcknowledgedView {
    pub by: AskedBy,
    pub reason: String,
    pub at: Timestamp,
}

/// A rule that ignores drift.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DriftRuleView {
    pub address: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<ComponentName>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub attributes: BTreeSet<String>,
    pub reason: String,
    pub by: AskedBy,
    pub at: Timestamp,
}

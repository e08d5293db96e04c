//! Requests and responses of the API about the policies of the tenant, and about what they decide.

use serde::{Deserialize, Serialize};

use crate::order::AskedBy;
use crate::{ActionName, AppName, Digest, InstallId, MemberName, Timestamp};

/// The policies of the tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PoliciesView {
    /// The text of the policies, in the language Cedar.
    pub policies: String,
    /// The digest of the text.
    pub digest: Digest,
    /// How often the policies were changed; 0 for those that a new tenant has.
    pub number: u64,
    /// Absent for the policies that a new tenant has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_at: Option<Timestamp>,
    /// Absent for the policies that a new tenant has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_by: Option<AskedBy>,
}

/// `POST /v1/access/policies`: replaces the policies of the tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SetPoliciesRequest {
    /// The text of all policies, in the language Cedar, with at most 64 KiB.
    pub policies: String,
    /// The digest of the policies that are replaced. If it is set and somebody has changed them since, the request is
    /// refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Digest>,
}

/// `POST /v1/access/test`: asks what the policies decide, and performs nothing. Either `who` or `member` names the
/// principal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TestAccessRequest {
    /// A principal, as the field `who` of a caller or a member names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<MemberName>,
    /// The action: the name of an operation in lower case with underscores, such as `deploy_components`.
    pub action: String,
    /// The app that the action is about; when `app` and `install` are absent, the action is about the tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<AppName>,
    /// The install that the action is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install: Option<InstallId>,
    /// The name of the action of the app, for `run_action`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_action: Option<ActionName>,
}

/// A decision of the policies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AccessView {
    pub is_allowed: bool,
    /// The ids of the policies that decided; empty when no policy permits the action.
    pub policies: Vec<String>,
    /// The groups whose members may perform the action.
    pub groups: Vec<String>,
}

//! Requests of the API about health: checks without a deploy, and results of required checks.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::order::AskedBy;
use crate::{CheckName, ComponentName, JobId, Shape, Timestamp};

/// The form of an address in a [`ReportCheckRequest`]. It begins with `https://` or `http://`.
pub const CHECK_URL: Shape = Shape::Visible { max: 500 };

/// `POST /v1/installs/{install}/health`: checks whether deployed components are healthy. A check changes nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CheckHealthRequest {
    /// The components to check; empty for all whose health can be checked.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub components: BTreeSet<ComponentName>,
}

/// `POST /v1/installs/{install}/components/{component}/checks/{check}`: reports the result of a required check of a component,
/// such as a load test. The last result of a check counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReportCheckRequest {
    pub result: CheckResult,
    /// Why the check has this result, in one line of 1 to 500 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "super::continuation::maybe_reason"))]
    pub reason: Option<String>,
    /// The address of the details: at most 500 visible ASCII characters, beginning with `https://` or `http://`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "maybe_address"))]
    pub url: Option<String>,
    /// The job of the deploy that was checked. The report is refused when another job has deployed the component since. When
    /// absent, the result is about the component's last deploy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deploy: Option<JobId>,
}

#[cfg(feature = "schema")]
fn maybe_address(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": ["string", "null"], "pattern": "^https?://[!-~]+$", "maxLength": 500 })
}

/// The result of a required check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CheckResult {
    Passed,
    Failed,
}

impl CheckResult {
    /// Returns the word of the result in commands and tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
        }
    }
}

/// A required check of a component, with its result for the component's last deploy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckView {
    pub check: CheckName,
    /// The result; absent while none was reported since the component's last deploy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<CheckResult>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The address of the details; empty if none was reported.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// Who reported the result; absent without a result, like `at` and `deploy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<AskedBy>,
    /// The time of the report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// The job of the deploy that the result is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deploy: Option<JobId>,
}

impl CheckView {
    /// Returns a check without a result.
    pub const fn missing(check: CheckName) -> Self {
        Self { check, result: None, reason: String::new(), url: String::new(), by: None, at: None, deploy: None }
    }
}

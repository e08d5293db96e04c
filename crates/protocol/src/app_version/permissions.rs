//! What an app may do in a customer's account, and which policies judge it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::flag::is_false;
use crate::mode::Mode;
use crate::{ComponentName, RoleKey};

/// The permissions that the vendor asks for one mode. Texts may contain templates over the install's id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ModeRole {
    pub mode: Mode,
    /// What the config calls the role; a template. The install stack's own name for it is `fh-<tenant>--<install>--<mode>`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(default)]
    pub description: String,
    pub policies: Vec<RolePolicy>,
    /// The JSON text of a permission boundary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boundary: Option<String>,
}

/// A role that operations name: a custom one, or one of break-glass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NamedRole {
    /// A template.
    pub name: String,
    #[serde(default)]
    pub display_name: String,
    #[serde(default)]
    pub description: String,
    #[serde(default, skip_serializing_if = "is_false")]
    pub break_glass: bool,
    /// Whether the install stack has it switched on unless the customer says otherwise.
    #[serde(default, skip_serializing_if = "is_false")]
    pub enabled: bool,
    pub policies: Vec<RolePolicy>,
    /// The JSON text of a permission boundary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boundary: Option<String>,
}

impl NamedRole {
    /// Returns what the role is called in an install stack.
    pub fn key(&self) -> RoleKey {
        RoleKey::derive(self.break_glass, &self.name)
    }
}

/// One policy of a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RolePolicy {
    /// The name of an AWS managed policy, such as `ReadOnlyAccess`.
    Managed(String),
    /// A policy document's JSON text.
    Inline { name: String, document: String },
    /// The name of a Google Cloud predefined role.
    GcpPredefined(String),
}

/// One rule of the matrix: `principal` doing `operation` takes `role`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OperationRole {
    /// `component:<name|*>`, `sandbox` or `action:<name|*>`.
    pub principal: String,
    /// `provision`, `reprovision`, `deprovision`, `deploy`, `teardown` or `trigger`.
    pub operation: String,
    /// A role's name; a template.
    pub role: String,
}

/// What a plan or a manifest is held against.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Policy {
    #[serde(default)]
    pub name: String,
    /// What it judges, in the config's word, such as `terraform_module`.
    #[serde(rename = "type")]
    pub kind: String,
    pub engine: PolicyEngine,
    /// Empty: every component of the type.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub components: BTreeSet<ComponentName>,
    /// Rego, or a Kyverno policy's YAML.
    pub contents: String,
}

/// The program that evaluates a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PolicyEngine {
    Kyverno,
    Opa,
}

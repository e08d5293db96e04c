//! The roles of an app in a customer's account, and the policies with which the app must comply.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::flag::is_false;
use crate::mode::Mode;
use crate::{ComponentName, RoleKey};

/// The permissions that the vendor requests for one mode. Texts may contain templates that use the install's id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ModeRole {
    pub mode: Mode,
    /// The name of the role in the config; a template. In the account, the role's name is
    /// `fh-<tenant>--<install>--<mode>`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The role's name for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub display_name: String,
    #[serde(default)]
    pub description: String,
    pub policies: Vec<RolePolicy>,
    /// The JSON text of a permissions boundary. The role may only do what the boundary allows, even if its policies
    /// allow more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boundary: Option<String>,
}

/// A role that operations refer to by name: a custom role or a break-glass role.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NamedRole {
    /// The name of the role in the config; a template.
    pub name: String,
    #[serde(default)]
    pub display_name: String,
    #[serde(default)]
    pub description: String,
    #[serde(default, skip_serializing_if = "is_false")]
    pub break_glass: bool,
    /// Whether the install stack enables the role by default; the customer can change this.
    #[serde(default, skip_serializing_if = "is_false")]
    pub enabled: bool,
    pub policies: Vec<RolePolicy>,
    /// The JSON text of a permissions boundary. The role may only do what the boundary allows, even if its policies
    /// allow more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boundary: Option<String>,
}

impl NamedRole {
    /// Returns the key that names the role in an install stack.
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
    /// A policy document as JSON text.
    Inline { name: String, document: String },
    /// The name of a Google Cloud predefined role.
    GcpPredefined(String),
}

/// One rule for the choice of a role: `operation` on `principal` runs under `role`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OperationRole {
    /// The part of the app: `component:<name|*>`, `sandbox` or `action:<name|*>`.
    pub principal: String,
    /// The operation: `provision`, `reprovision`, `deprovision`, `deploy`, `teardown` or `trigger`.
    pub operation: String,
    /// The name of the role; a template.
    pub role: String,
}

/// A policy with which a plan or a manifest must comply.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Policy {
    #[serde(default)]
    pub name: String,
    /// The type of component that the policy checks, as in the config, such as `terraform_module`.
    #[serde(rename = "type")]
    pub kind: String,
    pub engine: PolicyEngine,
    /// The components that the policy checks; empty for every component of the type.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub components: BTreeSet<ComponentName>,
    /// The text of the policy: Rego, or the YAML of a Kyverno policy.
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

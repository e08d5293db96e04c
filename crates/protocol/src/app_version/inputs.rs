//! Questions to the vendor and the customer: inputs and secrets.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::is_false;

/// Inputs that belong together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct InputGroup {
    pub name: String,
    #[serde(default)]
    pub display_name: String,
    #[serde(default)]
    pub description: String,
}

/// One question to the vendor or the customer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Input {
    pub name: String,
    #[serde(default)]
    pub display_name: String,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub group: String,
    #[serde(rename = "type")]
    pub kind: InputKind,
    #[serde(default)]
    pub required: bool,
    #[serde(default)]
    pub sensitive: bool,
    /// Whether the customer answers it, as a parameter of the install stack; otherwise the vendor does.
    #[serde(default, skip_serializing_if = "is_false")]
    pub customer: bool,
    /// Whether forms leave it out.
    #[serde(default, skip_serializing_if = "is_false")]
    pub internal: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
}

/// The type of an input's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum InputKind {
    String,
    Number,
    List,
    Json,
    Bool,
    Yaml,
    Hcl,
}

impl InputKind {
    /// Returns the word that configs use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Number => "number",
            Self::List => "list",
            Self::Json => "json",
            Self::Bool => "bool",
            Self::Yaml => "yaml",
            Self::Hcl => "hcl",
        }
    }
}

/// A value that only the customer's account holds. Its value, and a default that a config gives it, are never part of
/// a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Secret {
    pub name: String,
    #[serde(default)]
    pub display_name: String,
    #[serde(default)]
    pub description: String,
    #[serde(default, skip_serializing_if = "is_false")]
    pub required: bool,
    /// Whether the install stack draws a random value.
    #[serde(default, skip_serializing_if = "is_false")]
    pub auto_generate: bool,
    #[serde(default, skip_serializing_if = "SecretFormat::is_plain")]
    pub format: SecretFormat,
    /// Where a cluster gets a copy of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<SyncedSecret>,
}

/// How a secret's text is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SecretFormat {
    #[default]
    Plain,
    Base64,
}

impl SecretFormat {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    const fn is_plain(&self) -> bool {
        matches!(self, Self::Plain)
    }
}

/// A Kubernetes secret; both texts are templates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SyncedSecret {
    pub namespace: String,
    pub name: String,
}

//! Inputs and secrets: the values that the vendor and the customer give to an install.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Digest;
use crate::flag::is_false;

/// A group of inputs, which forms show together.
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

/// One input: a question that the vendor or the customer answers for an install.
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
    /// Whether the customer answers the input, as a parameter of the install stack; otherwise the vendor answers it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub customer: bool,
    /// Whether forms omit the input.
    #[serde(default, skip_serializing_if = "is_false")]
    pub internal: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
}

impl Input {
    /// Returns the default, if any. An empty default of a required input does not count, because somebody must answer
    /// it.
    pub fn usable_default(&self) -> Option<&Value> {
        self.default.as_ref().filter(|default| !(self.required && is_empty(default)))
    }

    /// Returns the logical id of the install stack's parameter for this input, such as `InputDomainName`.
    pub fn parameter(&self) -> String {
        parameter_id("Input", &self.name)
    }
}

/// Returns the logical id of a parameter: `prefix` and the words of `name` in camel case. When `name` is not in
/// `snake_case`, its other characters are removed and a part of its digest is added, so that two names never share an
/// id.
pub fn parameter_id(prefix: &str, name: &str) -> String {
    let words: Vec<&str> = name.split('_').collect();
    let plain = |word: &&str| {
        word.starts_with(|first: char| first.is_ascii_lowercase())
            && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    let camel: String = words
        .iter()
        .flat_map(|word| {
            let mut kept = word.chars().filter(char::is_ascii_alphanumeric);
            kept.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(kept)
        })
        .take(LONGEST_ID)
        .collect();
    if words.iter().all(plain) && name.len() <= LONGEST_ID {
        return format!("{prefix}{camel}");
    }
    let digest = Digest::of(name.as_bytes());
    format!("{prefix}{camel}X{}", digest.hex().get(..16).unwrap_or_default())
}

/// The number of characters of a name that a parameter's id may contain. CloudFormation permits 255 for the whole id.
const LONGEST_ID: usize = 200;

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
    /// Returns the word for the type in configs.
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

/// A secret: a value that only the customer's account contains. A version never contains the value, or a default from
/// the config.
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
    /// Whether the install stack generates a random value.
    #[serde(default, skip_serializing_if = "is_false")]
    pub auto_generate: bool,
    #[serde(default, skip_serializing_if = "SecretFormat::is_plain")]
    pub format: SecretFormat,
    /// The Kubernetes secret into which the value is copied, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<SyncedSecret>,
}

impl Secret {
    /// Returns the logical id of the install stack's parameter for this secret, such as `AppSecretApiKey`.
    pub fn parameter(&self) -> String {
        parameter_id("AppSecret", &self.name)
    }

    /// Returns the name of the install stack's output from which templates read the ARN of the secret.
    pub fn arn_output(&self) -> String {
        format!("{}_arn", self.name)
    }

    /// Returns whether the name can be the last part of a secret's name in Secrets Manager.
    pub fn has_usable_name(&self) -> bool {
        let is_usable = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        (1..=200).contains(&self.name.len()) && self.name.bytes().all(is_usable)
    }
}

/// The encoding of a secret's text.
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

/// The namespace and the name of a Kubernetes secret; both are templates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SyncedSecret {
    pub namespace: String,
    pub name: String,
}

/// Returns whether `value` is null or an empty text.
pub(super) fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_str().is_some_and(str::is_empty)
}

//! Requests and responses of the API about the inputs of an install, and the schema of their values.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::app_version::InputKind;
use crate::sealing::SealingKey;
use crate::{AppName, Digest, InstallId};

/// `GET /v1/apps/{app}/versions/{version}/inputs-schema`: the schema of a version's inputs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InputsSchema {
    pub app: AppName,
    pub version: Digest,
    /// The schema (JSON Schema 2020-12) of an object with a property for each input.
    pub schema: Value,
}

/// `POST /v1/installs/{install}/inputs`: changes the named inputs of the vendor and no other input. Does not deploy.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetInputsRequest {
    /// The new values by the name of the input. `null` removes a value, so that the default applies. The value of a
    /// sensitive input must be sealed to the install's sealing key; a plaintext value is refused and not stored.
    pub inputs: BTreeMap<String, Value>,
}

/// `GET /v1/installs/{install}/inputs`: the inputs of the app's latest version, with their values in the install.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InstallInputs {
    pub install: InstallId,
    pub app: AppName,
    pub version: Digest,
    pub inputs: Vec<InputView>,
    /// The key to which the values of sensitive inputs are sealed; absent until the install's runner has announced
    /// itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealing_key: Option<SealingKey>,
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
    /// The parameter of the install stack in which the customer answers the input; absent when the vendor answers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameter: Option<String>,
    pub from: AnsweredBy,
    /// The value; absent when the input has none. `(set)` replaces a sensitive value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The reason why a deploy is refused because of this input; absent when the input prevents no deploy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// The origin of an input's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AnsweredBy {
    Vendor,
    /// The customer, in the install stack; the runner reported the answer.
    Customer,
    /// The customer, in the install stack; the answer stays in the customer's account.
    CustomersAccount,
    Default,
    Nobody,
}

impl AnsweredBy {
    /// Returns the origin as text for tables.
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

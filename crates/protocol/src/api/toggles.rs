//! Requests and responses of the API about the toggles of an install: which components it leaves out.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{AppName, ComponentName, Digest, InstallId};

/// `POST /v1/installs/{install}/toggles`: switches the named components on or off. Does not deploy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetTogglesRequest {
    /// Whether the install has the component, by its name. `null` removes the choice, so that the default of the config
    /// applies.
    pub toggles: BTreeMap<ComponentName, Option<bool>>,
}

/// `GET /v1/installs/{install}/toggles`: the toggleable components of the app's latest version, with their state in the
/// install.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InstallToggles {
    pub install: InstallId,
    pub app: AppName,
    pub version: Digest,
    pub toggles: Vec<ToggleView>,
}

/// One toggleable component of an install.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToggleView {
    pub component: ComponentName,
    /// Whether the install has the component after its next deploy.
    pub on: bool,
    pub from: ToggledBy,
    /// Whether the component is deployed now.
    pub deployed: bool,
}

/// The origin of a toggle's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ToggledBy {
    Vendor,
    Default,
}

impl ToggledBy {
    /// Returns the origin as text for tables.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Vendor => "vendor",
            Self::Default => "default",
        }
    }
}

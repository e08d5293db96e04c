//! The modes of an install. The mode decides under which role of the install a job runs.

use serde::{Deserialize, Serialize};

/// The mode of a job. The install has one role for each mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    Provision,
    Maintenance,
    Deprovision,
    BreakGlass,
}

impl Mode {
    /// Returns the word that role names, parameters and messages use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Provision => "provision",
            Self::Maintenance => "maintenance",
            Self::Deprovision => "deprovision",
            Self::BreakGlass => "break_glass",
        }
    }
}

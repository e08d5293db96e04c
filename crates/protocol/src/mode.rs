//! The modes of an install: which of its roles a job runs under.

use serde::{Deserialize, Serialize};

/// Which role a job runs under.
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

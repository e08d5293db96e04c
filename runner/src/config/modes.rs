//! The roles of the modes.

use freehold_protocol::order::Mode;
use serde::Deserialize;

/// The ARN of the role of each mode; empty when this runner has no role for the mode. The runner learns only when it
/// assumes the role whether the customer has switched the mode off.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Modes {
    #[serde(default)]
    provision: String,
    #[serde(default)]
    maintenance: String,
    #[serde(default)]
    deprovision: String,
    #[serde(default)]
    break_glass: String,
}

impl Modes {
    /// Returns the ARNs of the roles of all modes that have one.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        let modes = [Mode::Provision, Mode::Maintenance, Mode::Deprovision, Mode::BreakGlass];
        modes.into_iter().filter_map(|mode| self.role(mode))
    }

    /// Returns the ARN of the mode's role, or `None` when this runner has no role for the mode.
    pub fn role(&self, mode: Mode) -> Option<&str> {
        let arn = match mode {
            Mode::Provision => &self.provision,
            Mode::Maintenance => &self.maintenance,
            Mode::Deprovision => &self.deprovision,
            Mode::BreakGlass => &self.break_glass,
        };
        (!arn.is_empty()).then_some(arn.as_str())
    }
}

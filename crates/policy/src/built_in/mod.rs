//! The policies that a runner evaluates for every change, in addition to those of the vendor and of the customer. In
//! the install stack the customer can loosen most of them: the denials of a loosened policy become warnings.

use crate::PolicyText;

/// A policy of every install.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuiltIn {
    /// The name with which the customer loosens this policy in the install stack.
    pub name: &'static str,
    text: &'static str,
    /// Whether the customer can loosen this policy (`LoosenedPolicies`). A policy that cannot be loosened has parameters of its own in the stack.
    pub can_be_loosened: bool,
}

/// All built-in policies.
pub const ALL: [BuiltIn; 4] = [
    BuiltIn { name: "no-strangers", text: include_str!("no-strangers.rego"), can_be_loosened: true },
    BuiltIn { name: "no-public-exposure", text: include_str!("no-public-exposure.rego"), can_be_loosened: true },
    BuiltIn { name: "own-resources-only", text: include_str!("own-resources-only.rego"), can_be_loosened: true },
    BuiltIn { name: "maintenance-limits", text: include_str!("maintenance-limits.rego"), can_be_loosened: false },
];

impl BuiltIn {
    /// Returns the policy's text, whose file has the name of the policy.
    pub fn policy(&self) -> PolicyText {
        PolicyText { file: format!("built-in/{}.rego", self.name), text: self.text.to_owned() }
    }
}

#[cfg(test)]
mod tests;

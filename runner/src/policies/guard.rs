//! A policy that guards a job, before it is evaluated.

use freehold_protocol::policy::PolicyOrigin;

/// A policy before it is evaluated.
#[derive(Debug, Clone)]
pub(super) struct Guard {
    pub(super) name: String,
    pub(super) origin: PolicyOrigin,
    pub(super) text: Text,
    /// Whether the customer has loosened the policy: its denials then count as warnings.
    pub(super) is_loosened: bool,
}

/// The text of a policy.
#[derive(Debug, Clone)]
pub(super) enum Text {
    Known(String),
    /// The text cannot be read, for this reason.
    Unreadable(String),
}

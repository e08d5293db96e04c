//! The action that a request asks for, and how it is permitted.

use freehold_access::{Decision, Policies, Principal, Resource};

/// How the action of a request is permitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permits {
    /// The policies decide.
    ByPolicies,
    /// Every member may ask for the list, and the policies decide about each of its items. For anybody else, they also
    /// decide about the list: to make it, all items are read, and the issuer of pipelines may have many other users.
    ByItem,
    /// Every member and every pipeline may ask what the policies permit themselves, with what they may see.
    Oneself,
    /// Everybody may see who they are.
    Everybody,
}

/// The action of a request.
#[derive(Debug, Clone, Copy)]
pub struct Act<'a> {
    /// The name of the action in the policies.
    pub action: &'a str,
    /// The name of the action or the runbook that would run; empty for other actions.
    pub run: &'a str,
    pub permits: Permits,
}

impl Act<'_> {
    /// Returns what the policies decide about the action of `principal` with `resource`.
    pub(super) fn decide(&self, policies: &Policies, principal: &Principal, resource: &Resource) -> Decision {
        policies.decide_run(principal, self.action, self.run, resource)
    }

    /// Returns whether the action repairs policies that cannot be read.
    pub(super) fn repairs_policies(&self) -> bool {
        matches!(self.action, "show_policies" | "set_policies") || self.permits == Permits::Everybody
    }
}

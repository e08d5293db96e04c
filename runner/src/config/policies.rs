//! The table `policies` of the config file: the customer's settings of policies in the install stack.

use std::collections::BTreeSet;

use serde::Deserialize;

/// The customer's settings of policies.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policies {
    /// Whether the customer's own policies are read from the prefix `policies/` of the bucket. An install stack of an earlier
    /// release does not permit this.
    #[serde(default)]
    pub customer: bool,
    /// The built-in policies whose denials count as warnings.
    #[serde(default)]
    pub loosened: BTreeSet<String>,
    /// Whether mode `maintenance` may create something.
    #[serde(default = "yes")]
    pub maintenance_creates: bool,
    /// The components that mode `maintenance` may change; empty for all.
    #[serde(default)]
    pub maintenance_components: BTreeSet<String>,
}

const fn yes() -> bool {
    true
}

impl Default for Policies {
    fn default() -> Self {
        Self {
            customer: false,
            loosened: BTreeSet::new(),
            maintenance_creates: yes(),
            maintenance_components: BTreeSet::new(),
        }
    }
}

//! Lists the hosts that an install contacts from the customer's account: hosts that the app version names, the AWS API,
//! and the registries of Terraform providers.

mod egress;

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::app_version::AppVersion;
use freehold_protocol::terraform::REGISTRIES;

use egress::hosts as named_hosts;

pub(crate) use egress::change;
pub use egress::{Egress, EgressChange};

/// A pattern of AWS's API endpoints, which the runner and its jobs call.
const AWS: &str = "*.amazonaws.com";

/// Returns the hosts that an install contacts from the customer's account, each with the places in the app that name
/// it.
pub fn hosts(version: &AppVersion) -> BTreeMap<String, BTreeSet<String>> {
    let mut hosts = named_hosts(version);
    hosts.entry(AWS.to_owned()).or_default().insert("the runner".to_owned());
    for part in version.parts().filter(|part| part.spec.fetches_providers()) {
        let owner = if part.name.is_sandbox() { "sandbox".to_owned() } else { format!("component `{}`", part.name) };
        // The runner decides whether it uses Terraform or OpenTofu, so the registries of both are listed.
        for registry in REGISTRIES {
            hosts.entry(registry.to_owned()).or_default().insert(format!("{owner} providers"));
        }
    }
    hosts
}

//! The hosts that are contacted from the customer's account: those that the version names, AWS, and registries of providers.

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::app_version::AppVersion;
use freehold_protocol::terraform::REGISTRIES;

use crate::diff::hosts as named_hosts;

/// The API endpoints of AWS, which the runner and the work in the customer's account call.
const AWS: &str = "*.amazonaws.com";

/// Returns the hosts that are contacted from the customer's account, each with the places that contact it.
pub fn hosts(version: &AppVersion) -> BTreeMap<String, BTreeSet<String>> {
    let mut hosts = named_hosts(version);
    hosts.entry(AWS.to_owned()).or_default().insert("the runner".to_owned());
    for part in version.parts().filter(|part| part.spec.fetches_providers()) {
        let owner = if part.name.is_sandbox() { "sandbox".to_owned() } else { format!("component `{}`", part.name) };
        // The runner decides which of the two programs it uses.
        for registry in REGISTRIES {
            hosts.entry(registry.to_owned()).or_default().insert(format!("{owner} providers"));
        }
    }
    hosts
}

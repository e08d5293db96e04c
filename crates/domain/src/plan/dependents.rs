//! The dependents of parts.

use std::collections::BTreeSet;

use freehold_protocol::ComponentName;
use freehold_protocol::app_version::{AppVersion, Component};

use crate::graph::order::reachable;

/// Adds the dependents of the parts in `touched`. If `touched` has the sandbox, all components that read its outputs
/// are dependents too.
pub(crate) fn add_dependents(version: &AppVersion, touched: &mut BTreeSet<ComponentName>) {
    let dependents = |part: &ComponentName| {
        let is_sandbox = version.sandbox.is_some() && part.is_sandbox();
        let depends =
            |one: &&Component| one.dependencies.contains(part) || (is_sandbox && !one.sandbox_reads().is_empty());
        version.components.iter().filter(depends).map(|one| one.name.clone()).collect()
    };
    *touched = reachable(std::mem::take(touched), dependents);
}

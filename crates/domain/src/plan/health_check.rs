//! Plans health checks without a deploy: one node for each component.

use freehold_protocol::app_version::AppVersion;
use freehold_protocol::order::Mode;
use freehold_protocol::order::health::{Times, checked};
use freehold_protocol::{ComponentName, Digest};

use super::health::{node_name, timeout_secs};
use super::input::{DeployInput, Deployed, PlanError};
use super::role_of;
use crate::required_checks::RequiredChecks;
use crate::workflow::{Node, Target};

/// The reason why the health of a component cannot be checked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAsked {
    #[error("`{0}` is not deployed, so its health cannot be checked")]
    Absent(ComponentName),
    #[error(
        "`{0}` has no health check: its config has no `health`, or its type has no check of its own and there is no probe"
    )]
    Nothing(ComponentName),
}

/// Returns whether `present` decides how a component is checked, and not the version that deployed the component.
/// `present` is the version of the last deploy of all components, and `serial` the serial of this deploy. The deploy
/// leaves out a component whose only change is its health check, and the customer may no longer agree to the former
/// check.
pub fn is_checked_as(present: &AppVersion, serial: u64, live: &Deployed) -> bool {
    live.serial <= serial && present.component(&live.component).is_some()
}

/// Returns the node that checks the health of component `name` once, without a deploy. `input` has the version that
/// defines the check, and `digest` is the digest of this version.
///
/// # Errors
/// [`PlanError`] for a role that the version names and does not have.
pub fn check_node(
    input: DeployInput<'_>,
    digest: &Digest,
    name: &ComponentName,
) -> Result<Result<Node, NotAsked>, PlanError> {
    if !input.deployed.contains_key(name) {
        return Ok(Err(NotAsked::Absent(name.clone())));
    }
    let Some(health) = input.version.component(name).and_then(checked) else {
        return Ok(Err(NotAsked::Nothing(name.clone())));
    };
    let timeout_secs = timeout_secs(health, Times::alone(health));
    let (version, checks) = (Some(digest.clone()), RequiredChecks::of(health));
    let target = Target::Health { component: name.clone(), gate: false, version, checks };
    let runs_as = role_of(input, &target, None, Mode::Maintenance)?;
    let node = Node::waiting(node_name(name), target, timeout_secs);
    Ok(Ok(Node { serial: input.serial, runs_as, ..node }))
}

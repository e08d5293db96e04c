//! Plans drift checks: one node for each part, which compares the part with the version that deployed it.

use freehold_protocol::app_version::ComponentSpec;
use freehold_protocol::order::Mode;
use freehold_protocol::{BuildId, ComponentName};

use super::input::{DeployInput, PlanError};
use super::{fingerprint, role_of};
use crate::workflow::{Node, Target};

/// The reason why the drift of a part cannot be checked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoCheck {
    #[error("`{0}` is not deployed, so there is nothing to check")]
    Absent(ComponentName),
    #[error("the drift of `{part}` cannot be checked: {why}")]
    Kind { part: ComponentName, why: &'static str },
    #[error(
        "a job of `{0}` did not succeed and may have changed the part, so a check would find more than drift; deploy \
         the part with `freehold deploy`"
    )]
    Partial(ComponentName),
    #[error(
        "inputs, secrets, outputs or the licence that `{0}` reads have changed since its deploy, so a check would find \
         more than drift; deploy the part with `freehold deploy`"
    )]
    Behind(ComponentName),
}

/// Returns the node that checks the part `name`. `input` has the version that deployed the part, and the current
/// inputs and secrets.
///
/// # Errors
/// [`PlanError`] for a role that the version names and does not have, and for values that cannot be written.
pub fn drift_node(input: DeployInput<'_>, name: &ComponentName) -> Result<Result<Node, NoCheck>, PlanError> {
    let version = input.version;
    let (Some(live), Some(part)) = (input.deployed.get(name), version.part(name)) else {
        return Ok(Err(NoCheck::Absent(name.clone())));
    };
    if let Some(why) = unchecked(&part.spec) {
        return Ok(Err(NoCheck::Kind { part: name.clone(), why }));
    }
    if live.partial {
        return Ok(Err(NoCheck::Partial(name.clone())));
    }
    let present = fingerprint(version, &part, &live.artifact, input.inputs, input.secrets.digests, input.licence)?;
    if input.is_changed(&part, &present)? {
        return Ok(Err(NoCheck::Behind(name.clone())));
    }
    let source = part.source_digest().map_err(|error| PlanError::Unwritable(error.to_string()))?;
    let target = Target::DetectDrift {
        part: name.clone(),
        version: live.version.clone(),
        build: BuildId::derive(&version.app, &source, name),
        artifact: live.artifact.clone(),
        sandbox: version.sandbox.is_some() && name.is_sandbox(),
        of: live.job.clone(),
    };
    let runs_as = role_of(input, &target, None, Mode::Maintenance)?;
    let node = Node::waiting(name.to_string(), target, part.deploy_timeout_secs);
    Ok(Ok(Node { serial: input.serial, runs_as, ..node }))
}

/// Returns why parts of this kind are not checked; `None` for a kind whose plan shows drift.
pub const fn unchecked(spec: &ComponentSpec) -> Option<&'static str> {
    match spec {
        ComponentSpec::TerraformModule { .. }
        | ComponentSpec::HelmChart { .. }
        | ComponentSpec::KubernetesManifest { .. } => None,
        ComponentSpec::ContainerImage { .. } | ComponentSpec::DockerBuild { .. } => {
            Some("an image is named by its digest and does not change")
        }
        ComponentSpec::Job { .. } => Some("a program that has run to its end leaves nothing to compare"),
        ComponentSpec::CloudformationStack { .. } => {
            Some("a change set compares templates, and does not see resources that were changed outside of the stack")
        }
        ComponentSpec::Pulumi { .. } => {
            Some("a preview compares the program with its state, and does not see resources that were changed outside")
        }
    }
}

//! The secrets of an app in a deploy: components that read a changed secret are deployed again, and secrets are copied
//! into clusters. A deploy or a teardown removes the copies that the version no longer contains.

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::app_version::{AppVersion, Reference, Secret};
use freehold_protocol::{ComponentName, Digest, canonical};

use super::copies::{NODE, node};
use super::input::{DeployInput, PlanError};
use super::scope::DeployScope;
use crate::workflow::{Node, Target};

/// Returns the digests of the secrets among `references`; `None` for a secret without a value.
pub(super) fn used<'a>(
    references: &'a BTreeSet<Reference>,
    digests: &'a BTreeMap<String, Digest>,
) -> BTreeMap<&'a str, Option<&'a Digest>> {
    let names = references.iter().filter_map(|reference| match reference {
        Reference::Secret(name) => Some(name.as_str()),
        Reference::Input(_)
        | Reference::Component(_)
        | Reference::Action(_)
        | Reference::Sandbox(_)
        | Reference::InstallStack(_) => None,
    });
    names.map(|name| (name, digests.get(name))).collect()
}

/// Returns the secrets that are copied into a cluster.
pub fn copied(version: &AppVersion) -> impl Iterator<Item = &Secret> {
    version.secrets.iter().filter(|secret| secret.kubernetes.is_some())
}

/// Puts a node that copies secrets before the components, if the copies are out of date or the cluster may be new. A
/// version without copies gets the node if an earlier version had copies; the node then removes them. Returns whether
/// it added the node.
///
/// # Errors
/// [`PlanError::Unwritable`].
pub(super) fn precede(
    input: DeployInput<'_>,
    scope: &DeployScope,
    touched: &BTreeSet<ComponentName>,
    nodes: &mut Vec<Node>,
) -> Result<bool, PlanError> {
    let wants_none = copied(input.version).next().is_none();
    if wants_none && input.secrets.copied.is_none() {
        return Ok(false);
    }
    let sandbox = ComponentName::sandbox();
    let remade = input.version.sandbox.is_some() && touched.contains(&sandbox);
    let fingerprint = fingerprint(input)?;
    let again = !wants_none && (scope.provision || scope.all || scope.first || remade);
    if !again && input.secrets.copied == Some(&fingerprint) {
        return Ok(false);
    }
    for node in nodes.iter_mut().filter(|node| matches!(node.target, Target::Component { .. })) {
        node.dependencies.insert(NODE.to_owned());
    }
    nodes.push(node(fingerprint, remade.then(|| sandbox.to_string()).into_iter().collect()));
    Ok(true)
}

/// Returns a digest of everything that the copies depend on. If the name or namespace of a copy is a template, the
/// digest covers all inputs.
fn fingerprint(input: DeployInput<'_>) -> Result<Digest, PlanError> {
    let copies: Vec<_> = copied(input.version)
        .map(|secret| (&secret.name, secret.format, &secret.kubernetes, input.secrets.digests.get(&secret.name)))
        .collect();
    let places = copied(input.version).filter_map(|secret| secret.kubernetes.as_ref());
    let has_templates = places.into_iter().any(|place| place.namespace.contains("{{") || place.name.contains("{{"));
    let inputs = has_templates.then_some(input.inputs);
    canonical::digest(&(copies, inputs)).map_err(|error| PlanError::Unwritable(error.to_string()))
}

/// Returns whether a deploy of `to` over `from` copies secrets. This is decided from the two versions alone.
pub(crate) fn is_copied_again(from: &AppVersion, to: &AppVersion, touched: &BTreeSet<ComponentName>) -> bool {
    let copies = |version| copied(version).map(|one| (&one.name, one.format, &one.kubernetes)).collect::<Vec<_>>();
    let remade = to.sandbox.is_some() && touched.contains(&ComponentName::sandbox());
    (remade && !copies(to).is_empty()) || copies(from) != copies(to)
}

//! The secrets of an app in a deploy: components that read a changed secret are deployed again, and secrets are copied
//! into clusters. Copies that no version wants any more are removed, by a deploy after its components, or by a teardown.

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::app_version::{AppVersion, Reference, Secret};
use freehold_protocol::{ComponentName, Digest, canonical};

use super::copies::{NODE, UNWANTED, node};
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
        | Reference::InstallStack(_)
        | Reference::Licence => None,
    });
    names.map(|name| (name, digests.get(name))).collect()
}

/// Returns the secrets that are copied into a cluster.
pub fn copied(version: &AppVersion) -> impl Iterator<Item = &Secret> {
    version.secrets.iter().filter(|secret| secret.kubernetes.is_some())
}

/// The nodes of a deploy that copy secrets and remove copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SecretNodes {
    /// A node copies secrets before the components are deployed.
    pub copies: bool,
    /// A node removes copies that are not wanted any more, after the components were deployed or removed.
    pub removes: bool,
}

/// Adds the node that copies secrets before the components, if the copies are out of date or the cluster may be new, and
/// the node that removes copies which no component uses any more. `nodes` are all deploys and removals of components.
///
/// A component whose deploy fails still needs the copies of its earlier version. So copies that the new version does not
/// want are removed after all components, and stay in a deploy of named components. If no component is deployed
/// or removed, the first node removes them.
///
/// # Errors
/// [`PlanError::Unwritable`].
pub(super) fn add(
    input: DeployInput<'_>,
    scope: &DeployScope,
    touched: &BTreeSet<ComponentName>,
    nodes: &mut Vec<Node>,
) -> Result<SecretNodes, PlanError> {
    let wants_none = copied(input.version).next().is_none();
    let known = input.secrets.copied;
    if wants_none && known.is_none() {
        return Ok(SecretNodes::default());
    }
    let sandbox = ComponentName::sandbox();
    let remade = input.version.sandbox.is_some() && touched.contains(&sandbox);
    let fingerprint = fingerprint(input)?;
    let again = scope.provision || scope.all || scope.first || remade;
    let is_current = known.is_some_and(|known| *known.fingerprint == fingerprint);
    let copies = !wants_none && (again || !is_current);
    let has_others = known.is_some_and(|known| known.others || !is_current);
    let changes_component = |node: &&Node| matches!(node.target, Target::Component { .. } | Target::Teardown { .. });
    let users: BTreeSet<String> = nodes.iter().filter(changes_component).map(|node| node.name.clone()).collect();
    let is_whole = scope.only.is_empty();
    let removes = has_others && is_whole && !(copies && users.is_empty());
    let after_sandbox: BTreeSet<String> = remade.then(|| sandbox.to_string()).into_iter().collect();
    if copies {
        for node in nodes.iter_mut().filter(|node| matches!(node.target, Target::Component { .. })) {
            node.dependencies.insert(NODE.to_owned());
        }
        let keeps_others = has_others && (removes || !is_whole);
        nodes.push(node(NODE, fingerprint.clone(), keeps_others, after_sandbox.clone()));
    }
    if removes {
        let first = copies.then(|| NODE.to_owned());
        let after = users.into_iter().chain(after_sandbox).chain(first).collect();
        nodes.push(node(UNWANTED, fingerprint, false, after));
    }
    Ok(SecretNodes { copies, removes })
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

/// Returns the nodes for secrets of a deploy of `to` over `from`. Only the two versions decide this.
pub(crate) fn predicted(from: &AppVersion, to: &AppVersion, touched: &BTreeSet<ComponentName>) -> SecretNodes {
    let copies = |version| copied(version).map(|one| (&one.name, one.format, &one.kubernetes)).collect::<Vec<_>>();
    let (before, after) = (copies(from), copies(to));
    let remade = to.sandbox.is_some() && touched.contains(&ComponentName::sandbox());
    let copies = !after.is_empty() && (remade || before != after);
    let changes_component = touched.iter().any(|name| to.component(name).is_some());
    SecretNodes { copies, removes: !before.is_empty() && before != after && (changes_component || !copies) }
}

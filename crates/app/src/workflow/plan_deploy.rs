//! Plans the nodes of a deploy from the table. This is done twice: when the deploy is requested, to refuse a deploy
//! that cannot be planned, and when its workflow runs.

use std::collections::{BTreeMap, BTreeSet};

use freehold_domain::build::Build;
use freehold_domain::inputs::{known_inputs, resolve_inputs};
use freehold_domain::install::Install;
use freehold_domain::plan::{
    Copied, DeployInput, DeployScope, Deployed, SecretsState, TogglesState, check_deployable, deploy_nodes,
};
use freehold_domain::toggles;
use freehold_domain::workflow::Node;
use freehold_protocol::app_version::AppVersion;
use freehold_protocol::order::health::checked;
use freehold_protocol::{ComponentName, ReleaseName};
use serde_json::Value;

use crate::AppError;
use crate::app_version::builds::builds_of;
use crate::app_version::versions::Versions;
use crate::health::record::healthy;
use crate::part::standing_parts::StandingParts;
use crate::ports::Store;
use crate::stack::sandbox_reads;
use crate::table::{self, CopiedSecrets, ReleaseRecord, Stored, load};

/// The scope of a requested deploy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeployOf<'a> {
    /// The components to deploy, or the sandbox, together with their dependents. An empty set selects everything that
    /// changed.
    pub(crate) only: &'a BTreeSet<ComponentName>,
    /// Whether the components of `only` are deployed without their dependents.
    pub(crate) alone: bool,
    /// Whether the sandbox and components that did not change are deployed too.
    pub(crate) all: bool,
    /// The release that fixes the artifacts to deploy, if the request names a release.
    pub(crate) release: Option<&'a ReleaseName>,
    /// The role that the caller chooses for all jobs of the deploy.
    pub(crate) role: Option<&'a str>,
    /// The former values of the inputs that the request changed; null for an input that had no value.
    pub(crate) former_inputs: &'a BTreeMap<String, Value>,
    /// Whether the deploy is part of the install's provisioning.
    pub(crate) provision: bool,
    pub(crate) serial: u64,
}

/// Returns the nodes that deploy `version` to `install`.
///
/// # Errors
/// Invalid for inputs that do not fit, NotFound for unknown names, Conflict for a component without an artifact or with
/// another artifact than the release fixes, for a revoked artifact that the install lacks, and for a component
/// that is switched off but named or needed, or the store's errors.
pub(crate) async fn plan_deploy(
    versions: &Versions,
    install: &Install,
    version: &AppVersion,
    of: DeployOf<'_>,
) -> Result<Vec<Node>, AppError> {
    let store = &*versions.store;
    check_deployable(version)?;
    let builds = builds_of(store, version).await?;
    if let Some(name) = of.release {
        let release = table::release(store, &version.app, name).await?;
        check_builds(&release, &builds)?;
    }
    let known = known_inputs(version, &install.inputs);
    let inputs = resolve_inputs(version, &known, &install.answers, install.sealing())?;
    let parts = table::parts(store, &install.id).await?;
    let deployed = table::deployed_among(&parts);
    let scope = DeployScope {
        only: of.only.clone(),
        alone: of.alone,
        all: of.all,
        provision: of.provision,
        first: deployed.is_empty(),
        inputs_changed: of
            .former_inputs
            .iter()
            .any(|(name, former)| install.inputs.get(name).unwrap_or(&Value::Null) != former),
        role: of.role.map(str::to_owned),
    };
    let required = sandbox_reads::required(version);
    let off = toggles::off(version, &install.toggles);
    let on = install.toggles.iter().filter(|(_, on)| **on).map(|(name, _)| name.clone()).collect();
    // The earlier versions are needed only where something is removed.
    let is_removing = parts.keys().any(|name| off.contains(name));
    let none = BTreeMap::new();
    let standing = if is_removing { &parts } else { &none };
    let standing = StandingParts::load(versions, &version.app, standing).await?;
    let toggles = TogglesState { off: &off, on: &on, there: &standing.parts()? };
    let (builds, inputs, deployed, required) = (&builds, &inputs, &deployed, &required);
    let copied = copied_secrets(store, install).await?;
    let secrets = SecretsState { digests: &install.secrets, copied: copied.as_ref().map(copies) };
    let has_gate = version.components.iter().filter_map(checked).any(|health| health.block_deploy);
    let healthy = &if has_gate { healthy(store, &install.id, deployed).await? } else { BTreeSet::new() };
    let (licence, serial) = (install.licence_serial(), of.serial);
    let input = DeployInput { version, builds, inputs, secrets, deployed, healthy, toggles, required, licence, serial };
    let nodes = deploy_nodes(input, &scope)?;
    check_not_revoked(&nodes, builds, deployed)?;
    Ok(nodes)
}

/// Checks that `builds` made exactly the artifacts that the release fixed.
fn check_builds(release: &ReleaseRecord, builds: &BTreeMap<ComponentName, Build>) -> Result<(), AppError> {
    for (component, wanted) in &release.contents.artifacts {
        let found = builds.get(component).and_then(|build| Some(&build.usable()?.digest));
        if found != Some(wanted) {
            let found = found.map_or_else(|| "no artifact".to_owned(), |found| format!("artifact `{found}`"));
            return Err(AppError::conflict(format!(
                "component `{component}` has {found}, but release `{}` contains `{wanted}`; create another release",
                release.name
            )));
        }
    }
    Ok(())
}

/// Refuses to deploy a revoked artifact to an install that does not have it. An artifact that the install has may be
/// deployed again, for example with other inputs.
fn check_not_revoked(
    nodes: &[Node],
    builds: &BTreeMap<ComponentName, Build>,
    deployed: &BTreeMap<ComponentName, Deployed>,
) -> Result<(), AppError> {
    for deploys in nodes.iter().filter_map(|node| node.target.deploys()) {
        let has = deployed.get(&deploys.part).is_some_and(|there| there.artifact == *deploys.artifact);
        let revoked = builds.get(&deploys.part).and_then(|build| build.revoked.as_ref());
        if let (Some(why), false) = (revoked, has) {
            let (part, artifact) = (&deploys.part, deploys.artifact);
            return Err(AppError::conflict(format!(
                "artifact `{artifact}` of component `{part}` was revoked: {why}; change its source and build it again, or deploy a \
                 version without it"
            )));
        }
    }
    Ok(())
}

/// Returns the secrets that were copied into the install's cluster; `None` if none were. A deploy of a version that
/// copies no secrets still removes the copies of an earlier version.
async fn copied_secrets(store: &dyn Store, install: &Install) -> Result<Option<CopiedSecrets>, AppError> {
    let record: Option<Stored<CopiedSecrets>> = load(store, &table::copied_secrets_key(&install.id)).await?;
    Ok(record.map(|record| record.value))
}

const fn copies(record: &CopiedSecrets) -> Copied<'_> {
    Copied { fingerprint: &record.fingerprint, others: record.others }
}

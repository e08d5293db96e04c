//! Plans health checks outside of deploys. This is done twice: when a check is requested, and when its workflow runs.

use std::collections::{BTreeMap, BTreeSet};

use freehold_domain::install::Install;
use freehold_domain::plan::health_check::{NotAsked, check_node, is_checked_as};
use freehold_domain::plan::{DeployInput, SecretsState, TogglesState};
use freehold_domain::workflow::Node;
use freehold_protocol::ComponentName;

use crate::AppError;
use crate::app_version::versions::{Version, Versions};
use crate::part::standing_parts::StandingParts;
use crate::table::{self, RanRecord, Stored, load};

/// The checks of one workflow.
#[derive(Debug)]
pub(crate) struct HealthPlan {
    /// The nodes that check a component.
    pub(crate) nodes: Vec<Node>,
    /// The reasons why the other components are not checked.
    pub(crate) left_out: Vec<NotAsked>,
}

/// Returns the checks of the components in `only`, or of all deployed components that can be checked. Each component is
/// checked with the config of the version that all components were last deployed with. A component that was deployed
/// alone after that is checked with the config of its own version.
///
/// # Errors
/// The errors of the store and of [`Versions::load`], and NotFound for a role that a version names but does not define.
pub(crate) async fn plan_health_check(
    versions: &Versions,
    install: &Install,
    only: &BTreeSet<ComponentName>,
    serial: u64,
) -> Result<HealthPlan, AppError> {
    let app = install.require_app()?;
    let deployed = table::deployed(&*versions.store, &install.id).await?;
    let standing = StandingParts::load(versions, app, &deployed).await?;
    let present = present(versions, install).await?;
    let absent = only.iter().filter(|name| !deployed.contains_key(*name)).cloned().map(NotAsked::Absent);
    let mut plan = HealthPlan { nodes: Vec::new(), left_out: absent.collect() };
    for one in standing.parts()?.iter().filter(|one| only.is_empty() || only.contains(&one.part.name)) {
        let is_by = |(present, serial): &&(Version, u64)| {
            deployed.get(&one.part.name).is_some_and(|live| is_checked_as(&present.document, *serial, live))
        };
        let by = present.as_ref().filter(is_by).map(|(present, _)| (&*present.document, &present.version));
        let (version, digest) = by.unwrap_or((one.document, &one.version));
        // A check needs the version and the records of what is deployed, but no values of inputs.
        let input = DeployInput {
            version,
            builds: &BTreeMap::new(),
            inputs: &BTreeMap::new(),
            secrets: SecretsState { digests: &install.secrets, copied: None },
            healthy: &BTreeSet::new(),
            toggles: TogglesState::none(),
            deployed: &deployed,
            required: &BTreeMap::new(),
            licence: install.licence_serial(),
            serial,
        };
        match check_node(input, digest, &one.part.name)? {
            Ok(node) => plan.nodes.push(node),
            Err(why) => plan.left_out.push(why),
        }
    }
    Ok(plan)
}

/// Returns the version of the last deploy of all components, and the serial of this deploy; `None` before the first
/// such deploy.
pub(super) async fn present(versions: &Versions, install: &Install) -> Result<Option<(Version, u64)>, AppError> {
    let Some(version) = install.version() else { return Ok(None) };
    let ran: Option<Stored<RanRecord>> = load(&*versions.store, &table::ran_key(&install.id)).await?;
    let version = versions.load(install.require_app()?, Some(version)).await?;
    Ok(Some((version, ran.map_or(0, |ran| ran.value.serial))))
}

//! Plans health checks apart from deploys. This is done twice: when a check is requested, and when its workflow runs.

use std::collections::{BTreeMap, BTreeSet};

use freehold_domain::install::Install;
use freehold_domain::plan::health_check::{NotAsked, check_node};
use freehold_domain::plan::{DeployInput, SecretsState, TogglesState};
use freehold_domain::workflow::Node;
use freehold_protocol::ComponentName;

use crate::AppError;
use crate::app_version::versions::Versions;
use crate::part::standing_parts::StandingParts;
use crate::table;

/// The checks of one workflow.
#[derive(Debug)]
pub(crate) struct HealthPlan {
    /// The nodes that check a component.
    pub(crate) nodes: Vec<Node>,
    /// The reasons why the other components are not checked.
    pub(crate) left_out: Vec<NotAsked>,
}

/// Returns the checks of the components in `only`, or of all deployed components that can be checked. Each is checked
/// by the config of the version that deployed it.
///
/// # Errors
/// The errors of the store and of [`Versions::load`], and NotFound for a role that a version names and does not have.
pub(crate) async fn plan_health_check(
    versions: &Versions,
    install: &Install,
    only: &BTreeSet<ComponentName>,
    serial: u64,
) -> Result<HealthPlan, AppError> {
    let app = install.require_app()?;
    let deployed = table::deployed(&*versions.store, &install.id).await?;
    let standing = StandingParts::load(versions, app, &deployed).await?;
    let absent = only.iter().filter(|name| !deployed.contains_key(*name)).cloned().map(NotAsked::Absent);
    let mut plan = HealthPlan { nodes: Vec::new(), left_out: absent.collect() };
    for one in standing.parts()?.iter().filter(|one| only.is_empty() || only.contains(&one.part.name)) {
        // A check needs the version and what is deployed, and no values.
        let input = DeployInput {
            version: one.document,
            builds: &BTreeMap::new(),
            inputs: &BTreeMap::new(),
            secrets: SecretsState { digests: &install.secrets, copied: None },
            healthy: &BTreeSet::new(),
            toggles: TogglesState::none(),
            deployed: &deployed,
            required: &BTreeMap::new(),
            serial,
        };
        match check_node(input, &one.part.name)? {
            Ok(node) => plan.nodes.push(node),
            Err(why) => plan.left_out.push(why),
        }
    }
    Ok(plan)
}

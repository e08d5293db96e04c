//! Plans drift checks from the table. This is done twice: when a check is requested, and when its workflow runs.

use std::collections::{BTreeMap, BTreeSet};

use freehold_domain::inputs::{known_inputs, resolve_inputs_for};
use freehold_domain::install::Install;
use freehold_domain::plan::drift::{NoCheck, drift_node};
use freehold_domain::plan::{DeployInput, SecretsState, TogglesState};
use freehold_domain::workflow::Node;
use freehold_protocol::ComponentName;

use crate::AppError;
use crate::app_version::versions::Versions;
use crate::part::standing_parts::StandingParts;
use crate::stack::sandbox_reads;
use crate::table;

/// The checks of one workflow.
#[derive(Debug)]
pub(crate) struct DriftPlan {
    /// The nodes that check a part.
    pub(crate) nodes: Vec<Node>,
    /// The parts that are not checked, with the reason: no check exists for their kind, or they cannot be checked now.
    pub(crate) left_out: Vec<(ComponentName, NoCheck)>,
}

/// Returns the checks of the parts in `only`, or of all deployed parts. Each part is compared with the version that deployed
/// it.
///
/// # Errors
/// The errors of the store and of [`Versions::load`], and NotFound for a role that a version names but does not define.
pub(crate) async fn plan_drift(
    versions: &Versions,
    install: &Install,
    only: &BTreeSet<ComponentName>,
    serial: u64,
) -> Result<DriftPlan, AppError> {
    let app = install.require_app()?;
    let deployed = table::deployed(&*versions.store, &install.id).await?;
    let standing = StandingParts::load(versions, app, &deployed).await?;
    let absent = only.iter().filter(|name| !deployed.contains_key(*name));
    let mut plan = DriftPlan {
        nodes: Vec::new(),
        left_out: absent.map(|name| (name.clone(), NoCheck::Absent(name.clone()))).collect(),
    };
    for one in standing.parts()?.iter().filter(|one| only.is_empty() || only.contains(&one.part.name)) {
        let (version, name) = (one.document, &one.part.name);
        let known = known_inputs(version, &install.inputs);
        let resolved = resolve_inputs_for(version, &known, &install.answers, install.sealing(), &one.part.references);
        let Ok(inputs) = resolved else {
            plan.left_out.push((name.clone(), NoCheck::Behind(name.clone())));
            continue;
        };
        let input = DeployInput {
            version,
            builds: &BTreeMap::new(),
            inputs: &inputs,
            secrets: SecretsState { digests: &install.secrets, copied: None },
            healthy: &BTreeSet::new(),
            toggles: TogglesState::none(),
            deployed: &deployed,
            required: &sandbox_reads::required(version),
            licence: install.licence_serial(),
            serial,
        };
        match drift_node(input, name)? {
            Ok(node) => plan.nodes.push(node),
            Err(why) => plan.left_out.push((name.clone(), why)),
        }
    }
    Ok(plan)
}

//! Binds the actions of a workflow to the builds of the directories that their steps run in.

use std::collections::BTreeMap;

use freehold_protocol::ComponentName;
use freehold_protocol::app_version::{Action, AppVersion};

use super::PlanError;
use crate::build::Build;
use crate::workflow::{Node, StepBuild, Target};

/// Returns whether a node runs an action with a step in a directory. Only such nodes need [`bind`].
pub fn has_directories(version: &AppVersion, nodes: &[Node]) -> bool {
    nodes.iter().filter_map(|node| action_of(version, node)).any(|action| !action.step_repos.is_empty())
}

/// Gives each node of an action the builds of the directories that its steps run in. The builds are fixed here, so that
/// the workflow runs the same files whatever is built meanwhile. A node that is skipped needs no builds.
///
/// # Errors
/// [`PlanError::StepNotBuilt`].
pub fn bind(
    version: &AppVersion,
    nodes: &mut [Node],
    builds: &BTreeMap<ComponentName, Build>,
) -> Result<(), PlanError> {
    for node in nodes.iter_mut().filter(|node| !node.state.is_terminal()) {
        let Some(action) = action_of(version, node) else { continue };
        let found = action.sources().into_iter().map(|source| {
            let built = builds.get(&source.name).and_then(|build| Some((build, build.usable()?)));
            let (build, artifact) = built.ok_or_else(|| PlanError::StepNotBuilt {
                app: version.app.to_string(),
                action: action.name.clone(),
                component: source.name.clone(),
            })?;
            Ok(StepBuild { component: source.name, build: build.id.clone(), artifact: artifact.digest.clone() })
        });
        let bound = found.collect::<Result<Vec<StepBuild>, PlanError>>()?;
        if let Target::Action { directories, .. } = &mut node.target {
            *directories = bound;
        }
    }
    Ok(())
}

fn action_of<'a>(version: &'a AppVersion, node: &Node) -> Option<&'a Action> {
    if let Target::Action { action, .. } = &node.target { version.action(action) } else { None }
}

//! Compares two versions of an app. Predicts the nodes that a deploy of the second version runs in an install that has
//! the first version.

mod answers;
mod impact;
mod items;
mod roles;
mod values;

use freehold_protocol::AppName;
use freehold_protocol::app_version::AppVersion;
use serde::{Deserialize, Serialize};

use crate::contacted_hosts;

pub use freehold_permissions::{Effect, Permission};

pub use crate::contacted_hosts::{Egress, EgressChange};
pub use answers::{Answer, Question, Reason};
pub use impact::{Cause, Run};
pub use items::{Changed, Items, Named};
pub use roles::{Presence, RoleDiff};
pub use values::Change;

/// The differences between two versions. Every list is sorted, and is empty when nothing of its kind differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diff {
    pub app: AppName,
    /// Inputs and secrets of the second version for which an install of the first version has no valid answer.
    pub answers: Vec<Answer>,
    /// Roles whose permissions or descriptions differ.
    pub roles: Vec<RoleDiff>,
    pub egress: EgressChange,
    pub components: Items,
    pub actions: Items,
    pub inputs: Items,
    pub secrets: Items,
    pub runbooks: Items,
    pub policies: Items,
    /// The settings that differ: sandbox, runner, stack, input groups, Kubernetes contexts, default labels, the matrix of
    /// operation roles and the runbooks that run after a deploy.
    pub settings: Items,
    /// The texts of the app that differ: name, description and readme.
    pub texts: Vec<Change>,
    /// The nodes that a deploy of the second version runs, in the order of the deploy.
    pub deploy: Vec<Run>,
}

impl Diff {
    /// Returns whether nothing differs.
    pub fn is_empty(&self) -> bool {
        let items = [
            &self.components,
            &self.actions,
            &self.inputs,
            &self.secrets,
            &self.runbooks,
            &self.policies,
            &self.settings,
        ];
        items.into_iter().all(Items::is_empty)
            && self.answers.is_empty()
            && self.roles.is_empty()
            && self.egress.is_empty()
            && self.texts.is_empty()
            && self.deploy.is_empty()
    }
}

/// Compares two versions of an app.
///
/// The predicted nodes are the nodes that [`crate::plan::deploy_nodes`] plans for an install with the following state:
/// Everything of `from` is deployed. The vendor answered the required inputs without a default, and no others. The
/// customer answered all questions of the install stack.
pub fn diff(from: &AppVersion, to: &AppVersion) -> Diff {
    Diff {
        app: to.app.clone(),
        answers: answers::answers(from, to),
        roles: roles::roles(from, to),
        egress: contacted_hosts::change(from, to),
        components: items::components(from, to),
        actions: items::actions(from, to),
        inputs: items::inputs(from, to),
        secrets: items::secrets(from, to),
        runbooks: items::runbooks(from, to),
        policies: items::policies(from, to),
        settings: items::settings(from, to),
        texts: items::texts(from, to),
        deploy: impact::deploy(from, to),
    }
}

#[cfg(test)]
mod tests;

//! Plans a teardown: each component is removed before its dependencies, and the sandbox after all components. After a
//! teardown of everything, a node lists what still exists.

use std::collections::BTreeSet;

use freehold_protocol::app_version::{AppVersion, Component, Sandbox};
use freehold_protocol::order::Mode;
use freehold_protocol::{AppName, BuildId, ComponentName, Digest};

use crate::graph::order::reachable;
use crate::plan::copies;
use crate::runs_as::{Operation, UnknownRole, runs_as};
use crate::workflow::{Node, NodeState, Target, TeardownParts};

/// A part of the app that may have resources: it is deployed, or a deploy of it failed. The description of the part is
/// that of its last deploy.
#[derive(Debug, Clone)]
pub struct Standing<'a> {
    pub part: Component,
    pub document: &'a AppVersion,
    pub version: Digest,
    pub artifact: Digest,
    /// Whether no deploy of the part has succeeded. Then its removal is not an event, because the actions of the event
    /// expect a part that works.
    pub attempted: bool,
}

/// The reason why a teardown cannot be planned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TeardownError {
    #[error("{0} is not deployed, so there is nothing to remove")]
    Absent(String),
    #[error(
        "the sandbox cannot be removed while components live in it: `{}`; remove them too by leaving `--sandbox` out", .0.join("`, `")
    )]
    InUse(Vec<String>),
    #[error(transparent)]
    UnknownRole(#[from] UnknownRole),
    #[error("value cannot be written as JSON: {0}")]
    Unwritable(String),
}

/// The parts that a teardown covers, and the role and serial of its nodes.
#[derive(Debug, Clone, Copy)]
pub struct TeardownScope<'a> {
    pub app: &'a AppName,
    pub what: &'a TeardownParts,
    /// The role for every node, if the person who started the workflow chose one.
    pub role: Option<&'a str>,
    pub serial: u64,
    /// Whether the cluster may have copies of secrets.
    pub copies: bool,
}

/// Returns the nodes that remove the parts of `scope`. `there` are all parts of the install. A component is removed together
/// with all its dependents.
///
/// # Errors
/// [`TeardownError`] when the part is not deployed, or when components still need the sandbox.
pub fn teardown_nodes(there: &[Standing<'_>], scope: TeardownScope<'_>) -> Result<Vec<Node>, TeardownError> {
    let chosen = chosen(there, scope)?;
    let parts = || there.iter().filter(|one| chosen.contains(&one.part.name));
    let mut nodes = Vec::new();
    for standing in parts() {
        let name = &standing.part.name;
        let before = parts().filter(|other| needs(other, standing)).map(|other| other.part.name.to_string());
        let node = removal(standing, scope.app, scope.role, scope.serial)?;
        nodes.push(Node { name: name.to_string(), dependencies: before.collect(), ..node });
    }
    if scope.copies && matches!(scope.what, TeardownParts::All | TeardownParts::Sandbox) {
        copies::remove_copies(&mut nodes, scope.serial);
    }
    Ok(nodes)
}

/// The name of the node that lists what still exists. No other node can have it: a component's name has no colon.
const LEFTOVERS: &str = "leftovers:list";

/// The time limit of this node, in seconds. The list usually takes a few seconds.
const LEFTOVERS_TIMEOUT_SECS: u32 = 120;

/// Adds the node that lists what still exists after the removals among `nodes`. It runs under the role of a part that
/// is removed last: the customer permits this role, because the removal itself needs it.
pub fn add_leftovers(nodes: &mut Vec<Node>, serial: u64) {
    let removes = |node: &&Node| matches!(node.target, Target::Teardown { .. } | Target::Secrets { .. });
    let dependencies: BTreeSet<String> = nodes.iter().filter(removes).map(|node| node.name.clone()).collect();
    let is_removal = |node: &&Node| matches!(node.target, Target::Teardown { .. });
    let is_last = |node: &&Node| {
        let mut others = nodes.iter().filter(is_removal);
        is_removal(node) && !others.any(|other| other.dependencies.contains(&node.name))
    };
    let runs_as = nodes.iter().find(is_last).and_then(|node| node.runs_as.clone());
    let node = Node::waiting(LEFTOVERS.to_owned(), Target::Leftovers, LEFTOVERS_TIMEOUT_SECS);
    nodes.push(Node { dependencies, serial, runs_as, ..node });
}

/// Returns the node that removes one part. The caller sets its name and its dependencies.
///
/// # Errors
/// [`TeardownError::UnknownRole`], [`TeardownError::Unwritable`].
pub(super) fn removal(
    standing: &Standing<'_>,
    app: &AppName,
    role: Option<&str>,
    serial: u64,
) -> Result<Node, TeardownError> {
    let name = &standing.part.name;
    let source = standing.part.source_digest().map_err(|error| TeardownError::Unwritable(error.to_string()))?;
    Ok(Node {
        name: name.to_string(),
        target: Target::Teardown {
            part: name.clone(),
            version: standing.version.clone(),
            build: Some(BuildId::derive(app, &source, name)),
            artifact: standing.artifact.clone(),
            sandbox: standing.sandbox().is_some(),
        },
        dependencies: BTreeSet::new(),
        timeout_secs: standing.part.deploy_timeout_secs,
        serial,
        runs_as: runs_as(standing.document, standing.operation(), role, Mode::Deprovision)?,
        retries: 0,
        retried: 0,
        earlier: 0,
        state: NodeState::Waiting,
    })
}

impl<'a> Standing<'a> {
    /// Returns the description of the sandbox, if this part is the sandbox. In an app without a sandbox, a component
    /// may have the same name.
    fn sandbox(&self) -> Option<&'a Sandbox> {
        self.document.sandbox.as_ref().filter(|_| self.part.name.is_sandbox())
    }

    fn operation(&self) -> Operation<'_> {
        self.sandbox().map_or(Operation::Teardown(&self.part), Operation::Deprovision)
    }
}

/// Returns whether `one` needs `other`: `one` depends on `other`, or `other` is the sandbox.
fn needs(one: &Standing<'_>, other: &Standing<'_>) -> bool {
    let itself = one.part.name == other.part.name;
    !itself && (other.sandbox().is_some() || one.part.dependencies.contains(&other.part.name))
}

fn chosen(there: &[Standing<'_>], scope: TeardownScope<'_>) -> Result<BTreeSet<ComponentName>, TeardownError> {
    let names = || there.iter().map(|one| one.part.name.clone());
    let sandbox = ComponentName::sandbox();
    let has_sandbox = there.iter().any(|one| one.sandbox().is_some());
    let has = |name: &ComponentName| there.iter().any(|one| one.part.name == *name && one.sandbox().is_none());
    match scope.what {
        TeardownParts::All => Ok(names().collect()),
        TeardownParts::Sandbox if !has_sandbox => Err(TeardownError::Absent("the sandbox".to_owned())),
        TeardownParts::Sandbox => {
            let users: Vec<String> = names().filter(|name| *name != sandbox).map(String::from).collect();
            if users.is_empty() { Ok(BTreeSet::from([sandbox])) } else { Err(TeardownError::InUse(users)) }
        }
        TeardownParts::Component { component } if !has(component) => {
            Err(TeardownError::Absent(format!("component `{component}`")))
        }
        TeardownParts::Component { component } => Ok(with_dependents(there, component)),
    }
}

fn with_dependents(there: &[Standing<'_>], component: &ComponentName) -> BTreeSet<ComponentName> {
    let dependents = |name: &ComponentName| {
        let depends = |one: &&Standing<'_>| one.part.dependencies.contains(name);
        there.iter().filter(depends).map(|one| one.part.name.clone()).collect()
    };
    reachable([component.clone()], dependents)
}

#[cfg(test)]
mod tests;

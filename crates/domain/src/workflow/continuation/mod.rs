//! Continues a workflow that has ended without success: failed nodes run again, or the workflow continues without one of them.

use std::collections::BTreeSet;

use freehold_protocol::order::AskedBy;
use freehold_protocol::{ComponentName, InstallId, JobId, Timestamp, WorkflowId};

use super::act::{Act, Again};
use super::{Node, NodeState, Target, Workflow, WorkflowKind, WorkflowState};
use crate::graph::order::reachable;

/// The maximum number of continuations of a workflow. Each of them makes its row in the table larger.
pub const MAX_CONTINUED: usize = 20;

/// The reason why a workflow cannot be continued.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContinuationError {
    #[error("workflow `{0}` has not ended; follow it with `freehold workflow watch {0}`, or cancel it first")]
    NotEnded(WorkflowId),
    #[error("workflow `{0}` succeeded, so it has nothing left to run")]
    Succeeded(WorkflowId),
    #[error(
        "workflow `{workflow}` is of the kind {kind}, which cannot be continued; start another one with `{command}`"
    )]
    Kind { workflow: WorkflowId, kind: &'static str, command: String },
    #[error(
        "workflow `{workflow}` ended before its nodes were planned; start another one with `freehold deploy {install}`"
    )]
    NeverPlanned { workflow: WorkflowId, install: InstallId },
    #[error(
        "job `{job}` of workflow `{workflow}` has not ended yet, although the workflow has; try again when \
         `freehold job show {job}` shows that the job has ended"
    )]
    JobOpen { workflow: WorkflowId, job: JobId },
    #[error("no node of workflow `{workflow}` can run again; plan its work anew with `freehold deploy {install}`")]
    NothingToRun { workflow: WorkflowId, install: InstallId },
    #[error("workflow `{workflow}` has no node `{node}`; `freehold workflow show {workflow}` shows its nodes")]
    NoNode { workflow: WorkflowId, node: String },
    #[error("node `{node}` of workflow `{workflow}` is {state}; only a node whose job failed can be {what}")]
    NotFailed { workflow: WorkflowId, node: String, state: String, what: &'static str },
    #[error("node `{node}` of workflow `{workflow}` cannot be skipped: {why}")]
    NotSkippable { workflow: WorkflowId, node: String, why: String },
    #[error(
        "workflow `{workflow}` was continued {MAX_CONTINUED} times, which is the maximum; start another one with \
         `freehold deploy {install}`"
    )]
    TooOften { workflow: WorkflowId, install: InstallId },
}

impl Workflow {
    /// Returns how often the workflow was continued. Each continuation has its own execution.
    pub fn attempt(&self) -> u32 {
        u32::try_from(self.again.len()).unwrap_or(u32::MAX)
    }

    /// Returns the time at which the workflow began, or was last continued.
    pub fn began_at(&self) -> Timestamp {
        self.again.last().map_or(self.created_at, |again| again.at)
    }

    /// Returns the kind of the machine that executes the workflow now. A provisioning that is continued already has its runner,
    /// so that its machine does not wait for one.
    pub const fn machine(&self) -> WorkflowKind {
        match self.kind {
            WorkflowKind::ProvisionInstall if !self.again.is_empty() => WorkflowKind::DeployComponents,
            kind => kind,
        }
    }

    /// Returns who asked for the work that runs now: whoever continued the workflow last, or else started it.
    pub fn asker(&self) -> Option<&AskedBy> {
        self.again.last().map(|again| &again.by).or(self.asked_by.as_ref())
    }

    /// Returns whether a person let the workflow continue without one of its nodes.
    pub fn has_skipped(&self) -> bool {
        self.nodes.iter().any(|node| matches!(node.state, NodeState::SkippedByRequest { .. }))
    }

    /// Returns the workflow as pending again. Nodes that succeeded, and nodes that the act does not run, stay as they are.
    /// `deployed` has the parts of the install that were deployed with success: other parts can read their outputs.
    ///
    /// # Errors
    /// [`ContinuationError`].
    pub fn continued(&self, again: Again, deployed: &BTreeSet<ComponentName>) -> Result<Self, ContinuationError> {
        self.check_can_continue()?;
        let chosen = match &again.act {
            Act::Resume => self.nodes.iter().map(|node| node.name.clone()).collect(),
            Act::Retry { node } => self.failed_with_dependents(node, "retried")?,
            Act::Skip { node } => {
                let chosen = self.failed_with_dependents(node, "skipped")?;
                self.check_skippable(node, deployed)?;
                chosen
            }
        };
        let mut next = self.clone();
        for node in next.nodes.iter_mut().filter(|node| chosen.contains(&node.name)) {
            node.reopen(&again);
        }
        next.skip_unreachable();
        let runs = next.nodes.iter().any(|node| node.state == NodeState::Waiting);
        if !runs && !matches!(again.act, Act::Skip { .. }) {
            return Err(ContinuationError::NothingToRun { workflow: self.id.clone(), install: self.install.clone() });
        }
        next.again.push(again);
        next.cancel_requested = None;
        next.cancelled_by = None;
        next.cancel_reason = String::new();
        next.state = WorkflowState::Pending;
        Ok(next)
    }

    fn check_can_continue(&self) -> Result<(), ContinuationError> {
        let (workflow, install) = (self.id.clone(), self.install.clone());
        match &self.state {
            WorkflowState::Pending | WorkflowState::Running { .. } => {
                return Err(ContinuationError::NotEnded(workflow));
            }
            WorkflowState::Succeeded { .. } => return Err(ContinuationError::Succeeded(workflow)),
            WorkflowState::Failed { .. } | WorkflowState::Cancelled { .. } => {}
        }
        if !self.kind.is_exclusive() {
            let command = match self.kind {
                WorkflowKind::BuildComponents => "freehold build APP".to_owned(),
                WorkflowKind::UpgradeRunner => format!("freehold install upgrade-runner {install}"),
                WorkflowKind::RunAction => format!("freehold action run {install} ACTION"),
                WorkflowKind::DetectDrift => format!("freehold drift detect {install}"),
                WorkflowKind::CheckHealth => format!("freehold health check {install}"),
                WorkflowKind::ProvisionInstall | WorkflowKind::DeployComponents | WorkflowKind::TeardownInstall => {
                    format!("freehold deploy {install}")
                }
            };
            return Err(ContinuationError::Kind { workflow, kind: self.kind.machine(), command });
        }
        if self.nodes.is_empty() {
            return Err(ContinuationError::NeverPlanned { workflow, install });
        }
        if let Some(job) = self.active_jobs().next() {
            return Err(ContinuationError::JobOpen { workflow, job: job.clone() });
        }
        if self.again.len() >= MAX_CONTINUED {
            return Err(ContinuationError::TooOften { workflow, install });
        }
        Ok(())
    }

    /// Returns the node `name`, which must have failed, and all nodes that come after it.
    fn failed_with_dependents(&self, name: &str, what: &'static str) -> Result<BTreeSet<String>, ContinuationError> {
        let (workflow, node) = (self.id.clone(), name.to_owned());
        let Some(found) = self.node(name) else { return Err(ContinuationError::NoNode { workflow, node }) };
        if !matches!(found.state, NodeState::Failed { .. }) {
            let state = found.state.as_str().to_owned();
            return Err(ContinuationError::NotFailed { workflow, node, state, what });
        }
        let dependents = |name: &String| {
            let nodes = self.nodes.iter().filter(|other| other.dependencies.contains(name));
            nodes.map(|other| other.name.clone()).collect()
        };
        Ok(reachable([node], dependents))
    }

    /// Refuses to skip a node that other nodes need.
    fn check_skippable(&self, name: &str, deployed: &BTreeSet<ComponentName>) -> Result<(), ContinuationError> {
        let Some(node) = self.node(name) else { return Ok(()) };
        let why = match &node.target {
            Target::Action { .. } | Target::Preflight | Target::Leftovers | Target::Health { .. } => None,
            Target::Component { .. } | Target::Sandbox { .. } => self.missing_outputs(node, deployed),
            Target::Secrets { .. } => Some("no other node copies the secrets that components read".to_owned()),
            Target::Teardown { .. } => {
                Some("it may still use what the next nodes remove; retry it with `freehold job retry`".to_owned())
            }
            Target::Build { .. } | Target::Upgrade | Target::DetectDrift { .. } => {
                Some("its workflow has no other node".to_owned())
            }
        };
        let (workflow, node) = (self.id.clone(), name.to_owned());
        why.map_or(Ok(()), |why| Err(ContinuationError::NotSkippable { workflow, node, why }))
    }

    /// Returns why nodes after `node` have no outputs to read; `None` if its part was deployed before, or if no node
    /// comes after it.
    fn missing_outputs(&self, node: &Node, deployed: &BTreeSet<ComponentName>) -> Option<String> {
        let part = node.target.deploys()?.part;
        let readers: Vec<String> = self
            .nodes
            .iter()
            .filter(|other| other.dependencies.contains(&node.name))
            .map(|other| format!("`{}`", other.name))
            .collect();
        if readers.is_empty() || deployed.contains(&part) {
            return None;
        }
        let readers = readers.join(", ");
        Some(format!("`{part}` was never deployed in this install, so it has no outputs for {readers} to read"))
    }

    fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| node.name == name)
    }
}

impl Node {
    /// Makes a node that failed or was not reached wait again, or marks the node as skipped if `again` skips it.
    fn reopen(&mut self, again: &Again) {
        let is_named = again.act.node().is_none_or(|name| name == self.name);
        match (&self.state, &again.act) {
            (NodeState::Failed { .. }, Act::Skip { .. }) if is_named => {
                self.state = NodeState::SkippedByRequest { by: again.by.clone(), reason: again.reason.clone() };
            }
            (NodeState::Failed { .. }, Act::Resume | Act::Retry { .. }) if is_named => {
                self.earlier += 1 + self.retried;
                self.retried = 0;
                self.state = NodeState::Waiting;
            }
            (NodeState::Skipped { left_out: false, .. }, _) => self.state = NodeState::Waiting,
            (
                NodeState::Failed { .. }
                | NodeState::Waiting
                | NodeState::Active { .. }
                | NodeState::Succeeded { .. }
                | NodeState::Skipped { left_out: true, .. }
                | NodeState::SkippedByRequest { .. }
                | NodeState::Refused { .. },
                _,
            ) => {}
        }
    }
}

#[cfg(test)]
mod tests;

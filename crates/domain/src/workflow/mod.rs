//! Workflows: the work for an install that executions of a state machine run, its graph of nodes, and the decision
//! which nodes run next.

mod act;
mod continuation;
mod node;
mod reasons;
mod request;
mod retry;
mod roll_back;
mod target;
mod verification;

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::order::{AskedBy, Mode};
use freehold_protocol::{
    ActionName, BuildId, ComponentName, Digest, Group, InstallId, JobId, RunId, RunbookName, Timestamp, WorkflowId,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::graph::order::{self, Disorder, Named};
use crate::job::{Job, JobState, NewJob};
use crate::runs_as::RunsAs;
use crate::sensitive_outputs::with_digests;

pub use act::{Act, Again};
pub use continuation::{ContinuationError, MAX_CONTINUED};
pub use node::{Node, NodeState};
pub use request::{Request, RunTrigger, TeardownParts, WorkflowKind};
pub use retry::MAX_RETRIES;
pub use target::{Deploys, StepBuild, Target, Use};
pub use verification::{Before, NotSame, RollBack, RolledBack};

/// A workflow: work for an install. It has one execution of a state machine, and one more for each continuation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Workflow {
    pub id: WorkflowId,
    pub install: InstallId,
    pub kind: WorkflowKind,
    pub mode: Mode,
    pub created_at: Timestamp,
    /// The serial of all orders of the workflow. Later workflows of the install have higher serials.
    pub serial: u64,
    /// The request from which the workflow is planned.
    pub request: Request,
    /// The digest of the request's body, by which another request with the same idempotency key is recognized; absent in
    /// records of earlier versions, and for work that no such request asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_digest: Option<Digest>,
    /// Who asked for the workflow; absent in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<AskedBy>,
    /// Whether changes start also while the customer's change windows are closed, because the caller asked for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub now: bool,
    /// The run of a runbook whose step the workflow is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The app version that the workflow deploys; absent until the workflow is planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Digest>,
    /// The runbooks that run after a deploy of all components has succeeded, in this order; known once it is planned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub post_deploy_runbooks: Vec<RunbookName>,
    /// The image in which the workflow's jobs run their programs; absent until the workflow is planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_image: Option<ToolImageBuild>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_requested: Option<Timestamp>,
    /// Who asked for the cancel; absent without one, and in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled_by: Option<AskedBy>,
    /// The reason, in the words of the person who asked for the cancel; empty without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cancel_reason: String,
    pub nodes: Vec<Node>,
    pub state: WorkflowState,
    /// The time of the latest report about the jobs of the workflow that have ended; absent when there is none, and in
    /// records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_report: Option<Timestamp>,
    /// Each time that the workflow was continued after it had ended, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub again: Vec<Again>,
    /// The digest of the install's inputs and toggles from which a deploy was planned; absent in records of earlier
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_from: Option<Digest>,
    /// The part of the workflow in a roll back.
    #[serde(default, skip_serializing_if = "RollBack::is_none")]
    pub roll_back: RollBack,
    /// The digest that names the row of the nodes, if another version of Freehold planned them and this version would
    /// write them with other fields.
    #[serde(skip)]
    pub graph_of_other_version: Option<Digest>,
    /// The fields that only a later version of Freehold knows. They stay in the row.
    #[serde(flatten)]
    pub later_fields: BTreeMap<String, Value>,
}

/// The component that makes a workflow's tool image, and the build of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolImageBuild {
    pub component: ComponentName,
    pub build: BuildId,
}

/// The state of a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum WorkflowState {
    /// The workflow has just begun or was just continued, or it waits for the runner.
    Pending,
    /// The workflow runs its nodes, at most `slots` of them at the same time.
    Running {
        slots: u32,
    },
    Succeeded {
        ended_at: Timestamp,
    },
    Failed {
        ended_at: Timestamp,
        reason: String,
    },
    Cancelled {
        ended_at: Timestamp,
    },
}

impl WorkflowState {
    /// Returns the state's name.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running { .. } => "running",
            Self::Succeeded { .. } => "succeeded",
            Self::Failed { .. } => "failed",
            Self::Cancelled { .. } => "cancelled",
        }
    }

    /// Returns whether the workflow has ended.
    pub const fn is_terminal(&self) -> bool {
        match self {
            Self::Pending | Self::Running { .. } => false,
            Self::Succeeded { .. } | Self::Failed { .. } | Self::Cancelled { .. } => true,
        }
    }
}

/// The result of a decision: the workflow's next state, and the jobs to queue with it.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Advance {
    pub workflow: Workflow,
    /// New jobs, to be committed together with the workflow and then dispatched.
    pub jobs: Vec<Job>,
    /// Jobs that ended before the workflow was continued, to be queued again with it and then dispatched.
    pub again: Vec<JobId>,
    /// Whether the workflow differs from the workflow before the decision.
    pub changed: bool,
}

/// The reason why the nodes of a workflow cannot run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    #[error("node `{node}` depends on `{missing}`, which is not part of the workflow")]
    UnknownDependency { node: String, missing: String },
    #[error("two nodes are called `{0}`")]
    Duplicate(String),
    #[error("`{0}` depends on itself through other nodes")]
    Cycle(String),
    #[error(transparent)]
    Name(#[from] freehold_protocol::IdError),
}

/// The time for which the records of a check are stored, in seconds.
const CHECK_KEPT_SECS: u64 = 90 * 24 * 3600;

impl Workflow {
    /// Returns the time until which the records of the workflow are stored; `None` for a workflow that may change
    /// something. A check changes nothing, and there may be one in every hour.
    pub fn kept_until(&self) -> Option<Timestamp> {
        self.kind.is_check().then(|| self.created_at.plus_secs(CHECK_KEPT_SECS))
    }

    /// Returns the workflow with `nodes` as its graph, and the jobs of the nodes that can start at once.
    ///
    /// # Errors
    /// [`GraphError`] when the nodes are not an acyclic graph of distinct names.
    pub fn start(&self, nodes: Vec<Node>, slots: u32, now: Timestamp) -> Result<Advance, GraphError> {
        check_graph(&nodes)?;
        let mut next = self.clone();
        next.nodes = nodes;
        next.state = WorkflowState::Running { slots: slots.max(1) };
        let (jobs, again) = next.start_ready(now)?;
        Ok(Advance { workflow: next, jobs, again, changed: true })
    }

    /// Returns the workflow after the end of `job`. The node of the job ends, and if it failed, its dependents are
    /// skipped. Nodes whose dependencies have all succeeded start while slots are free.
    ///
    /// An outcome that was reported after the job was lost changes the reason of its node only: the workflow has
    /// continued without the job, and skipped nodes stay skipped.
    ///
    /// # Errors
    /// [`GraphError::Name`] when a node's group cannot be named. The nodes of a started workflow do not cause this
    /// error.
    pub fn on_job(&self, job: &Job, now: Timestamp) -> Result<Advance, GraphError> {
        let mut next = self.clone();
        let Some(node) = next.nodes.iter_mut().find(|node| node.name == job.node) else {
            return Ok(Advance { workflow: next, jobs: Vec::new(), again: Vec::new(), changed: false });
        };
        let was_active = matches!(&node.state, NodeState::Active { job: active } if *active == job.id);
        if !was_active || !job.state.is_terminal() {
            let changed = node.note_late_report(job);
            return Ok(Advance { workflow: next, jobs: Vec::new(), again: Vec::new(), changed });
        }
        node.state = match &job.state {
            JobState::Succeeded { .. } => NodeState::Succeeded { job: job.id.clone() },
            ended => NodeState::Failed {
                job: job.id.clone(),
                outcome: ended.as_str().to_owned(),
                reason: job.reason().unwrap_or_default(),
            },
        };
        next.last_report = self.last_report.max(job.last_report());
        let made_sandbox = matches!(node.target, Target::Sandbox { .. });
        if let (true, JobState::Succeeded { outputs, sensitive, .. }) = (made_sandbox, &job.state) {
            next.refuse_readers(&with_digests(outputs, sensitive));
        }
        next.skip_unreachable();
        let (jobs, again) = next.start_ready(now)?;
        Ok(Advance { workflow: next, jobs, again, changed: true })
    }

    /// Refuses the components that require an output which the sandbox does not have.
    fn refuse_readers(&mut self, outputs: &BTreeMap<String, Value>) {
        for node in self.nodes.iter_mut().filter(|node| node.state == NodeState::Waiting) {
            if let Target::Component { component, sandbox, .. } = &node.target
                && let Some(reason) = sandbox.refusal(component, outputs)
            {
                node.state = NodeState::Refused { reason };
            }
        }
    }

    /// Returns the workflow with its waiting nodes skipped, on request of `by`. The caller has to cancel the active jobs.
    /// A second request changes nothing.
    pub fn cancel(&self, by: &AskedBy, now: Timestamp) -> Advance {
        let mut next = self.clone();
        if self.state.is_terminal() || self.cancel_requested.is_some() {
            return Advance { workflow: next, jobs: Vec::new(), again: Vec::new(), changed: false };
        }
        next.cancel_requested = Some(now);
        next.cancelled_by = Some(by.clone());
        for node in &mut next.nodes {
            if node.state == NodeState::Waiting {
                node.state = NodeState::not_reached("cancelled on request");
            }
        }
        Advance { workflow: next, jobs: Vec::new(), again: Vec::new(), changed: true }
    }

    /// Returns whether the workflow is running and all its nodes have ended.
    pub fn is_settled(&self) -> bool {
        matches!(self.state, WorkflowState::Running { .. }) && self.nodes.iter().all(|node| node.state.is_terminal())
    }

    /// Returns the ids of the jobs that have not ended.
    pub fn active_jobs(&self) -> impl Iterator<Item = &JobId> {
        self.nodes.iter().filter_map(|node| match &node.state {
            NodeState::Active { job } => Some(job),
            NodeState::Waiting
            | NodeState::Succeeded { .. }
            | NodeState::Failed { .. }
            | NodeState::Skipped { .. }
            | NodeState::SkippedByRequest { .. }
            | NodeState::Refused { .. } => None,
        })
    }

    /// Returns the workflow in its final state. An `error` of the state machine makes it failed; otherwise the states
    /// of its nodes decide. A pending workflow that somebody cancelled is cancelled whatever its state machine says: it has
    /// changed nothing. A cancel request that stopped nothing does not make the workflow cancelled: jobs may end
    /// before the request reaches them. A workflow that has already ended stays unchanged.
    pub fn finish(&self, error: Option<&str>, now: Timestamp) -> Advance {
        let mut next = self.clone();
        if self.state.is_terminal() {
            return Advance { workflow: next, jobs: Vec::new(), again: Vec::new(), changed: false };
        }
        let ended_at = now;
        next.state = match (error, self.failure(), self.was_stopped()) {
            (Some(_), _, _) if self.state == WorkflowState::Pending && self.cancel_requested.is_some() => {
                WorkflowState::Cancelled { ended_at }
            }
            (Some(error), _, _) => WorkflowState::Failed { ended_at, reason: error.to_owned() },
            (None, Some(reason), _) => WorkflowState::Failed { ended_at, reason },
            (None, None, true) => WorkflowState::Cancelled { ended_at },
            (None, None, false) => WorkflowState::Succeeded { ended_at },
        };
        for node in &mut next.nodes {
            if node.state == NodeState::Waiting {
                node.state = NodeState::not_reached("the workflow ended before this node started");
            }
        }
        Advance { workflow: next, jobs: Vec::new(), again: Vec::new(), changed: true }
    }

    /// Returns whether a cancel request stopped something: a job, a node that had not started, or the planning.
    fn was_stopped(&self) -> bool {
        self.cancel_requested.is_some()
            && (self.nodes.is_empty() || !self.nodes.iter().all(|node| node.state.is_done()))
    }

    /// Returns a text about the nodes that failed, were refused or did not end, otherwise about the first node that was
    /// not reached although nobody cancelled the workflow; `None` if there are no such nodes. Nodes that were cancelled
    /// on request are left out. A list of leftovers that failed is left out too: everything is removed by then. So is a
    /// health check that is not a gate: the health is then not known.
    fn failure(&self) -> Option<String> {
        let cancelled = |outcome: &str| self.cancel_requested.is_some() && outcome == "cancelled";
        let failed: Vec<_> = self
            .nodes
            .iter()
            .filter_map(|node| match &node.state {
                NodeState::Failed { outcome, .. } if cancelled(outcome) => None,
                NodeState::Failed { .. } if node.target == Target::Leftovers => None,
                NodeState::Failed { .. } | NodeState::Refused { .. } if node.target.only_looks() => None,
                NodeState::Failed { outcome, reason, .. } => {
                    Some(format!("`{}` {outcome}: {reason}{}", node.name, self.ways_on(node)))
                }
                NodeState::Refused { reason } => Some(format!("`{}` refused: {reason}", node.name)),
                NodeState::Waiting | NodeState::Active { .. } => Some(format!("`{}` did not end", node.name)),
                NodeState::Succeeded { .. } | NodeState::Skipped { .. } | NodeState::SkippedByRequest { .. } => None,
            })
            .collect();
        if !failed.is_empty() {
            return Some(reasons::joined(&failed));
        }
        // A continued workflow may have nodes that an earlier execution did not reach.
        let is_missing = |node: &&Node| matches!(node.state, NodeState::Skipped { left_out: false, .. });
        let missing = self.nodes.iter().find(is_missing).filter(|_| self.cancel_requested.is_none())?;
        Some(format!("`{}` was not reached; run it with `freehold workflow resume {}`", missing.name, self.id))
    }

    /// Returns what a person can do when a deploy could not remove a component that is off, as the end of a sentence.
    /// Empty for other nodes.
    fn ways_on(&self, node: &Node) -> String {
        let (Request::Deploy { .. }, Target::Teardown { part, .. }) = (&self.request, &node.target) else {
            return String::new();
        };
        let root = root_of(node);
        let is_kept_back = |one: &&Node| matches!(&one.state, NodeState::Skipped { because, .. } if *because == root);
        let kept_back: Vec<_> = self.nodes.iter().filter(is_kept_back).filter_map(|one| one.target.deploys()).collect();
        let install = &self.install;
        let ways = format!(
            "switch it on again with `freehold install toggles {install} --on {part}`, or remove it with `freehold \
             teardown {install} --component {part}`"
        );
        if kept_back.is_empty() {
            return format!("; {ways}");
        }
        let names: Vec<String> = kept_back.iter().map(|one| format!("`{}`", one.part)).collect();
        let options: String = kept_back.iter().map(|one| format!(" --component {}", one.part)).collect();
        format!(
            "; {} not deployed until `{part}` is removed: {ways}, or leave it for now and deploy the rest with `freehold \
             deploy {install}{options}`",
            names.join(", ") + if names.len() == 1 { " is" } else { " are" }
        )
    }

    fn skip_unreachable(&mut self) {
        loop {
            let dead: BTreeMap<String, String> = self
                .nodes
                .iter()
                .filter(|node| {
                    matches!(
                        node.state,
                        NodeState::Failed { .. } | NodeState::Skipped { .. } | NodeState::Refused { .. }
                    )
                })
                .map(|node| (node.name.clone(), root_of(node)))
                .collect();
            let mut changed = false;
            for node in self.nodes.iter_mut().filter(|node| node.state == NodeState::Waiting) {
                if let Some(root) = node.dependencies.iter().find_map(|name| dead.get(name)) {
                    node.state = NodeState::not_reached(root.clone());
                    changed = true;
                }
            }
            if !changed {
                return;
            }
        }
    }

    /// Returns the groups of the nodes that run actions of an exclusive workflow, by node name.
    ///
    /// Each such node has a group of its own. If all of them had the group of their action, a runner would refuse their
    /// orders in two cases: after the order of another node that runs the same action, because all nodes of a workflow
    /// have the same serial, and after a run of the action that somebody started meanwhile, because this run has a
    /// higher serial. The runner still runs these actions one at a time, because their groups name the same thing
    /// ([`Group::thing`]).
    fn groups(&self) -> Result<BTreeMap<String, Group>, GraphError> {
        let mut counts: BTreeMap<&ActionName, usize> = BTreeMap::new();
        let mut groups = BTreeMap::new();
        for node in self.nodes.iter().filter(|_| self.kind.is_exclusive()) {
            if let Target::Action { action, .. } = &node.target {
                let count = counts.entry(action).or_default();
                *count += 1;
                groups.insert(node.name.clone(), format!("{}.{count}", node.target.group()?).parse()?);
            }
        }
        Ok(groups)
    }

    /// Starts nodes while slots are free. Returns their new jobs, and the ids of jobs that they had before the workflow
    /// was continued.
    fn start_ready(&mut self, now: Timestamp) -> Result<(Vec<Job>, Vec<JobId>), GraphError> {
        let (mut jobs, mut again) = (Vec::new(), Vec::new());
        let WorkflowState::Running { slots } = self.state else { return Ok((jobs, again)) };
        if self.cancel_requested.is_some() {
            return Ok((jobs, again));
        }
        let active = self.nodes.iter().filter(|node| matches!(node.state, NodeState::Active { .. })).count();
        let free = (slots as usize).saturating_sub(active);
        let done: BTreeSet<String> =
            self.nodes.iter().filter(|node| node.state.is_done()).map(|node| node.name.clone()).collect();
        let (install, workflow, mode) = (self.install.clone(), self.id.clone(), self.mode);
        let groups = self.groups()?;
        let kept_until = self.kept_until();
        let ready = self
            .nodes
            .iter_mut()
            .filter(|node| node.state == NodeState::Waiting && node.dependencies.is_subset(&done))
            .take(free);
        for node in ready {
            if node.earlier > 0 {
                let job = JobId::derive(&workflow, &node.name);
                node.state = NodeState::Active { job: job.clone() };
                again.push(job);
                continue;
            }
            let runs_as = node.runs_as.clone().unwrap_or(RunsAs { mode, role: None });
            let new = NewJob {
                install: install.clone(),
                workflow: workflow.clone(),
                node: node.name.clone(),
                group: groups.get(&node.name).cloned().map_or_else(|| node.target.group(), Ok)?,
                serial: node.serial,
                mode: runs_as.mode,
                role: runs_as.role,
                timeout_secs: node.timeout_secs,
            };
            let checks = node.target.awaited_checks();
            let job = Job { kept_until, checks, ..Job::new(new, node.target.wait_limits(), now) };
            node.state = NodeState::Active { job: job.id.clone() };
            jobs.push(job);
        }
        Ok((jobs, again))
    }
}

/// Returns a description of the failure that keeps the dependents of `node` from running.
fn root_of(node: &Node) -> String {
    match &node.state {
        NodeState::Skipped { because, .. } => because.clone(),
        NodeState::Failed { outcome, .. } => format!("`{}` {outcome}", node.name),
        NodeState::Refused { .. } => format!("`{}` refused", node.name),
        NodeState::Waiting
        | NodeState::Active { .. }
        | NodeState::Succeeded { .. }
        | NodeState::SkippedByRequest { .. } => node.name.clone(),
    }
}

fn check_graph(nodes: &[Node]) -> Result<(), GraphError> {
    let named = nodes.iter().map(|node| (node.name.as_str(), node.dependencies.iter().map(String::as_str).collect()));
    let named: Vec<Named<'_>> = named.collect();
    order::check(&named).map_err(|found| match found {
        Disorder::Duplicate(name) => GraphError::Duplicate(name.to_owned()),
        Disorder::Unknown { node, missing } => {
            GraphError::UnknownDependency { node: node.to_owned(), missing: missing.to_owned() }
        }
        Disorder::Cycle(name) => GraphError::Cycle(name.to_owned()),
    })
}

#[cfg(test)]
pub(crate) mod tests;

//! The two rows of a workflow. The state row is written whenever a job ends; the graph row is written once.
//!
//! DynamoDB bills a write by the size of the item. The graph is most of a workflow's bytes and never changes.

use freehold_domain::workflow::{Node, NodeState, Workflow};
use freehold_protocol::order::AskedBy;
use freehold_protocol::{Digest, JobId, Timestamp, WorkflowId};
use serde::{Deserialize, Serialize};

use super::record::{Record, Stored, key, load, put};
use crate::AppError;
use crate::ports::{Expect, Key, Store, Write};

/// The state of a workflow, without its nodes.
#[derive(Debug, Serialize, Deserialize)]
struct StateRow {
    /// The workflow. Its nodes are empty, except in rows that an earlier release of Freehold wrote.
    #[serde(flatten)]
    workflow: Workflow,
    /// The digest that names the graph row, once the nodes are planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    graph: Option<Digest>,
    /// The state of each node, in the order of the graph.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    progress: Vec<Progress>,
    /// The number of retries of each node, in the order of the graph; empty if no node was retried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    retried: Vec<u32>,
    /// The number of dispatches of each node's job before the workflow was last continued, in the order of the graph;
    /// empty if no node ran before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    earlier: Vec<u32>,
}

/// The state of a node, without the id of its job, which is derived from the workflow and the node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Progress {
    Waiting,
    Active,
    Succeeded,
    Failed {
        outcome: String,
        reason: String,
    },
    Skipped {
        because: String,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        left_out: bool,
    },
    SkippedByRequest {
        by: AskedBy,
        reason: String,
    },
    Refused {
        reason: String,
    },
}

/// The nodes of a workflow as they were planned. The row's key contains the digest of the nodes: if the workflow is
/// planned twice at the same time, neither plan overwrites the graph of the other.
#[derive(Debug, Serialize, Deserialize)]
struct GraphRow {
    workflow: WorkflowId,
    nodes: Vec<Node>,
}

impl Record for StateRow {
    fn key(&self) -> Key {
        state_key(&self.workflow.id)
    }

    fn kept_until(&self) -> Option<Timestamp> {
        self.workflow.kept_until()
    }
}

/// Returns the write of the graph row; `None` for a workflow without nodes. It must be committed before the first state
/// row that names the graph.
///
/// # Errors
/// Internal when the nodes cannot be written as JSON.
pub fn graph_write(workflow: &Workflow) -> Result<Option<Write>, AppError> {
    let graph = GraphRow { workflow: workflow.id.clone(), nodes: planned(&workflow.nodes) };
    let Some(digest) = digest_of(&graph.nodes)? else { return Ok(None) };
    let body = serde_json::to_string(&graph)?;
    let (key, expires) = (graph_key(&workflow.id, &digest), workflow.kept_until());
    Ok(Some(Write::Put { key, body, expect: Expect::Any, expires }))
}

/// Returns the write of the state row. Nodes that another version of Freehold planned keep their row.
///
/// # Errors
/// Internal when the workflow cannot be written as JSON, or when a node has the job of another node.
pub fn put_workflow(workflow: &Workflow, expect: Expect) -> Result<Write, AppError> {
    let progress = workflow.nodes.iter().map(|node| progress(&workflow.id, node)).collect::<Result<_, _>>()?;
    let graph = match &workflow.graph_of_other_version {
        Some(graph) => Some(graph.clone()),
        None => digest_of(&planned(&workflow.nodes))?,
    };
    let (retried, earlier) = (counts(workflow, |node| node.retried), counts(workflow, |node| node.earlier));
    let workflow = Workflow { nodes: Vec::new(), ..workflow.clone() };
    put(&StateRow { workflow, graph, progress, retried, earlier }, expect)
}

/// Loads a workflow that must exist.
///
/// # Errors
/// NotFound, or the errors of [`find_workflow`].
pub async fn workflow(store: &dyn Store, id: &WorkflowId) -> Result<Stored<Workflow>, AppError> {
    find_workflow(store, id).await?.ok_or_else(|| unknown_workflow(id))
}

/// Returns the error for a workflow that does not exist.
pub fn unknown_workflow(id: &WorkflowId) -> AppError {
    AppError::not_found(format!(
        "workflow `{id}` does not exist; `freehold workflow list INSTALL` shows the workflows of an install"
    ))
}

/// Loads a workflow, if it exists. A check whose rows have begun to expire counts as missing.
///
/// # Errors
/// The errors of [`load`], or Internal when its graph is missing.
pub async fn find_workflow(store: &dyn Store, id: &WorkflowId) -> Result<Option<Stored<Workflow>>, AppError> {
    let Some(Stored { value: StateRow { mut workflow, graph, progress, retried, earlier }, rev }) =
        load(store, &state_key(id)).await?
    else {
        return Ok(None);
    };
    if let Some(digest) = graph {
        let row: Option<Stored<GraphRow>> = load(store, &graph_key(id, &digest)).await?;
        let nodes = row.map(|row| row.value.nodes).unwrap_or_default();
        // The rows of a check expire one by one.
        if nodes.len() != progress.len() && workflow.kept_until().is_some() {
            return Ok(None);
        }
        if nodes.len() != progress.len() {
            // INVARIANT: the graph is written before the state that names it, and is never removed while the state is kept.
            return Err(AppError::internal(format!("graph `{digest}` of workflow `{id}` is missing in the table")));
        }
        if digest_of(&nodes)?.as_ref() != Some(&digest) {
            workflow.graph_of_other_version = Some(digest);
        }
        let [retried, earlier] = [retried, earlier].map(|counts| counts.into_iter().chain(std::iter::repeat(0)));
        let nodes = nodes.into_iter().zip(progress).zip(retried.zip(earlier));
        workflow.nodes = nodes
            .map(|((node, progress), (retried, earlier))| {
                let state = state(id, &node.name, progress);
                Node { state, retried, earlier, ..node }
            })
            .collect();
    }
    Ok(Some(Stored { value: workflow, rev }))
}

/// Returns one number for each node; an empty list if all numbers are 0.
fn counts(workflow: &Workflow, of: impl Fn(&Node) -> u32) -> Vec<u32> {
    let counts: Vec<u32> = workflow.nodes.iter().map(of).collect();
    if counts.iter().all(|count| *count == 0) { Vec::new() } else { counts }
}

/// Returns the partition key of a workflow's rows.
pub fn workflow_pk(workflow: &WorkflowId) -> String {
    format!("workflow#{workflow}")
}

fn state_key(workflow: &WorkflowId) -> Key {
    key(workflow_pk(workflow), "state")
}

fn graph_key(workflow: &WorkflowId, graph: &Digest) -> Key {
    key(workflow_pk(workflow), format!("graph#{}", graph.hex()))
}

/// Returns the nodes in their state before the first of them started.
fn planned(nodes: &[Node]) -> Vec<Node> {
    nodes.iter().map(|node| Node { state: NodeState::Waiting, retried: 0, earlier: 0, ..node.clone() }).collect()
}

/// Returns the digest of planned nodes; `None` if there are no nodes.
fn digest_of(planned: &[Node]) -> Result<Option<Digest>, AppError> {
    if planned.is_empty() {
        return Ok(None);
    }
    Ok(Some(Digest::of(&serde_json::to_vec(planned)?)))
}

fn progress(workflow: &WorkflowId, node: &Node) -> Result<Progress, AppError> {
    let job = match &node.state {
        NodeState::Waiting
        | NodeState::Skipped { .. }
        | NodeState::SkippedByRequest { .. }
        | NodeState::Refused { .. } => None,
        NodeState::Active { job } | NodeState::Succeeded { job } | NodeState::Failed { job, .. } => Some(job),
    };
    if job.is_some_and(|job| *job != JobId::derive(workflow, &node.name)) {
        // INVARIANT: a job's id is derived from its workflow and node.
        return Err(AppError::internal(format!(
            "node `{}` of workflow `{workflow}` already has another job",
            node.name
        )));
    }
    Ok(match node.state.clone() {
        NodeState::Waiting => Progress::Waiting,
        NodeState::Active { .. } => Progress::Active,
        NodeState::Succeeded { .. } => Progress::Succeeded,
        NodeState::Failed { outcome, reason, .. } => Progress::Failed { outcome, reason },
        NodeState::Skipped { because, left_out } => Progress::Skipped { because, left_out },
        NodeState::SkippedByRequest { by, reason } => Progress::SkippedByRequest { by, reason },
        NodeState::Refused { reason } => Progress::Refused { reason },
    })
}

fn state(workflow: &WorkflowId, node: &str, progress: Progress) -> NodeState {
    let job = JobId::derive(workflow, node);
    match progress {
        Progress::Waiting => NodeState::Waiting,
        Progress::Active => NodeState::Active { job },
        Progress::Succeeded => NodeState::Succeeded { job },
        Progress::Failed { outcome, reason } => NodeState::Failed { job, outcome, reason },
        Progress::Skipped { because, left_out } => NodeState::Skipped { because, left_out },
        Progress::SkippedByRequest { by, reason } => NodeState::SkippedByRequest { by, reason },
        Progress::Refused { reason } => NodeState::Refused { reason },
    }
}

//! Shows and lists workflows.

use freehold_domain::job::{Job, JobState};
use freehold_domain::workflow::{Again, Node, NodeState, Request, RollBack, RolledBack, Workflow, WorkflowState};
use freehold_protocol::api::{ContinuationView, NodeView, Page, RolledBackView, WorkflowView};
use freehold_protocol::{InstallId, JobId, Timestamp, WorkflowId};
use futures_util::future::try_join_all;

use super::job::state_word;
use super::{List, Rows, Space, fitting, rows};
use crate::AppError;
use crate::ports::Store;
use crate::table::{self, WorkflowEntry, install_pk, load};

/// Returns one page of an install's workflows, newest first, without nodes.
///
/// # Errors
/// The store's errors.
pub async fn list_workflows(
    store: &dyn Store,
    install: &InstallId,
    after: Option<&str>,
) -> Result<Page<WorkflowView>, AppError> {
    let Rows { items, next } = rows::<WorkflowEntry>(store, &install_pk(install), List::Workflows, after).await?;
    let mut views = Vec::with_capacity(items.len());
    for (place, entry) in items {
        // The rows of a check expire one by one, and the workflows of a forgotten install are removed one by one.
        let Some(found) = table::find_workflow(store, &entry.workflow).await? else { continue };
        let mut shown = workflow_view(&found.value);
        shown.nodes.clear();
        views.push((place, shown));
    }
    fitting(views, next, Space::default())
}

/// Returns a workflow with its nodes at the time `now`. Unlike [`workflow_view`], the view has the jobs that wait for a runner.
///
/// # Errors
/// NotFound, or the store's errors.
pub async fn show_workflow(store: &dyn Store, id: &WorkflowId, now: Timestamp) -> Result<WorkflowView, AppError> {
    let workflow = table::workflow(store, id).await?.value;
    let mut view = workflow_view(&workflow);
    let active: Vec<&JobId> = workflow.active_jobs().collect();
    let jobs = try_join_all(active.iter().map(async |id| load::<Job>(store, &table::job_key(id)).await)).await?;
    for job in jobs.into_iter().flatten().map(|found| found.value) {
        let waits_since = job.waits_since(now);
        let Some(node) = view.nodes.iter_mut().find(|node| node.job.as_ref() == Some(&job.id)) else { continue };
        node.ends_by = job.ends_by();
        if waits_since.is_some() {
            node.waits_since = waits_since;
            node.opens_at = job.opens_at();
            if says_what_it_waits_for(&job.state) {
                node.reason = job.state.reason().unwrap_or_default();
            }
            node.state = state_word(&job, now).to_owned();
        }
    }
    Ok(view)
}

/// Returns whether the state names what the job waits for, other than a runner.
const fn says_what_it_waits_for(state: &JobState) -> bool {
    matches!(
        state,
        JobState::WaitingForWindow { .. } | JobState::WaitingForApproval { .. } | JobState::WaitingForChecks { .. }
    )
}

fn rolled_back(workflow: &Workflow) -> Option<RolledBackView> {
    match &workflow.roll_back {
        RollBack::Verified { followed: Some(RolledBack::By { workflow }), .. } => {
            Some(RolledBackView { workflow: Some(workflow.clone()), refused: String::new() })
        }
        RollBack::Verified { followed: Some(RolledBack::Refused { reason }), .. } => {
            Some(RolledBackView { workflow: None, refused: reason.clone() })
        }
        RollBack::Verified { followed: None, .. } | RollBack::None | RollBack::Of { .. } => None,
    }
}

/// Returns the API's view of a workflow.
pub fn workflow_view(workflow: &Workflow) -> WorkflowView {
    let (ended_at, reason) = match &workflow.state {
        WorkflowState::Pending | WorkflowState::Running { .. } => (None, String::new()),
        WorkflowState::Succeeded { ended_at } | WorkflowState::Cancelled { ended_at } => {
            (Some(*ended_at), String::new())
        }
        WorkflowState::Failed { ended_at, reason } => (Some(*ended_at), reason.clone()),
    };
    WorkflowView {
        workflow: workflow.id.clone(),
        install: workflow.install.clone(),
        kind: workflow.kind.machine().to_owned(),
        state: workflow.state.as_str().to_owned(),
        reason,
        created_at: workflow.created_at,
        ended_at,
        version: workflow.version.clone(),
        action: workflow.request.action().cloned(),
        trigger: workflow.request.trigger().map(|trigger| trigger.as_str().to_owned()),
        release: workflow.request.release().cloned(),
        run: workflow.run.clone(),
        asked_by: workflow.asked_by.clone(),
        cancel_requested: workflow.cancel_requested,
        cancelled_by: workflow.cancelled_by.clone(),
        cancel_reason: workflow.cancel_reason.clone(),
        again: workflow.again.iter().map(again_view).collect(),
        verified: matches!(workflow.roll_back, RollBack::Verified { .. }),
        rolled_back: rolled_back(workflow),
        roll_back_of: match &workflow.roll_back {
            RollBack::Of { workflow, .. } => Some(workflow.clone()),
            RollBack::None | RollBack::Verified { .. } => None,
        },
        nothing_ran: nothing_ran(workflow),
        jobs: Some(workflow.nodes.iter().map(jobs).fold(0, u32::saturating_add)),
        nodes: workflow.nodes.iter().map(node_view).collect(),
    }
}

/// Returns how often the job of a node was dispatched.
fn jobs(node: &Node) -> u32 {
    let latest = match &node.state {
        // A node that a person skipped had a job, which failed.
        NodeState::Active { .. }
        | NodeState::Succeeded { .. }
        | NodeState::Failed { .. }
        | NodeState::SkippedByRequest { .. } => node.retried.saturating_add(1),
        NodeState::Waiting | NodeState::Refused { .. } | NodeState::Skipped { .. } => 0,
    };
    node.earlier.saturating_add(latest)
}

fn node_view(node: &Node) -> NodeView {
    let (job, reason) = match &node.state {
        NodeState::Waiting => (None, String::new()),
        NodeState::Active { job } | NodeState::Succeeded { job } => (Some(job.clone()), String::new()),
        NodeState::Failed { job, reason, .. } => (Some(job.clone()), reason.clone()),
        NodeState::Refused { reason } => (None, reason.clone()),
        NodeState::Skipped { because, .. } => (None, because.clone()),
        NodeState::SkippedByRequest { by, reason } => (None, format!("skipped by {by}: {reason}")),
    };
    NodeView {
        name: node.name.clone(),
        state: node.state.as_str().to_owned(),
        dependencies: node.dependencies.iter().cloned().collect(),
        job,
        waits_since: None,
        opens_at: None,
        ends_by: None,
        reason,
        retried: node.retried,
    }
}

fn again_view(again: &Again) -> ContinuationView {
    ContinuationView {
        act: again.act.as_str().to_owned(),
        node: again.act.node().map(str::to_owned),
        by: again.by.clone(),
        reason: again.reason.clone(),
        at: again.at,
        ended_as: again.ended_as.clone(),
        ended_reason: again.ended_reason.clone(),
    }
}

/// The reason why a deploy without nodes succeeded.
pub const NOTHING_TO_DEPLOY: &str =
    "the deployed components already have the artifacts, values and inputs of this version";

/// Returns the reason why a workflow without nodes succeeded; `None` for any other workflow.
fn nothing_ran(workflow: &Workflow) -> Option<String> {
    let empty = workflow.nodes.is_empty() && matches!(workflow.state, WorkflowState::Succeeded { .. });
    empty.then(|| match &workflow.request {
        Request::Deploy { .. } => NOTHING_TO_DEPLOY.to_owned(),
        Request::Build { .. } => {
            "every component has its artifact; the contract of the version is being signed".to_owned()
        }
        Request::Action { .. } => "the action has no steps".to_owned(),
        Request::Teardown { .. } => "nothing was left to remove".to_owned(),
        Request::Upgrade { .. } => "the runner has the program already".to_owned(),
        Request::CheckHealth { .. } => {
            "the health of no component could be checked; `freehold install show` has the last results".to_owned()
        }
        Request::DetectDrift { .. } => "no part could be checked; `freehold drift list` shows the reasons".to_owned(),
    })
}

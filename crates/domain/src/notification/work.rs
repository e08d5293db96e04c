//! Notifications about work: workflows that ended, jobs that wait for people, and runs of runbooks.

use freehold_protocol::approval::{ProposedPlan, Side};
use freehold_protocol::notification::{Notification, NotificationKind};
use freehold_protocol::order::AskedBy;
use freehold_protocol::{AppName, Timestamp};

use super::draft::{draft, utc};
use crate::job::{Job, JobState};
use crate::plural::plural;
use crate::runbook::{Run, RunState, StepState};
use crate::workflow::{NodeState, Request, RollBack, RolledBack, Workflow, WorkflowKind, WorkflowState};

/// The maximum number of failed nodes that a text names.
const MOST_NODES: usize = 10;

/// The differences that a drift check found and the previous check did not find.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DriftSeen {
    /// The number of parts with new differences.
    pub parts: u64,
    /// The number of resources with new differences.
    pub resources: u64,
}

/// Returns the notification about a workflow that has ended; `None` if it has not ended, and for ends that nobody waits
/// for: a cancel, the success of work that a schedule or the sweep asked for, and steps of a runbook, whose run has a
/// notification instead. `drift` is what the workflow found.
pub fn of_workflow(workflow: &Workflow, app: Option<&AppName>, drift: DriftSeen) -> Option<Notification> {
    if workflow.run.is_some() {
        return None;
    }
    match &workflow.state {
        WorkflowState::Pending | WorkflowState::Running { .. } | WorkflowState::Cancelled { .. } => None,
        WorkflowState::Failed { ended_at, .. } => {
            Some(end(workflow, app, NotificationKind::WorkflowFailed, (*ended_at, "failed", failure(workflow))))
        }
        WorkflowState::Succeeded { ended_at } => {
            let (kind, word, text) = success(workflow, drift)?;
            Some(end(workflow, app, kind, (*ended_at, word, text)))
        }
    }
}

fn success(workflow: &Workflow, drift: DriftSeen) -> Option<(NotificationKind, &'static str, String)> {
    let install = &workflow.install;
    if drift.resources > 0 {
        let (parts, resources) = (plural(drift.parts, "part"), plural(drift.resources, "resource"));
        let text = format!(
            "A drift check of install {install} found new differences: {resources} in {parts}. Each \
             resource was changed outside of Freehold."
        );
        return Some((NotificationKind::DriftFound, "found drift", text));
    }
    if let RollBack::Of { workflow: failed, .. } = &workflow.roll_back {
        let text = format!("Deploy {failed} of install {install} failed. The version before it is deployed again.");
        return Some((NotificationKind::DeployRolledBack, "rolled a deploy back", text));
    }
    let by_person = !matches!(workflow.asker(), Some(AskedBy::Schedule | AskedBy::Sweep));
    let text = format!("{} {} succeeded.", phrase(workflow), workflow.id);
    by_person.then_some((NotificationKind::WorkflowSucceeded, "succeeded", text))
}

/// Returns the sentences about a workflow that failed: the nodes that failed, and what follows.
fn failure(workflow: &Workflow) -> String {
    let mut text = format!("{} {} failed.", phrase(workflow), workflow.id);
    let failed: Vec<&str> = workflow
        .nodes
        .iter()
        .filter(|node| matches!(node.state, NodeState::Failed { .. } | NodeState::Refused { .. }))
        .map(|node| node.name.as_str())
        .collect();
    if !failed.is_empty() {
        let named = failed.iter().take(MOST_NODES).copied().collect::<Vec<_>>().join(", ");
        let more = failed.len().saturating_sub(MOST_NODES);
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        text.push_str(&format!(" What failed: {named}{more}."));
    }
    text.push_str(match &workflow.roll_back {
        RollBack::None => "",
        RollBack::Verified { followed: Some(RolledBack::Refused { .. }), .. } => " The deploy cannot be rolled back.",
        RollBack::Verified { followed: Some(RolledBack::By { .. }), .. } => " The deploy is rolled back.",
        RollBack::Verified { followed: None, .. } if workflow.to_roll_back().is_some() => " The deploy is rolled back.",
        RollBack::Verified { followed: None, .. } => "",
        RollBack::Of { .. } => " This workflow was the roll back of a deploy that failed.",
    });
    text
}

fn end(
    workflow: &Workflow,
    app: Option<&AppName>,
    kind: NotificationKind,
    (at, word, text): (Timestamp, &str, String),
) -> Notification {
    let cause = [workflow.id.as_str(), &workflow.attempt().to_string()];
    let (install, of) = (&workflow.install, of_builds(workflow).or(app));
    let subject = match of_builds(workflow) {
        Some(app) => format!("Freehold: build of {app} {word}"),
        None => format!("Freehold: {install}: {} {word}", workflow.kind.machine()),
    };
    // Builds run in no install of a customer.
    let about = Some(install).filter(|_| of_builds(workflow).is_none());
    let notification = draft(kind, &cause, (about, of), (at, subject, text));
    let command = if kind == NotificationKind::DriftFound {
        format!("freehold drift list {install}")
    } else {
        format!("freehold workflow show {}", workflow.id)
    };
    Notification { workflow: Some(workflow.id.clone()), command, ..notification }.limited()
}

/// Returns the app whose components the workflow builds.
fn of_builds(workflow: &Workflow) -> Option<&AppName> {
    match &workflow.request {
        Request::Build { app, .. } => Some(app),
        Request::Deploy { .. }
        | Request::Action { .. }
        | Request::Teardown { .. }
        | Request::DetectDrift { .. }
        | Request::CheckHealth { .. }
        | Request::Upgrade { .. } => None,
    }
}

fn phrase(workflow: &Workflow) -> String {
    let install = &workflow.install;
    match (workflow.kind, &workflow.request) {
        (_, Request::Build { app, .. }) => format!("The build of app {app},"),
        (_, Request::Action { action, .. }) => format!("The run of action {action} in install {install},"),
        (WorkflowKind::ProvisionInstall, _) => format!("The first deploy of install {install},"),
        (_, Request::Deploy { .. }) => format!("The deploy of install {install},"),
        (_, Request::Teardown { .. }) => format!("The teardown in install {install},"),
        (_, Request::DetectDrift { .. }) => format!("The drift check of install {install},"),
        (_, Request::CheckHealth { .. }) => format!("The health check of install {install},"),
        (_, Request::Upgrade { .. }) => format!("The upgrade of the runner of install {install},"),
    }
}

/// Returns the notification about a job that waits for people or for the customer; `None` for every other job.
pub fn of_job(job: &Job, app: Option<&AppName>) -> Option<Notification> {
    let install = &job.install;
    let (kind, cause, words) = match &job.state {
        JobState::WaitingForApproval { plan, since, .. } => {
            let subject = format!("Freehold: {install}: a plan of {} waits for approval", job.node);
            (NotificationKind::ApprovalAsked, plan.plan.to_string(), (*since, subject, approval(job, plan)))
        }
        JobState::WaitingForWindow { dispatch, since, until, .. } => {
            let then = match until {
                Some(at) => format!("They open at {}, and Freehold starts the job then.", utc(*at)),
                None => "Freehold starts the job when they open.".to_owned(),
            };
            let subject = format!("Freehold: {install}: {} waits for the customer's change window", job.node);
            let text = format!(
                "Job {} ({}) of install {install} waits, because the customer's change windows are closed. {then}",
                job.id, job.node
            );
            (NotificationKind::ChangeHeld, dispatch.to_string(), (*since, subject, text))
        }
        JobState::Queued { .. }
        | JobState::Running { .. }
        | JobState::WaitingForRunner { .. }
        | JobState::WaitingForChecks { .. }
        | JobState::Succeeded { .. }
        | JobState::Failed { .. }
        | JobState::Blocked { .. }
        | JobState::Interrupted { .. }
        | JobState::Lost { .. }
        | JobState::Cancelled { .. } => return None,
    };
    let notification = draft(kind, &[job.id.as_str(), &cause], (Some(install), app), words);
    let command = format!("freehold job show {}", job.id);
    Some(
        Notification { workflow: Some(job.workflow.clone()), job: Some(job.id.clone()), command, ..notification }
            .limited(),
    )
}

fn approval(job: &Job, plan: &ProposedPlan) -> String {
    let sides: Vec<&str> = plan.asks.iter().copied().map(Side::as_str).collect();
    let summary = &plan.summary;
    let counts = [
        (summary.create, "to create"),
        (summary.update, "to update"),
        (summary.replace, "to replace"),
        (summary.delete, "to delete"),
        (summary.run, "to run"),
    ];
    let counts: Vec<String> =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    let changes = if counts.is_empty() { "no changes".to_owned() } else { counts.join(", ") };
    format!(
        "Job {} ({}) of install {} waits for the approval of plan {} by the {} until {}. The plan has {changes}.",
        job.id,
        job.node,
        job.install,
        plan.plan,
        sides.join(" and the "),
        utc(plan.until)
    )
}

/// Returns the notification about a run of a runbook that has ended; `None` if it runs or was cancelled.
pub fn of_run(run: &Run) -> Option<Notification> {
    let (install, runbook) = (&run.install, &run.runbook);
    let (kind, at, word, text) = match &run.state {
        RunState::Running | RunState::Cancelled { .. } => return None,
        RunState::Succeeded { ended_at } => {
            let text = format!("Run {} of runbook {runbook} in install {install} succeeded.", run.id);
            (NotificationKind::RunSucceeded, *ended_at, "succeeded", text)
        }
        RunState::Failed { ended_at } => {
            let at = run.steps.iter().position(|step| matches!(step.state, StepState::Failed { .. }));
            let step = at.map(|at| format!(" at step {} of {}", at + 1, run.steps.len())).unwrap_or_default();
            let text = format!("Run {} of runbook {runbook} in install {install} stopped{step}.", run.id);
            (NotificationKind::RunStopped, *ended_at, "stopped", text)
        }
    };
    let cause = [run.id.as_str(), &run.resumed.len().to_string()];
    let subject = format!("Freehold: {install}: runbook {runbook} {word}");
    let notification = draft(kind, &cause, (Some(install), Some(&run.app)), (at, subject, text));
    Some(
        Notification {
            run: Some(run.id.clone()),
            command: format!("freehold runbook show {}", run.id),
            ..notification
        }
        .limited(),
    )
}

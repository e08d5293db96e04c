//! Shows what happened to an install, newest first, from the rows that other use cases write. A page ends before the
//! workflow, run of a runbook or change of drift that does not fit into the response any more. It also ends where the
//! rows end that were read of one list, because another row of this list may come next.

use freehold_domain::drift::{DriftChange, DriftEvent};
use freehold_domain::install::connection::ConnectionState;
use freehold_domain::job::Job;
use freehold_domain::plural::plural;
use freehold_domain::runbook::Run;
use freehold_domain::workflow::{Request, Workflow, WorkflowState};
use freehold_protocol::api::{HistoryEntry, Page};
use freehold_protocol::{ComponentName, InstallId, JobId, Timestamp, WorkflowId};
use futures_util::future::try_join_all;

use super::{List, Rows, Space, fitting, rows, run_view};
use crate::AppError;
use crate::ports::Store;
use crate::table::{self, Contact, RunEntry, Stored, WorkflowEntry, install_pk, load};

/// The number of rows that are read concurrently.
const AT_ONCE: usize = 16;

/// The part of the history that a page may have: the places after `after`, up to `until`.
#[derive(Debug, Clone, Copy)]
struct Range<'a> {
    /// `None` on the first page.
    after: Option<&'a str>,
    until: Option<&'a str>,
}

impl Range<'_> {
    fn has(self, place: &str) -> bool {
        self.after.is_none_or(|after| place > after) && self.until.is_none_or(|until| place <= until)
    }
}

/// Returns one page of what happened to an install, at the time `now`. An entry that belongs to a workflow, such as an
/// approval, is on the page of the workflow. Events that no row stores are left out: earlier pauses and holds of the
/// customer, and the drift of parts that were removed.
///
/// # Errors
/// NotFound, or the store's errors.
pub async fn show_history(
    store: &dyn Store,
    id: &InstallId,
    after: Option<&str>,
    now: Timestamp,
) -> Result<Page<HistoryEntry>, AppError> {
    table::install(store, id).await?;
    let workflows = of_workflows(store, rows(store, &install_pk(id), List::Workflows, after).await?).await?;
    let runs = of_runs(store, id, Range { after, until: workflows.next.as_deref() }).await?;
    // After the last row of a list that was read, another row of this list may come next.
    let next = [&workflows, &runs].into_iter().filter_map(|list| list.next.clone()).min();
    let mut placed = of_drifts(store, id).await?;
    placed.extend(workflows.items.into_iter().chain(runs.items));
    let range = Range { after, until: next.as_deref() };
    placed.retain(|(place, _)| range.has(place));
    placed.sort_by(|(one, _), (other, _)| one.cmp(other));
    let (mut items, mut space) = (Vec::new(), Space::default());
    if after.is_none() {
        items.extend(connection(store, id, now).await?);
        space.take(&items)?;
    }
    let page = fitting(placed, next, space)?;
    items.extend(page.items.into_iter().flatten());
    items.sort_by_key(|one| std::cmp::Reverse(one.at));
    Ok(Page { items, next: page.next })
}

/// Returns the entries of each workflow of a page, as long as they fit on it.
async fn of_workflows(
    store: &dyn Store,
    Rows { items: workflows, mut next }: Rows<WorkflowEntry>,
) -> Result<Rows<Vec<HistoryEntry>>, AppError> {
    let (mut items, mut space, mut fits) = (Vec::with_capacity(workflows.len()), Space::default(), true);
    for some in workflows.chunks(AT_ONCE) {
        let found = try_join_all(some.iter().map(|(_, entry)| of_workflow(store, entry))).await?;
        for ((place, _), found) in some.iter().zip(found) {
            fits &= space.take(&found)?;
            items.push((place.clone(), found));
        }
        if !fits {
            next = items.last().map(|(place, _)| place.clone());
            break;
        }
    }
    Ok(Rows { items, next })
}

/// Returns the entries of each run of a runbook in the range, of one page of the list of runs.
async fn of_runs(store: &dyn Store, id: &InstallId, range: Range<'_>) -> Result<Rows<Vec<HistoryEntry>>, AppError> {
    // Another run may have begun in the millisecond in which the page before this one ends.
    let time = range.after.and_then(|place| place.split('#').nth(1));
    let from = time.map(|time| format!("{}{time}#", List::Runs.prefix()));
    let Rows { items: runs, next } = rows::<RunEntry>(store, &install_pk(id), List::Runs, from.as_deref()).await?;
    let mut runs: Vec<_> = runs.into_iter().map(|(_, entry)| (place_of_run(&entry), entry.run)).collect();
    let next = next.and_then(|_| runs.last().map(|(place, _)| place.clone()));
    runs.retain(|(place, _)| range.has(place));
    let mut items = Vec::with_capacity(runs.len());
    for some in runs.chunks(AT_ONCE) {
        let found = try_join_all(some.iter().map(|(_, run)| table::run(store, run))).await?;
        items.extend(some.iter().zip(found).map(|((place, _), found)| (place.clone(), of_run(&found.value))));
    }
    Ok(Rows { items, next })
}

/// Returns an entry for each change of the drift of the install's parts.
async fn of_drifts(store: &dyn Store, id: &InstallId) -> Result<Vec<(String, Vec<HistoryEntry>)>, AppError> {
    let mut found = Vec::new();
    for (component, deployed) in table::parts(store, id).await? {
        for event in deployed.drift.map(|drift| drift.events).unwrap_or_default() {
            let id = WorkflowId::derive(component.as_str(), &serde_json::to_string(&event)?);
            found.push((place(event.at, id.as_str()), vec![of_drift(&component, event)]));
        }
    }
    Ok(found)
}

/// Returns a place in the history. The places of runs and of drift have the form of the places in the list of
/// workflows, so that a page can begin after each of them.
fn place(at: Timestamp, id: &str) -> String {
    format!("{}{:020}#{id}", List::Workflows.prefix(), u64::MAX - at.as_millis())
}

/// Returns the place of a run. Runs have the same order in the history as in their own list.
fn place_of_run(entry: &RunEntry) -> String {
    place(entry.created_at, &entry.run.as_str().replacen("run_", "wf_", 1))
}

fn entry(at: Timestamp, kind: &str, what: String) -> HistoryEntry {
    HistoryEntry {
        at,
        kind: kind.to_owned(),
        what,
        by: None,
        why: String::new(),
        result: String::new(),
        workflow: None,
        job: None,
        run: None,
        component: None,
    }
}

/// Returns the entries for a workflow, for people's actions on it, and for their decisions about its plans.
async fn of_workflow(store: &dyn Store, row: &WorkflowEntry) -> Result<Vec<HistoryEntry>, AppError> {
    // The workflows of a forgotten install are removed one by one.
    let Some(Stored { value: workflow, .. }) = table::find_workflow(store, &row.workflow).await? else {
        return Ok(Vec::new());
    };
    let of = |entry: HistoryEntry| HistoryEntry { workflow: Some(workflow.id.clone()), ..entry };
    let mut found = vec![of(HistoryEntry {
        by: workflow.asked_by.clone(),
        result: result_of(&workflow),
        run: workflow.run.clone(),
        ..entry(workflow.created_at, "workflow", what_of(&workflow))
    })];
    found.extend(workflow.again.iter().map(|again| {
        let node = again.act.node().map(|node| format!(" `{node}`")).unwrap_or_default();
        let (by, why) = (Some(again.by.clone()), again.reason.clone());
        of(HistoryEntry { by, why, ..entry(again.at, "continued", format!("{}{node}", again.act.as_str())) })
    }));
    found.extend(workflow.cancel_requested.map(|at| {
        let (by, why) = (workflow.cancelled_by.clone(), workflow.cancel_reason.clone());
        of(HistoryEntry { by, why, ..entry(at, "cancel", "cancel requested".to_owned()) })
    }));
    if workflow.kind.is_exclusive() {
        for job in jobs(store, &workflow).await? {
            found.extend(approvals(&job).map(of));
        }
    }
    Ok(found)
}

fn what_of(workflow: &Workflow) -> String {
    let kind = workflow.kind.machine();
    match &workflow.request {
        Request::Action { action, .. } => format!("{kind} `{action}`"),
        Request::Deploy { .. }
        | Request::Teardown { .. }
        | Request::DetectDrift { .. }
        | Request::CheckHealth { .. }
        | Request::Upgrade { .. }
        | Request::Build { .. } => kind.to_owned(),
    }
}

fn result_of(workflow: &Workflow) -> String {
    match &workflow.state {
        WorkflowState::Failed { reason, .. } => format!("failed: {reason}"),
        state @ (WorkflowState::Pending
        | WorkflowState::Running { .. }
        | WorkflowState::Succeeded { .. }
        | WorkflowState::Cancelled { .. }) => state.as_str().to_owned(),
    }
}

async fn jobs(store: &dyn Store, workflow: &Workflow) -> Result<Vec<Job>, AppError> {
    let ids: Vec<JobId> = workflow.nodes.iter().map(|node| JobId::derive(&workflow.id, &node.name)).collect();
    let mut jobs = Vec::new();
    for some in ids.chunks(AT_ONCE) {
        let found = try_join_all(some.iter().map(async |id| load::<Job>(store, &table::job_key(id)).await)).await?;
        jobs.extend(found.into_iter().flatten().map(|found| found.value));
    }
    Ok(jobs)
}

/// Returns people's decisions about the plans of a job.
fn approvals(job: &Job) -> impl Iterator<Item = HistoryEntry> {
    const WORDS: [(&str, &str); 4] = [
        ("approved", "approved"),
        ("rejected", "rejected"),
        ("approved_by_customer", "approved by the customer"),
        ("rejected_by_customer", "rejected by the customer"),
    ];
    job.history.iter().filter_map(|record| {
        let (_, word) = WORDS.iter().find(|(what, _)| *what == record.what)?;
        let by = job.approval.as_ref().filter(|_| record.what == "approved").and_then(|approval| approval.by.clone());
        let why = if record.what.starts_with("rejected") { record.reason.clone() } else { String::new() };
        let entry = entry(record.at, "approval", format!("plan of `{}` {word}", job.node));
        Some(HistoryEntry { by, why, job: Some(job.id.clone()), ..entry })
    })
}

/// Returns an entry for the start of a run of a runbook, and for each resumption of it.
fn of_run(run: &Run) -> Vec<HistoryEntry> {
    let view = run_view(run);
    let of = |entry: HistoryEntry| HistoryEntry { run: Some(view.run.clone()), ..entry };
    let result = if view.reason.is_empty() { view.state.clone() } else { format!("{}: {}", view.state, view.reason) };
    let after = view.after_deploy.as_ref().map(|deploy| format!(" after deploy `{deploy}`")).unwrap_or_default();
    let begun = entry(view.created_at, "run", format!("runbook `{}`{after}", view.runbook));
    let mut found = vec![of(HistoryEntry { by: Some(view.asked_by.clone()), result, ..begun })];
    found.extend(view.resumed.iter().map(|one| {
        let entry = entry(one.at, "continued", format!("resume runbook `{}`", view.runbook));
        of(HistoryEntry { by: Some(one.by.clone()), why: one.reason.clone(), ..entry })
    }));
    found
}

fn of_drift(component: &ComponentName, event: DriftEvent) -> HistoryEntry {
    let DriftEvent { at, what, resources } = event;
    let (word, workflow, by, why) = match what {
        DriftChange::Found { workflow } => ("found", Some(workflow), None, String::new()),
        DriftChange::Cleared { workflow } => ("no longer found", Some(workflow), None, String::new()),
        DriftChange::Deployed { workflow } => ("repaired by a deploy", Some(workflow), None, String::new()),
        DriftChange::Acknowledged { by, reason } => ("acknowledged", None, Some(by), reason),
    };
    let what = format!("drift {word}: {} of `{component}`", plural(resources, "resource"));
    HistoryEntry { workflow, by, why, component: Some(component.clone()), ..entry(at, "drift", what) }
}

/// Returns the current state of the connection, such as paused or silent; `None` while the runner is connected.
async fn connection(store: &dyn Store, id: &InstallId, now: Timestamp) -> Result<Option<HistoryEntry>, AppError> {
    let Some(found) = load::<Contact>(store, &table::contact_key(id)).await? else { return Ok(None) };
    let contact = found.value.contact;
    let connection = contact.connection(Some(contact.at), now);
    let is_away = connection.state != ConnectionState::Connected;
    let what = format!("runner {}", connection.state.as_str());
    Ok(is_away.then(|| HistoryEntry { why: connection.reason, ..entry(connection.since, "connection", what) }))
}

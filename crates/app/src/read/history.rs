//! Shows what happened to an install, newest first, from the rows that other use cases write. A page has the workflows
//! of one page of their list, and everything else that happened between the first and the last of these workflows.

use freehold_domain::drift::{DriftChange, DriftEvent};
use freehold_domain::install::connection::ConnectionState;
use freehold_domain::job::Job;
use freehold_domain::plural::plural;
use freehold_domain::runbook::Run;
use freehold_domain::workflow::{Request, Workflow, WorkflowState};
use freehold_protocol::api::{HistoryEntry, Page};
use freehold_protocol::{ComponentName, InstallId, JobId, Timestamp};
use futures_util::future::try_join_all;

use super::{List, PAGE_ITEMS, Rows, Space, rows, run_view};
use crate::AppError;
use crate::ports::Store;
use crate::table::{self, Contact, RunEntry, Stored, WorkflowEntry, install_pk, load, parse};

/// The number of rows that are read concurrently.
const AT_ONCE: usize = 16;

/// The time range of the entries on a page: from the first time on, and before the second time.
#[derive(Debug, Clone, Copy)]
struct Between {
    from: Timestamp,
    /// `None` on the first page.
    before: Option<Timestamp>,
}

impl Between {
    fn has(self, at: Timestamp) -> bool {
        at >= self.from && self.before.is_none_or(|before| at < before)
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
    let workflows = rows(store, &install_pk(id), List::Workflows, after).await?;
    let (mut items, from, next) = of_workflows(store, workflows).await?;
    let between = Between { from, before: after.and_then(created_at) };
    items.extend(runs(store, id, between).await?);
    for (component, deployed) in table::parts(store, id).await? {
        let events = deployed.drift.map(|drift| drift.events).unwrap_or_default();
        let events = events.into_iter().filter(|event| between.has(event.at));
        items.extend(events.map(|event| of_drift(&component, event)));
    }
    if between.before.is_none() {
        items.extend(connection(store, id, now).await?);
    }
    items.sort_by_key(|one| std::cmp::Reverse(one.at));
    Ok(Page { items, next })
}

/// Returns the entries for the workflows that fit on a page, the time of the first of them, and the place after which
/// the next page begins. The last page begins with the install.
async fn of_workflows(
    store: &dyn Store,
    Rows { items: workflows, mut next }: Rows<WorkflowEntry>,
) -> Result<(Vec<HistoryEntry>, Timestamp, Option<String>), AppError> {
    let (mut items, mut space, mut last) = (Vec::new(), Space::default(), None);
    'page: for some in workflows.chunks(AT_ONCE) {
        let found = try_join_all(some.iter().map(|(_, entry)| of_workflow(store, entry))).await?;
        for ((place, entry), found) in some.iter().zip(found) {
            if !space.take(&found)? && last.is_some() {
                next = last.map(|(place, _): (&String, Timestamp)| place.clone());
                break 'page;
            }
            items.extend(found);
            last = Some((place, entry.created_at));
        }
    }
    let first = last.filter(|_| next.is_some()).map(|(_, at)| at);
    Ok((items, first.unwrap_or_default(), next))
}

/// Returns the time at which the workflow of a page's token was created.
fn created_at(token: &str) -> Option<Timestamp> {
    let newest_first: u64 = token.split('#').nth(1)?.parse().ok()?;
    Some(Timestamp::from_millis(u64::MAX - newest_first))
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

/// Returns an entry for each run of a runbook that began in this time, and for each resumption of such a run.
async fn runs(store: &dyn Store, id: &InstallId, between: Between) -> Result<Vec<HistoryEntry>, AppError> {
    let mut found = Vec::new();
    let mut after = between.before.map(|before| format!("run#{:020}#~", u64::MAX - before.as_millis()));
    loop {
        let rows = store.query(&install_pk(id), List::Runs.prefix(), after.as_deref(), PAGE_ITEMS).await?;
        for row in &rows {
            let Stored { value: RunEntry { run, created_at, .. }, .. } = parse(row)?;
            if !between.has(created_at) {
                return Ok(found);
            }
            found.extend(of_run(&table::run(store, &run).await?.value));
        }
        match rows.last() {
            Some(last) if rows.len() == PAGE_ITEMS as usize => after = Some(last.key.sk.clone()),
            Some(_) | None => return Ok(found),
        }
    }
}

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

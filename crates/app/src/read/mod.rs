//! Read-only queries: what the API shows of installs, workflows, jobs and logs.

use freehold_domain::install::Install;
use freehold_domain::job::{Job, JobState};
use freehold_domain::workflow::{NodeState, Request, Workflow, WorkflowKind, WorkflowState};
use freehold_protocol::api::{
    DeployedView, HistoryView, InstallView, JobView, LogChunk, LogPage, NodeView, Page, RunnerView, WorkflowView,
};
use freehold_protocol::{InstallId, JobId};
use serde::de::DeserializeOwned;

use crate::AppError;
use crate::app_version::show_inputs;
use crate::app_version::versions::Versions;
use crate::ports::Store;
use crate::table::{
    self, Contact, DeployedRecord, InstallEntry, LogRecord, Stored, WorkflowEntry, contact_key, install_pk, job_pk,
    load, load_all, parse,
};

/// How many items one page of a list holds.
pub const PAGE_ITEMS: u32 = 50;

/// Returns one page of a partition's records.
///
/// # Errors
/// The store's errors.
pub async fn page<T: DeserializeOwned>(
    store: &dyn Store,
    pk: &str,
    prefix: &str,
    after: Option<&str>,
) -> Result<Page<T>, AppError> {
    let rows = store.query(pk, prefix, after, PAGE_ITEMS).await?;
    let next = (rows.len() == PAGE_ITEMS as usize).then(|| rows.last().map(|row| row.key.sk.clone())).flatten();
    let items = rows.iter().map(|row| Ok(parse(row)?.value)).collect::<Result<Vec<T>, AppError>>()?;
    Ok(Page { items, next })
}

/// Returns an install with its runner, its inputs and its deployed components.
///
/// # Errors
/// NotFound, or the store's errors.
pub async fn install(versions: &Versions, id: &InstallId) -> Result<InstallView, AppError> {
    let store = &*versions.store;
    let install = table::install(store, id).await?.value;
    let components: Vec<DeployedRecord> = load_all(store, &install_pk(id), "component#").await?;
    let shown = match install.app() {
        Some(_) => show_inputs::show(versions, &install).await?.inputs,
        None => Vec::new(),
    };
    let mut view = install_view(store, install).await?;
    // Before a runner has announced itself there are no answers; that is not a problem yet.
    if view.runner.is_some() {
        view.problems = shown.iter().filter_map(|input| input.problem.clone()).collect();
    }
    view.inputs = show_inputs::by_name(&shown);
    view.components = components.into_iter().map(deployed_view).collect();
    Ok(view)
}

/// Returns one page of installs, without inputs and deployed components.
///
/// # Errors
/// The store's errors.
pub async fn installs(store: &dyn Store, after: Option<&str>) -> Result<Page<InstallView>, AppError> {
    let entries: Page<InstallEntry> = page(store, "installs", "", after).await?;
    let mut items = Vec::new();
    for entry in entries.items {
        let install = table::install(store, &entry.install).await?.value;
        items.push(install_view(store, install).await?);
    }
    Ok(Page { items, next: entries.next })
}

async fn install_view(store: &dyn Store, install: Install) -> Result<InstallView, AppError> {
    let contact: Option<Stored<Contact>> = load(store, &contact_key(&install.id)).await?;
    let live = match &install.live {
        Some(live) => Some(table::workflow(store, live).await?.value),
        None => None,
    };
    let version = match &install.serves {
        freehold_domain::install::Serves::App { version, .. } => version.clone(),
        freehold_domain::install::Serves::Builds => None,
    };
    let state = match (&install.runner, live.as_ref().map(|workflow| workflow.kind)) {
        _ if install.disabled.is_some() => "disabled",
        (None, _) => "waiting for runner",
        (Some(_), Some(WorkflowKind::ProvisionInstall)) => "provisioning",
        (Some(_), Some(_)) => "deploying",
        (Some(_), None) if version.is_some() => "ready",
        (Some(_), None) => "idle",
    };
    Ok(InstallView {
        app: install.app().cloned(),
        install: install.id,
        account: install.account,
        region: install.region,
        state: state.to_owned(),
        disabled: install.disabled,
        version,
        live: install.live,
        runner: install.runner.map(|runner| RunnerView {
            key: runner.public_key.key_id(),
            version: runner.version,
            slots: runner.slots,
            host: runner.host,
            since: runner.since,
            last_contact: contact.map(|contact| contact.value.at),
        }),
        inputs: std::collections::BTreeMap::new(),
        problems: Vec::new(),
        components: Vec::new(),
        accepted_contract: install.accepted_contract,
        orders_queue_url: install.orders_queue_url,
    })
}

fn deployed_view(record: DeployedRecord) -> DeployedView {
    let deployed = record.deployed;
    DeployedView {
        component: deployed.component,
        artifact: deployed.artifact,
        version: deployed.version,
        job: deployed.job,
        at: deployed.at,
        outputs: deployed.outputs,
    }
}

/// Returns one page of an install's workflows, newest first, without nodes.
///
/// # Errors
/// The store's errors.
pub async fn workflows(
    store: &dyn Store,
    install: &InstallId,
    after: Option<&str>,
) -> Result<Page<WorkflowView>, AppError> {
    let entries: Page<WorkflowEntry> = page(store, &install_pk(install), "workflow#", after).await?;
    let mut items = Vec::new();
    for entry in entries.items {
        let mut view = workflow_view(&table::workflow(store, &entry.workflow).await?.value);
        view.nodes.clear();
        items.push(view);
    }
    Ok(Page { items, next: entries.next })
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
        release: match &workflow.request {
            Request::Deploy { release, .. } => release.clone(),
            Request::Action { .. } | Request::Build { .. } => None,
        },
        nodes: workflow
            .nodes
            .iter()
            .map(|node| {
                let (job, reason) = match &node.state {
                    NodeState::Waiting => (None, String::new()),
                    NodeState::Active { job } | NodeState::Succeeded { job } => (Some(job.clone()), String::new()),
                    NodeState::Failed { job, reason, .. } => (Some(job.clone()), reason.clone()),
                    NodeState::Skipped { because } => (None, because.clone()),
                };
                NodeView {
                    name: node.name.clone(),
                    state: node.state.as_str().to_owned(),
                    dependencies: node.dependencies.iter().cloned().collect(),
                    job,
                    reason,
                }
            })
            .collect(),
    }
}

/// Returns a job with its history.
///
/// # Errors
/// NotFound, or the store's errors.
pub async fn job(store: &dyn Store, id: &JobId) -> Result<JobView, AppError> {
    Ok(job_view(table::job(store, id).await?.value))
}

/// Returns the API's view of a job.
pub fn job_view(job: Job) -> JobView {
    let outputs = match &job.state {
        JobState::Succeeded { outputs, .. } => outputs.clone(),
        _ => std::collections::BTreeMap::new(),
    };
    let ended_at = job.state.is_terminal().then(|| job.history.last().map(|record| record.at)).flatten();
    JobView {
        state: job.state.as_str().to_owned(),
        reason: job.state.reason().unwrap_or_default(),
        fence: job.state.fence(),
        outputs,
        ended_at,
        job: job.id,
        install: job.install,
        workflow: job.workflow,
        node: job.node,
        mode: job.mode,
        role: job.role,
        created_at: job.created_at,
        history: job
            .history
            .into_iter()
            .map(|record| HistoryView {
                at: record.at,
                what: record.what,
                from: record.from,
                to: record.to,
                reason: record.reason,
            })
            .collect(),
    }
}

/// Returns log text after the cursor. The page is marked as the last one only when it includes every remaining chunk.
///
/// # Errors
/// NotFound, or the store's errors.
pub async fn logs(store: &dyn Store, id: &JobId, after: Option<&str>) -> Result<LogPage, AppError> {
    // The job is read first, so that the query below finds everything that was logged before the job ended.
    let job = table::job(store, id).await?.value;
    let rows = store.query(&job_pk(id), "log#", after, PAGE_ITEMS).await?;
    let cursor = rows.last().map(|row| row.key.sk.clone()).or(after.map(str::to_owned)).unwrap_or_default();
    let full = rows.len() == PAGE_ITEMS as usize;
    let chunks = rows
        .iter()
        .map(|row| {
            let LogRecord { fence, seq, text, .. } = parse(row)?.value;
            Ok(LogChunk { fence, seq, text })
        })
        .collect::<Result<Vec<_>, AppError>>()?;
    Ok(LogPage { chunks, cursor, ended: job.state.is_terminal() && !full })
}

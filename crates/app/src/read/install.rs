//! Shows and lists installs.

use std::collections::{BTreeMap, BTreeSet};

use freehold_domain::drift::DriftRule;
use freehold_domain::health::{self, LastHealth};
use freehold_domain::install::change_gate::Gate;
use freehold_domain::install::connection::Connection;
use freehold_domain::install::licence::InstallLicence;
use freehold_domain::install::{Install, Serves, labels};
use freehold_domain::job::{Job, JobState};
use freehold_domain::plan::SkippedBy;
use freehold_domain::required_checks::ReportedCheck;
use freehold_domain::role_switches::RoleSwitches;
use freehold_domain::toggles;
use freehold_domain::workflow::WorkflowKind;
use freehold_protocol::api::{
    ChangesView, ConnectionView, DeployedView, Follows, HealthView, InputView, InstallHealthView, InstallView,
    LeftoversView, LicenceView, Page, PartialView, RolesView, RunnerView, SkippedView, WaitingPlan,
};
use freehold_protocol::report::ChangeTimes;
use freehold_protocol::time::rfc3339;
use freehold_protocol::{CheckName, ComponentName, InstallId, Timestamp, WorkflowId};
use futures_util::future::try_join_all;

use super::drift::drift_view;
use super::job::plan_view;
use super::last_report::heard_of;
use super::required_check::checks_of;
use super::{List, Rows, Space, fitting, rows};
use crate::AppError;
use crate::app_version::install_release::{followed, not_followed_text};
use crate::app_version::show_inputs;
use crate::app_version::versions::Versions;
use crate::ports::Store;
use crate::table::{
    self, AppRecord, ChangeTimesRecord, Contact, DeployedRecord, HEALTH_PREFIX, HealthRecord, InstallEntry,
    LeftoversRecord, LicenceRecord, NotFollowed, OpenRun, RoleSwitchesRecord, SKIPPED_PREFIX, SkippedRun, Stored,
    install_pk, load, load_all,
};

/// The number of installs that are read concurrently.
const AT_ONCE: usize = 16;

/// Returns an install with its runner, its inputs and its deployed components at the time `now`. Components that do not
/// fit into a response are left out; the view then has the place of the last one that it has.
///
/// # Errors
/// NotFound, or the store's errors.
pub async fn show_install(versions: &Versions, id: &InstallId, now: Timestamp) -> Result<InstallView, AppError> {
    show_install_after(versions, id, None, now).await
}

/// Returns an install as [`show_install`] does, with the deployed components that come after the place `after`.
///
/// # Errors
/// As [`show_install`].
pub async fn show_install_after(
    versions: &Versions,
    id: &InstallId,
    after: Option<&str>,
    now: Timestamp,
) -> Result<InstallView, AppError> {
    let store = &*versions.store;
    let install = table::install(store, id).await?.value;
    let components: Vec<DeployedRecord> = load_all(store, &install_pk(id), "component#").await?;
    let (inputs, off) = inputs_and_toggles(versions, &install).await?;
    let jobs = match &install.live {
        Some(live) if install.forgetting.is_none() => active_jobs(store, live).await?,
        Some(_) | None => Vec::new(),
    };
    let (rules, licence_set) = (install.drift_rules.clone(), install.licence.clone());
    let mut view = install_view(store, install, now).await?;
    view.roles = roles(store, id).await?;
    view.licence = licence(store, id, licence_set).await?;
    view.run = load::<OpenRun>(store, &table::open_run_key(id)).await?.map(|open| open.value.run);
    view.approvals = waiting_plans(&jobs);
    // The list of leftovers is from the last teardown of everything. The list is no longer valid when a component is
    // deployed again.
    if components.is_empty() {
        view.leftovers = leftovers(store, id).await?;
    }
    // The customer's values of inputs arrive when the runner announces itself. Before that, missing values are not a
    // problem.
    if view.runner.is_some() {
        view.problems = problems(store, id, &inputs, &view.release).await?;
    }
    view.inputs = show_inputs::by_name(&inputs);
    view.off = off;
    let checks: Vec<HealthRecord> = load_all(store, &install_pk(id), HEALTH_PREFIX).await?;
    let reported = table::reported_checks(store, id).await?;
    let checks = standing_checks(checks, &components, &reported);
    view.health = health_of(&checks);
    let awaited = awaited_checks(&jobs);
    let component_view = |record: DeployedRecord| {
        let name = &record.deployed.component;
        let required = awaited.get(name).or_else(|| checks.get(name).map(|check| &check.required));
        let results = checks_of(&record.deployed, required.unwrap_or(&BTreeSet::new()), &reported);
        DeployedView { checks: results, ..deployed_view(record, &rules, &checks) }
    };
    let placed = components.into_iter().map(|one| (table::deployed_key(id, &one.deployed.component).sk, one));
    let rest = placed.filter(|(place, _)| after.is_none_or(|after| place.as_str() > after));
    with_components(view, rest.map(|(place, one)| (place, component_view(one))).collect())
}

/// Returns the inputs of an install, and the components that are switched off. The build runner has none.
async fn inputs_and_toggles(
    versions: &Versions,
    install: &Install,
) -> Result<(Vec<InputView>, Vec<ComponentName>), AppError> {
    let Some(app) = install.app() else { return Ok((Vec::new(), Vec::new())) };
    let inputs = show_inputs::show_inputs(versions, install).await?.inputs;
    let version = followed(versions, app, &install.follows).await?.version;
    Ok((inputs, toggles::off(&version.document, &install.toggles).into_iter().collect()))
}

/// Returns the view with those components that fit into the same response. Each component comes with its place.
fn with_components(mut view: InstallView, components: Vec<(String, DeployedView)>) -> Result<InstallView, AppError> {
    let mut space = Space::default();
    space.take(&view)?;
    let page = fitting(components, None, space)?;
    (view.components, view.next) = (page.items, page.next);
    Ok(view)
}

/// Returns one page of the installs for which `is_shown` holds, at the time `now`, without inputs and deployed
/// components.
///
/// # Errors
/// The store's errors.
pub async fn list_installs(
    store: &dyn Store,
    after: Option<&str>,
    now: Timestamp,
    is_shown: &(dyn Fn(&Install) -> bool + Sync),
) -> Result<Page<InstallView>, AppError> {
    let mut after = after.map(str::to_owned);
    loop {
        let Rows { items, next } = rows::<InstallEntry>(store, "installs", List::Installs, after.as_deref()).await?;
        let mut views = Vec::with_capacity(items.len());
        for some in items.chunks(AT_ONCE) {
            let found = try_join_all(some.iter().map(async |(place, entry)| {
                // An install may be forgotten after the list was read.
                let found = load::<Install>(store, &table::install_key(&entry.install)).await?;
                let Some(found) = found.filter(|found| is_shown(&found.value)) else { return Ok::<_, AppError>(None) };
                let health = install_health(store, &entry.install).await?;
                Ok(Some((place.clone(), InstallView { health, ..install_view(store, found.value, now).await? })))
            }));
            views.extend(found.await?.into_iter().flatten());
        }
        let mut page = Rows { items: views, next };
        match page.next_shown() {
            Some(place) => after = Some(place),
            None => return fitting(page.items, page.next, Space::default()),
        }
    }
}

/// Returns the health of an install, if one of its components was checked since its deploy.
async fn install_health(store: &dyn Store, id: &InstallId) -> Result<Option<InstallHealthView>, AppError> {
    let checks: Vec<HealthRecord> = load_all(store, &install_pk(id), HEALTH_PREFIX).await?;
    if checks.is_empty() {
        return Ok(None);
    }
    let components: Vec<DeployedRecord> = load_all(store, &install_pk(id), "component#").await?;
    let reported = table::reported_checks(store, id).await?;
    Ok(health_of(&standing_checks(checks, &components, &reported)))
}

fn health_of(checks: &BTreeMap<ComponentName, LastHealth>) -> Option<InstallHealthView> {
    health::of_install(checks.values()).map(|found| InstallHealthView { state: found.state, since: found.since })
}

async fn install_view(store: &dyn Store, install: Install, now: Timestamp) -> Result<InstallView, AppError> {
    let last_contact = heard_of(store, &install).await?;
    let contact = load::<Contact>(store, &table::contact_key(&install.id)).await?.map(|found| found.value);
    let connection = contact.as_ref().map(|found| connection_view(found.contact.connection(last_contact, now)));
    let times = load::<ChangeTimesRecord>(store, &table::changes_key(&install.id)).await?;
    let changes = times.and_then(|found| found.value.times).map(|times| changes_view(times, now));
    let audit = contact.and_then(|contact| contact.head).map(|reported| reported.head);
    let live = match &install.live {
        // The workflows of an install that is being forgotten are removed before the install.
        Some(live) if install.forgetting.is_some() => table::find_workflow(store, live).await?.map(|found| found.value),
        Some(live) => Some(table::workflow(store, live).await?.value),
        None => None,
    };
    let version = match &install.serves {
        Serves::App { version, .. } => version.clone(),
        Serves::Builds => None,
    };
    let labels = labels::with_defaults(&install.labels, default_labels(store, &install).await?);
    let state = state(&install, live.as_ref().map(|workflow| workflow.kind), version.is_some());
    Ok(InstallView {
        app: install.app().cloned(),
        labels,
        own_labels: install.labels,
        install: install.id,
        account: install.account,
        region: install.region,
        state: state.to_owned(),
        disabled: install.disabled,
        version,
        live: install.live,
        run: None,
        connection: connection.filter(|_| install.runner.is_some()),
        changes,
        roles: None,
        licence: None,
        runner: install.runner.map(|runner| RunnerView {
            key: runner.public_key.key_id(),
            version: runner.version,
            slots: runner.slots,
            host: runner.host,
            since: runner.since,
            last_contact,
        }),
        inputs: BTreeMap::new(),
        problems: Vec::new(),
        components: Vec::new(),
        next: None,
        health: None,
        off: Vec::new(),
        leftovers: None,
        approval_option: install.approval_option,
        release: install.follows,
        approvals: Vec::new(),
        accepted_contract: install.accepted_contract,
        orders_queue_url: install.orders_queue_url,
        audit,
    })
}

/// Returns the default labels of the install's app. They are those of its latest version, whatever the install follows.
async fn default_labels(store: &dyn Store, install: &Install) -> Result<BTreeMap<String, String>, AppError> {
    let Some(app) = install.app() else { return Ok(BTreeMap::new()) };
    let app: Option<Stored<AppRecord>> = load(store, &table::app_key(app)).await?;
    Ok(app.map(|app| app.value.default_labels).unwrap_or_default())
}

/// Returns the state of an install in few words. `live` is the kind of its running workflow.
const fn state(install: &Install, live: Option<WorkflowKind>, has_version: bool) -> &'static str {
    match (&install.runner, live) {
        _ if install.forgetting.is_some() => "forgetting",
        _ if install.disabled.is_some() => "disabled",
        (None, _) => "waiting for runner",
        (Some(_), Some(WorkflowKind::ProvisionInstall)) => "provisioning",
        (Some(_), Some(WorkflowKind::TeardownInstall)) => "tearing down",
        (Some(_), Some(_)) => "deploying",
        (Some(_), None) if has_version => "ready",
        (Some(_), None) => "idle",
    }
}

/// Returns the roles that the customer has switched on, if the runner has announced them.
async fn roles(store: &dyn Store, id: &InstallId) -> Result<Option<RolesView>, AppError> {
    let record = load::<RoleSwitchesRecord>(store, &table::role_switches_key(id)).await?;
    Ok(record.map(|record| {
        let RoleSwitches { at, on } = record.value.switches;
        RolesView { on: on.into_iter().collect(), since: at }
    }))
}

/// Returns the licence of an install as it was set, with the signed text once an order has brought it.
async fn licence(
    store: &dyn Store,
    id: &InstallId,
    set: Option<InstallLicence>,
) -> Result<Option<LicenceView>, AppError> {
    let Some(InstallLicence { serial, issued_at, by, not_after, withdrawn, facts }) = set else { return Ok(None) };
    let record = load::<LicenceRecord>(store, &table::licence_key(id)).await?;
    let signed = record.filter(|record| record.value.serial == serial);
    let signed = signed.map(|record| record.value.signed.envelope().to_json()).transpose()?;
    Ok(Some(LicenceView { serial, facts, not_after, withdrawn, issued_at, by, signed }))
}

/// Returns the list of resources that the last teardown of everything left, if there is one.
async fn leftovers(store: &dyn Store, id: &InstallId) -> Result<Option<LeftoversView>, AppError> {
    let record = load::<LeftoversRecord>(store, &table::leftovers_key(id)).await?;
    Ok(record.map(|record| LeftoversView { at: record.value.at, job: record.value.job, found: record.value.found }))
}

/// Returns what needs attention: answers that are missing or wrong, runs of actions that were skipped, and a release
/// of the channel `follows` that is not deployed yet.
async fn problems(
    store: &dyn Store,
    id: &InstallId,
    inputs: &[InputView],
    follows: &Follows,
) -> Result<Vec<String>, AppError> {
    let mut problems: Vec<String> = inputs.iter().filter_map(|input| input.problem.clone()).collect();
    let skipped: Vec<SkippedRun> = load_all(store, &install_pk(id), SKIPPED_PREFIX).await?;
    problems.extend(skipped.iter().map(skipped_text));
    let not_followed = load::<NotFollowed>(store, &table::not_followed_key(id)).await?;
    // The stored reason may be about a channel that the install does not follow any more.
    let standing = not_followed
        .map(|known| known.value)
        .filter(|known| matches!(follows, Follows::Channel { channel } if *channel == known.channel));
    problems.extend(standing.iter().map(not_followed_text));
    Ok(problems)
}

/// Returns the jobs of the running workflow that have not ended.
async fn active_jobs(store: &dyn Store, live: &WorkflowId) -> Result<Vec<Job>, AppError> {
    let Some(found) = table::find_workflow(store, live).await? else { return Ok(Vec::new()) };
    let jobs = try_join_all(found.value.active_jobs().map(async |id| load::<Job>(store, &table::job_key(id)).await));
    Ok(jobs.await?.into_iter().flatten().map(|found| found.value).collect())
}

/// Returns the jobs whose plans wait for an approval.
fn waiting_plans(jobs: &[Job]) -> Vec<WaitingPlan> {
    let waiting = jobs.iter().filter_map(|job| {
        let plan = plan_view(job)?;
        Some(WaitingPlan { job: job.id.clone(), node: job.node.clone(), plan })
    });
    waiting.collect()
}

/// Returns the required checks for which some of the jobs wait, by component.
fn awaited_checks(jobs: &[Job]) -> BTreeMap<ComponentName, BTreeSet<CheckName>> {
    let waiting = jobs.iter().filter(|job| matches!(job.state, JobState::WaitingForChecks { .. }));
    let checks = waiting.filter_map(|job| job.checks.as_ref());
    checks.map(|checks| (checks.component.clone(), checks.required.names.clone())).collect()
}

fn connection_view(connection: Connection) -> ConnectionView {
    let Connection { state, since, reason } = connection;
    ConnectionView { state: state.as_str().to_owned(), since, reason }
}

fn changes_view(times: ChangeTimes, now: Timestamp) -> ChangesView {
    let (open, until, reason) = match Gate::at(&times, now) {
        Gate::Open { until } => (true, until, String::new()),
        Gate::Closed { until, reason } => (false, until, reason),
    };
    ChangesView { open, until, reason, windows: times.windows, freezes: times.freezes }
}

fn skipped_text(run: &SkippedRun) -> String {
    let due = rfc3339::text(run.due).unwrap_or_default();
    format!("the run of action `{}` that was due at {due} was skipped: {}", run.action, run.reason)
}

/// Returns the last health check of each component since its deploy, with the results of its required checks. An
/// earlier check is not about what is deployed now.
fn standing_checks(
    checks: Vec<HealthRecord>,
    components: &[DeployedRecord],
    reported: &[ReportedCheck],
) -> BTreeMap<ComponentName, LastHealth> {
    let standing = |check: LastHealth| {
        let deployed = components.iter().map(|one| &one.deployed).find(|one| one.component == check.component)?;
        let is_standing = check.is_since(deployed.serial);
        is_standing.then(|| check.with_checks(reported, (deployed.serial, deployed.at)))
    };
    let checks = checks.into_iter().filter_map(|record| standing(record.health));
    checks.map(|check| (check.component.clone(), check)).collect()
}

fn health_view(check: &LastHealth) -> HealthView {
    let LastHealth { state, reason, since, at, job, .. } = check.clone();
    HealthView { state, reason, since, at, job }
}

fn deployed_view(
    record: DeployedRecord,
    rules: &[DriftRule],
    checks: &BTreeMap<ComponentName, LastHealth>,
) -> DeployedView {
    let deployed = record.deployed;
    let drift = drift_view(&deployed, rules);
    let health = checks.get(&deployed.component).map(health_view);

    let partial = (deployed.partial && !deployed.attempted).then(|| match deployed.partial_by {
        Some(by) => {
            PartialView { since: Some(by.at), workflow: Some(by.workflow), job: Some(by.job), removes: by.removes }
        }
        None => PartialView::default(),
    });
    DeployedView {
        component: deployed.component,
        artifact: deployed.artifact,
        version: deployed.version,
        job: deployed.job,
        at: deployed.at,
        outputs: deployed.outputs,
        partial,
        attempted: deployed.attempted,
        skipped: deployed.skipped.map(|SkippedBy { workflow, by, reason, at }| SkippedView {
            workflow,
            by,
            reason,
            at,
        }),
        drift,
        health,
        checks: Vec::new(),
    }
}

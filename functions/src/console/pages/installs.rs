//! The list of installs, and the page of one install.

use freehold_pages::{Facts, Field, Page, Table, Tone, badge, code, notice, pagination, time};
use freehold_protocol::api::{DeployedView, InstallView, Page as List, ReleaseView, WorkflowView};
use maud::{Markup, html};

use super::view::{View, app_link, install_link, install_path, job_link, maybe_time, next_path, workflow_link};

/// The number of workflows on the page of an install; another page has all of them.
const LATEST: usize = 10;

/// Returns the page with the list of installs.
pub(crate) fn list(view: &View<'_>, installs: &List<InstallView>) -> String {
    let mut table = Table::new("Installs", ["Install", "App", "State", "Connection", "Health", "Version"]);
    for install in &installs.items {
        table.row([
            install_link(&install.install),
            html! { @if let Some(app) = &install.app { (app_link(app)) } },
            badge(&install.state),
            html! { @if let Some(connection) = &install.connection { (badge(&connection.state)) } },
            html! { @if let Some(health) = &install.health { (badge(health.state.as_str())) } },
            html! { @if let Some(version) = &install.version { (code(version.short())) } },
        ]);
    }
    let content = html! {
        (table.render_or("There are no installs that you may see. `freehold install create` makes one."))
        (pagination(next_path("/installs", installs.next.as_deref()).as_deref()))
    };
    view.document(Page::new("Installs", content).at(view.path))
}

/// Returns the page of an install, with its latest workflows and the releases that it can deploy.
pub(crate) fn show(
    view: &View<'_>,
    install: &InstallView,
    workflows: &List<WorkflowView>,
    releases: &[ReleaseView],
) -> String {
    let path = install_path(&install.install);
    let title = format!("Install {}", install.install);
    let latest = workflows.items.get(..LATEST).unwrap_or(&workflows.items);
    let content = html! {
        (problems(install))
        (facts(install))
        (actions(view, &path, releases))
        h2 { "Plans that wait for an approval" }
        (approvals(install))
        h2 { "Components" }
        (components(install))
        (pagination(next_path(&path, install.next.as_deref()).as_deref()))
        h2 { "Workflows" }
        (workflow_table(latest).render_or("No workflow has run in this install."))
        nav aria-label="Parts of the install" {
            ul {
                li { a href={ (path) "/inputs" } { "Inputs" } }
                li { a href={ (path) "/drift" } { "Drift" } }
                li { a href={ (path) "/history" } { "History" } }
                li { a href={ (path) "/workflows" } { "All workflows" } }
            }
        }
    };
    view.document(Page::new(&title, content).at(view.path).below("Installs", "/installs"))
}

/// Returns the page with all workflows of an install.
pub(crate) fn workflows(view: &View<'_>, install: &str, workflows: &List<WorkflowView>) -> String {
    let path = install_path(install);
    let content = html! {
        (workflow_table(&workflows.items).render_or("No workflow has run in this install."))
        (pagination(next_path(&format!("{path}/workflows"), workflows.next.as_deref()).as_deref()))
    };
    let page = Page::new("Workflows", content).at(view.path).below("Installs", "/installs").below(install, path);
    view.document(page)
}

fn problems(install: &InstallView) -> Markup {
    html! {
        @if let Some(reason) = &install.disabled {
            (notice(Tone::Warning, format!("This install is disabled: {reason}")))
        }
        @for problem in &install.problems { (notice(Tone::Warning, problem)) }
    }
}

fn facts(install: &InstallView) -> Markup {
    let mut facts = Facts::new()
        .with("State", badge(&install.state))
        .maybe("App", install.app.as_ref().map(app_link))
        .with("AWS account", code(&install.account))
        .with("Region", code(&install.region))
        .maybe("Version", install.version.as_ref().map(code))
        .with("Deploys", install.release.to_string())
        .maybe("Running workflow", install.live.as_ref().map(workflow_link));
    if let Some(connection) = &install.connection {
        let since = html! { (badge(&connection.state)) " since " (time(connection.since)) " " (connection.reason) };
        facts = facts.with("Connection", since);
    }
    if let Some(runner) = &install.runner {
        let contact = maybe_time(runner.last_contact);
        facts = facts.with("Runner", html! { (code(&runner.version)) ", last contact " (contact) });
    }
    if let Some(health) = &install.health {
        let since = html! { (badge(health.state.as_str())) " since " (time(health.since)) };
        facts = facts.with("Health", since);
    }
    if let Some(changes) = &install.changes {
        let word = if changes.open { "may start now" } else { "may not start now" };
        facts = facts.with("Changes", html! { (word) " " (changes.reason) });
    }
    if let Some(head) = &install.audit {
        let text = html! { "record " (head.seq) ", " (code(&head.digest)) };
        facts = facts.with("Head of the audit log", text);
    }
    let labels = html! { @for (key, value) in &install.labels { (code(format!("{key}={value}"))) " " } };
    facts.with("Labels", labels).render()
}

fn actions(view: &View<'_>, path: &str, releases: &[ReleaseView]) -> Markup {
    if !view.allowed.contains("deploy_components") {
        return Markup::default();
    }
    let (deploy, release) = (format!("{path}/deploy"), format!("{path}/deploy-release"));
    let options = releases.iter().map(|release| (release.name.to_string(), release.name.to_string())).collect();
    let choice = Field::Choice { name: "release", label: "Release", options, chosen: "" };
    html! {
        h2 { "Deploy" }
        div .actions {
            (view.form(&deploy, "Deploy").confirmed("Deploy what this install follows").render())
            @if !releases.is_empty() {
                (view.form(&release, "Deploy a release").field(choice)
                    .confirmed("Deploy this release, also when it is older than what runs").render())
            }
        }
    }
}

fn approvals(install: &InstallView) -> Markup {
    let mut table = Table::new("Plans", ["Job", "Part", "Changes", "Waits for", "Since"]);
    for waiting in &install.approvals {
        let sides: Vec<&str> = waiting.plan.waits_for.iter().map(|side| side.as_str()).collect();
        table.row([
            job_link(&waiting.job),
            html! { (waiting.node) },
            html! { (waiting.plan.proposed.summary.count()) },
            html! { (sides.join(", ")) },
            time(waiting.plan.since),
        ]);
    }
    table.render_or("No plan waits.")
}

fn components(install: &InstallView) -> Markup {
    let mut table = Table::new("Deployed components", ["Component", "Version", "Deployed", "Job", "Health", "Drift"]);
    for part in &install.components {
        table.row([
            html! { (part.component.to_string()) },
            html! { (code(part.version.short())) (marks(part)) },
            time(part.at),
            job_link(&part.job),
            html! { @if let Some(health) = &part.health { (badge(health.state.as_str())) " " (health.reason) } },
            html! { @if let Some(drift) = &part.drift { (badge(&drift.state)) } },
        ]);
    }
    table.render_or("Nothing is deployed.")
}

fn marks(part: &DeployedView) -> Markup {
    html! {
        @if part.partial.is_some() { " " (badge("partial")) }
        @if part.skipped.is_some() { " " (badge("skipped")) }
    }
}

fn workflow_table(workflows: &[WorkflowView]) -> Table {
    let mut table = Table::new("Latest workflows", ["Workflow", "Kind", "State", "Started", "By"]);
    for workflow in workflows {
        table.row([
            workflow_link(&workflow.workflow),
            html! { (workflow.kind) },
            badge(&workflow.state),
            time(workflow.created_at),
            html! { @if let Some(by) = &workflow.asked_by { (by.to_string()) } },
        ]);
    }
    table
}

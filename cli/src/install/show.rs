//! `freehold install list` and `show`: lists the installs, and shows one install.

use freehold_client::calls;
use freehold_protocol::api::{
    ApprovalOption, ChangesView, ConnectionView, HealthView, InstallView, PartialView, RolesView, RunnerView,
    SkippedView,
};
use freehold_protocol::audit::verify::Position;
use freehold_protocol::{InstallId, RoleKey};

use crate::app::{Label, has_labels, labels_text};
use crate::check::text::results;
use crate::context::Context;
use crate::drift::state_text;
use crate::error::Result;
use crate::install::licence::licence_text;
use crate::job::plain;
use crate::job::plan::waiting;
use crate::output::{Output, Table, time};
use crate::teardown::still_there;

/// Shows the installs that have all the labels in `wanted`.
pub(super) async fn list(context: &Context, wanted: &[Label]) -> Result<()> {
    let mut all: Vec<InstallView> = context.api().await?.list(calls::list_installs()).await?;
    all.retain(|one| has_labels(&one.labels, wanted));
    context.out.show(&all, |all| match (all.is_empty(), wanted.is_empty()) {
        (true, true) => "there is no install yet; `freehold install create --help` shows how to create one".to_owned(),
        (true, false) => "no install has these labels; `freehold install list` shows the labels of all".to_owned(),
        (false, _) => installs(all, context.out),
    })
}

/// Returns a table of installs. It has the columns of health and of labels only if one of the installs has them.
fn installs(all: &[InstallView], out: Output) -> String {
    let state = ["INSTALL", "APP", "STATE", "CONNECTION", "HEALTH"];
    let heads = [&state[..], &["VERSION", "ACCOUNT", "REGION", "LAST REPORT", "LABELS"]].concat();
    let mut table = Table::new(&heads);
    for one in all {
        table.row([
            one.install.to_string(),
            one.app.as_ref().map(ToString::to_string).unwrap_or_default(),
            one.state.clone(),
            one.connection.as_ref().map(connection).unwrap_or_default(),
            one.health.as_ref().map(|health| health.state.as_str().to_owned()).unwrap_or_default(),
            one.version.as_ref().map(|version| version.short().to_owned()).unwrap_or_default(),
            one.account.to_string(),
            one.region.clone(),
            one.runner.as_ref().map(heard_of).unwrap_or_default(),
            labels_text(&one.labels),
        ]);
    }
    out.table(&table.without_empty(&["HEALTH", "LABELS"]))
}

/// Shows one install.
pub(super) async fn show(context: &Context, install: &InstallId) -> Result<()> {
    let view = context.api().await?.install(install).await?;
    context.out.show(&view, |view| render(view, context.out))
}

/// Returns the state of a connection, and the time since which it has this state.
fn connection(connection: &ConnectionView) -> String {
    format!("{} since {}", connection.state, time(connection.since))
}

fn heard_of(runner: &RunnerView) -> String {
    time(runner.last_contact.unwrap_or(runner.since))
}

/// Returns the sentence about a component that is deployed only partly, and what the user can do about it.
fn partly(view: &InstallView, partial: &PartialView) -> String {
    let state = if partial.removes { "removed only partly" } else { "deployed only partly" };
    let since = partial.since.map(|at| format!(" since {}", time(at))).unwrap_or_default();
    let by = partial.workflow.as_ref().map(|workflow| format!(" by {workflow}")).unwrap_or_default();
    let reason = match &partial.job {
        Some(job) => format!(", and `freehold job show {job}` shows why its job did not succeed"),
        None => String::new(),
    };
    let again = match partial.removes {
        true => format!(
            "`freehold teardown {}` continues the removal, `freehold deploy {0}` deploys it again",
            view.install
        ),
        false => format!("`freehold deploy {}` deploys it again", view.install),
    };
    format!("{state}{since}{by}; {again}{reason}")
}

/// Returns the sentence about a component that a workflow continued without.
fn left_out(skipped: &SkippedView) -> String {
    let SkippedView { workflow, by, reason, at } = skipped;
    format!("skipped since {} in {workflow} by {by}: {reason}; the next deploy runs it", time(*at))
}

/// Returns the sentence about a component that is unhealthy, or whose health is unknown.
fn ill(health: &HealthView) -> String {
    let HealthView { state, reason, since, at, job } = health;
    format!("{} since {}, checked {} by {job}: {reason}", state.as_str(), time(*since), time(*at))
}

/// Returns whether changes may start, until when, and the customer's windows.
fn changes_text(changes: &ChangesView) -> String {
    let until = changes.until.map(|until| format!(" until {}", time(until))).unwrap_or_default();
    if changes.open {
        return format!("may start{until}; windows `{}`, freezes `{}`", changes.windows, changes.freezes);
    }
    format!("wait for the customer's change window{until}; {}", changes.reason)
}

/// Returns the roles that the customer has switched on, and the time since which this is so.
fn roles_text(roles: &RolesView) -> String {
    let on: Vec<&str> = roles.on.iter().map(RoleKey::as_str).collect();
    let on = if on.is_empty() { "none".to_owned() } else { on.join(", ") };
    format!("switched on: {on}; since {}", time(roles.since))
}

/// The facts about an install, one in each line.
struct Facts(Table);

impl Facts {
    fn add(&mut self, name: &str, value: String) {
        self.0.row([name.to_owned(), value]);
    }
}

fn render(view: &InstallView, out: Output) -> String {
    let mut facts = Facts(Table::new(&["INSTALL", ""]));
    add_identity(&mut facts, view, out);
    add_runner(&mut facts, view, out);
    add_changes(&mut facts, view);
    add_values(&mut facts, view);
    add_parts(&mut facts, view, out);
    for problem in &view.problems {
        facts.add("problem", problem.clone());
    }
    let components = (!view.components.is_empty()).then(|| format!("\n\n{}", components(view, out)));
    format!("{}{}", out.table(&facts.0), components.unwrap_or_default())
}

/// Adds the identity of the install, its labels, its licence, its place, and its running work.
fn add_identity(facts: &mut Facts, view: &InstallView, out: Output) {
    facts.add("name", view.install.to_string());
    facts.add("state", out.state(&view.state));
    if let Some(why) = &view.disabled {
        facts.add("disabled", format!("{why}; `freehold install enable {}`", view.install));
    }
    if let Some(app) = &view.app {
        facts.add("app", app.to_string());
    }
    if !view.labels.is_empty() {
        facts.add("labels", labels_text(&view.labels));
    }
    if let Some(licence) = &view.licence {
        facts.add("licence", licence_text(licence));
    }
    facts.add("account", format!("{} in {}", view.account, view.region));
    if let Some(version) = &view.version {
        facts.add("version", version.to_string());
    }
    if let Some(live) = &view.live {
        facts.add("now", format!("{live}; `freehold workflow watch {live}`"));
    }
    if let Some(run) = &view.run {
        facts.add("runbook", format!("{run}; `freehold runbook watch {run}`"));
    }
}

/// Adds the runner, the results of its health checks, and the state of its connection.
fn add_runner(facts: &mut Facts, view: &InstallView, out: Output) {
    match &view.runner {
        None => facts.add("runner", "none has announced itself yet".to_owned()),
        Some(runner) => {
            let text = format!(
                "{} on {}, {} slots, last report {}; while idle it reports once an hour",
                runner.version,
                runner.host,
                runner.slots,
                heard_of(runner)
            );
            facts.add("runner", text);
        }
    }
    if let Some(health) = &view.health {
        facts.add("health", format!("{} since {}", out.state(health.state.as_str()), time(health.since)));
    }
    if let Some(known) = &view.connection {
        let reason = if known.reason.is_empty() { String::new() } else { format!("; {}", known.reason) };
        facts.add("connection", format!("{} since {}{reason}", out.state(&known.state), time(known.since)));
    }
}

/// Adds the roles that are on, the change windows, the approval option, the followed target, and the plans that wait.
fn add_changes(facts: &mut Facts, view: &InstallView) {
    if let Some(roles) = &view.roles {
        facts.add("roles", roles_text(roles));
    }
    if let Some(changes) = &view.changes {
        facts.add("changes", changes_text(changes));
    }
    if view.approval_option == ApprovalOption::Prompt {
        facts.add("approvals", "plans wait until somebody at the vendor approves them".to_owned());
    }
    if !view.release.is_latest() {
        facts.add("follows", format!("{}; `freehold install release {}`", view.release, view.install));
    }
    for one in &view.approvals {
        facts.add(&format!("waits: {}", one.node), waiting(&one.plan, &one.job, &view.install));
    }
}

/// Adds the orders queue, the accepted contract, the head of the audit chain, and the inputs.
fn add_values(facts: &mut Facts, view: &InstallView) {
    if let Some(url) = &view.orders_queue_url {
        facts.add("orders", url.clone());
    }
    if let Some(accepted) = &view.accepted_contract {
        facts.add("agreed to", accepted.to_string());
    }
    if let Some(head) = &view.audit {
        facts.add("audit", format!("the customer's chain has record {}", Position::from(head)));
    }
    for (name, value) in &view.inputs {
        facts.add(&format!("input {name}"), plain(value));
    }
}

/// Adds the lines about components, and about the leftovers of removed components.
fn add_parts(facts: &mut Facts, view: &InstallView, out: Output) {
    for name in &view.off {
        let is_there = view.components.iter().any(|one| one.component == *name);
        let until = if is_there { "; the next deploy removes it" } else { "" };
        facts.add(&format!("component {name}"), format!("switched off{until}"));
    }
    for one in &view.components {
        if let Some(partial) = &one.partial {
            facts.add(&format!("component {}", one.component), partly(view, partial));
        }
        if let Some(skipped) = &one.skipped {
            facts.add(&format!("component {}", one.component), left_out(skipped));
        }
        if let Some(drift) = &one.drift {
            facts.add(&format!("drift {}", one.component), state_text(drift, out));
        }
        if let Some(health) = one.health.as_ref().filter(|health| !health.reason.is_empty()) {
            facts.add(&format!("component {}", one.component), ill(health));
        }
        if !one.checks.is_empty() {
            facts.add(&format!("checks {}", one.component), results(&one.checks));
        }
    }
    if let Some(leftovers) = &view.leftovers {
        facts.add("left over", still_there(leftovers));
    }
}

fn components(view: &InstallView, out: Output) -> String {
    let is_checked = view.health.is_some();
    let heads = ["COMPONENT", "VERSION", "ARTIFACT", "DEPLOYED", "JOB", "HEALTH"];
    let mut table = Table::new(heads.get(..5).filter(|_| !is_checked).unwrap_or(&heads));
    for one in &view.components {
        let (component, version) = (one.component.to_string(), one.version.short().to_owned());
        let deployed = if one.attempted { "not completely".to_owned() } else { time(one.at) };
        let (artifact, job) = (one.artifact.to_string(), one.job.to_string());
        let health = one.health.as_ref().map_or("not checked", |health| health.state.as_str()).to_owned();
        if is_checked {
            table.row([component, version, artifact, deployed, job, health]);
        } else {
            table.row([component, version, artifact, deployed, job]);
        }
    }
    out.table(&table)
}

#[cfg(test)]
mod tests {
    use freehold_protocol::Timestamp;

    use super::*;

    #[test]
    fn the_roles_that_are_on_are_named_with_their_time() {
        let roles = |on: &[&str]| RolesView {
            on: on.iter().map(|role| role.parse().unwrap()).collect(),
            since: Timestamp::from_millis(1_000),
        };

        assert_eq!(
            roles_text(&roles(&["custom-support", "maintenance"])),
            "switched on: custom-support, maintenance; since 1970-01-01 00:00:01Z"
        );
        assert_eq!(roles_text(&roles(&[])), "switched on: none; since 1970-01-01 00:00:01Z");
    }
}

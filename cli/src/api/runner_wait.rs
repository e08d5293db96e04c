//! Reports what a workflow waits for: the customer's window, an approval, required checks, or a runner that does not
//! take the workflow's orders. For a runner, the report has the time of the wait and the role that the runner needs. A
//! first deploy may also wait for an input that can be set only after the runner has announced itself.

use std::time::Duration;

use freehold_client::calls;
use freehold_protocol::api::{InstallView, JobView, RunnerView, TenantView, WorkflowView};
use freehold_protocol::{InstallId, Partition, Timestamp, names};
use tokio::time::Instant;

use super::Api;
use crate::clock;
use crate::error::Result;
use crate::output::{duration, time};
use crate::progress::Progress;

/// The wait after which the first line is printed, in seconds. A runner normally takes an order sooner.
const FIRST_LINE_SECS: u64 = 8;
/// The pause between two checks.
const POLL_INTERVAL: Duration = Duration::from_secs(4);

/// The check for a runner that does not take its orders. It runs while a workflow is watched.
#[derive(Debug)]
pub(super) struct Waiting {
    next: Instant,
    /// The wait after which the next plain line is printed, in seconds. After a line, it is twice the wait so far.
    due_secs: u64,
}

impl Waiting {
    pub(super) fn new() -> Self {
        Self { next: Instant::now(), due_secs: FIRST_LINE_SECS }
    }

    /// Shows what the workflow waits for: a window, an approval, checks, or a runner. Shows nothing about a runner when
    /// the API cannot be read.
    pub(super) async fn look(&mut self, api: &Api, view: &WorkflowView, progress: &Progress) {
        if Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + POLL_INTERVAL;
        if let Some(text) = decision(view) {
            let plain = self.due_secs > 0;
            self.due_secs = 0;
            return progress.waiting(&text, plain);
        }
        let since = oldest_untaken(api, view).await;
        let Ok(now) = clock::now() else { return };
        match since {
            Ok(Some(since)) if now.since(since) >= FIRST_LINE_SECS * 1000 => {
                let waited = now.since(since);
                let plain = waited >= self.due_secs * 1000;
                if plain {
                    self.due_secs = waited / 1000 * 2;
                }
                if let Ok(text) = sentence(api, view, waited, now).await {
                    progress.waiting(&text, plain);
                }
            }
            Ok(_) | Err(_) => progress.no_longer_waiting(),
        }
    }
}

/// Returns the sentence about what the workflow waits for: a window, an approval, checks, or a runner. Returns nothing
/// about a runner when the API cannot be read: the command then shows the workflow without this sentence.
pub(crate) async fn describe_wait(api: &Api, view: &WorkflowView) -> Option<String> {
    if view.ended_at.is_some() {
        return None;
    }
    if let Some(text) = decision(view) {
        return Some(text);
    }
    let now = clock::now().ok()?;
    let waited = now.since(oldest_untaken(api, view).await.ok()??);
    if waited < FIRST_LINE_SECS * 1000 {
        return None;
    }
    sentence(api, view, waited, now).await.ok()
}

/// Returns the sentence about a window, an approval or checks that the workflow waits for, if none of its jobs is open.
fn decision(view: &WorkflowView) -> Option<String> {
    window(view).or_else(|| approval(view)).or_else(|| checks(view))
}

/// Returns the sentence about the required checks that the workflow waits for, if none of its jobs is open.
fn checks(view: &WorkflowView) -> Option<String> {
    let node = view.nodes.iter().find(|node| node.state == "waiting_for_checks")?;
    if view.ended_at.is_some() || view.nodes.iter().any(|node| is_open(&node.state)) {
        return None;
    }
    let report = format!("`freehold check report {} COMPONENT NAME passed` reports a check", view.install);
    Some(format!("`{}` waits: {}; {report}", node.name, node.reason))
}

/// Returns the sentence about the customer's window that the workflow waits for, if none of its jobs is open.
fn window(view: &WorkflowView) -> Option<String> {
    let node = view.nodes.iter().find(|node| node.state == "waiting_for_window")?;
    if view.ended_at.is_some() || view.nodes.iter().any(|node| is_open(&node.state)) {
        return None;
    }
    let until = node.opens_at.map(|at| format!(" until {}", time(at))).unwrap_or_default();
    Some(format!("waits for the customer's change window{until}: {}", node.reason))
}

/// Returns the sentence about the approval that the workflow waits for, if none of its jobs is open.
fn approval(view: &WorkflowView) -> Option<String> {
    let node = view.nodes.iter().find(|node| node.state == "waiting_for_approval")?;
    if view.ended_at.is_some() || view.nodes.iter().any(|node| is_open(&node.state)) {
        return None;
    }
    let job = node.job.as_ref().map(|job| format!("; `freehold job show {job}` shows the plan, and how to approve it"));
    Some(format!("`{}` waits: {}{}", node.name, node.reason, job.unwrap_or_default()))
}

/// Returns whether a node with this state has an open job: a job that runs, or that waits until a runner takes its
/// order.
fn is_open(state: &str) -> bool {
    matches!(state, "active" | "waiting_for_runner")
}

/// Returns the time of the oldest order that no runner has taken, if there is such an order.
async fn oldest_untaken(api: &Api, view: &WorkflowView) -> Result<Option<Timestamp>> {
    let active: Vec<_> = view.nodes.iter().filter(|node| is_open(&node.state)).collect();
    if view.nodes.is_empty() {
        let install: InstallView = api.send(calls::show_install(&view.install)).await?;
        return Ok((install.runner.is_none() || missing_input(&install).is_some()).then_some(view.created_at));
    }
    // If one of these jobs has started, the runner is alive and only has no free slot for the other jobs. Any of the
    // jobs can be the started one: a runner does not take jobs in the order of the nodes.
    let mut oldest = None;
    for job in active.into_iter().filter_map(|node| node.job.as_ref()) {
        let job: JobView = api.send(calls::show_job(job)).await?;
        if !matches!(job.state.as_str(), "queued" | "waiting_for_runner") {
            return Ok(None);
        }
        let since = job.waits_since.unwrap_or(job.created_at);
        oldest = Some(oldest.map_or(since, |before: Timestamp| before.min(since)));
    }
    Ok(oldest)
}

async fn sentence(api: &Api, workflow: &WorkflowView, waited: u64, now: Timestamp) -> Result<String> {
    let install = &workflow.install;
    let tenant: TenantView = api.send(calls::show_tenant()).await?;
    let view: Option<InstallView> = api.send(calls::show_install(install)).await.ok();
    if let Some(problem) = view.as_ref().filter(|_| workflow.nodes.is_empty()).and_then(missing_input) {
        return Ok(format!("waiting for {}: {problem}", duration(waited)));
    }
    Ok(text(&tenant, install, view.as_ref(), waited, now))
}

/// Returns the problem with an input of an install whose runner has announced itself.
fn missing_input(install: &InstallView) -> Option<&String> {
    install.problems.first().filter(|_| install.runner.is_some())
}

fn text(tenant: &TenantView, install: &InstallId, view: Option<&InstallView>, waited: u64, now: Timestamp) -> String {
    let is_build = install.as_str() == "build";
    let (who, role, account, region) = match view {
        Some(view) if !is_build => (
            format!("the runner of `{install}`"),
            names::install_part(&tenant.tenant, install, "runner"),
            &view.account,
            &view.region,
        ),
        _ => (
            "the build runner".to_owned(),
            names::tenant_part(&tenant.tenant, "build-runner"),
            &tenant.account,
            &tenant.region,
        ),
    };
    if let Some(away) = view.and_then(|view| view.connection.as_ref()).filter(|known| !known.reason.is_empty()) {
        let since = duration(now.since(away.since));
        return format!("waiting for {who} for {} ({} for {since}: {})", duration(waited), away.state, away.reason);
    }
    let heard = heard_of(view.and_then(|view| view.runner.as_ref()), now);
    let role = format!("arn:{}:iam::{account}:role/{role}", Partition::of_region(region).name);
    format!("waiting for {who} for {} ({heard}); it must run as {role}", duration(waited))
}

fn heard_of(runner: Option<&RunnerView>, now: Timestamp) -> String {
    match runner {
        None => "it has not announced itself yet".to_owned(),
        Some(runner) => {
            format!("its last report came {} ago", duration(now.since(runner.last_contact.unwrap_or(runner.since))))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tenant() -> TenantView {
        serde_json::from_value(json!({
            "tenant": "acme", "account": "111111111111", "region": "eu-west-1", "reports_queue_url": "",
            "tenant_key": "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=",
        }))
        .unwrap()
    }

    fn install(name: &str, runner: serde_json::Value) -> InstallView {
        serde_json::from_value(json!({
            "install": name, "account": "222222222222", "region": "us-gov-west-1", "state": "ready", "runner": runner,
        }))
        .unwrap()
    }

    #[test]
    fn an_install_waits_for_an_input_only_when_its_runner_is_there() {
        let runner = json!({ "key": "7300c0ae1429cd153252736a781b78f4", "version": "0.1.0", "slots": 4, "host": "i-1", "since": 1 });
        let lacks = |runner| InstallView { problems: vec!["input `key` ...".to_owned()], ..install("globex", runner) };

        assert_eq!(missing_input(&lacks(runner.clone())).map(String::as_str), Some("input `key` ..."));
        assert_eq!(missing_input(&lacks(json!(null))), None);
        assert_eq!(missing_input(&install("globex", runner)), None);
    }

    #[test]
    fn a_workflow_that_waits_for_checks_names_them_and_says_how_to_report_one() {
        let view = |other: &str| -> WorkflowView {
            let reason = "the component is healthy, and waits for check `load` to pass until 2026-11-30T06:00:00Z";
            serde_json::from_value(json!({
                "workflow": "wf_00000000000000000001", "install": "globex", "kind": "deploy-components", "state": "running",
                "created_at": 1000,
                "nodes": [
                    { "name": "health:web", "state": "waiting_for_checks", "reason": reason },
                    { "name": "api", "state": other },
                ],
            }))
            .unwrap()
        };

        insta::assert_snapshot!(decision(&view("waiting")).unwrap(), @"`health:web` waits: the component is healthy, and waits for check `load` to pass until 2026-11-30T06:00:00Z; `freehold check report globex COMPONENT NAME passed` reports a check");
        assert_eq!(decision(&view("active")), None);
    }

    #[test]
    fn waiting_names_the_runner_how_long_it_was_silent_and_its_role() {
        let runner = json!({
            "key": "7300c0ae1429cd153252736a781b78f4", "version": "0.1.0", "slots": 4, "host": "i-1", "since": 1000,
            "last_contact": 60_000,
        });
        let globex = install("globex", runner);
        let name = |name: &str| name.parse::<InstallId>().unwrap();
        let now = Timestamp::from_millis(100_000);

        insta::assert_snapshot!(text(&tenant(), &name("globex"), Some(&globex), 40_000, now), @"waiting for the runner of `globex` for 40 s (its last report came 40 s ago); it must run as arn:aws-us-gov:iam::222222222222:role/fh-acme--globex--runner");
        let paused =
            json!({ "state": "paused", "since": 70_000, "reason": "the customer has switched this runner off" });
        let paused = InstallView { connection: serde_json::from_value(paused).unwrap(), ..globex.clone() };
        insta::assert_snapshot!(text(&tenant(), &name("globex"), Some(&paused), 40_000, now), @"waiting for the runner of `globex` for 40 s (paused for 30 s: the customer has switched this runner off)");
        insta::assert_snapshot!(text(&tenant(), &name("build"), None, 9_000, now), @"waiting for the build runner for 9 s (it has not announced itself yet); it must run as arn:aws:iam::111111111111:role/fh-acme--build-runner");
    }
}

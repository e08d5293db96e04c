//! `freehold workflow`: lists, shows, follows, cancels and continues workflows.

mod continuation;

use clap::{Args, Subcommand};
use freehold_client::calls;
use freehold_protocol::api::{CancelWorkflowRequest, NodeView, RolledBackView, WorkflowView};
use freehold_protocol::{InstallId, Timestamp, WorkflowId};
use serde::Serialize;

use crate::api::{IN_A_TABLE, brief, describe_wait, follow};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::output::{Output, Table, duration, time};

pub(crate) use continuation::Retry;
use continuation::{Resume, Skip};

/// The maximum number of characters of a reason in a list of workflows.
const IN_A_LIST: usize = 60;

#[derive(Debug, Subcommand)]
pub(crate) enum WorkflowCommand {
    /// List the workflows of an install.
    #[command(after_help = "Example:\n  freehold workflow list globex")]
    List {
        /// Name of the install.
        install: InstallId,
    },
    /// Show a workflow and the state of its nodes.
    #[command(after_help = "Example:\n  freehold workflow show wf_0123456789abcdef0123")]
    Show(One),
    /// Follow a workflow until it has ended; exit code 1 when it failed.
    #[command(after_help = "Example:\n  freehold workflow watch wf_0123456789abcdef0123")]
    Watch(One),
    /// Ask a workflow to stop; running jobs are stopped, and other jobs do not start.
    #[command(after_help = "\
Example:
  freehold workflow cancel wf_0123456789abcdef0123 --reason wrong-version

A running job receives the request after its next report, or within about a minute. A job that ends before that keeps
its result; the workflow ends as `cancelled` only if something was stopped. When a runner does not respond, the job ends
when its order can no longer be started; the command prints this time.

Exit code 0 when the workflow was asked to stop or is cancelled already, 4 when it has already succeeded or failed.")]
    Cancel {
        /// Id of the workflow, as `freehold workflow list` shows it.
        workflow: WorkflowId,
        /// The reason, in one line; the customer's audit log shows it.
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    Resume(Resume),
    Skip(Skip),
}

#[derive(Debug, Args)]
pub(crate) struct One {
    /// Id of the workflow, as `freehold workflow list` shows it.
    workflow: WorkflowId,
}

/// A workflow as `workflow show` prints it.
#[derive(Debug, Serialize)]
struct Shown {
    #[serde(flatten)]
    view: WorkflowView,
    /// The sentence about what the workflow waits for, such as a runner or an approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting: Option<String>,
}

impl Shown {
    fn text(&self, out: Output) -> String {
        let mut text = show(&self.view, out);
        if let Some(waiting) = &self.waiting {
            text.push_str(&format!("\n\n{waiting}"));
        }
        text
    }
}

impl WorkflowCommand {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let api = context.api().await?;
        match self {
            Self::List { install } => {
                let all: Vec<WorkflowView> = api.list(calls::list_workflows(&install)).await?;
                context.out.show(&all, |all| list(&install, all, context.out))
            }
            Self::Show(One { workflow }) => {
                let view: WorkflowView = api.send(calls::show_workflow(&workflow)).await?;
                let waiting = describe_wait(&api, &view).await;
                context.out.show(&Shown { view, waiting }, |shown| shown.text(context.out))
            }
            Self::Watch(One { workflow }) => follow(&api, context.out, &workflow, "workflow", true).await,
            Self::Resume(resume) => resume.run(context).await,
            Self::Skip(skip) => skip.run(context).await,
            Self::Cancel { workflow, reason } => {
                let call = calls::cancel_workflow(&workflow, &CancelWorkflowRequest { reason });
                let view: WorkflowView = api.send(call).await?;
                let active: Vec<_> = view.nodes.iter().filter(|node| node.ends_by.is_some()).collect();
                let names: Vec<&str> = active.iter().map(|node| &node.name[..]).collect();
                let ends_by = active.iter().filter_map(|node| node.ends_by).max();
                let result = cancelled(workflow.as_str(), &view.state, (&names, ends_by), "workflow watch")?;
                context.out.show(&view, |_| result)
            }
        }
    }
}

/// Returns the sentence after a request to cancel `what`. `active` names its open jobs, which end by `ends_by` even if
/// their runner does not respond. Returns an error if `what` had already ended and was not cancelled.
pub(crate) fn cancelled(
    what: &str,
    state: &str,
    (active, ends_by): (&[&str], Option<Timestamp>),
    see: &str,
) -> Result<String> {
    let silent = ends_by.map(|at| format!("; a runner that does not respond cannot start it after {}", time(at)));
    match (state, active) {
        ("cancelled", _) => Ok(format!("`{what}` has already ended: cancelled")),
        (
            "pending"
            | "running"
            | "queued"
            | "waiting_for_runner"
            | "waiting_for_window"
            | "waiting_for_approval"
            | "waiting_for_checks",
            active,
        ) => Ok(if active.is_empty() {
            format!("`{what}` was asked to stop; none of its jobs is running; it ends within about a minute")
        } else {
            format!(
                "`{what}` was asked to stop; not ended yet: `{}`; a running job receives the request after its next report, \
                 or within about a minute, and keeps its result if it ends before that{}; see `freehold {see} {what}`",
                active.join("`, `"),
                silent.unwrap_or_default()
            )
        }),
        (ended, _) => Err(Error::conflict(format!("nothing was stopped, because `{what}` has already ended: {ended}"))),
    }
}

fn took(view: &WorkflowView) -> String {
    let began_at = view.again.last().map_or(view.created_at, |again| again.at);
    view.ended_at.map(|end| duration(end.since(began_at))).unwrap_or_default()
}

fn list(install: &InstallId, all: &[WorkflowView], out: Output) -> String {
    if all.is_empty() {
        return format!("install `{install}` has no workflow; `freehold deploy {install}` starts one");
    }
    let mut table = Table::new(&["WORKFLOW", "KIND", "STATE", "STARTED", "TOOK", "VERSION", "REASON"]);
    for view in all {
        table.row([
            view.workflow.to_string(),
            format!("{} {}", view.kind, run(view)).trim_end().to_owned(),
            view.state.clone(),
            time(view.created_at),
            took(view),
            view.version.as_ref().map(|version| version.short().to_owned()).unwrap_or_default(),
            brief(&view.reason, IN_A_LIST),
        ]);
    }
    out.table(&table)
}

/// Returns the action that the workflow runs and what started it, such as `backup on schedule`; empty for other kinds.
fn run(view: &WorkflowView) -> String {
    let trigger = view.trigger.as_ref().map(|trigger| format!(" on {trigger}")).unwrap_or_default();
    view.action.as_ref().map(|action| format!("{action}{trigger}")).unwrap_or_default()
}

/// Returns the state of a node and the number of its retries.
fn state_of(node: &NodeView) -> String {
    match node.retried {
        0 => node.state.clone(),
        1 => format!("{}, retried once", node.state),
        times => format!("{}, retried {times} times", node.state),
    }
}

/// Returns the text about the customer's window that a node waits for.
fn awaited_window(node: &NodeView) -> String {
    let until = node.opens_at.map(|at| format!(" until {}", time(at))).unwrap_or_default();
    format!("for the customer's change window{until}")
}

/// Returns the sentence about a verified deploy, or about a roll back; `None` for any other workflow.
fn in_roll_back(view: &WorkflowView) -> Option<String> {
    if let Some(of) = &view.roll_back_of {
        return Some(format!("roll back of {of}"));
    }
    match &view.rolled_back {
        Some(RolledBackView { workflow: Some(by), .. }) => Some(format!("verified; rolled back by {by}")),
        Some(RolledBackView { workflow: None, refused }) => Some(format!("verified; not rolled back: {refused}")),
        None => view.verified.then(|| "verified: what ran before is deployed again if this fails".to_owned()),
    }
}

fn show(view: &WorkflowView, out: Output) -> String {
    let head = head(view, out);
    if view.nodes.is_empty() {
        return head;
    }
    let cut = view.nodes.iter().find(|node| brief(&node.reason, IN_A_TABLE).ends_with(" ..."));
    let whole = cut.and_then(|node| node.job.as_ref());
    let whole = whole.map(|job| format!("\n\nthe whole reason: freehold job show {job}")).unwrap_or_default();
    format!("{head}\n\n{}{whole}", out.table(&table_of_nodes(&view.nodes)))
}

fn table_of_nodes(nodes: &[NodeView]) -> Table {
    let mut table = Table::new(&["NODE", "STATE", "JOB", "AFTER", "REASON"]);
    for node in nodes {
        let job = node.job.as_ref().map(ToString::to_string).unwrap_or_default();
        let reason = match node.waits_since {
            Some(_) if node.state == "waiting_for_window" => awaited_window(node),
            Some(_) if matches!(node.state.as_str(), "waiting_for_approval" | "waiting_for_checks") => {
                brief(&node.reason, IN_A_TABLE)
            }
            Some(since) => format!("since {}", time(since)),
            None => brief(&node.reason, IN_A_TABLE),
        };
        table.row([node.name.clone(), state_of(node), job, node.dependencies.join(", "), reason]);
    }
    table
}

/// Returns the lines about the workflow as a whole.
fn head(view: &WorkflowView, out: Output) -> String {
    let mut head = format!("{}  {}  {}  of `{}`", view.workflow, view.kind, out.state(&view.state), view.install);
    if view.action.is_some() {
        head.push_str(&format!("\naction {}", run(view)));
    }
    if let Some(run) = &view.run {
        head.push_str(&format!("\nstep of {run}; `freehold runbook show {run}`"));
    }
    head.push_str(&format!("\nstarted {}", time(view.created_at)));
    if view.ended_at.is_some() {
        head.push_str(&format!(", took {}", took(view)));
    }
    if let Some(version) = &view.version {
        head.push_str(&format!(", version {}", version.short()));
    }
    if let Some(by) = &view.asked_by {
        head.push_str(&format!("\nasked for by {by}"));
    }
    if let Some(text) = in_roll_back(view) {
        head.push_str(&format!("\n{text}"));
    }
    if let Some(at) = view.cancel_requested {
        let by = view.cancelled_by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
        let why = if view.cancel_reason.is_empty() { String::new() } else { format!(": {}", view.cancel_reason) };
        head.push_str(&format!("\nasked to stop at {}{by}{why}", time(at)));
    }
    for again in &view.again {
        head.push_str(&format!("\n{}", continuation::line(again)));
    }
    // The workflow's reason repeats the reasons of its nodes, which are printed below.
    if !view.reason.is_empty() && view.nodes.iter().all(|node| node.reason.is_empty()) {
        head.push_str(&format!("\n{}", view.reason));
    }
    if let Some(why) = &view.nothing_ran {
        head.push_str(&format!("\n{why}"));
    }
    head
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cancel_says_when_it_takes_effect_and_for_whom() {
        let at = Timestamp::from_millis(1_700_000_000_000);
        let message = cancelled("wf_1", "running", (&["web", "db"], Some(at)), "workflow watch").unwrap();

        insta::assert_snapshot!(message, @"`wf_1` was asked to stop; not ended yet: `web`, `db`; a running job receives the \
                                        request after its next report, or within about a minute, and keeps its result \
                                        if it ends before that; a runner that does not respond cannot start it after \
                                        2023-11-14 22:13:20Z; see `freehold workflow watch wf_1`");
        insta::assert_snapshot!(
            cancelled("wf_1", "pending", (&[], None), "workflow watch").unwrap(),
            @"`wf_1` was asked to stop; none of its jobs is running; it ends within about a minute"
        );
    }

    #[test]
    fn a_workflow_says_who_asked_for_it_and_who_stopped_it() {
        let view = |asked: serde_json::Value| -> WorkflowView {
            let mut view = json!({
                "workflow": "wf_00000000000000000001", "install": "globex", "kind": "deploy-components",
                "state": "cancelled", "created_at": 1_700_000_000_000_u64,
                "cancel_requested": 1_700_000_060_000_u64, "ended_at": 1_700_000_070_000_u64,
            });
            view.as_object_mut().unwrap().extend(asked.as_object().unwrap().clone());
            serde_json::from_value(view).unwrap()
        };
        let out = Output::plain();
        let known = view(json!({
            "asked_by": { "by": "caller", "arn": "arn:aws:sts::111111111111:assumed-role/deployer/ana" },
            "cancelled_by": { "by": "sweep" }, "run": "run_00000000000000000001",
        }));

        let text = show(&known, out);

        assert!(text.contains("\nasked for by arn:aws:sts::111111111111:assumed-role/deployer/ana\n"), "{text}");
        assert!(
            text.contains("\nstep of run_00000000000000000001; `freehold runbook show run_00000000000000000001`\n")
        );
        assert!(text.ends_with(" by sweep"), "{text}");
        assert!(!show(&view(json!({})), out).contains(" by "), "an older workflow");
    }

    #[test]
    fn a_roll_back_and_what_it_follows_name_each_other() {
        let view = |more: serde_json::Value| -> WorkflowView {
            let mut all = json!({
                "workflow": "wf_00000000000000000001", "install": "globex", "kind": "deploy-components",
                "state": "failed", "created_at": 1,
            });
            all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            serde_json::from_value(all).unwrap()
        };
        let by = "wf_00000000000000000002";

        let message_of = |more| in_roll_back(&view(more)).unwrap_or_default();

        assert_eq!(message_of(json!({})), "");
        assert_eq!(
            message_of(json!({ "verified": true })),
            "verified: what ran before is deployed again if this fails"
        );
        let followed = json!({ "verified": true, "rolled_back": { "workflow": by } });
        assert_eq!(message_of(followed), format!("verified; rolled back by {by}"));
        let refused = json!({ "verified": true, "rolled_back": { "refused": "revoked" } });
        assert_eq!(message_of(refused), "verified; not rolled back: revoked");
        assert_eq!(message_of(json!({ "roll_back_of": by })), format!("roll back of {by}"));
    }

    #[test]
    fn a_cancel_of_what_has_ended_is_a_conflict_unless_it_was_cancelled() {
        let error = cancelled("wf_1", "succeeded", (&[], None), "workflow watch").unwrap_err();

        assert_eq!(error.kind().exit_code(), 4);
        assert_eq!(error.to_string(), "nothing was stopped, because `wf_1` has already ended: succeeded");
        assert_eq!(
            cancelled("wf_1", "cancelled", (&[], None), "workflow watch").unwrap(),
            "`wf_1` has already ended: cancelled"
        );
    }
}

//! Follows a workflow until it has ended.

use std::time::Duration;

use console::measure_text_width;
use freehold_client::calls;
use freehold_protocol::api::{NodeView, WorkflowStarted, WorkflowView};
use freehold_protocol::{JobId, WorkflowId};

use super::runner_wait::Waiting;
use super::{Api, IN_A_SENTENCE, brief};
use crate::error::{Error, Kind, Result};
use crate::output::Output;
use crate::progress::{Progress, or_stopped};

/// The pause between two requests while a command follows a workflow, a run, or the log of a job.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(700);
/// The maximum number of characters of a reason next to a node.
const IN_A_LINE: usize = 100;

/// Shows the workflow's nodes until the workflow has ended, and returns its last state. Ctrl-c ends only the command;
/// the workflow continues.
pub(crate) async fn watch(api: &Api, workflow: &WorkflowId, progress: &Progress) -> Result<WorkflowView> {
    let stopped = format!(
        "stopped watching; `{workflow}` continues: watch it with `freehold workflow watch {workflow}`, or stop it with `freehold workflow cancel {workflow}`"
    );
    or_stopped(until_ended(api, workflow, progress), stopped).await
}

/// Prints the result of a workflow that was just started. If `wait` is false, prints only that the workflow has
/// started.
pub(crate) async fn follow(api: &Api, out: Output, workflow: &WorkflowId, subject: &str, wait: bool) -> Result<()> {
    if !wait {
        let started = WorkflowStarted { workflow: workflow.clone(), version: None, number: None };
        return out.show(&started, |_| {
            format!("{subject} started ({workflow}); follow it with `freehold workflow watch {workflow}`")
        });
    }
    let progress = Progress::start();
    let view = watch(api, workflow, &progress).await?;
    drop(progress);
    let verdict = verdict(&view, subject);
    if out.is_json() {
        out.show(&view, |_| String::new())?;
    }
    out.line(&verdict?);
    Ok(())
}

async fn until_ended(api: &Api, workflow: &WorkflowId, progress: &Progress) -> Result<WorkflowView> {
    let mut things = progress.things();
    let mut shown = String::new();
    let mut waiting = Waiting::new();
    loop {
        let view: WorkflowView = api.send(calls::show_workflow(workflow)).await?;
        let state = format!("{} {}: {}", view.kind, view.workflow, view.state);
        if state != shown {
            progress.say(&state);
            shown = state;
        }
        let width = view.nodes.iter().map(|node| measure_text_width(&node.name)).max().unwrap_or_default();
        // The sentence at the end shows the reason of the first failed node.
        let first_bad = view.nodes.iter().position(is_bad);
        for (at, node) in view.nodes.iter().enumerate() {
            let reason = if Some(at) == first_bad { String::new() } else { brief(&node.reason, IN_A_LINE) };
            things.set(&node.name, &node.state, &reason, width);
        }
        if has_ended(&view) {
            things.finish();
            return Ok(view);
        }
        waiting.look(api, &view, progress).await;
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Returns whether the workflow has ended.
pub(crate) fn has_ended(view: &WorkflowView) -> bool {
    matches!(view.state.as_str(), "succeeded" | "failed" | "cancelled")
}

/// Returns a sentence about the success of an ended workflow, or the error with which the command ends.
pub(crate) fn verdict(view: &WorkflowView, subject: &str) -> Result<String> {
    let began_at = view.again.last().map_or(view.created_at, |again| again.at);
    let took = view.ended_at.map(|end| crate::output::duration(end.since(began_at))).unwrap_or_default();
    match (view.state.as_str(), &view.nothing_ran) {
        ("succeeded", Some(why)) => Ok(format!("{subject}: nothing ran: {why} ({})", view.workflow)),
        ("succeeded", None) => {
            let log = log(view).map(|job| format!("\nlog: freehold job logs {job}")).unwrap_or_default();
            Ok(format!("{subject} succeeded in {took} ({}){log}", view.workflow))
        }
        (state, _) => {
            let error = Error::quoting(Kind::Failed, format!("{subject} {state} ({}){}", view.workflow, because(view)));
            Err(match way_out(view) {
                Some(way_out) => error.or(way_out),
                None => error,
            })
        }
    }
}

/// Returns the job of a workflow that ran one action. The log of this job contains the output of the action's steps.
fn log(view: &WorkflowView) -> Option<&JobId> {
    let [node] = view.nodes.as_slice() else { return None };
    node.job.as_ref().filter(|_| view.kind == "run-action")
}

/// Returns the first failed node with its reason, and the number of other failed nodes.
fn because(view: &WorkflowView) -> String {
    let mut bad = view.nodes.iter().filter(|node| is_bad(node));
    let Some(first) = bad.next() else {
        return if view.reason.is_empty() {
            String::new()
        } else {
            format!(": {}", brief(&view.reason, IN_A_SENTENCE))
        };
    };
    let others = match bad.count() {
        0 => String::new(),
        others => format!(", and {} more", crate::output::plural(others, "node")),
    };
    let reason =
        if first.reason.is_empty() { String::new() } else { format!(": {}", brief(&first.reason, IN_A_SENTENCE)) };
    format!(": `{}` {}{others}{reason}", first.name, first.state)
}

fn way_out(view: &WorkflowView) -> Option<String> {
    let job = view.nodes.iter().filter(|node| is_bad(node)).find_map(|node| node.job.as_ref())?;
    Some(format!("see `freehold job logs {job}`"))
}

fn is_bad(node: &NodeView) -> bool {
    !matches!(
        node.state.as_str(),
        "waiting"
            | "active"
            | "waiting_for_runner"
            | "waiting_for_window"
            | "waiting_for_approval"
            | "waiting_for_checks"
            | "skipped"
            | "succeeded"
            | "cancelled"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(state: &str, node_state: &str, reason: &str) -> WorkflowView {
        serde_json::from_value(serde_json::json!({
            "workflow": "wf_00000000000000000001", "install": "globex", "kind": "deploy-components", "state": state,
            "created_at": 1000, "ended_at": 13000,
            "nodes": [
                {"name": "db", "state": "succeeded"},
                {"name": "web", "state": node_state, "reason": reason, "job": "job_00000000000000000001"},
            ],
        }))
        .unwrap()
    }

    #[test]
    fn a_failed_workflow_names_the_node_its_reason_and_the_logs() {
        let error = verdict(&view("failed", "failed", "exit code 1"), "deploy of `globex`").unwrap_err();

        assert_eq!(error.kind().exit_code(), 1);
        insta::assert_snapshot!(error, @"deploy of `globex` failed (wf_00000000000000000001): `web` failed: exit code 1; see `freehold job logs job_00000000000000000001`");
    }

    #[test]
    fn a_workflow_that_succeeded_says_how_long_it_took() {
        let sentence = verdict(&view("succeeded", "succeeded", ""), "deploy of `globex`").unwrap();

        assert_eq!(sentence, "deploy of `globex` succeeded in 12 s (wf_00000000000000000001)");
    }

    #[test]
    fn an_action_that_succeeded_names_its_log() {
        let mut view = view("succeeded", "succeeded", "");
        view.kind = "run-action".into();
        view.nodes.remove(0);

        let message = verdict(&view, "action `check` of `globex`").unwrap();

        let log = "log: freehold job logs job_00000000000000000001";
        assert_eq!(message, format!("action `check` of `globex` succeeded in 12 s (wf_00000000000000000001)\n{log}"));
    }

    #[test]
    fn a_workflow_without_jobs_says_that_nothing_ran_and_why() {
        let mut view = view("succeeded", "succeeded", "");
        view.nothing_ran = Some("all of it is there already".into());

        let message = verdict(&view, "deploy of `globex`").unwrap();

        assert_eq!(message, "deploy of `globex`: nothing ran: all of it is there already (wf_00000000000000000001)");
    }

    #[test]
    fn only_three_states_are_the_end() {
        for (state, ended) in
            [("pending", false), ("running", false), ("succeeded", true), ("failed", true), ("cancelled", true)]
        {
            assert_eq!(has_ended(&view(state, "active", "")), ended, "{state}");
        }
    }
}

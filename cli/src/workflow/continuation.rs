//! `freehold workflow resume` and `skip`, and `freehold job retry`: continue a workflow that has ended.

use clap::Args;
use freehold_client::calls;
use freehold_protocol::api::{
    ContinuationView, ResumeWorkflowRequest, RetryJobRequest, SkipNodeRequest, WorkflowView, describe_act,
};
use freehold_protocol::{JobId, WorkflowId};

use crate::api::follow;
use crate::context::Context;
use crate::error::Result;
use crate::output::time;

/// Resume a workflow that has ended: run the nodes that failed or were not reached.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  freehold workflow resume wf_0123456789abcdef0123 --reason \"the registry is back\"

Nodes that succeeded do not run again, and failed nodes do. So look first at the log of an action that was interrupted and is
not idempotent. The workflow keeps its id and its version. It cannot be resumed when another workflow has changed the install
since, when inputs or toggles of the install have changed, or when the customer no longer accepts the contract of the version:
then use `freehold deploy`, which makes a new plan.

Exit code 1 when the workflow fails again, 4 when it cannot be resumed.")]
pub(crate) struct Resume {
    /// Id of the workflow, as `freehold workflow list` shows it.
    workflow: WorkflowId,
    /// The reason, in one line; the customer's audit log shows it.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Start the work and return at once.
    #[arg(long)]
    no_wait: bool,
}

/// Let a workflow that has ended continue without one of its failed nodes.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  freehold workflow skip wf_0123456789abcdef0123 cache --reason \"moved to next week\"

The nodes that depend on the skipped node run, and read the outputs of its last success. A component that was never deployed
cannot be skipped if other nodes read its outputs. A removal and a copy of secrets cannot be skipped. Other failed nodes stay
as they are. The next deploy runs the skipped component.

Exit code 1 when the workflow fails again, 4 when the node cannot be skipped.")]
pub(crate) struct Skip {
    /// Id of the workflow.
    workflow: WorkflowId,
    /// Name of the node, as `freehold workflow show` shows it.
    node: String,
    /// The reason, in one line. The workflow shows it. The customer's audit log also shows it, if another node runs
    /// because of the skip.
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Start the work and return at once.
    #[arg(long)]
    no_wait: bool,
}

/// Retry a failed job of a workflow that has ended, and run the nodes that were not reached because of it.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  freehold job retry job_0123456789abcdef0123 --reason \"the quota was raised\"

Other failed nodes of the workflow stay as they are; `freehold workflow resume` runs them all.

Exit code 1 when the workflow fails again, 4 when the job cannot be retried.")]
pub(crate) struct Retry {
    /// Id of the job.
    job: JobId,
    /// The reason, in one line; the customer's audit log shows it.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Start the work and return at once.
    #[arg(long)]
    no_wait: bool,
}

impl Resume {
    pub(super) async fn run(self, context: &Context) -> Result<()> {
        let body = ResumeWorkflowRequest { reason: self.reason };
        let api = context.api().await?;
        let view: WorkflowView = api.send(calls::resume_workflow(&self.workflow, &body)).await?;
        follow(&api, context.out, &view.workflow, "workflow", !self.no_wait).await
    }
}

impl Skip {
    pub(super) async fn run(self, context: &Context) -> Result<()> {
        let body = SkipNodeRequest { node: self.node, reason: self.reason };
        let api = context.api().await?;
        let view: WorkflowView = api.send(calls::skip_node(&self.workflow, &body)).await?;
        follow(&api, context.out, &view.workflow, "workflow", !self.no_wait).await
    }
}

impl Retry {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let body = RetryJobRequest { reason: self.reason };
        let api = context.api().await?;
        let view: WorkflowView = api.send(calls::retry_job(&self.job, &body)).await?;
        follow(&api, context.out, &view.workflow, "workflow", !self.no_wait).await
    }
}

/// Returns one line about one continuation of a workflow.
pub(super) fn line(again: &ContinuationView) -> String {
    let what = describe_act(&again.act, again.node.as_deref());
    let why = if again.reason.is_empty() { String::new() } else { format!(": {}", again.reason) };
    format!("{what} at {} by {}, after it had {}{why}", time(again.at), again.by, ended(&again.ended_as))
}

fn ended(state: &str) -> &str {
    if state == "cancelled" { "been cancelled" } else { state }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_says_what_was_done_by_whom_and_why() {
        let again: ContinuationView = serde_json::from_value(json!({
            "act": "skip", "node": "db", "by": { "by": "sweep" }, "reason": "moved", "at": 1_700_000_000_000_u64,
            "ended_as": "failed",
        }))
        .unwrap();
        let resumed = ContinuationView {
            act: "resume".into(),
            reason: String::new(),
            ended_as: "cancelled".into(),
            ..again.clone()
        };

        insta::assert_snapshot!(line(&again), @"`db` skipped at 2023-11-14 22:13:20Z by sweep, after it had failed: moved");
        insta::assert_snapshot!(line(&resumed), @"resumed at 2023-11-14 22:13:20Z by sweep, after it had been cancelled");
    }
}

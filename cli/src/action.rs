//! `freehold action`: runs an action of an install.

use clap::{Args, Subcommand};
use freehold_protocol::api::WorkflowStarted;
use freehold_protocol::{ActionName, InstallId};
use serde_json::json;

use crate::api::follow;
use crate::context::Context;
use crate::error::Result;

#[derive(Debug, Subcommand)]
pub(crate) enum ActionCommand {
    Run(Run),
}

/// Run an action of an install and wait for its end.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  freehold action run globex health-check")]
pub(crate) struct Run {
    install: InstallId,
    action: ActionName,
    /// Only start it.
    #[arg(long)]
    no_wait: bool,
}

impl ActionCommand {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let Self::Run(args) = self;
        let api = context.api().await?;
        let path = ["v1", "installs", args.install.as_str(), "actions", args.action.as_str(), "runs"];
        let started: WorkflowStarted = api.post(&path, &json!({})).await?;
        let subject = format!("action `{}` of `{}`", args.action, args.install);
        follow(&api, context.out, &started.workflow, &subject, !args.no_wait).await
    }
}

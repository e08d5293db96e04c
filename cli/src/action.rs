//! `freehold action`: runs an action of an install.

use clap::{Args, Subcommand};
use freehold_protocol::api::{RunActionRequest, WorkflowStarted};
use freehold_protocol::{ActionName, InstallId};

use crate::api::follow;
use crate::context::Context;
use crate::error::Result;

#[derive(Debug, Subcommand)]
pub(crate) enum ActionCommand {
    Run(Run),
}

/// Run an action of an install and wait until the action ends. The steps are those of the app version that was last
/// deployed completely; before the first complete deploy, those of the latest version.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  freehold action run globex health-check\n  freehold action run globex repair --role break-glass-admin"
)]
pub(crate) struct Run {
    /// Name of the install.
    install: InstallId,
    /// Name of the action.
    action: ActionName,
    /// The role to run under, instead of the role that the app config chooses: a mode such as `provision`, or the key
    /// of a role as `freehold contract show` lists it, such as `break-glass-admin`.
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,
    /// Start also while the customer's change windows are closed. The customer's runner lets only those pass whom the
    /// customer names.
    #[arg(long)]
    now: bool,
    /// Start the action and return at once.
    #[arg(long)]
    no_wait: bool,
}

impl ActionCommand {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let Self::Run(args) = self;
        let api = context.api().await?;
        let path = ["v1", "installs", args.install.as_str(), "actions", args.action.as_str(), "runs"];
        let started: WorkflowStarted = api.post(&path, &RunActionRequest { role: args.role, now: args.now }).await?;
        let version = started.number.map(|number| format!(" (version {number})")).unwrap_or_default();
        let subject = format!("action `{}` of `{}`{version}", args.action, args.install);
        follow(&api, context.out, &started.workflow, &subject, !args.no_wait).await
    }
}

//! `freehold action`: runs an action of an install.

use clap::{Args, Subcommand};
use freehold_client::calls;
use freehold_protocol::api::{RunActionRequest, WorkflowStarted};
use freehold_protocol::{ActionName, InstallId};

use crate::api::follow;
use crate::context::Context;
use crate::error::Result;
use crate::inputs::{Input, texts_by_name};

#[derive(Debug, Subcommand)]
pub(crate) enum ActionCommand {
    Run(Run),
}

/// Run an action of an install and wait until the action ends. The steps come from the app version that was last
/// deployed completely, or from the latest version if no version was deployed completely yet.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  freehold action run globex health-check\n  freehold action run globex repair --role break-glass-admin\n  freehold action run globex add-ssh-key --input ssh_public_key=@id_ed25519.pub"
)]
pub(crate) struct Run {
    /// Name of the install.
    install: InstallId,
    /// Name of the action.
    action: ActionName,
    /// The role to run under, instead of the role that the app config chooses: one of the roles that `freehold contract
    /// show` lists for the action, a mode such as `provision` or the key of a role such as `break-glass-admin`.
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,
    /// An input of the action: `name=text`, or `name=@FILE` for the text of a file. Can be given several times.
    #[arg(long = "input", value_name = "NAME=TEXT")]
    inputs: Vec<Input>,
    /// Start also while the customer's change windows are closed. This works only for callers whom the customer has named
    /// (`ChangesNowBy` of the install stack).
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
        let inputs = texts_by_name(&args.inputs)?;
        let request = RunActionRequest { role: args.role, inputs, now: args.now };
        let call = calls::run_action(&args.install, &args.action, &request);
        let started: WorkflowStarted = api.send(call).await?;
        let version = started.number.map(|number| format!(" (version {number})")).unwrap_or_default();
        let subject = format!("action `{}` of `{}`{version}", args.action, args.install);
        follow(&api, context.out, &started.workflow, &subject, !args.no_wait).await
    }
}

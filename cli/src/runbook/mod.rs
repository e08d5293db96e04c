//! `freehold runbook`: runs the runbooks of an app in an install, and shows, resumes and cancels their runs.

mod run;
mod text;

use clap::{Args, Subcommand};
use freehold_client::calls;
use freehold_protocol::api::{InstallRunbooks, ReasonRequest, RunView};
use freehold_protocol::{InstallId, RunId};

use crate::app::{Label, has_labels};
use crate::context::Context;
use crate::error::Result;
use run::{RunRunbook, fetch_run, follow_run};

#[derive(Debug, Subcommand)]
pub(crate) enum RunbookCommand {
    /// List the runbooks that can be run in an install, with their inputs and steps.
    #[command(after_help = "Example:\n  freehold runbook list globex")]
    List {
        /// Name of the install.
        install: InstallId,
        /// List only the runbooks with this label of the app config: its key, or its key and its value. Can be given
        /// several times; a runbook must then have all of these labels.
        #[arg(long = "label", value_name = "KEY[=VALUE]")]
        labels: Vec<Label>,
    },
    Run(RunRunbook),
    /// List the runs of an install, newest first.
    #[command(after_help = "Example:\n  freehold runbook runs globex")]
    Runs {
        /// Name of the install.
        install: InstallId,
    },
    /// Show a run and its steps.
    #[command(after_help = "Example:\n  freehold runbook show run_00112233445566778899")]
    Show(One),
    /// Follow a run until it has ended; exit code 1 when it failed.
    #[command(after_help = "Example:\n  freehold runbook watch run_00112233445566778899")]
    Watch(One),
    Resume(Resume),
    /// Cancel a run: the running step is asked to stop, and the steps after it do not start.
    #[command(after_help = "\
Example:
  freehold runbook cancel run_00112233445566778899

A running step is cancelled like a workflow: see `freehold workflow cancel --help`. A run that was cancelled can
be resumed.

Exit code 0 when the run was asked to stop or is cancelled already, 4 when it has already succeeded or failed.")]
    Cancel(One),
}

#[derive(Debug, Args)]
pub(crate) struct One {
    /// Id of the run, as `freehold runbook runs` shows it.
    run: RunId,
}

/// Resume a run that failed or was cancelled: repeat the step at which it stopped, then run the remaining steps.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  freehold runbook resume run_00112233445566778899 --reason disk-was-full")]
pub(crate) struct Resume {
    /// Id of the run, as `freehold runbook runs` shows it.
    run: RunId,
    /// The reason why you resume the run; the run shows it. From then on its steps run in your name, and wait while
    /// change windows are closed.
    #[arg(long, value_name = "REASON")]
    reason: String,
    /// Resume the run and return at once.
    #[arg(long)]
    no_wait: bool,
}

impl RunbookCommand {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let (api, out) = (context.api().await?, context.out);
        match self {
            Self::List { install, labels } => {
                let mut all: InstallRunbooks = api.send(calls::list_runbooks(&install)).await?;
                all.runbooks.retain(|one| has_labels(&one.labels, &labels));
                out.show(&all, |all| text::runbooks(&install, all, !labels.is_empty(), out))
            }
            Self::Run(args) => args.run(&api, out).await,
            Self::Runs { install } => {
                let all: Vec<RunView> = api.list(calls::list_runs(&install)).await?;
                out.show(&all, |all| text::runs(&install, all, out))
            }
            Self::Show(One { run }) => out.show(&fetch_run(&api, &run).await?, |view| text::run(view, out)),
            Self::Watch(One { run }) => {
                let view = fetch_run(&api, &run).await?;
                follow_run(&api, out, view, true).await
            }
            Self::Resume(Resume { run, reason, no_wait }) => {
                let view: RunView = api.send(calls::resume_run(&run, &ReasonRequest { reason })).await?;
                follow_run(&api, out, view, !no_wait).await
            }
            Self::Cancel(One { run }) => {
                let view: RunView = api.send(calls::cancel_run(&run)).await?;
                let result = text::cancelled(&view)?;
                out.show(&view, |_| result)
            }
        }
    }
}

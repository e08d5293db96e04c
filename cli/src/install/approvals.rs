//! `freehold install approvals`: sets whether plans of an install wait until somebody at the vendor approves them.

use clap::{Args, ValueEnum};
use freehold_client::calls;
use freehold_protocol::InstallId;
use freehold_protocol::api::{ApprovalOption, InstallView, SetApprovalsRequest};

use crate::context::Context;
use crate::error::Result;

/// Set whether plans of an install wait until somebody at the vendor approves them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold install approvals globex prompt
  freehold install approvals globex approve-all

With `prompt`, each plan that changes something waits until somebody runs `freehold job approve`. A plan of a component
with `auto_approve_on_policies_passing` waits only if a policy warns about it. The setting applies to orders that are
made from now on. The customer decides in the install stack (`ApproveChanges`) which plans wait for the customer.")]
pub(crate) struct Approvals {
    /// Name of the install.
    install: InstallId,
    /// Whether plans wait.
    choice: Choice,
}

/// Whether plans wait for the vendor: none of them, or each that changes something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Choice {
    #[value(alias = "auto")]
    ApproveAll,
    Prompt,
}

impl Choice {
    pub(super) const fn option(self) -> ApprovalOption {
        match self {
            Self::ApproveAll => ApprovalOption::ApproveAll,
            Self::Prompt => ApprovalOption::Prompt,
        }
    }
}

impl Approvals {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        let body = SetApprovalsRequest { approval_option: self.choice.option() };
        let api = context.api().await?;
        let view: InstallView = api.send(calls::set_approvals(&self.install, &body)).await?;
        context
            .out
            .show(&view, |view| format!("approval option of `{}`: {}", self.install, view.approval_option.as_str()))
    }
}

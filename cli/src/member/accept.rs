//! `freehold member accept`: accepts an invitation by its code.

use std::io::BufRead as _;

use clap::Args;
use freehold_client::calls;
use freehold_protocol::api::{AcceptInvitationRequest, CallerView, INVITATION_CODE};

use super::text;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::output::note;

/// Accept an invitation: whoever is signed in becomes the member whom it names.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold member accept
  freehold member accept 4f2d0c6a8be94f7b0d1a5c3e7f9b2d4c6e8fa0b1c2d3e4f5061728394a5b6c7d

The first example reads the code from stdin. On a machine that you share, this keeps the code out of the list of
processes and of the history of your shell.

Sign in first. A code works once, within seven days, and `freehold whoami` shows the groups that you have then.")]
pub(crate) struct Accept {
    /// The code that `freehold member invite` printed: 64 hex digits. Without it, the command reads it from stdin.
    #[arg(value_name = "CODE")]
    code: Option<String>,
}

impl Accept {
    pub(super) async fn run(self, context: &Context) -> Result<()> {
        let code = self.code.map_or_else(code_of_stdin, Ok)?.trim().to_lowercase();
        if !INVITATION_CODE.accepts(&code) {
            // The text may be another secret, so that the message does not contain it.
            return Err(Error::invalid("this is not the code of an invitation, which has 64 hex digits")
                .or("pass the code that you were sent, or ask for another invitation"));
        }
        let request = AcceptInvitationRequest { code };
        let caller: CallerView = context.api().await?.send(calls::accept_invitation(&request)).await?;
        context.out.show(&caller, |caller| format!("you are a member now\n\n{}", text::caller(caller)))
    }
}

/// Reads the code from stdin.
fn code_of_stdin() -> Result<String> {
    note("paste the code of the invitation, and press Enter:");
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    read.map_err(|e| Error::invalid(format!("cannot read the code from stdin: {e}")).or("paste it, or pipe it"))?;
    Ok(line)
}

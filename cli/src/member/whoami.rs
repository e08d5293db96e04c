//! `freehold whoami`: shows who the caller is to the tenant.

use clap::Args;
use freehold_client::calls;
use freehold_protocol::api::CallerView;

use super::text;
use crate::context::Context;
use crate::error::Result;

/// Show who you are to the tenant, and what you may do in it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold whoami
  freehold whoami --json

Everybody whom the tenant can authenticate may ask this: a person who is signed in, a pipeline with a token, and an IAM
principal with AWS credentials.")]
pub(crate) struct Whoami {}

impl Whoami {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let caller: CallerView = context.api().await?.send(calls::show_caller()).await?;
        context.out.show(&caller, text::caller)
    }
}

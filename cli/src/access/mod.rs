//! `freehold access`: the policies that decide who may do what in the tenant.

mod origin;
mod set;
mod test;

use clap::Subcommand;
use freehold_client::calls;
use freehold_protocol::api::PoliciesView;

use crate::context::Context;
use crate::error::Result;
use crate::output::note;

#[derive(Debug, Subcommand)]
pub(crate) enum AccessCommand {
    /// Show the policies, which decide about each request to the tenant.
    #[command(after_help = "\
Examples:
  freehold access show
  freehold access show > policies.cedar
  freehold access show --json

Stdout has the text of the policies alone, so that a file of it can be changed and given to `freehold access set`. The
policies are in the language Cedar (https://docs.cedarpolicy.com); a new tenant has ready-made ones for the groups
owner, operator, developer, data_scientist, auditor and customer, and for the IAM principals of the account.")]
    Show,
    Set(set::Set),
    Test(test::Test),
}

impl AccessCommand {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        match self {
            Self::Show => {
                let view: PoliciesView = context.api().await?.send(calls::show_policies()).await?;
                if !context.out.is_json() {
                    note(&origin::of(&view));
                }
                context.out.show_verbatim(&view, |view| view.policies.clone())
            }
            Self::Set(set) => set.run(context).await,
            Self::Test(test) => test.run(context).await,
        }
    }
}

//! `freehold member`: who may use the tenant, and with which groups; and `freehold whoami`.

mod accept;
mod find;
mod invite;
mod remove;
mod set;
mod text;
mod whoami;

use clap::Subcommand;
use freehold_client::calls;

use crate::context::Context;
use crate::error::Result;

pub(crate) use whoami::Whoami;

#[derive(Debug, Subcommand)]
pub(crate) enum MemberCommand {
    /// List the members and the invitations that nobody has accepted.
    #[command(after_help = "Examples:\n  freehold member list\n  freehold member list --json")]
    List,
    Invite(invite::Invite),
    Accept(accept::Accept),
    Set(set::Set),
    Remove(remove::Remove),
}

impl MemberCommand {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let out = context.out;
        match self {
            Self::List => {
                let (all, now) = (context.api().await?.list(calls::list_members()).await?, crate::clock::now()?);
                out.show(&all, |all| text::list(all, now, out))
            }
            Self::Invite(invite) => invite.run(context).await,
            Self::Accept(accept) => accept.run(context).await,
            Self::Set(set) => set.run(context).await,
            Self::Remove(remove) => remove.run(context).await,
        }
    }
}

//! `freehold artifact`: prunes unused artifacts and revokes single artifacts.

mod prune;
mod revoke;

use clap::Subcommand;

use crate::context::Context;
use crate::error::Result;

#[derive(Debug, Subcommand)]
pub(crate) enum ArtifactCommand {
    Prune(prune::Prune),
    Revoke(revoke::Revoke),
}

impl ArtifactCommand {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        match self {
            Self::Prune(prune) => prune.run(context).await,
            Self::Revoke(revoke) => revoke.run(context).await,
        }
    }
}

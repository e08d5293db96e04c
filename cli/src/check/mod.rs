//! `freehold check`: the required checks of components.

mod report;
pub(crate) mod text;

use clap::Subcommand;

use crate::context::Context;
use crate::error::Result;

#[derive(Debug, Subcommand)]
pub(crate) enum CheckCommand {
    Report(report::Report),
}

impl CheckCommand {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let Self::Report(args) = self;
        args.run(&context.api().await?, context.out).await
    }
}

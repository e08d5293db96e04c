//! `freehold policy`: tests policies in Rego at the desk of whoever writes them.

mod documents;
mod policies;
mod test;

use clap::Subcommand;

use crate::context::Context;
use crate::error::Result;

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    Test(test::Test),
}

impl PolicyCommand {
    pub(crate) fn run(self, context: &Context) -> Result<()> {
        match self {
            Self::Test(args) => args.run(context),
        }
    }
}

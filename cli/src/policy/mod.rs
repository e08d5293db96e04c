//! `freehold policy`: tests policies in Rego on the machine of their author.

mod documents;
mod policies;
mod stack;
mod test;

use clap::Subcommand;

use crate::context::Context;
use crate::error::Result;

pub(crate) use stack::Policies;

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

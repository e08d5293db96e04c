//! `freehold support`: a redacted file about an install, which a customer makes for the vendor's support and the vendor opens.

mod archive;
mod audit;
mod bundle;
mod entry;
mod key;
mod open;
mod sources;
mod stack;

use clap::Subcommand;

use crate::context::Context;
use crate::error::Result;

#[derive(Debug, Subcommand)]
pub(crate) enum SupportCommand {
    Bundle(bundle::Bundle),
    Open(open::Open),
    /// For vendors: the key to which customers seal their bundles.
    #[command(subcommand)]
    Key(key::KeyCommand),
}

impl SupportCommand {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        match self {
            Self::Bundle(args) => args.run(context).await,
            Self::Open(args) => args.run(context),
            Self::Key(command) => command.run(context),
        }
    }
}

//! `freehold install audit`: the customer verifies the chain of records of what the runners of an install did.

mod folder;
#[cfg(test)]
mod tests;
mod verify;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use freehold_protocol::audit::verify::Position;

use crate::context::Context;
use crate::error::Result;

/// Verify the audit records of an install, as the customer.
#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    Verify(Verify),
}

/// Check that a copy of the audit records is complete and unchanged, without a network or an account.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  aws s3 cp --recursive s3://fh-acme--globex--222222222222/audit/ audit
  freehold install audit verify audit
  freehold install audit verify audit --runner 7300c0ae1429cd153252736a781b78f4
  freehold install audit verify audit --seen 000000000044-4b5e57f6eb2f

The runners of an install write one chain. Each record has the signature of its runner and the digest of the record before it,
so the command finds records that are missing, changed, exchanged, of another key or of another install, and names the first
one that is wrong. A chain that was cut at its end looks like a shorter chain: note the last record that the command prints,
and pass it as `--seen` the next time. Exit code 1 when something is wrong.")]
pub(crate) struct Verify {
    /// The folder with the copy of all below `audit/` of the install's bucket: a file for each record, and one with the
    /// public key of each runner.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// The id of a runner's key, as `freehold-runner doctor` prints it; records of any other key are refused.
    /// Repeatable.
    #[arg(long = "runner", value_name = "KEY")]
    runners: Vec<String>,
    /// A record that an earlier copy had; the chain must still have it. Repeatable.
    #[arg(long, value_name = "RECORD")]
    seen: Vec<Position>,
}

impl AuditCommand {
    pub(crate) fn run(&self, context: &Context) -> Result<()> {
        match self {
            Self::Verify(args) => args.run(context),
        }
    }
}

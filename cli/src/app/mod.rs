//! `freehold app`: config directories, checked and synced, and the versions that came of them.

mod check;
mod git;
mod show;
mod sync;
mod version;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use freehold_protocol::AppName;

use crate::context::Context;
use crate::error::Result;

pub(crate) use version::VersionName;

#[derive(Debug, Subcommand)]
pub(crate) enum AppCommand {
    Check(Check),
    Sync(Sync),
    /// List the apps.
    List,
    Show(Show),
    Versions(Versions),
}

/// Read an app config and show every mistake in it.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  freehold app check ./my-app\n\nNeeds no account and no network. Exit code 2 when there are errors."
)]
pub(crate) struct Check {
    /// The config's directory; its name is the app's.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

/// Make an app version of a config directory.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  freehold app sync ./my-app

Branches become commits, local sources are uploaded. The same content again is the same version.")]
pub(crate) struct Sync {
    /// The config's directory; its name is the app's.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

/// Show one version of an app: components, inputs, actions.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  freehold app show my-app\n  freehold app show my-app --version 3 --json")]
pub(crate) struct Show {
    app: AppName,
    /// Number, digest or the beginning of a digest; the latest version when absent.
    #[arg(long, value_name = "VERSION")]
    version: Option<VersionName>,
}

/// List the versions of an app.
#[derive(Debug, Args)]
pub(crate) struct Versions {
    app: AppName,
}

impl AppCommand {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        match self {
            Self::Check(args) => args.run(context),
            Self::Sync(args) => args.run(context).await,
            Self::List => show::list(context).await,
            Self::Show(args) => args.run(context).await,
            Self::Versions(args) => args.run(context).await,
        }
    }
}

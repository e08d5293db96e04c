//! `freehold tools`: makes the image that jobs run their programs in, from a list of pinned programs.

mod build;
mod entry;
mod fetch;
mod init;
mod layout;
mod list;
mod pin;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::context::Context;
use crate::error::Result;

/// The file that lists the programs.
const LIST: &str = "tools.toml";
/// The image, in the directory of the list.
const IMAGE: &str = "image";

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    Init(Init),
    Pin(Pin),
    Build(Build),
}

/// Write an example `tools.toml`, the list of the programs that jobs run, and a component for an image with them; set
/// `tool_image` in `runner.toml`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold tools init ./my-app
  freehold tools pin ./my-app/tools
  freehold tools build ./my-app/tools
  freehold app sync ./my-app

The list names an archive with a shell for each platform, such as `base-amd64.tar.gz`. Make these archives before `tools pin`; a
comment in the list contains the command. `tools init` adds a missing `tool_image` to `runner.toml` and changes nothing else there.")]
pub(crate) struct Init {
    /// The app's directory.
    #[arg(default_value = ".")]
    app: PathBuf,
}

/// Fetch each item of `tools.toml` that has no checksum yet, and write its SHA-256 into `tools.toml`, for you to
/// compare with the checksum that the item's publisher names.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold tools pin ./my-app/tools

An item with `file` is a file beside `tools.toml`, such as an archive with a shell. Make that file first; a comment in the list
that `tools init` writes contains the command.")]
pub(crate) struct Pin {
    /// The directory of `tools.toml`.
    #[arg(default_value = "tools")]
    dir: PathBuf,
}

/// Make the image from every program and archive of `tools.toml`, each checked by its SHA-256. The same list gives the
/// same bytes.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold tools build ./my-app/tools
  freehold app sync ./my-app
  freehold build my-app")]
pub(crate) struct Build {
    /// The directory of `tools.toml`; the image is written into its directory `image`.
    #[arg(default_value = "tools")]
    dir: PathBuf,
}

impl ToolsCommand {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        match self {
            Self::Init(init) => init.run(context),
            Self::Pin(pin) => pin.run(context).await,
            Self::Build(build) => build.run(context).await,
        }
    }
}

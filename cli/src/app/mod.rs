//! `freehold app`: checks and syncs app configs, and shows the app versions made from them.

mod check;
mod diff;
mod fetch;
mod fetch_version;
mod git;
mod graph;
mod init;
mod inputs;
mod labels;
mod readme;
mod schema;
mod show;
mod sync;
mod version;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use freehold_appconfig::SchemaKind;
use freehold_protocol::AppName;

use crate::context::Context;
use crate::error::Result;

pub(crate) use check::has_errors;
pub(crate) use fetch::load;
pub(crate) use labels::{Label, has_labels, key_and_value, labels_text};
pub(crate) use version::VersionName;

#[derive(Debug, Subcommand)]
pub(crate) enum AppCommand {
    Init(Init),
    Check(check::Check),
    Graph(graph::Graph),
    Diff(Diff),
    Schema(Schema),
    Sync(Sync),
    List(show::List),
    Show(show::Show),
    Versions(show::Versions),
    Inputs(inputs::Inputs),
    Readme(readme::Readme),
}

/// Write a small working app to start from.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold app init my-app
  cd my-app && freehold app init .

The app has a Terraform module, a CloudFormation stack that reads the module's output, an action, inputs and
permissions, each file with comments. The app passes `freehold app check`, with a warning: a deploy of the module needs
Terraform on the runner's machine or in the app's tool image (`freehold tools init`). Exit code 4 when the directory is
not empty.")]
pub(crate) struct Init {
    /// The new directory; its name is the name of the app.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

/// Compare two versions, or a directory with a version, and show the parts that a deploy would run.
#[derive(Debug, Args)]
#[command(
    override_usage = "freehold app diff [OPTIONS] DIR\n       freehold app diff [OPTIONS] --app NAME FROM TO",
    after_help = "\
Examples:
  freehold app diff ./my-app                  the directory against the app's latest version
  freehold app diff ./my-app --version 3      against version 3
  freehold app diff --app my-app 3 4          two versions that the tenant has

The output lists keys that differ; inputs and secrets that need a value; roles that may do more (+) or less (-); hosts
that the app newly contacts from the customer's account, as far as URLs and image names of the config show them; and the
parts that a deploy would run in an install with the first version: changed components, components that depend on them,
and actions that they trigger. A changed permission that cannot be compared counts as `+`, with a note. Defaults of
sensitive inputs are never shown."
)]
pub(crate) struct Diff {
    /// The directory of the app config, or with `--app` the version to start from.
    #[arg(value_name = "DIR|FROM")]
    from_or_dir: String,
    /// With `--app`: the version to compare with.
    #[arg(value_name = "TO", requires = "app")]
    to: Option<String>,
    /// The app whose versions FROM and TO are compared.
    #[arg(long, value_name = "NAME", requires = "to", conflicts_with_all = ["version", "offline"])]
    app: Option<AppName>,
    /// The version that the directory is compared with: its number, its digest or the beginning of its digest; the
    /// latest version when absent.
    #[arg(long, value_name = "VERSION")]
    version: Option<VersionName>,
    /// Do not resolve branches to commits, and do not fetch texts that the config names by address. A source on a
    /// branch is then shown without a commit, such as `(main)`, and counts as changed.
    #[arg(long)]
    offline: bool,
    /// Return exit code 1 when the two versions differ.
    #[arg(long)]
    exit_code: bool,
}

/// Print JSON Schemas of config files, for editors.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold app schema                      the kinds of files
  freehold app schema helm_chart           one schema; it is for files that begin with the comment `# helm`
  freehold app schema --dir ./my-app       all schemas in `schemas/`, and a `.taplo.toml`

Editors that use taplo then complete keys, explain them and mark mistakes. `freehold app check` finds more mistakes, because
it reads all files together.")]
pub(crate) struct Schema {
    /// A kind of file, by its name, its directory, or the word in the comment on its first line; without KIND, all are
    /// listed.
    #[arg(value_name = "KIND")]
    kind: Option<SchemaKind>,
    /// Write all schemas below this directory, which is the directory of an app config.
    #[arg(long, value_name = "DIR", conflicts_with = "kind")]
    dir: Option<PathBuf>,
    /// Replace existing schemas that have other contents, such as schemas of an earlier version.
    #[arg(long, requires = "dir")]
    force: bool,
}

/// Make an app version from a config directory.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  freehold app sync ./my-app

Branches are resolved to commits and local sources are uploaded. The same content gives the same version.")]
pub(crate) struct Sync {
    /// The directory of the app config; its name is the name of the app.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

impl AppCommand {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        match self {
            Self::Init(args) => args.run(context),
            Self::Check(args) => args.run(context),
            Self::Graph(args) => args.run(context).await,
            Self::Diff(args) => args.run(context).await,
            Self::Schema(args) => args.run(context),
            Self::Sync(args) => args.run(context).await,
            Self::List(args) => args.run(context).await,
            Self::Show(args) => args.run(context).await,
            Self::Versions(args) => args.run(context).await,
            Self::Inputs(args) => args.run(context).await,
            Self::Readme(args) => args.run(context).await,
        }
    }
}

//! `freehold release`: creates, lists and shows releases. A release gives a name to a version and its artifacts, and
//! never changes.

use clap::{Args, Subcommand};
use freehold_client::calls;
use freehold_protocol::api::{CreateReleaseRequest, ReleaseView};
use freehold_protocol::{AppName, ReleaseName};

use crate::app::VersionName;
use crate::context::Context;
use crate::error::Result;
use crate::output::{Output, Table, time};

#[derive(Debug, Subcommand)]
pub(crate) enum ReleaseCommand {
    Create(Create),
    /// List the releases of an app.
    #[command(after_help = "Examples:\n  freehold release list my-app\n  freehold release list my-app --json")]
    List {
        /// Name of the app.
        app: AppName,
    },
    /// Show a release and the artifact of each component.
    #[command(after_help = "Example:\n  freehold release show my-app 2026.11")]
    Show {
        /// Name of the app.
        app: AppName,
        /// Name of the release.
        name: ReleaseName,
    },
}

/// Give a name to a version of an app together with the artifacts of its components.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold release create my-app --name 2026.11
  freehold release create my-app --version 7 --name 2026.11
  freehold deploy globex --release 2026.11

A release never changes: creating the same release again changes nothing, and other contents need another name.")]
pub(crate) struct Create {
    /// Name of the app.
    app: AppName,
    /// The version: its number, its digest or the beginning of its digest; the latest version when absent.
    #[arg(long, value_name = "VERSION")]
    version: Option<VersionName>,
    /// The name of the release.
    #[arg(long, value_name = "NAME")]
    name: ReleaseName,
}

impl ReleaseCommand {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let api = context.api().await?;
        match self {
            Self::Create(args) => {
                let version = match &args.version {
                    Some(name) => Some(name.resolve(&api, &args.app).await?),
                    None => None,
                };
                let request = CreateReleaseRequest { name: args.name, version };
                let view: ReleaseView = api.send(calls::create_release(&args.app, &request)).await?;
                context.out.show(&view, |view| {
                    format!("{}\n\nnext: freehold deploy INSTALL --release {}", render(view, context.out), view.name)
                })
            }
            Self::List { app } => {
                let all: Vec<ReleaseView> = api.list(calls::list_releases(&app)).await?;
                context.out.show(&all, |all| list(&app, all, context.out))
            }
            Self::Show { app, name } => {
                let view: ReleaseView = api.send(calls::show_release(&app, &name)).await?;
                context.out.show(&view, |view| render(view, context.out))
            }
        }
    }
}

fn list(app: &AppName, all: &[ReleaseView], out: Output) -> String {
    if all.is_empty() {
        return format!(
            "app `{app}` has no release; `freehold release create {app} --name NAME` makes one of the latest version"
        );
    }
    let mut table = Table::new(&["RELEASE", "VERSION", "COMPONENTS", "CREATED", "DIGEST"]);
    for one in all {
        table.row([
            one.name.to_string(),
            one.contents.version.short().to_owned(),
            one.contents.artifacts.len().to_string(),
            time(one.created_at),
            one.digest.to_string(),
        ]);
    }
    out.table(&table)
}

fn render(view: &ReleaseView, out: Output) -> String {
    let mut table = Table::new(&["COMPONENT", "ARTIFACT"]);
    for (component, artifact) in &view.contents.artifacts {
        table.row([component.to_string(), artifact.to_string()]);
    }
    format!(
        "release {} of app {}  created {}\n{}\nversion {}\n\n{}",
        view.name,
        view.contents.app,
        time(view.created_at),
        view.digest,
        view.contents.version,
        out.table(&table)
    )
}

//! `freehold build`: starts the builds of a version's artifacts, which the build runner executes.

use clap::Args;
use freehold_client::calls;
use freehold_protocol::AppName;
use freehold_protocol::api::{BuildComponentsRequest, BuildStarted, BuildView};
use serde::Serialize;

use crate::api::{Api, IN_A_WIDE_TABLE, brief, has_ended, until_ready, verdict, watch};
use crate::app::VersionName;
use crate::context::Context;
use crate::error::Result;
use crate::output::{Output, Table, bytes};
use crate::progress::Progress;

/// Build the components of an app version that have no artifact yet.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold build my-app
  freehold build my-app --version 3 --no-wait

The build runner must be running, unless the tenant starts a machine for it (`freehold tenant deploy --build-subnet`); see
`freehold tenant build-runner --help`.")]
pub(crate) struct Build {
    /// Name of the app.
    app: AppName,
    /// The version: its number, its digest or the beginning of its digest; the latest version when absent.
    #[arg(long, value_name = "VERSION")]
    version: Option<VersionName>,
    /// Wait until everything is built (the default).
    #[arg(long, conflicts_with = "no_wait")]
    wait: bool,
    /// Start the build and return at once.
    #[arg(long)]
    no_wait: bool,
}

#[derive(Debug, Serialize)]
struct Built {
    #[serde(flatten)]
    started: BuildStarted,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<String>,
}

impl Build {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let api = context.api().await?;
        let version = match &self.version {
            Some(name) => Some(name.resolve(&api, &self.app).await?),
            None => None,
        };
        let progress = Progress::start();
        let request = BuildComponentsRequest { version };
        let ask = async || api.send(calls::build_components(&self.app, &request)).await;
        let mut started: BuildStarted = until_ready(&progress, ask).await?;
        let Some(workflow) = started.workflow.clone().filter(|_| !self.no_wait) else {
            drop(progress);
            let outcome = match &started.workflow {
                None => format!("app `{}` has an artifact for every component", self.app),
                Some(workflow) => {
                    format!("build started ({workflow}); follow it with `freehold workflow watch {workflow}`")
                }
            };
            let built = Built { started, state: None };
            return context
                .out
                .show(&built, |built| format!("{}\n{outcome}", render(&built.started.builds, context.out)));
        };
        let view = watch(&api, &workflow, &progress).await?;
        drop(progress);
        started.builds = refresh(&api, &self.app, started.builds).await?;
        let built = Built { started, state: has_ended(&view).then(|| view.state.clone()) };
        context.out.show(&built, |built| render(&built.started.builds, context.out))?;
        context.out.line(&verdict(&view, &format!("build of app `{}`", self.app))?);
        Ok(())
    }
}

/// Returns the current state of the builds.
async fn refresh(api: &Api, app: &AppName, builds: Vec<BuildView>) -> Result<Vec<BuildView>> {
    let all: Vec<BuildView> = api.list(calls::list_builds(app)).await?;
    let now = |old: BuildView| all.iter().find(|new| new.build == old.build).cloned().unwrap_or(old);
    Ok(builds.into_iter().map(now).collect())
}

fn render(builds: &[BuildView], out: Output) -> String {
    let mut table = Table::new(&["COMPONENT", "STATE", "ARTIFACT", "SIZE", "REASON"]);
    for one in builds {
        let artifact = one.artifact.as_ref().map(ToString::to_string).unwrap_or_default();
        let size = one.size.map(bytes).unwrap_or_default();
        table.row([one.component.to_string(), one.state.clone(), artifact, size, brief(&one.reason, IN_A_WIDE_TABLE)]);
    }
    out.table(&table)
}

//! `freehold health`: checks whether the deployed components of an install are healthy, independently of a deploy.

use std::collections::BTreeSet;

use clap::{Args, Subcommand};
use freehold_client::calls;
use freehold_protocol::api::{CheckHealthRequest, InstallView, WorkflowStarted};
use freehold_protocol::{ComponentName, InstallId};

use crate::api::{Api, follow};
use crate::context::Context;
use crate::error::Result;
use crate::output::{Output, Table, time};

#[derive(Debug, Subcommand)]
pub(crate) enum HealthCommand {
    Check(Check),
}

/// Check the health of deployed components, and wait for the results. A check changes nothing. Components with
/// `[health]` in their config can be checked; its key `schedule` starts checks automatically.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold health check globex
  freehold health check globex --component web

Each component has at most a minute to become healthy. `freehold install show` shows the last results. The exit code is 0
when the checks could run, even if a component is unhealthy.")]
pub(crate) struct Check {
    /// Name of the install.
    install: InstallId,
    /// A component to check; by default, all that can be checked. Can be given several times.
    #[arg(long = "component", value_name = "COMPONENT")]
    components: Vec<ComponentName>,
    /// Start the checks and return at once.
    #[arg(long)]
    no_wait: bool,
}

impl HealthCommand {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let Self::Check(args) = self;
        args.run(&context.api().await?, context.out).await
    }
}

impl Check {
    async fn run(self, api: &Api, out: Output) -> Result<()> {
        let components: BTreeSet<ComponentName> = self.components.into_iter().collect();
        let request = CheckHealthRequest { components };
        let started: WorkflowStarted = api.send(calls::check_health(&self.install, &request)).await?;
        let subject = format!("health check of `{}`", self.install);
        follow(api, out, &started.workflow, &subject, !self.no_wait).await?;
        if self.no_wait || out.is_json() {
            return Ok(());
        }
        let found = api.install(&self.install).await?;
        out.line(&answers(&found, out));
        Ok(())
    }
}

/// Returns the last result of each component that was checked since its deploy.
fn answers(view: &InstallView, out: Output) -> String {
    let mut table = Table::new(&["COMPONENT", "HEALTH", "SINCE", "CHECKED", "REASON"]);
    for (component, health) in view.components.iter().filter_map(|one| Some((&one.component, one.health.as_ref()?))) {
        table.row([
            component.to_string(),
            out.state(health.state.as_str()),
            time(health.since),
            time(health.at),
            health.reason.clone(),
        ]);
    }
    out.table(&table)
}

//! `freehold doctor`: checks credentials, git and the tenant API.

use clap::Args;
use freehold_protocol::api::TenantView;
use serde::Serialize;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::output::Table;

/// Check credentials, `git` and the tenant API.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  freehold doctor --tenant acme

This is for the vendor. A customer checks a runner with `freehold-runner doctor --config FILE`.")]
pub(crate) struct Doctor {}

#[derive(Debug, Serialize)]
struct Check {
    check: &'static str,
    state: &'static str,
    detail: String,
}

impl Doctor {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let results =
            [("credentials", credentials(context).await), ("git", git().await), ("tenant API", api(context).await)];
        let checks = results.iter().map(|(check, result)| match result {
            Ok(detail) => Check { check, state: "ok", detail: detail.clone() },
            Err(error) => Check { check, state: "failed", detail: error.to_string() },
        });
        let checks: Vec<Check> = checks.collect();
        context.out.show(&checks, |checks| {
            let mut table = Table::new(&["CHECK", "STATE", "DETAIL"]);
            for one in checks {
                table.row([one.check.to_owned(), one.state.to_owned(), one.detail.clone()]);
            }
            context.out.table(&table)
        })?;
        match results.into_iter().find_map(|(check, result)| Some((check, result.err()?))) {
            None => Ok(()),
            Some((check, error)) => Err(error.within(check)),
        }
    }
}

async fn credentials(context: &Context) -> Result<String> {
    let config = context.config().await?;
    let account = crate::aws::account(&config).await?;
    Ok(format!("account {account}, region {}", crate::aws::region(&config)))
}

async fn git() -> Result<String> {
    let done = tokio::process::Command::new("git").arg("--version").output().await;
    let done = done.map_err(|e| {
        Error::invalid(format!("cannot run `git` ({e}), which `freehold app sync` needs for Git sources; install Git"))
    })?;
    Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned())
}

async fn api(context: &Context) -> Result<String> {
    let api = context.api().await?;
    let view: TenantView = api.get(&["v1", "tenant"]).await?;
    Ok(format!("tenant `{}` of account {} at {}", view.tenant, view.account, api.base()))
}

//! `freehold doctor`: checks the login or the AWS credentials, git and the tenant API.

use clap::Args;
use freehold_client::calls;
use freehold_protocol::api::TenantView;
use serde::Serialize;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::output::Table;

/// The detail of a check that has the same problem as the check of the credentials.
const NOT_CHECKED: &str = "not checked, because the check of the credentials failed";
const SAME: &str = "first correct the problem that the check `credentials` shows";

/// Check credentials, `git` and the tenant API.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  freehold doctor --tenant acme

This command is for the vendor. A customer checks a runner with `freehold-runner doctor --config FILE`.")]
pub(crate) struct Doctor {}

#[derive(Debug, Serialize)]
struct Check {
    check: &'static str,
    state: &'static str,
    detail: String,
}

impl Doctor {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let (credentials, git) = (credentials(context).await, git().await);
        let api = api(context).await.map_err(|error| match &credentials {
            Err(first) if first.way_out() == error.way_out() => error.with_message(NOT_CHECKED.to_owned()).or(SAME),
            Ok(_) | Err(_) => error,
        });
        let results = [("credentials", credentials), ("git", git), ("tenant API", api)];
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
        failure(results)
    }
}

/// Returns the error of this command: the names of the failed checks, and the kind of the first failure. The table
/// contains the reasons.
fn failure<const N: usize>(results: [(&str, Result<String>); N]) -> Result<()> {
    let count = results.len();
    let failed: Vec<(&str, Error)> =
        results.into_iter().filter_map(|(check, result)| Some((check, result.err()?))).collect();
    let names: Vec<&str> = failed.iter().map(|(check, _)| *check).collect();
    let message = format!("{} of {count} checks failed: {}", names.len(), names.join(", "));
    match failed.into_iter().next() {
        None => Ok(()),
        Some((_, first)) => {
            Err(first.with_message(message).or("the detail of each failed check states the reason and the way out"))
        }
    }
}

async fn credentials(context: &Context) -> Result<String> {
    if let Some(bearer) = context.bearer()? {
        return Ok(bearer.name);
    }
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
    let view: TenantView = api.send(calls::show_tenant()).await?;
    Ok(format!("tenant `{}` of account {} at {}", view.tenant, view.account, api.base()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_names_the_failed_checks_and_leaves_their_reasons_to_the_table() {
        let results = [
            ("credentials", Err(Error::denied("no usable AWS credentials; sign in"))),
            ("git", Ok("git version 2".to_owned())),
            ("tenant API", Err(Error::invalid("which tenant?"))),
        ];

        let error = failure(results).unwrap_err();

        assert_eq!(error.kind().exit_code(), 6);
        insta::assert_snapshot!(error, @"2 of 3 checks failed: credentials, tenant API; the detail of each failed \
                                         check states the reason and the way out");
        assert_eq!(failure([("git", Ok(String::new()))]), Ok(()));
    }
}

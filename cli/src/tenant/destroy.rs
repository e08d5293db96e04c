//! `freehold tenant destroy`: asks for confirmation, removes everything in order, and looks for leftovers.

use std::io::{BufRead, IsTerminal};
use std::time::Duration;

use freehold_protocol::TenantName;
use serde_json::json;

use super::leftovers::Leftovers;
use super::names::bucket_name;
use super::remove::Remover;
use super::{Bucket, Destroy};
use crate::api::stack_name;
use crate::cloudformation::Stacks;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::output::{note, plural};
use crate::progress::Progress;

/// How often is looked for leftovers: the tag search lags behind what was deleted.
const LOOKS: u32 = 10;
const BETWEEN_LOOKS: Duration = Duration::from_secs(2);

impl Destroy {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        let tenant = context.tenant(self.name.as_ref())?;
        let config = context.config().await?;
        let account = crate::aws::account(&config).await?;
        let remover = Remover::new(&config, tenant.clone());
        let installs = remover.orders_queues().await?.len();
        self.confirmed(&tenant, account.as_str(), installs)?;
        let progress = Progress::start();
        let stack = stack_name(&tenant);
        progress.now(format!("deleting stack `{stack}`"));
        // The stack goes first: its functions could make queues and log groups again.
        let had_stack = Stacks::new(&config).delete(&stack, &progress).await?;
        progress.now("deleting queues, table, registry, secret and log groups");
        let mut removed = remover.remove().await?;
        let bucket = Bucket::new(&config, bucket_name(&tenant, &account, &crate::aws::region(&config)));
        progress.now(format!("emptying bucket `{}`", bucket.name()));
        if bucket.delete().await? {
            removed.push(format!("bucket {}", bucket.name()));
        }
        progress.now("looking for leftovers");
        let leftovers = settled_leftovers(&config, &tenant, &bucket, &remover).await?;
        drop(progress);
        if had_stack {
            removed.insert(0, format!("stack {stack}"));
        }
        let value = json!({ "tenant": tenant, "removed": removed, "leftovers": leftovers.ours, "of_installs": leftovers.of_installs });
        context.out.show(&value, |_| render(&tenant, &removed, &leftovers))?;
        if leftovers.ours.is_empty() {
            return Ok(());
        }
        Err(Error::failed(format!(
            "tenant `{tenant}` still has {}; run the command again",
            plural(leftovers.ours.len(), "resource")
        )))
    }

    fn confirmed(&self, tenant: &TenantName, account: &str, installs: usize) -> Result<()> {
        let given = match &self.confirm {
            Some(given) => given.clone(),
            None if std::io::stdin().is_terminal() => {
                note(&format!(
                    "This deletes tenant `{tenant}` in account {account}: table, artifacts, signing key and all history."
                ));
                if installs > 0 {
                    note(&format!(
                        "The control plane of {} goes with it; what runs in customers' accounts keeps running.",
                        plural(installs, "install")
                    ));
                }
                note("Type the tenant's name to continue:");
                let mut line = String::new();
                std::io::stdin().lock().read_line(&mut line).map_err(|e| Error::invalid(format!("no answer: {e}")))?;
                line.trim().to_owned()
            }
            None => {
                return Err(Error::invalid(format!("there is no terminal to ask on; pass `--confirm {tenant}`")));
            }
        };
        if given == tenant.as_str() {
            return Ok(());
        }
        Err(Error::invalid(format!("`{given}` is not the tenant's name `{tenant}`; nothing was deleted")))
    }
}

async fn settled_leftovers(
    config: &aws_config::SdkConfig,
    tenant: &TenantName,
    bucket: &Bucket,
    remover: &Remover,
) -> Result<Leftovers> {
    let mut leftovers = Leftovers::find(config, tenant, bucket, remover).await?;
    for _ in 1..LOOKS {
        if leftovers.ours.is_empty() {
            break;
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
        leftovers = Leftovers::find(config, tenant, bucket, remover).await?;
    }
    Ok(leftovers)
}

fn render(tenant: &TenantName, removed: &[String], leftovers: &Leftovers) -> String {
    let mut lines: Vec<String> = removed.iter().map(|what| format!("deleted {what}")).collect();
    lines.extend(leftovers.ours.iter().map(|arn| format!("LEFT    {arn}")));
    if leftovers.of_installs > 0 {
        lines.push(format!(
            "install stacks in this account keep {}; delete those stacks to remove what they have",
            plural(leftovers.of_installs, "resource")
        ));
    }
    if leftovers.ours.is_empty() {
        lines.push(if removed.is_empty() {
            format!("there is no tenant `{tenant}`; nothing to delete")
        } else {
            format!("tenant `{tenant}` is gone; nothing is left")
        });
    }
    lines.join("\n")
}

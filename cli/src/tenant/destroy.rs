//! `freehold tenant destroy`: asks for confirmation, removes everything in order, and looks for leftovers.

use std::io::{BufRead, IsTerminal};
use std::time::Duration;

use freehold_client::calls;
use freehold_protocol::TenantName;
use freehold_protocol::api::InstallView;
use serde_json::json;

use super::leftovers::Leftovers;
use super::names::{bucket_name, named};
use super::remove::Remover;
use super::{Bucket, Destroy, build_machine};
use crate::api::{poll_until, stack_name};
use crate::cloudformation::Stacks;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::output::{note, plural};
use crate::progress::Progress;

/// The maximum number of searches for leftovers. The search by tag lags behind the deletions.
const POLLS: u32 = 10;
/// The pause between two searches.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

impl Destroy {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        let tenant = context.tenant(self.name.as_ref())?;
        let config = context.config().await?;
        let account = crate::aws::account(&config).await?;
        let remover = Remover::new(&config, tenant.clone());
        let installs = installs(context, &config, &tenant, &remover).await?;
        self.confirmed(&tenant, account.as_str(), &installs)?;
        let progress = Progress::start();
        let (stacks, stack) = (Stacks::new(&config), stack_name(&tenant));
        build_machine::remove(&config, &tenant, stacks.find(&stack).await?.as_ref(), &progress).await?;
        progress.now(format!("deleting stack `{stack}`"));
        // The stack is deleted before the resources outside of it, because the stack's functions could create queues
        // and log groups again.
        let had_stack = stacks.delete(&stack, &progress).await?;
        progress.now("deleting queues, table, registry, secret and log groups");
        let mut removed = remover.remove().await?;
        let bucket = Bucket::new(&config, bucket_name(&tenant, &account, &crate::aws::region(&config)));
        progress.now(format!("emptying bucket `{}`", bucket.name()));
        if bucket.delete().await? {
            removed.push(format!("bucket {}", bucket.name()));
        }
        progress.now("looking for leftovers");
        let is_elsewhere = !had_stack && removed.is_empty();
        // If nothing was deleted, no resource disappears while the command waits.
        let polls = if is_elsewhere { 1 } else { POLLS };
        let find = async || Leftovers::find(&config, &tenant, &bucket, &remover).await;
        let leftovers = poll_until((polls, POLL_INTERVAL), find, |found: &Leftovers| found.ours.is_empty()).await?;
        drop(progress);
        let place = format!("account {account}, region {}", crate::aws::region(&config));
        if had_stack {
            removed.insert(0, format!("stack {stack}"));
        }
        let value = json!({ "tenant": tenant, "removed": removed, "leftovers": leftovers.ours, "of_installs": leftovers.of_installs });
        context.out.show(&value, |_| render(&tenant, &removed, &leftovers, &place))?;
        if leftovers.ours.is_empty() {
            return Ok(());
        }
        if is_elsewhere {
            return Err(Error::failed(format!(
                "there is no tenant `{tenant}` in {place}, and {} of this name exist: IAM's roles and policies belong \
                 to every region",
                plural(leftovers.ours.len(), "resource")
            ))
            .or("pass the region of the tenant with `--aws-region`, or run the command again after a `destroy` that was stopped"));
        }
        Err(Error::failed(format!(
            "tenant `{tenant}` still has {}; run the command again",
            plural(leftovers.ours.len(), "resource")
        )))
    }

    fn confirmed(&self, tenant: &TenantName, account: &str, installs: &[String]) -> Result<()> {
        if !installs.is_empty() && self.installs != Some(installs.len()) {
            return Err(Error::conflict(format!(
                "tenant `{tenant}` still has {}: `{}`, so nothing was deleted; the apps in the customers' accounts would keep \
                 running, and nothing would operate them any more; to destroy the tenant anyway, pass `--installs {}`",
                plural(installs.len(), "install"),
                installs.join("`, `"),
                installs.len()
            )));
        }
        let given = match &self.confirm {
            Some(given) => given.clone(),
            None if std::io::stdin().is_terminal() => {
                note(&format!(
                    "This deletes tenant `{tenant}` in account {account}: table, artifacts, signing key, accounts of people \
                     and all history."
                ));
                if !installs.is_empty() {
                    note(&format!(
                        "Freehold then no longer operates {}; the apps in the customers' accounts keep running.",
                        plural(installs.len(), "install")
                    ));
                }
                note("Type the tenant's name to continue:");
                let mut line = String::new();
                std::io::stdin().lock().read_line(&mut line).map_err(|e| {
                    Error::invalid(format!("cannot read the answer from the terminal: {e}; pass `--confirm {tenant}`"))
                })?;
                line.trim().to_owned()
            }
            None => {
                return Err(Error::invalid(format!(
                    "this command asks for a confirmation, but stdin is not a terminal; pass `--confirm {tenant}`"
                )));
            }
        };
        if given == tenant.as_str() {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "nothing was deleted, because `{given}` is not the tenant's name; run the command again and give the name \
             `{tenant}`"
        )))
    }
}

/// Returns the names of the installs that still exist, from the API. If the API cannot be read, the names come from the
/// installs' queues.
async fn installs(
    context: &Context,
    config: &aws_config::SdkConfig,
    tenant: &TenantName,
    remover: &Remover,
) -> Result<Vec<String>> {
    let queues = remover.orders_queues().await?;
    if queues.is_empty() {
        return Ok(Vec::new());
    }
    match list_installs(context, config, tenant).await {
        Ok(views) => Ok(views.into_iter().filter(|one| one.app.is_some()).map(|one| one.install.to_string()).collect()),
        Err(_) => Ok(queues.iter().map(|url| install_of(url, tenant)).collect()),
    }
}

async fn list_installs(
    context: &Context,
    config: &aws_config::SdkConfig,
    tenant: &TenantName,
) -> Result<Vec<InstallView>> {
    context.api_of(tenant, config).await?.list(calls::list_installs()).await
}

/// Returns the install whose orders queue has this URL.
fn install_of(url: &str, tenant: &TenantName) -> String {
    let name = url.rsplit('/').next().unwrap_or(url);
    name.trim_start_matches(&named(tenant, "")).trim_end_matches(".fifo").to_owned()
}

fn render(tenant: &TenantName, removed: &[String], leftovers: &Leftovers, place: &str) -> String {
    let mut lines: Vec<String> = removed.iter().map(|what| format!("deleted {what}")).collect();
    lines.extend(leftovers.ours.iter().map(|arn| format!("LEFT    {arn}")));
    if leftovers.of_installs > 0 {
        lines.push(format!(
            "install stacks in this account still have {}; delete these stacks to remove their resources",
            plural(leftovers.of_installs, "resource")
        ));
    }
    if leftovers.ours.is_empty() {
        lines.push(if removed.is_empty() {
            format!(
                "there is no tenant `{tenant}` in {place}; nothing to delete; if it is elsewhere, check AWS_PROFILE and \
                 `--aws-region`"
            )
        } else {
            format!("tenant `{tenant}` is gone; nothing is left")
        });
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn installs_that_exist_have_to_be_counted_by_whoever_destroys() {
        let tenant: TenantName = "acme".parse().unwrap();
        let installs = ["globex".to_owned(), "initech".to_owned()];
        let confirmed = |installs_told: Option<usize>, existing: &[String]| {
            let destroy = Destroy { name: None, confirm: Some("acme".into()), installs: installs_told };
            destroy.confirmed(&tenant, "111111111111", existing)
        };

        let error = confirmed(None, &installs).unwrap_err();

        assert_eq!(error.kind().exit_code(), 4);
        insta::assert_snapshot!(error, @"tenant `acme` still has 2 installs: `globex`, `initech`, so nothing was deleted; the apps \
                                         in the customers' accounts would keep running, and nothing would operate them \
                                         any more; to destroy the tenant anyway, pass `--installs 2`");
        assert!(confirmed(Some(1), &installs).is_err());
        assert_eq!(confirmed(Some(2), &installs), Ok(()));
        assert_eq!(confirmed(None, &[]), Ok(()));
    }

    #[test]
    fn the_page_has_the_message_about_a_tenant_that_does_not_exist() {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let page = words(include_str!("../../../docs/errors.md"));
        let tenant = "acme".parse().unwrap();

        let message = render(&tenant, &[], &Leftovers::default(), "account 111111111111, region eu-west-1");

        assert!(page.contains(&format!("`` {message} ``")), "docs/errors.md does not have: {message}");
    }

    #[test]
    fn an_orders_queue_names_its_install() {
        let url = "https://sqs.eu-west-1.amazonaws.com/111111111111/fh-acme--globex.fifo";

        assert_eq!(install_of(url, &"acme".parse().unwrap()), "globex");
    }
}

//! `freehold webhook`: lets programs outside of AWS start work in the tenant with signed calls.

mod call;
mod key;
mod text;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use freehold_client::calls;
use freehold_protocol::api::{AddWebhookRequest, WebhookTask, WebhookView, WebhooksView};
use freehold_protocol::{ActionName, AppName, ChannelName, InstallId, RunbookName, WebhookName};

use crate::context::Context;
use crate::error::{Error, Result};

#[derive(Debug, Subcommand)]
pub(crate) enum WebhookCommand {
    Add(Add),
    /// List the webhooks, and what a call of each starts.
    #[command(after_help = "Examples:\n  freehold webhook list\n  freehold webhook list --json")]
    List,
    /// Remove a webhook: its calls are refused from then on.
    #[command(after_help = "Example:\n  freehold webhook remove ci")]
    Remove {
        /// Name of the webhook.
        webhook: WebhookName,
    },
    Call(call::Call),
}

/// Add a webhook. Whoever has its key file can start one thing: a deploy, an action, a runbook, or the move of a
/// channel. The tenant stores only the public key.
#[derive(Debug, Args)]
#[command(
    override_usage = "freehold webhook add NAME --key-file FILE [OPTIONS]",
    after_help = "\
Examples:
  freehold webhook add ci --app my-app --channel stable --key-file ci.pem
  freehold webhook add nightly --install globex --runbook restore --key-file nightly.pem
  freehold webhook add deploy-globex --install globex --deploy --key-file deploy.pem

If the key file does not exist, the command writes it: an Ed25519 key in PEM form (PKCS #8), which only you can read.
Give the file as a secret to the program that makes the calls. `--key-file` also accepts a public key, from
`openssl pkey -pubout`: then the private key never leaves its place.

Webhooks are off until `freehold tenant deploy --webhooks on`: the route of their calls is the only route of the API
that anybody can reach."
)]
pub(crate) struct Add {
    /// Name of the webhook.
    webhook: WebhookName,
    /// File with the key that signs the calls; if there is no such file, the command writes it with a new key. Use
    /// another key for each webhook and each tenant.
    #[arg(long, value_name = "FILE")]
    key_file: PathBuf,
    /// The install in which a call starts a deploy, an action or a runbook.
    #[arg(long, value_name = "INSTALL", conflicts_with = "app")]
    install: Option<InstallId>,
    /// Deploy what the install follows: its release, its channel or the latest version.
    #[arg(long, requires = "install")]
    deploy: bool,
    /// Run this action, with the inputs of the call.
    #[arg(long, value_name = "NAME", requires = "install", conflicts_with = "deploy")]
    action: Option<ActionName>,
    /// Run this runbook, with the inputs of the call.
    #[arg(long, value_name = "NAME", requires = "install", conflicts_with_all = ["deploy", "action"])]
    runbook: Option<RunbookName>,
    /// The app of the channel.
    #[arg(long, value_name = "APP", requires = "channel")]
    app: Option<AppName>,
    /// Move this channel to the release of the call.
    #[arg(long, value_name = "NAME", requires = "app")]
    channel: Option<ChannelName>,
}

impl Add {
    fn task(&self) -> Result<WebhookTask> {
        match (&self.install, &self.action, &self.runbook, &self.app, &self.channel) {
            (None, _, _, Some(app), Some(channel)) => {
                Ok(WebhookTask::MoveChannel { app: app.clone(), channel: channel.clone() })
            }
            (Some(install), Some(action), _, _, _) => {
                Ok(WebhookTask::RunAction { install: install.clone(), action: action.clone() })
            }
            (Some(install), None, Some(runbook), _, _) => {
                Ok(WebhookTask::RunRunbook { install: install.clone(), runbook: runbook.clone() })
            }
            (Some(install), ..) if self.deploy => Ok(WebhookTask::DeployComponents { install: install.clone() }),
            _ => Err(Error::invalid("a webhook starts one thing, and the options name none")
                .or("pass `--install` with `--deploy`, `--action` or `--runbook`, or `--app` with `--channel`")),
        }
    }
}

impl WebhookCommand {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let out = context.out;
        match self {
            Self::Add(add) => {
                let starts = add.task()?;
                let (key, is_new) = key::public_of(&add.key_file)?;
                let request = AddWebhookRequest { webhook: add.webhook, key: key.public, starts };
                let api = context.api().await?;
                // The key is written before the request, because nobody could restore a key that is lost after the
                // request.
                if let Some(private) = is_new.then_some(key.private).flatten() {
                    crate::file::create_secret(&add.key_file, &private)?;
                }
                let added: WebhookView = api.send(calls::add_webhook(&request)).await?;
                let shown = text::Added { view: &added, api: api.base(), key_file: &add.key_file, is_new };
                out.show(&added, |_| shown.text())
            }
            Self::List => {
                let all: WebhooksView = context.api().await?.send(calls::list_webhooks()).await?;
                out.show(&all.webhooks, |all| text::list(all, out))
            }
            Self::Remove { webhook } => {
                let left: WebhooksView = context.api().await?.send(calls::remove_webhook(&webhook)).await?;
                out.show(&left.webhooks, |left| format!("webhook `{webhook}` is removed\n\n{}", text::list(left, out)))
            }
            Self::Call(call) => call.run(out).await,
        }
    }
}

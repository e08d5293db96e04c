//! `freehold subscription`: shows and changes who gets notifications by mail, by HTTPS or in a queue.

mod text;

use clap::{Args, Subcommand};
use freehold_client::calls;
use freehold_protocol::api::{
    AddSubscriptionRequest, RemoveSubscriptionRequest, SubscriptionView, SubscriptionsView, TestSent,
    TestSubscriptionsRequest,
};
use freehold_protocol::notification::{Endpoint, NotificationFilter, NotificationKind};
use freehold_protocol::{AppName, InstallId};

use crate::context::Context;
use crate::error::{Error, Result};

#[derive(Debug, Subcommand)]
pub(crate) enum SubscriptionCommand {
    Add(Add),
    /// List the subscriptions, including those that nobody has confirmed.
    #[command(after_help = "Examples:\n  freehold subscription list\n  freehold subscription list --json")]
    List,
    Remove(Remove),
    Test(Test),
}

/// Subscribe a mailbox, a URL or a queue to notifications. SNS asks the owner of a mailbox or a URL to confirm, and
/// sends nothing until the owner has confirmed. A queue needs a policy that lets the topic send.
#[derive(Debug, Args)]
#[command(
    override_usage = "freehold subscription add ENDPOINT [OPTIONS]",
    after_help = "\
Kinds:
  approval-asked      a plan waits for its approval
  change-held         a change waits for the customer's change window
  checks-awaited      a gate waits for required checks that have no result
  workflow-failed     a workflow failed
  workflow-succeeded  a workflow that a person or a webhook started succeeded
  deploy-rolled-back  a verified deploy failed and was rolled back
  run-stopped         a runbook stopped at a step that failed
  run-succeeded       a runbook succeeded
  drift-found         a drift check found a new difference
  health-changed      a component became unhealthy or healthy again, or its check
                      has no result
  stranger-trusted    a role of the app trusts somebody outside of the customer's
                      account
  runner-away         a runner is silent, paused or cut off
  runner-back         a runner takes orders again

Examples:
  freehold subscription add ops@example.com
  freehold subscription add ops@example.com --install globex \\
      --only approval-asked,workflow-failed
  freehold subscription add https://example.com/hook --app my-app
  freehold subscription add arn:aws:sqs:eu-west-1:111111111111:notifications"
)]
pub(crate) struct Add {
    /// A mail address, an `https://` URL, or the ARN of an SQS queue.
    #[arg(value_name = "ENDPOINT")]
    endpoint: Endpoint,
    /// Send only notifications about this app, its installs and its builds.
    #[arg(long, value_name = "APP")]
    app: Option<AppName>,
    /// Send only notifications about this install.
    #[arg(long, value_name = "INSTALL")]
    install: Option<InstallId>,
    /// Send only these kinds of notifications, separated by commas; all kinds by default.
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    only: Vec<NotificationKind>,
}

/// Remove a subscription.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  freehold subscription remove ops@example.com")]
pub(crate) struct Remove {
    /// The mail address, the URL or the ARN, as `freehold subscription list` shows it.
    #[arg(value_name = "ENDPOINT")]
    endpoint: Endpoint,
}

/// Send a test to all subscribers that would get notifications about an install or an app. Without options, the test
/// reaches the subscribers that chose neither an install nor an app.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  freehold subscription test\n  freehold subscription test --install globex")]
pub(crate) struct Test {
    /// Send the test as a notification about this app.
    #[arg(long, value_name = "APP", conflicts_with = "install")]
    app: Option<AppName>,
    /// Send the test as a notification about this install and its app.
    #[arg(long, value_name = "INSTALL")]
    install: Option<InstallId>,
}

impl SubscriptionCommand {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let (api, out) = (context.api().await?, context.out);
        match self {
            Self::Add(Add { endpoint, app, install, only }) => {
                let filter = NotificationFilter { app, install, only: only.into_iter().collect() };
                let request = AddSubscriptionRequest { endpoint, filter };
                let added: SubscriptionView = api.send(calls::add_subscription(&request)).await?;
                out.show(&added, text::added)
            }
            Self::List => {
                let all: SubscriptionsView = api.send(calls::list_subscriptions()).await?;
                out.show(&all.subscriptions, |all| text::list(all, out))
            }
            Self::Remove(Remove { endpoint }) => {
                let all: SubscriptionsView = api.send(calls::list_subscriptions()).await?;
                if !all.subscriptions.iter().any(|one| one.endpoint == endpoint.as_str()) {
                    return Err(Error::not_found(format!("`{endpoint}` is not subscribed"))
                        .or("`freehold subscription list` shows the subscribers"));
                }
                let request = RemoveSubscriptionRequest { endpoint };
                let left: SubscriptionsView = api.send(calls::remove_subscription(&request)).await?;
                out.show(&left.subscriptions, |left| text::removed(&request.endpoint, left, out))
            }
            Self::Test(Test { app, install }) => {
                let request = TestSubscriptionsRequest { app, install };
                let sent: TestSent = api.send(calls::test_subscriptions(&request)).await?;
                out.show(&sent, |sent| {
                    format!("test {} was sent to the subscribers that chose such notifications", sent.id)
                })
            }
        }
    }
}

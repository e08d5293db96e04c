//! Notifications with real programs: a queue that is subscribed gets what its subscriber chose, with ids that are derived from the
//! cause, and nothing else.

use std::collections::BTreeSet;

use anyhow::{Context as _, ensure};
use aws_sdk_sqs::types::QueueAttributeName;
use freehold_protocol::NotificationId;
use freehold_protocol::notification::{Notification, NotificationKind};
use freehold_tests::harness::wait::{SOON, until};
use freehold_tests::harness::{Capability, Needs, World, app};
use serde_json::{Value, json};

const NEEDS: Needs = Needs {
    cloud: &[Capability::HttpApi, Capability::Registry, Capability::IamEnforced],
    programs: &["bwrap", "terraform|tofu"],
};

const COMPONENT: &str =
    "name = \"net\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\nsource = \"../net\"\n";
/// A module whose plan succeeds and whose apply does not.
const FAILS: &str = "\
resource \"terraform_data\" \"this\" { input = \"one\" }

resource \"terraform_data\" \"next\" {
  input = \"two\"

  # It runs when the resource is made, after the plan.
  provisioner \"local-exec\" {
    command = \"exit 7\"
  }
}
";

/// A queue that is subscribed to the tenant's notifications.
struct Subscriber {
    sqs: aws_sdk_sqs::Client,
    url: String,
    arn: String,
}

impl Subscriber {
    /// Makes a queue in the tenant's account, to which the topic may send.
    async fn new(world: &World) -> anyhow::Result<Self> {
        let account = world.tenant_account();
        let sqs = aws_sdk_sqs::Client::new(&world.administrator(account)?);
        let url = sqs.create_queue().queue_name("told").send().await?.queue_url.context("a queue without a URL")?;
        let arn = format!("arn:aws:sqs:eu-west-1:{account}:told");
        let topic = format!("arn:aws:sns:eu-west-1:{account}:fh-acme--notifications");
        let policy = json!({ "Version": "2012-10-17", "Statement": [{
            "Effect": "Allow", "Principal": { "Service": "sns.amazonaws.com" }, "Action": "sqs:SendMessage",
            "Resource": arn, "Condition": { "ArnEquals": { "aws:SourceArn": topic } },
        }] });
        let set = sqs.set_queue_attributes().queue_url(&url);
        set.attributes(QueueAttributeName::Policy, policy.to_string()).send().await?;
        Ok(Self { sqs, url, arn })
    }

    /// Returns the next notification. Fails for a message that is not a notification.
    async fn next(&self) -> anyhow::Result<Notification> {
        until("a notification", SOON, || async {
            let got = self.sqs.receive_message().queue_url(&self.url).wait_time_seconds(2).send().await?;
            let Some(message) = got.messages.unwrap_or_default().pop() else { return Ok(None) };
            let receipt = message.receipt_handle.context("a message without a receipt")?;
            self.sqs.delete_message().queue_url(&self.url).receipt_handle(receipt).send().await?;
            let envelope: Value = serde_json::from_str(&message.body.context("a message without a body")?)?;
            let text = envelope["Message"].as_str().context("no message in the envelope")?;
            let notification: Notification = serde_json::from_str(text).with_context(|| text.to_owned())?;
            ensure!(envelope["Subject"] == notification.subject.as_str(), "{envelope}");
            ensure!(envelope["MessageAttributes"]["kind"]["Value"] == notification.kind.as_str(), "{envelope}");
            Ok(Some(notification))
        })
        .await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_gets_the_plan_that_waits_and_the_deploy_that_fails_and_nothing_else() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_notifications", NEEDS).await? else { return Ok(()) };
    let directory = app::small(world.directory())?;
    app::write(&directory, "components/net.toml", COMPONENT)?;
    app::write(&directory, "net/main.tf", "resource \"terraform_data\" \"this\" { input = \"one\" }\n")?;
    world.ship(&directory).await?;
    let install = world.install("globex", "small").await?;
    let _runner = world.runner(&install).await?;
    world.provisioned(&install).await?;
    world.vendor(&["install", "approvals", "globex", "prompt"]).await?;
    let subscriber = Subscriber::new(&world).await?;

    // The choice is kept, and a test reaches who would be told.
    let words =
        ["subscription", "add", &subscriber.arn, "--install", "globex", "--only", "approval-asked,workflow-failed"];
    let added = world.vendor(&words).await?;
    let subscriptions = world.vendor(&["subscription", "list"]).await?;
    let sent = world.vendor(&["subscription", "test", "--install", "globex"]).await?;
    let test = subscriber.next().await?;
    assert_eq!((added["pending"].as_bool(), &subscriptions[0]), (Some(false), &added), "{subscriptions}");
    assert_eq!((test.kind, test.id.as_str()), (NotificationKind::Test, sent["id"].as_str().unwrap_or_default()));

    // A plan waits, and its apply fails. A success in between is not told: the subscriber did not choose it.
    app::write(&directory, "net/main.tf", FAILS)?;
    world.ship(&directory).await?;
    let begun = world.vendor(&["deploy", "globex", "--no-wait"]).await?;
    let workflow = begun["workflow"].as_str().context("a deploy without a workflow")?;
    let asked = subscriber.next().await?;
    let job = asked.job.clone().context("an approval without a job")?;
    let view = world.vendor(&["job", "show", job.as_str()]).await?;
    let plan = view["plan"]["proposed"]["plan"].as_str().context("no plan waits")?;
    world.vendor(&["job", "approve", job.as_str(), "--plan", plan]).await?;
    let failed = subscriber.next().await?;

    assert_eq!(asked.kind, NotificationKind::ApprovalAsked, "{asked:?}");
    assert_eq!(asked.id, NotificationId::derive("approval-asked", &[job.as_str(), plan]));
    assert_eq!(failed.kind, NotificationKind::WorkflowFailed, "{failed:?}");
    assert_eq!(failed.id, NotificationId::derive("workflow-failed", &[workflow, "0"]));
    assert_eq!(failed.workflow.as_ref().map(|id| id.as_str()), Some(workflow));
    for notification in [&asked, &failed] {
        assert_eq!(notification.install.as_ref().map(|id| id.as_str()), Some("globex"));
        assert_eq!(notification.app.as_ref().map(|id| id.as_str()), Some("small"));
        ensure!(!notification.text.contains("two"), "a value is told: {notification:?}");
    }

    // Whoever is removed is told nothing more.
    let left = world.vendor(&["subscription", "remove", &subscriber.arn]).await?;
    assert_eq!(left, json!([]));
    let ids: BTreeSet<_> = [&test.id, &asked.id, &failed.id].into();
    assert_eq!(ids.len(), 3);
    Ok(())
}

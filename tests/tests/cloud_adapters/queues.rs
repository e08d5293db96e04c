//! SQS: orders queues are made, taken over and removed, and keep their messages; an order is sent once; a refused message says why.

use aws_config::SdkConfig;
use aws_sdk_sqs::types::QueueAttributeName;
use freehold_app::ports::{DeadLetter, DeadLetters as _, OrdersQueue as _, QueueAdmin as _, SourceQueue as _};
use freehold_aws::dead_letters::{SqsDeadLetters, SqsSource};
use freehold_aws::queue::{SqsAdmin, SqsOrders};
use freehold_aws::tenant_queues::TenantQueues;
use freehold_protocol::Timestamp;
use freehold_tests::harness::World;

fn admin(config: &SdkConfig, account: &str, reports: &str, dead: String) -> anyhow::Result<SqsAdmin> {
    let place = TenantQueues {
        tenant: "acme".parse()?,
        region: "eu-west-1".to_owned(),
        account: account.parse()?,
        reports_url: reports.to_owned(),
        dead_letter_arn: "unused".to_owned(),
        orders_dead_letter_arn: dead,
        report_concurrency: 2,
    };
    Ok(SqsAdmin::new(config, place))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_orders_queue_is_made_taken_over_and_removed_and_an_order_is_sent_once() -> anyhow::Result<()> {
    let Some(world) = World::without_tenant("cloud_adapters.orders", super::NEEDS).await? else { return Ok(()) };
    let (config, account) = (world.administrator(world.tenant_account())?, world.tenant_account());
    let sqs = aws_sdk_sqs::Client::new(&config);
    super::queue(&world, "fh-acme--dead.fifo").await?;
    let dead = format!("arn:aws:sqs:eu-west-1:{account}:fh-acme--dead.fifo");
    let reports = super::queue(&world, "fh-acme--reports").await?;
    let admin = admin(&config, account, &reports, dead)?;
    let install = "globex".parse()?;

    let first = admin.create_orders_queue(&install, &"222222222222".parse()?).await?;
    let second = admin.create_orders_queue(&install, &"333333333333".parse()?).await?;
    // The policy of an orders queue lets two functions send and nobody else, so the order goes to a queue without one.
    let (orders, open) = (SqsOrders::new(&config), super::queue(&world, "orders.fifo").await?);
    orders.send(&open, "queue", "order-1", "one").await?;
    orders.send(&open, "queue", "order-1", "one").await?;
    let got = sqs.receive_message().queue_url(&open).max_number_of_messages(10).send().await?;
    admin.allow_reporters(1, &["333333333333".parse()?].into()).await?;

    let policy = |url: String| async {
        let asked =
            sqs.get_queue_attributes().queue_url(url).attribute_names(QueueAttributeName::Policy).send().await?;
        let all = asked.attributes.unwrap_or_default();
        anyhow::Ok(all.get(&QueueAttributeName::Policy).cloned().unwrap_or_default())
    };
    assert_eq!(first, second);
    assert_eq!(got.messages().iter().filter_map(|message| message.body()).collect::<Vec<_>>(), ["one"]);
    let (orders_policy, reports_policy) = (policy(first).await?, policy(reports).await?);
    assert!(orders_policy.contains("333333333333") && !orders_policy.contains("222222222222"), "{orders_policy}");
    assert!(reports_policy.contains("333333333333"), "{reports_policy}");
    admin.remove_orders_queue(&install).await?;
    admin.remove_orders_queue(&install).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_orders_queue_keeps_messages_for_fourteen_days_also_when_it_existed_without() -> anyhow::Result<()> {
    let Some(world) = World::without_tenant("cloud_adapters.retention", super::NEEDS).await? else { return Ok(()) };
    let (config, account) = (world.administrator(world.tenant_account())?, world.tenant_account());
    let sqs = aws_sdk_sqs::Client::new(&config);
    super::queue(&world, "fh-acme--dead.fifo").await?;
    let dead = format!("arn:aws:sqs:eu-west-1:{account}:fh-acme--dead.fifo");
    let admin = admin(&config, account, "unused", dead)?;
    // An earlier version created this queue without a retention.
    let former = super::queue(&world, "fh-acme--initech.fifo").await?;
    let retention = |url: String| async {
        let name = QueueAttributeName::MessageRetentionPeriod;
        let asked = sqs.get_queue_attributes().queue_url(url).attribute_names(name.clone()).send().await?;
        anyhow::Ok(asked.attributes.unwrap_or_default().remove(&name).unwrap_or_default())
    };
    let before = retention(former).await?;

    let taken_over = admin.create_orders_queue(&"initech".parse()?, &"222222222222".parse()?).await?;
    let made = admin.create_orders_queue(&"globex".parse()?, &"222222222222".parse()?).await?;

    assert_eq!([before, retention(taken_over).await?, retention(made).await?], ["345600", "1209600", "1209600"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_message_is_buried_with_its_reason_and_removed() -> anyhow::Result<()> {
    let Some(world) = World::without_tenant("cloud_adapters.dead_letters", super::NEEDS).await? else { return Ok(()) };
    let config = world.administrator(world.tenant_account())?;
    let (own, dead) = (super::queue(&world, "own").await?, super::queue(&world, "dead").await?);
    let letter = DeadLetter {
        body: "{}".to_owned(),
        source: "own".to_owned(),
        sender: Some("AROAEXAMPLE".to_owned()),
        sent_at: Timestamp::from_millis(7000),
        put_back: 0,
        charged: None,
        reason: Some("not JSON".to_owned()),
    };
    let letters = SqsDeadLetters::new(&config, "acme".parse()?, &dead, vec![own.clone()], None);

    SqsSource::new(&config, &own, &dead).send_to_dead_letters(&letter).await?;
    let found = letters.look(true).await?;

    assert_eq!(found[0].sender, letter.sender);
    let seen: Vec<_> = found.iter().map(|one| (one.body.as_str(), one.reason.as_deref(), one.sent_at)).collect();
    assert_eq!(seen, [("{}", Some("not JSON"), letter.sent_at)]);
    // Nobody knows the queue that it came from.
    assert!(!letters.put_back(&found[0]).await?);
    letters.remove(&found[0]).await?;
    assert_eq!(letters.look(true).await?, []);
    Ok(())
}

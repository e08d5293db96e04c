//! Many customers, and a hostile one among them: a flood of messages in the reports queue, and a reports queue that is
//! full.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_sqs::types::{QueueAttributeName, SendMessageBatchRequestEntry};
use freehold_domain::reports::budget::Rates;
use freehold_domain::reports::shards::{MAX_ACCOUNTS, ReportShard};
use freehold_protocol::AccountId;
use freehold_tests::harness::wait::until;
use freehold_tests::harness::{Capability, Needs, World, app};
use serde_json::json;

const NEEDS: Needs =
    Needs { cloud: &[Capability::HttpApi, Capability::IamEnforced, Capability::EmptyAccounts], programs: &["bwrap"] };
/// The local cloud runs 5 copies of a function for a queue, with the processors of this machine. AWS runs 100, with
/// a part of a processor each. A flood of a million is scaled by that.
const FLOOD: usize = 20_000;
const LIMIT: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_one_customer_delays_the_reports_of_another_by_less_than_a_minute() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_flood.flood", NEEDS).await? else { return Ok(()) };
    world.vendor(&["app", "sync", &app::small(world.directory())?.display().to_string()]).await?;
    let hostile = world.install("globex", "small").await?;
    let mut attacker = world.runner(&hostile).await?;
    world.provisioned(&hostile).await?;
    let honest = world.install("initech", "small").await?;
    let _runner = world.runner(&honest).await?;
    world.provisioned(&honest).await?;
    attacker.kill().await?;
    let before = world.vendor(&["action", "run", "initech", "say"]).await?;
    let calm = budget(&world).await?;

    let role = world.role(&hostile.account, &format!("fh-{}--globex--runner", world.tenant())).await?;
    let sqs = aws_sdk_sqs::Client::new(&world.acting_as(role)?);
    let queue = queue(&world, "reports").await?;
    for batch in 0..FLOOD / 10 {
        let entries = (0..10).map(|at| {
            let noise = format!("noise {batch} {at}");
            SendMessageBatchRequestEntry::builder().id(at.to_string()).message_body(noise).build()
        });
        let entries: Vec<_> = entries.collect::<Result<_, _>>()?;
        sqs.send_message_batch().queue_url(&queue).set_entries(Some(entries)).send().await?;
    }
    let began = Instant::now();
    let run = world.vendor(&["action", "run", "initech", "say"]).await?;
    let took = began.elapsed();

    assert_eq!((&before["state"], &run["state"]), (&json!("succeeded"), &json!("succeeded")), "{run}");
    assert!(took < LIMIT, "the action of another customer took {took:?} in a flood of {FLOOD} messages");
    assert_eq!(calm, None, "a customer who sends a few reports needs no row");
    until("the flood is handled", LIMIT * 15, || async { Ok((waiting(&world, "reports").await? == 0).then_some(())) })
        .await?;
    let budget = budget(&world).await?.context("no budget was claimed")?;
    println!("an action took {took:?} behind {FLOOD} messages; {budget}");
    // The row has what is left of each rate.
    let left: serde_json::Value = serde_json::from_str(&budget)?;
    let all = u64::from(Rates::INSTALL.waiting.most);
    assert!(
        left["waiting"]["count"].as_u64().is_some_and(|left| left < all),
        "none of the flood had to wait: {budget}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_install_that_finds_the_queue_full_reports_through_the_next_one() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_flood.shards", NEEDS).await? else { return Ok(()) };
    world.vendor(&["app", "sync", &app::small(world.directory())?.display().to_string()]).await?;
    let first = world.install("globex", "small").await?;
    let _first = world.runner(&first).await?;
    world.provisioned(&first).await?;
    fill(&world, &first.account.parse()?).await?;

    let second = world.install("initech", "small").await?;
    let _second = world.runner(&second).await?;
    world.provisioned(&second).await?;
    let run = world.vendor(&["action", "run", "initech", "say"]).await?;
    let again = world.vendor(&["action", "run", "globex", "say"]).await?;

    assert_eq!((&run["state"], &again["state"]), (&json!("succeeded"), &json!("succeeded")), "{run} {again}");
    let config = std::fs::read_to_string(&second.config)?;
    assert!(config.contains("--reports--2\""), "{config}");
    let (before, after) = (policy(&world, "reports").await?, policy(&world, "reports--2").await?);
    assert!(after.contains(&second.account) && !after.contains(&first.account), "{after}");
    assert!(before.contains(&first.account) && !before.contains(&second.account), "{before}");
    let status = world.vendor(&["tenant", "status"]).await?.to_string();
    assert!(status.contains("--reports--2"), "{status}");
    Ok(())
}

/// Fills the first reports queue with installs of other accounts, as `register-install` would have done.
async fn fill(world: &World, kept: &AccountId) -> anyhow::Result<()> {
    let mut shard = ReportShard::new(ReportShard::FIRST);
    shard.installs.insert("globex".parse()?, kept.clone());
    for number in 1..MAX_ACCOUNTS {
        shard.installs.insert(format!("c{number:05}").parse()?, format!("{number:012}").parse()?);
    }
    let table = aws_sdk_dynamodb::Client::new(&world.administrator(world.tenant_account())?);
    let put = table.put_item().table_name(format!("fh-{}", world.tenant()));
    let put = put.item("pk", AttributeValue::S("reports".to_owned()));
    let put = put.item("sk", AttributeValue::S("shard#000001".to_owned()));
    let put = put.item("rev", AttributeValue::N("7".to_owned()));
    put.item("body", AttributeValue::S(serde_json::to_string(&shard)?)).send().await?;
    Ok(())
}

/// Returns the budget of `globex` as it is in the table.
async fn budget(world: &World) -> anyhow::Result<Option<String>> {
    Ok(world.rows("install#globex", "budget").await?.first().map(|(_, body)| body.to_string()))
}

async fn queue(world: &World, name: &str) -> anyhow::Result<String> {
    let sqs = aws_sdk_sqs::Client::new(&world.administrator(world.tenant_account())?);
    let found = sqs.get_queue_url().queue_name(format!("fh-{}--{name}", world.tenant())).send().await?;
    Ok(found.queue_url().context("no such queue")?.to_owned())
}

async fn attribute(world: &World, name: &str, attribute: QueueAttributeName) -> anyhow::Result<String> {
    let sqs = aws_sdk_sqs::Client::new(&world.administrator(world.tenant_account())?);
    let url = queue(world, name).await?;
    let answer = sqs.get_queue_attributes().queue_url(url).attribute_names(attribute.clone()).send().await?;
    Ok(answer.attributes().and_then(|all| all.get(&attribute)).cloned().unwrap_or_default())
}

async fn policy(world: &World, name: &str) -> anyhow::Result<String> {
    attribute(world, name, QueueAttributeName::Policy).await
}

async fn waiting(world: &World, name: &str) -> anyhow::Result<usize> {
    Ok(attribute(world, name, QueueAttributeName::ApproximateNumberOfMessages).await?.parse()?)
}

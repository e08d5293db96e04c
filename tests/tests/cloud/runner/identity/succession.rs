//! Another root key follows the tenant's: an install that names the first one works without a new launch, also one whose
//! runner slept meanwhile, and whoever has the first key can do nothing more.

use anyhow::Context as _;
use aws_sdk_kms::types::{KeySpec, KeyUsageType};
use freehold_tests::harness::forger::{Forger, order};
use freehold_tests::harness::runner::{Runner, Signal};
use freehold_tests::harness::wait::{SOON, until};
use freehold_tests::harness::{Capability, Needs, World, app};
use serde_json::Value;

const NEEDS: Needs = Needs { cloud: &[Capability::HttpApi, Capability::EmptyAccounts], programs: &["bwrap"] };

/// Makes a key in KMS that can be a root; returns its ARN.
async fn new_key(world: &World) -> anyhow::Result<String> {
    let kms = aws_sdk_kms::Client::new(&world.administrator(world.tenant_account())?);
    let made = kms.create_key().key_spec(KeySpec::EccNistEdwards25519).key_usage(KeyUsageType::SignVerify);
    let made = made.send().await?;
    Ok(made.key_metadata().and_then(|key| key.arn()).context("a key without an ARN")?.to_owned())
}

/// Sends a forged order and returns why it was refused.
async fn refused(world: &World, forger: &Forger, cause: &str) -> anyhow::Result<String> {
    let order = order(world, "globex", cause)?;
    let job = order.job.to_string();
    let sqs = aws_sdk_sqs::Client::new(
        &world.acting_as(world.service_role(&format!("fh-{}--dispatch-job", world.tenant())).await?)?,
    );
    let vendor = aws_sdk_sqs::Client::new(&world.administrator(world.tenant_account())?);
    let queue = vendor.get_queue_url().queue_name(format!("fh-{}--globex.fifo", world.tenant())).send().await?;
    let send = sqs.send_message().queue_url(queue.queue_url().context("no queue")?);
    let send = send.message_body(forger.sign(&order)?.to_json()?).message_group_id(cause);
    send.message_deduplication_id(cause).send().await?;
    until(cause, SOON, || async {
        let mut rows = world.rows("install#globex", "refused#").await?;
        rows.extend(world.rows(&format!("job#{job}"), "refused#").await?);
        let reasons = rows.iter().filter_map(|(_, row)| Some(row["reason"].as_str()?.to_owned()));
        Ok(reasons.into_iter().find(|reason| reason.contains(cause_of(cause))))
    })
    .await
}

/// Returns what the refusal of a forged order has to say.
fn cause_of(cause: &str) -> &'static str {
    match cause {
        "early-usurper" => "only `",
        "usurper" => "has two successors",
        _ => "was replaced by another",
    }
}

/// Ends a runner in order: what it would receive afterwards stays in the queue.
async fn stop(runner: &mut Runner) -> anyhow::Result<()> {
    runner.signal(Signal::TERM)?;
    runner.ends(SOON).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn another_root_follows_while_a_runner_sleeps_and_the_first_one_is_worth_nothing() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_succession", NEEDS).await? else { return Ok(()) };
    let key = new_key(&world).await?;
    let first = world.vendor(&["tenant", "rotate-root", "--announce", "--second", &key]).await?;
    world.ship(&app::small(world.directory())?).await?;
    let install = world.install("globex", "small").await?;
    let mut runner = world.runner(&install).await?;
    world.provisioned(&install).await?;
    let before = world.vendor(&["action", "run", "globex", "say"]).await?;
    let (thief, usurper) = (Forger::certified(&world).await?, Forger::usurper(&world).await?);
    let early = refused(&world, &usurper, "early-usurper").await?;
    stop(&mut runner).await?;

    let switched = world.vendor(&["tenant", "rotate-root", "--to", &key, "--lost"]).await?;
    runner.start_again()?;
    let after = world.vendor(&["action", "run", "globex", "say"]).await?;
    let stolen = refused(&world, &thief, "thief").await?;
    let usurped = refused(&world, &usurper, "usurper").await?;
    stop(&mut runner).await?;
    runner.start_again()?;
    let restarted = refused(&world, &thief, "thief-again").await?;
    let last = world.vendor(&["action", "run", "globex", "say"]).await?;
    let log = runner.log();

    for run in [before, after, last] {
        assert_eq!(run["state"], "succeeded", "{run}");
    }
    assert_eq!(first["second"], switched["root_key"], "the announced key follows");
    assert_eq!(first["root_key"], switched["former"]);
    for (what, reason) in
        [("a usurper before", &early), ("a thief", &stolen), ("a usurper", &usurped), ("a restart", &restarted)]
    {
        assert!(reason.starts_with("order refused as bad_signature: "), "{what}: {reason}");
    }
    assert!(log.contains("of the tenant has replaced"), "{log}");

    // With the first key, which the stack still names, the customer verifies what both roots signed.
    let asked = |words: &'static [&'static str]| {
        let world = &world;
        let account = &install.account;
        async move {
            let all = [&["customer"], words, &["--tenant", world.tenant(), "--json"]].concat();
            let ask = || async { world.command(account, &all).await?.json() };
            // The runner may store its newest records after the report of a job's end.
            let look = || async { Ok(ask().await.ok().filter(is_proven)) };
            match until("the customer can prove it", SOON, look).await {
                Ok(answer) => Ok(answer),
                Err(_) => ask().await,
            }
        }
    };
    let verified: Value = asked(&["audit", "verify", "globex"]).await?;
    let ran: Value = asked(&["ran", "globex"]).await?;
    assert!(is_proven(&verified), "{verified}");
    assert!(is_proven(&ran), "{ran}");
    Ok(())
}

/// Returns whether the answer to a question of the customer is yes.
fn is_proven(answer: &Value) -> bool {
    answer["verified"] == true || answer["proven"] == true
}

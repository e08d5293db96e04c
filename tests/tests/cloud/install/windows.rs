//! The customer's change windows with real programs: what comes outside waits and says until when, a vendor that sends
//! anyway is refused by the runner, and everything continues when the window opens.

use anyhow::Context as _;
use freehold_tests::harness::forger::{Forger, order};
use freehold_tests::harness::wait::{SOON, until};
use freehold_tests::harness::{Capability, Install, Needs, World, app};
use jiff::ToSpan as _;
use serde_json::Value;

const NEEDS: Needs = Needs {
    cloud: &[Capability::HttpApi, Capability::Registry, Capability::EmptyAccounts],
    programs: &["bwrap", "terraform|tofu"],
};
const HOUR_MS: i64 = 60 * 60 * 1000;

/// Returns a window of an hour that begins in three to four hours, and its beginning as messages have it.
fn later() -> anyhow::Result<(String, jiff::Timestamp)> {
    let from = jiff::Timestamp::from_millisecond((jiff::Timestamp::now().as_millisecond() / HOUR_MS + 4) * HOUR_MS)?;
    let wall = from.strftime("%a %H:%M").to_string();
    let end = from.checked_add(1.hour())?.strftime("%H:%M").to_string();
    Ok((format!("ChangeWindows=UTC: {wall}-{end}"), from))
}

async fn customer(world: &World, install: &Install, words: &[&str]) -> anyhow::Result<Value> {
    let all = [&["customer"], words, &["--tenant", world.tenant(), "--json"]].concat();
    world.command(&install.account, &all).await?.json()
}

/// Returns the nodes of a workflow that wait for the customer's window.
async fn waiting(world: &World, workflow: &str) -> anyhow::Result<Vec<Value>> {
    let view = world.vendor(&["workflow", "show", workflow]).await?;
    let nodes = view["nodes"].as_array().cloned().unwrap_or_default();
    Ok(nodes.into_iter().filter(|node| node["state"] == "waiting_for_window").collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_outside_the_window_waits_and_says_until_when_whatever_the_vendor_sends() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_windows", NEEDS).await? else { return Ok(()) };
    let demo = app::demo(world.directory(), &[1000])?;
    world.ship(&demo).await?;
    let (closed, opens) = later()?;
    let install = world.install_answering("globex", "demo", &[&closed]).await?;
    let mut runner = world.runner(&install).await?;
    let workflow = install.created["workflow"].as_str().context("no workflow")?.to_owned();
    let opens = u64::try_from(opens.as_millisecond())?;

    let waits = until("the provisioning waits for the window", SOON, || async {
        let waits = waiting(&world, &workflow).await?;
        Ok((!waits.is_empty()).then_some(waits))
    })
    .await?;
    let job = waits[0]["job"].as_str().context("no job")?;
    let job_view = world.vendor(&["job", "show", job]).await?;
    let vendors = world.vendor(&["install", "show", "globex"]).await?;
    let customers = customer(&world, &install, &["windows", "globex"]).await?;

    assert!(waits.iter().all(|node| node["opens_at"] == opens), "{waits:?}");
    assert_eq!((&job_view["state"], &job_view["opens_at"]), (&Value::from("waiting_for_window"), &Value::from(opens)));
    assert_eq!((&vendors["changes"]["open"], &vendors["changes"]["until"]), (&Value::from(false), &Value::from(opens)));
    assert_eq!((&customers["open"], &customers["until"]), (&Value::from(false), &Value::from(opens)));
    assert!(world.rows(&format!("job#{job}"), "order#").await?.is_empty(), "an order was made");

    // The vendor's control plane could send all the same.
    let forger = Forger::certified(&world).await?;
    let forged = order(&world, "globex", "outside the window")?;
    send(&world, &forger.sign(&forged)?.to_json()?, "first").await?;
    let refused = until("the runner refuses", SOON, || async {
        let mut rows = world.rows("install#globex", "refused#").await?;
        rows.extend(world.rows(&format!("job#{}", forged.job), "refused#").await?);
        let reason = |row: &Value| row["reason"].as_str().unwrap_or_default().to_owned();
        Ok(rows.iter().map(|(_, row)| reason(row)).find(|reason| reason.contains("outside_window")))
    })
    .await?;
    assert!(refused.contains("the customer's change windows are closed until"), "{refused}");
    assert!(!runner.log().contains(&format!("Started job `{}`", forged.job)), "the forged order ran");

    world.change_stack(&install, &["ChangeWindows=UTC: daily 00:00-24:00"]).await?;
    runner.kill().await?;
    runner.start_again()?;
    world.provisioned(&install).await?;
    assert!(waiting(&world, &workflow).await?.is_empty());

    // Another message with the order that was given back starts nothing, although the window is open. It is
    // given back once more.
    let starts = runner.log().matches("Started job").count();
    send(&world, &forger.sign(&forged)?.to_json()?, "again").await?;
    runner.logs("an earlier delivery of the order was given back", SOON).await?;
    assert_eq!(runner.log().matches("Started job").count(), starts, "the order that was given back ran");

    // A hold is one command, and lifting it is another.
    let held = customer(&world, &install, &["hold", "globex"]).await?;
    let says = customer(&world, &install, &["windows", "globex"]).await?;
    assert_eq!((&held["value"], &says["open"]), (&Value::from("true"), &Value::from(false)), "{held} {says}");
    runner.kill().await?;
    runner.start_again()?;
    until("the vendor sees the hold", SOON, || async {
        Ok((world.vendor(&["install", "show", "globex"]).await?["changes"]["open"] == false).then_some(()))
    })
    .await?;
    let started = world.vendor(&["deploy", "globex", "--all", "--no-wait"]).await?;
    let deploy = started["workflow"].as_str().context("no workflow")?.to_owned();
    until("the deploy waits for the end of the hold", SOON, || async {
        Ok((!waiting(&world, &deploy).await?.is_empty()).then_some(()))
    })
    .await?;
    customer(&world, &install, &["lift-hold", "globex"]).await?;
    runner.kill().await?;
    runner.start_again()?;
    let done = world.vendor(&["workflow", "watch", &deploy]).await?;
    assert_eq!(done["state"], "succeeded", "{done}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_freeze_only_whom_the_customer_names_passes_and_texts_that_never_open_are_told() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_windows_now", NEEDS).await? else { return Ok(()) };
    let demo = app::demo(world.directory(), &[1000])?;
    world.ship(&demo).await?;
    let install = world.install("globex", "demo").await?;
    let mut runner = world.runner(&install).await?;
    world.provisioned(&install).await?;
    let sts = aws_sdk_sts::Client::new(&world.administrator(world.tenant_account())?);
    let vendor = sts.get_caller_identity().send().await?.arn().context("a caller without an ARN")?.to_owned();

    // A freeze, and a vendor that wants to pass it without being named. The runner is killed while the deploy waits.
    world.change_stack(&install, &[&freeze()?, "ChangesNowBy=arn:aws:iam::999999999999:user/ana"]).await?;
    runner.kill().await?;
    runner.start_again()?;
    let deploy = started(&world, &["--now"]).await?;
    let reason = reason(&world, &deploy).await?;
    runner.kill().await?;
    let hellos = |log: &str| log.matches("Announced this runner").count();
    let before = hellos(&runner.log());
    runner.start_again()?;
    until("the runner is back", SOON, || async { Ok((hellos(&runner.log()) > before).then_some(())) }).await?;

    assert!(
        reason.contains("the customer's freeze") && reason.contains(&format!("does not let `{vendor}` pass")),
        "{reason}"
    );
    assert!(!waiting(&world, &deploy).await?.is_empty(), "the deploy continued");
    world.vendor(&["workflow", "cancel", &deploy]).await?;
    ended(&world, &deploy, "cancelled").await?;

    // The customer names the caller.
    world.change_stack(&install, &[&format!("ChangesNowBy={vendor}")]).await?;
    runner.kill().await?;
    runner.start_again()?;
    let deploy = started(&world, &["--now"]).await?;
    ended(&world, &deploy, "succeeded").await?;
    assert!(runner.log().contains("starts with `--now`, although the customer's freeze"), "{}", runner.log());

    // Texts that never open, or say nothing.
    for (windows, freezes, why) in [
        ("Mars/Base: Mon 22:00-23:00", "", "`ChangeWindows`, column 1: `Mars/Base` is not a time zone"),
        ("UTC: daily 00:00-24:00", "2026-01-01..2099-01-01", "no window opens within 400 days"),
    ] {
        change_in_the_console(&world, &install, &[("ChangeWindows", windows), ("ChangeFreezes", freezes)]).await?;
        let words = ["customer", "windows", "globex", "--tenant", world.tenant()];
        let output = world.command(&install.account, &words).await?;
        assert!(output.code != 0 && output.error.contains(why), "{windows}: {} {}", output.code, output.error);
        runner.kill().await?;
        runner.start_again()?;
        let deploy = started(&world, &[]).await?;
        let reason = self::reason(&world, &deploy).await?;
        assert!(reason.contains(why) || reason.contains("no window opens soon"), "{windows}: {reason}");
        world.vendor(&["workflow", "cancel", &deploy]).await?;
        ended(&world, &deploy, "cancelled").await?;
    }

    // The end of the freeze.
    world.change_stack(&install, &["ChangeFreezes="]).await?;
    runner.kill().await?;
    runner.start_again()?;
    let deploy = started(&world, &[]).await?;
    ended(&world, &deploy, "succeeded").await
}

/// Changes parameters of the install stack without Freehold, which refuses texts that it cannot read.
async fn change_in_the_console(world: &World, install: &Install, given: &[(&str, &str)]) -> anyhow::Result<()> {
    let client = aws_sdk_cloudformation::Client::new(&world.administrator(&install.account)?);
    let name = format!("freehold-{}--{}", world.tenant(), install.name);
    let stacks = client.describe_stacks().stack_name(&name).send().await?;
    let stack = stacks.stacks().first().context("there is no install stack")?;
    let parameters = stack.parameters().iter().map(|one| {
        let key = one.parameter_key().unwrap_or_default();
        let parameter = aws_sdk_cloudformation::types::Parameter::builder().parameter_key(key);
        match given.iter().find(|(name, _)| *name == key) {
            Some((_, value)) => parameter.parameter_value(*value).build(),
            None => parameter.use_previous_value(true).build(),
        }
    });
    let can_name_roles = aws_sdk_cloudformation::types::Capability::CapabilityNamedIam;
    let update = client.update_stack().stack_name(&name).use_previous_template(true);
    let update = update.set_parameters(Some(parameters.collect())).capabilities(can_name_roles);
    update.send().await?;
    until("the stack is updated", SOON, async || {
        let stacks = client.describe_stacks().stack_name(&name).send().await?;
        let status = stacks.stacks().first().and_then(|stack| stack.stack_status().cloned());
        Ok((status.is_some_and(|status| status.as_str() == "UPDATE_COMPLETE")).then_some(()))
    })
    .await
}

/// Returns a freeze of the days around today.
fn freeze() -> anyhow::Result<String> {
    let day =
        |hours: i64| anyhow::Ok(jiff::Timestamp::now().checked_add(hours.hours())?.strftime("%Y-%m-%d").to_string());
    Ok(format!("ChangeFreezes={}..{}", day(-24)?, day(72)?))
}

/// Starts a deploy of everything, and returns its workflow.
async fn started(world: &World, options: &[&str]) -> anyhow::Result<String> {
    let words = [&["deploy", "globex", "--all", "--no-wait"], options].concat();
    Ok(world.vendor(&words).await?["workflow"].as_str().context("no workflow")?.to_owned())
}

/// Returns why a workflow waits for the customer's window, once it does.
async fn reason(world: &World, workflow: &str) -> anyhow::Result<String> {
    let waits = until("the deploy waits", SOON, || async {
        let waits = waiting(world, workflow).await?;
        Ok((!waits.is_empty()).then_some(waits))
    });
    let job = waits.await?[0]["job"].as_str().context("no job")?.to_owned();
    Ok(world.vendor(&["job", "show", &job]).await?["reason"].as_str().context("no reason")?.to_owned())
}

/// Waits until a workflow has ended, and checks how.
async fn ended(world: &World, workflow: &str, state: &str) -> anyhow::Result<()> {
    let found = until("the workflow ends", SOON, || async {
        let view = world.vendor(&["workflow", "show", workflow]).await?;
        Ok((!view["ended_at"].is_null()).then_some(view))
    })
    .await?;
    anyhow::ensure!(found["state"] == state, "the workflow is not {state}: {found}");
    Ok(())
}

/// Sends an order of the action `say` to the orders queue, as the vendor's control plane may.
async fn send(world: &World, body: &str, number: &str) -> anyhow::Result<()> {
    let credentials = world.service_role(&format!("fh-{}--dispatch-job", world.tenant())).await?;
    let sqs = aws_sdk_sqs::Client::new(&world.acting_as(credentials)?);
    let queues = aws_sdk_sqs::Client::new(&world.administrator(world.tenant_account())?);
    let found = queues.get_queue_url().queue_name(format!("fh-{}--globex.fifo", world.tenant())).send().await?;
    let send = sqs.send_message().queue_url(found.queue_url().context("no such queue")?).message_body(body);
    send.message_group_id("action:say")
        .message_deduplication_id(number)
        .send()
        .await
        .context("the queue refuses it")?;
    Ok(())
}

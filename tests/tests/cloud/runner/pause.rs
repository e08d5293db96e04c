//! A customer who pauses for a weekend, and one whose stack is gone: the clock of the whole cloud is moved, and the word of a
//! runner closes its queue.

use anyhow::Context as _;
use freehold_protocol::Envelope;
use freehold_protocol::report::{Away, AwayReason, Report, ReportBody};
use freehold_runner::keys::runner_key::Identity;
use freehold_tests::harness::forger::now;
use freehold_tests::harness::runner::Signal;
use freehold_tests::harness::wait::{SOON, until};
use freehold_tests::harness::{Capability, Install, Needs, Runner, World, app};
use serde_json::Value;

const NEEDS: Needs = Needs { cloud: &[Capability::HttpApi, Capability::IamEnforced], programs: &["bwrap"] };
/// From Friday evening to Monday morning.
const WEEKEND_SECS: i64 = 60 * 3600;

#[tokio::test(flavor = "multi_thread")]
async fn a_weekend_with_the_runner_off_ends_with_everything_done_once() -> anyhow::Result<()> {
    let Some((world, clock)) = World::start_with_clock("cloud_pause.weekend", NEEDS.programs).await? else {
        return Ok(());
    };
    let (install, mut runner) = ready(&world).await?;
    world.change_stack(&install, &["EnableRunner=false"]).await?;
    runner.logs("`EnableRunner` of install stack `freehold-acme--globex` is `false`", SOON).await?;
    connection(&world, "paused").await?;
    runner.kill().await?;
    let begun = world.vendor(&["action", "run", "globex", "say", "--no-wait"]).await?;
    let ordered = job(&world).await?;

    clock.set(WEEKEND_SECS)?;
    let waited = until("the job waits past the expiry of its order", SOON, || async {
        let job = job(&world).await?;
        Ok((count(&job, "wait") > 0).then_some(job))
    })
    .await?;
    let paused = connection(&world, "paused").await?;
    world.change_stack(&install, &["EnableRunner=true"]).await?;
    let runner = world.runner_of_stack(&install).await?;
    let workflow = begun["workflow"].as_str().context("an action without a workflow")?;
    let ended = world.vendor(&["workflow", "watch", workflow]).await?;

    assert_eq!((&waited["state"], &waited["waits_since"]), (&"waiting_for_runner".into(), &ordered["created_at"]));
    assert!(millis(&paused["since"]) <= millis(&ordered["created_at"]), "{paused}, {ordered}");
    assert_eq!(ended["state"], "succeeded", "{ended}\n{}", runner.log());
    let done = job(&world).await?;
    // The report of the start is dropped when that of the end is handled first.
    assert!(count(&done, "returned") == 1 && count(&done, "started") <= 1, "{done}");
    let started = format!("Started job `{}`", done["job"].as_str().unwrap_or_default());
    assert_eq!(runner.log().matches(&started).count(), 1, "{}", runner.log());
    let back = connection(&world, "connected").await?;
    assert!(millis(&back["since"]) >= millis(&ordered["created_at"]) + 1000 * WEEKEND_SECS, "{back}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_word_that_the_stack_is_gone_closes_the_queue_until_the_next_hello() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_pause.gone", NEEDS).await? else { return Ok(()) };
    let (install, mut runner) = ready(&world).await?;
    let role = world.role(&install.account, "fh-acme--globex--runner").await?;
    let (queues, own) =
        (aws_sdk_sqs::Client::new(&world.acting_as(role)?), Identity::load_or_make(&runner.state_directory()?)?);
    let orders = queue(&world, "globex.fifo").await?;
    let receives = || async { queues.receive_message().queue_url(&orders).visibility_timeout(0).send().await.is_ok() };
    // Stopped and not killed: the open poll of a killed runner would take the order of the action.
    runner.signal(Signal::TERM)?;
    runner.ends(SOON).await?;
    let before = receives().await;

    let gone = gone(&world, &own)?;
    queues.send_message().queue_url(queue(&world, "reports").await?).message_body(gone).send().await?;
    let cut_off = connection(&world, "cut_off").await?;
    until("the queue is closed", SOON, || async { Ok((!receives().await).then_some(())) }).await?;
    let begun = world.vendor(&["action", "run", "globex", "say", "--no-wait"]).await?;
    let all = world.vendor(&["workflow", "list", "globex"]).await?;
    runner.start_again()?;
    let workflow = begun["workflow"].as_str().context("an action without a workflow")?;
    let ended = world.vendor(&["workflow", "watch", workflow]).await?;

    assert!(before, "the runner's role cannot receive while its stack exists");
    assert_eq!(cut_off["reason"], "the stack is being deleted");
    let kinds: Vec<&Value> = all.as_array().into_iter().flatten().map(|one| &one["kind"]).collect();
    assert_eq!(kinds, ["run-action", "provision-install"], "nothing is deprovisioned by itself");
    assert_eq!(ended["state"], "succeeded", "{ended}\n{}", runner.log());
    connection(&world, "connected").await?;
    Ok(())
}

/// Returns an install that is provisioned, and its runner.
pub(super) async fn ready(world: &World) -> anyhow::Result<(Install, Runner)> {
    world.vendor(&["app", "sync", &app::small(world.directory())?.display().to_string()]).await?;
    let install = world.install("globex", "small").await?;
    let runner = world.runner_of_stack(&install).await?;
    world.provisioned(&install).await?;
    Ok((install, runner))
}

/// Returns the last report of a runner whose machine ends with its stack.
fn gone(world: &World, runner: &Identity) -> anyhow::Result<String> {
    let report = Report {
        tenant: world.tenant().parse()?,
        install: "globex".parse()?,
        runner: runner.id().clone(),
        at: now()?,
        head: None,
        body: ReportBody::Away(Away {
            reason: AwayReason::StackDeleted,
            detail: "the stack is being deleted".to_owned(),
        }),
    };
    Ok(Envelope::seal(&report, &[runner.key()])?.to_json()?)
}

/// Waits until the connection of the install has this state, and returns it.
async fn connection(world: &World, state: &str) -> anyhow::Result<Value> {
    until(&format!("the install is {state}"), SOON, || async {
        let view = world.vendor(&["install", "show", "globex"]).await?["connection"].take();
        Ok((view["state"] == state).then_some(view))
    })
    .await
}

/// Returns the job of the newest workflow, once it has one.
pub(super) async fn job(world: &World) -> anyhow::Result<Value> {
    let id = until("the action has a job", SOON, || async {
        let workflow = world.newest_workflow("globex").await?;
        Ok(workflow["nodes"][0]["job"].as_str().map(str::to_owned))
    })
    .await?;
    world.vendor(&["job", "show", &id]).await
}

/// Returns how often this happened to a job.
fn count(job: &Value, what: &str) -> usize {
    job["history"].as_array().into_iter().flatten().filter(|record| record["what"] == what).count()
}

fn millis(time: &Value) -> i64 {
    time.as_i64().unwrap_or_default()
}

async fn queue(world: &World, name: &str) -> anyhow::Result<String> {
    let sqs = aws_sdk_sqs::Client::new(&world.administrator(world.tenant_account())?);
    let found = sqs.get_queue_url().queue_name(format!("fh-acme--{name}")).send().await?;
    Ok(found.queue_url().context("no such queue")?.to_owned())
}

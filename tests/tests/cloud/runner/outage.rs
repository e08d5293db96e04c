//! A control plane that handles no message for longer than the timers of a job: the clock of the whole cloud is moved, and SQS
//! moves the reports to the dead letters meanwhile.

use anyhow::Context as _;
use freehold_tests::faults::Queues;
use freehold_tests::harness::runner::Signal;
use freehold_tests::harness::wait::{SOON, until};
use freehold_tests::harness::{Capability, Needs, World};
use serde_json::json;

use super::pause::{job, ready};

const NEEDS: Needs = Needs { cloud: &[Capability::HttpApi, Capability::IamEnforced], programs: &["bwrap"] };
/// Longer than each time after which something happens to a job, a connection or a workflow by itself, but for the 13 days that
/// a job waits and the 3 days that a workflow waits without a sweep.
const OUTAGE_SECS: i64 = 60 * 3600;

#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_that_waits_for_days_with_the_dead_letters_counts_once() -> anyhow::Result<()> {
    let Some((world, clock)) = World::start_with_clock("cloud_outage.days", NEEDS.programs).await? else {
        return Ok(());
    };
    let (install, mut runner) = ready(&world).await?;
    let queues = Queues::new(&world)?;
    queues.empty("reports").await?;
    queues.enable("reports", false).await?;
    let begun = world.vendor(&["action", "run", "globex", "say", "--no-wait"]).await?;
    let ordered = job(&world).await?;
    let started = format!("Started job `{}`", ordered["job"].as_str().unwrap_or_default());
    runner.logs(&started, SOON).await?;
    queues.empty("globex.fifo").await?;
    // It ends when the queue has its reports.
    runner.signal(Signal::TERM)?;
    runner.ends(SOON).await?;
    let first = runner.log();
    queues.enable_all(false).await?;
    let dead = queues.move_reports_to_dead_letters().await?;

    clock.set(OUTAGE_SECS)?;
    let waited = until("the job waits past the expiry of its order", SOON, || async {
        let job = job(&world).await?;
        Ok((job["state"] == "waiting_for_runner").then_some(job))
    })
    .await?;
    queues.enable_all(true).await?;
    let workflow = begun["workflow"].as_str().context("an action without a workflow")?;
    let ended = world.vendor(&["workflow", "watch", workflow]).await?;
    let done = world.vendor(&["job", "show", ordered["job"].as_str().unwrap_or_default()]).await?;
    queues.empty("dead").await?;
    let runner = world.runner_of_stack(&install).await?;
    let next = world.vendor(&["action", "run", "globex", "say"]).await?;

    assert!(dead > 1, "only {dead} reports were dead letters");
    assert_eq!(waited["waits_since"], ordered["created_at"], "{waited}");
    assert_eq!((&ended["state"], &done["state"]), (&json!("succeeded"), &json!("succeeded")), "{ended} {done}");
    assert_eq!(first.matches(&started).count(), 1, "{first}");
    assert!(runner.log().matches(&started).count() <= 1, "the job ran again: {}", runner.log());
    assert_eq!(next["state"], "succeeded", "{next}");
    Ok(())
}

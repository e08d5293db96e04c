//! Faults of orders on their way to the runner.

use std::time::Duration;

use anyhow::ensure;

use super::calls::{self, Work};
use super::cell::{Cell, INSTALL, POLL};
use super::class::{Point, Tried, declare};
use crate::harness::runner::Signal;
use crate::harness::wait::{SOON, until};

/// Longer than a lease.
const PAUSE: Duration = Duration::from_secs(32);

declare! {
    1 "an order is delivered twice" delivered_twice [];
    2 "the lease ends before the job starts" lapsed_before_the_start [];
    4 "sending an order fails, or its answer is lost" sending_fails [];
    32 "a cancel meets the start or the end of a job" cancel_races [];
}

/// The queue's answer comes again, while the job runs or as soon as it has ended; or the order is sent twice.
async fn delivered_twice(cell: &mut Cell, point: Point) -> anyhow::Result<Tried> {
    let how = point.of(&["running", "ended", "sent"]);
    if how == "sent" {
        cell.on_functions("sqs.SendMessage 1 duplicate about=.fifo")?;
    } else {
        cell.on_runner("sqs.ReceiveMessage 1 repeat-answer times=2")?;
        cell.effects().hold(how == "running");
    }
    let begun = cell.act("note").await?;
    cell.wrote(&begun, "begin", 0).await?;
    if how == "running" {
        cell.hit_within(Duration::from_secs(25)).await;
    }
    cell.effects().hold(false);
    let ended = cell.ended(&begun).await?;
    if how == "ended" {
        cell.hit_within(Duration::from_secs(25)).await;
    }
    let hit = cell.hits() > 0;
    cell.calm();
    cell.everything_once(&begun, &ended).await?;
    let next = cell.act("note").await?;
    cell.succeeds(&next).await?;
    let begun = begun.before(&next);
    cell.everything_once(&begun, &cell.ended(&begun).await?).await?;
    Ok(Tried::when(hit))
}

/// The queue's answer is on its way for longer than the lease; or it arrives, and the runner stands still (SIGSTOP) before it
/// can read it.
async fn lapsed_before_the_start(cell: &mut Cell, mut point: Point) -> anyhow::Result<Tried> {
    let stopped = point.of(&[false, true]);
    let late = if stopped { 5_000 } else { point.rng.u64(31_000..35_000) };
    let queue = format!("{INSTALL}.fifo");
    cell.queues.empty(&queue).await?;
    cell.on_runner(&format!("sqs.ReceiveMessage 1 delay-answer:{late} about={queue}"))?;
    // The poll that is under way does not meet the rule. Each one after it does, and one of them takes the order.
    cell.hit_within(2 * POLL).await;
    if cell.hits() == 0 {
        cell.calm();
        return Ok(Tried::Missed);
    }
    let begun = cell.act("again").await?;
    let taken = || async { Ok((cell.queues.taken(&queue).await? > 0).then_some(())) };
    until("the order is on its way", SOON, taken).await?;
    // What is under way stays late.
    cell.calm();
    if stopped {
        cell.runner.signal(Signal::STOP)?;
        tokio::time::sleep(PAUSE).await;
        cell.runner.signal(Signal::CONT)?;
    }
    let workflow = cell.ended(&begun).await?;
    cell.succeeds(&begun).await?;
    let jobs = cell.jobs(&workflow).await?;
    let receives = jobs.iter().filter_map(|(_, job)| job.state.fence()).map(|fence| fence.receive).max();
    ensure!(receives > Some(1), "the late delivery was the one that counted: {receives:?}");
    ensure!(cell.effects_of(&begun).len() == 1, "it ran twice: {:?}", cell.effects_of(&begun));
    Ok(Tried::Passed)
}

/// The function's message to the runner's queue is lost, or the queue's answer, for each order of a deploy.
async fn sending_fails(cell: &mut Cell, point: Point) -> anyhow::Result<Tried> {
    const FAULTS: [&str; 4] = ["drop-request", "drop-answer", "error", "truncate"];
    let orders = cell.calls(&point, Work::Deploy, calls::ORDERS).await?;
    let [fault, order] = point.among([FAULTS.len(), orders]);
    cell.fail(calls::ORDERS, FAULTS[fault], &format!("skip={order} times=1"))?;
    let begun = cell.deploy().await?;
    cell.succeeds(&begun).await?;
    let hit = cell.hits() > 0;
    cell.calm();
    Ok(Tried::when(hit))
}

/// A person stops the run before its order is taken, when its job begins, after its effect, or at a moment of the draw.
async fn cancel_races(cell: &mut Cell, mut point: Point) -> anyhow::Result<Tried> {
    let when = point.of(&["sent", "begun", "done", "drawn"]);
    cell.effects().hold(when == "begun");
    let begun = cell.act("note").await?;
    match when {
        "sent" => {}
        "begun" => cell.wrote(&begun, "begin", 0).await?,
        "done" => cell.wrote(&begun, "end", 0).await?,
        _ => tokio::time::sleep(Duration::from_millis(point.rng.u64(0..2500))).await,
    }
    let cancel = cell.world.run(&["workflow", "cancel", begun.workflow.as_str()]).await?;
    let workflow = cell.ended(&begun).await?;
    cell.effects().hold(false);
    cell.everything_once(&begun, &workflow).await?;
    let state = workflow.state.as_str();
    let jobs = cell.jobs(&workflow).await?;
    let succeeded = jobs.iter().any(|(_, job)| job.state.as_str() == "succeeded");
    // Exactly one wins: who was told that it is cancelled finds it so, and nothing that was refused is cancelled.
    ensure!((state == "succeeded") == succeeded, "the workflow is {state}, its job succeeded: {succeeded}");
    ensure!(cancel.code == 0 || state == "succeeded", "the cancel was refused ({}), and it is {state}", cancel.error);
    ensure!(!succeeded || cell.effects_of(&begun).len() == 1, "it succeeded without its effect");
    ensure!(when != "begun" || state == "cancelled", "a cancel in the middle of the job was lost: it is {state}");
    let next = cell.act("note").await?;
    cell.succeeds(&next).await?;
    Ok(Tried::Passed)
}

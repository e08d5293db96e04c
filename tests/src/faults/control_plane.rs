//! Faults of functions, of their callbacks, and of AWS that does not answer.

use std::time::Duration;

use super::cell::Cell;
use super::class::{Point, Tried, declare};
use super::table::once_right;

declare! {
    13 "a function is killed or invoked twice" killed_function [];
    14 "a callback is sent twice, late, or to a dead task" repeated_callback [];
    15 "the callback is lost after the commit" lost_callback [];
    16 "a state is retried and gets a new task token" retried_state [];
    30 "AWS never answers" black_hole [];
}

/// A function is killed before or after one of its calls: one after the other, over all calls of a deploy. In every third try
/// the messages to functions are doubled instead.
async fn killed_function(cell: &mut Cell, mut point: Point) -> anyhow::Result<Tried> {
    match point.of(&["kill-before", "kill-after", "twice"]) {
        "twice" => {
            cell.on_functions("sqs.SendMessage* 1 duplicate")?;
            cell.on_runner("sqs.SendMessage* 1 duplicate")?;
        }
        kill => {
            let skip = point.rng.u32(0..60);
            cell.on_functions(&format!("* 1 {kill} skip={skip} times=1"))?;
        }
    }
    once_right(cell).await
}

/// Each callback is sent twice at once, or again when the state machine has gone on or has ended.
async fn repeated_callback(cell: &mut Cell, point: Point) -> anyhow::Result<Tried> {
    let fault = point.of(&["duplicate", "replay:400", "replay:4000"]);
    cell.on_functions(&format!("states.SendTask* 1 {fault}"))?;
    let tried = once_right(cell).await?;
    let next = cell.act("note").await?;
    cell.succeeds(&next).await?;
    Ok(tried)
}

/// The function commits the end of the last job, and then fails or dies before Step Functions hears of it.
async fn lost_callback(cell: &mut Cell, point: Point) -> anyhow::Result<Tried> {
    let fault = point.of(&["kill-before times=1", "drop-request times=1 stubborn", "error times=2 stubborn"]);
    cell.on_functions(&format!("states.SendTaskSuccess 1 {fault}"))?;
    once_right(cell).await
}

/// The function that a state waits for dies after it has kept the state's token, so that the state is tried again with a
/// newer one.
async fn retried_state(cell: &mut Cell, point: Point) -> anyhow::Result<Tried> {
    let kill = point.of(&["kill-after", "kill-before"]);
    let call = point.of(&["dynamodb.* 1 KILL about=token times=1", "sqs.SendMessage* 1 KILL about=dispatch times=1"]);
    cell.on_functions(&call.replace("KILL", kill))?;
    once_right(cell).await
}

/// Calls of the functions are never answered, or all of the runner's calls are not for longer than its lease.
async fn black_hole(cell: &mut Cell, point: Point) -> anyhow::Result<Tried> {
    let which = point.of(&["dynamodb.*", "runner", "kms.*", "sqs.SendMessage", "states.*"]);
    if which != "runner" {
        cell.on_functions(&format!("{which} 1 black-hole:20 skip={} times=1 stubborn", point.round(5)))?;
        return once_right(cell).await;
    }
    cell.effects().hold(true);
    let begun = cell.act("again").await?;
    cell.wrote(&begun, "begin", 0).await?;
    cell.on_runner("* 1 black-hole:60")?;
    tokio::time::sleep(Duration::from_secs(33)).await;
    let hit = cell.hits() > 0;
    cell.calm();
    cell.succeeds(&begun).await?;
    Ok(Tried::when(hit))
}

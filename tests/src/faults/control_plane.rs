//! Faults of functions, of their callbacks, and of AWS that does not answer.

use std::time::Duration;

use anyhow::Context as _;

use super::calls::{self, Calls, Work};
use super::cell::Cell;
use super::class::{Point, Tried, declare, in_rows};
use super::table::once_right;

declare! {
    13 "a function is killed or invoked twice" killed_function [];
    14 "a callback is sent twice, late, or to a dead task" repeated_callback [];
    15 "the callback is lost after the commit" lost_callback [];
    16 "a state is retried and gets a new task token" retried_state [];
    30 "AWS never answers" black_hole [];
}

/// A function is killed before or after each of its calls in a deploy; or the messages to functions are doubled.
async fn killed_function(cell: &mut Cell, point: Point) -> anyhow::Result<Tried> {
    let count = cell.calls(&point, Work::Deploy, calls::OF_FUNCTIONS).await?;
    let at = point.with_extra(2 * count, 1);
    if at < 2 * count {
        cell.fail(calls::OF_FUNCTIONS, ["kill-before", "kill-after"][at % 2], &format!("skip={} times=1", at / 2))?;
    } else {
        cell.on_functions("sqs.SendMessage* 1 duplicate")?;
        cell.on_runner("sqs.SendMessage* 1 duplicate")?;
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

/// The function commits the end of a job, and then fails or dies before Step Functions hears of it: at each callback of a
/// deploy.
async fn lost_callback(cell: &mut Cell, point: Point) -> anyhow::Result<Tried> {
    const FAULTS: [(&str, &str); 3] =
        [("kill-before", "times=1"), ("drop-request", "times=1 stubborn"), ("error", "times=2 stubborn")];
    let callbacks = cell.calls(&point, Work::Deploy, calls::CALLBACKS).await?;
    let [fault, skip] = point.among([FAULTS.len(), callbacks]);
    let (fault, options) = FAULTS[fault];
    cell.fail(calls::CALLBACKS, fault, &format!("skip={skip} {options}"))?;
    once_right(cell).await
}

/// The function that a state waits for dies before or after it has kept the state's token or passed it on, so that the state
/// is tried again with a newer one: at each such call of a deploy.
async fn retried_state(cell: &mut Cell, point: Point) -> anyhow::Result<Tried> {
    const CALLS: [Calls; 2] = [calls::TOKENS, calls::DISPATCHES];
    let counts = cell.calls_each(&point, Work::Deploy, CALLS).await?;
    let [kill, call] = point.among([2, counts.iter().sum()]);
    let (kind, skip) = in_rows(call, &counts).context("no function passes a token on")?;
    cell.fail(CALLS[kind], ["kill-after", "kill-before"][kill], &format!("skip={skip} times=1"))?;
    once_right(cell).await
}

/// Each call of the functions in a deploy to the table, to KMS, to SQS and to Step Functions is never answered; or all of the
/// runner's calls are not for longer than its lease.
async fn black_hole(cell: &mut Cell, point: Point) -> anyhow::Result<Tried> {
    const CALLS: [Calls; 4] = [calls::TABLE, calls::KEYS, calls::MESSAGES, calls::MACHINES];
    let counts = cell.calls_each(&point, Work::Deploy, CALLS).await?;
    let at = point.with_extra(counts.iter().sum(), 1);
    match in_rows(at, &counts) {
        Some((kind, skip)) => {
            cell.fail(CALLS[kind], "black-hole:20", &format!("skip={skip} times=1"))?;
            once_right(cell).await
        }
        None => silent_runner(cell).await,
    }
}

async fn silent_runner(cell: &mut Cell) -> anyhow::Result<Tried> {
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

//! Faults between the functions and their table.

use anyhow::Context as _;

use super::calls::{self, Calls, Work};
use super::cell::{Begun, Cell};
use super::class::{Point, Tried, declare, in_rows};

declare! {
    10 "DynamoDB throttles" throttled [];
    11 "a conditional write fails, or its answer is lost" lost_writes [];
    12 "a transaction conflicts" conflicts [];
}

/// Three requests in ten are throttled, or half of them, for a whole deploy.
async fn throttled(cell: &mut Cell, point: Point) -> anyhow::Result<Tried> {
    let share = point.of(&["0.3", "0.5"]);
    cell.on_functions(&format!("dynamodb.* {share} throttle"))?;
    once_right(cell).await
}

/// A write is done and its answer is lost in every try of the call: each write of a deploy.
async fn lost_writes(cell: &mut Cell, point: Point) -> anyhow::Result<Tried> {
    const WRITES: [Calls; 3] = [calls::TRANSACTIONS, calls::UPDATES, calls::DELETIONS];
    let counts = cell.calls_each(&point, Work::Deploy, WRITES).await?;
    let [fault, write] = point.among([2, counts.iter().sum()]);
    let (kind, skip) = in_rows(write, &counts).context("a deploy writes nothing")?;
    cell.fail(WRITES[kind], ["drop-answer", "truncate"][fault], &format!("skip={skip} times=1"))?;
    once_right(cell).await
}

/// Another writer is always there first, for one call or for as many as its function tries: from each transaction on.
async fn conflicts(cell: &mut Cell, point: Point) -> anyhow::Result<Tried> {
    let transactions = cell.calls(&point, Work::Deploy, calls::TRANSACTIONS).await?;
    let [times, skip] = point.among([3, transactions]);
    cell.fail(calls::TRANSACTIONS, "conflict", &format!("skip={skip} times={}", [1, 3, 8][times]))?;
    once_right(cell).await
}

/// Deploys while the rules hold that were set, and checks that everything is right.
pub(super) async fn once_right(cell: &mut Cell) -> anyhow::Result<Tried> {
    let begun = cell.deploy().await?;
    ends_right(cell, &begun).await
}

/// Waits for the end of work that began while the rules hold, and checks that everything is right.
pub(super) async fn ends_right(cell: &mut Cell, begun: &Begun) -> anyhow::Result<Tried> {
    let ended = cell.ended(begun).await;
    let hit = cell.hits() > 0;
    cell.calm();
    ended?;
    cell.succeeds(begun).await?;
    Ok(Tried::when(hit))
}
